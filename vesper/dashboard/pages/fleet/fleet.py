"""The fleet: every node of the store, of the journal's doubts and of the project's files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vesper.dashboard.page import Context, Paging
from vesper.dashboard.pages.fleet.latency import Durations, Times, durations_of, times_of_state
from vesper.dashboard.pages.fleet.needs import Need, NeedKind, needs_of
from vesper.dashboard.problem import Unavailable
from vesper.dashboard.service import open_configured, read_metrics, unsent_findings
from vesper.dashboard.stores import Stores
from vesper.journal.errors import JournalError
from vesper.journal.journal import Status
from vesper.migration.control.modes import LADDER, Engine, Mode
from vesper.migration.control.state import NodeState
from vesper.migration.statistics.wilson import lower_bound
from vesper.migration.stores.codec import BadState
from vesper.migration.stores.configured import OpenStore
from vesper.migration.stores.ledger import KillSwitch
from vesper.migration.stores.overview import (
    NodeOverview,
    Overview,
    confidence_text,
    fleet,
    read_node,
    read_overview,
    running_mode,
)
from vesper.migration.stores.status_text import held_text, needed_text
from vesper.migration.stores.store import NodeKey

PAGE_ROWS = 50
MAX_DOUBTS = 5_000
"""Runs in doubt that are counted by node."""
SORTS = ("needs", "name", "mode", "confidence", "traffic", "divergences", "in_doubt")
NOT_ROUTED = "not_routed"
_DIRECT = f"/{Engine.DIRECT.value}"


@dataclass(frozen=True, slots=True)
class FleetRow:
    """A node in the epoch that was written last."""

    node: str
    mode: Mode | None
    """Mode in effect; None for a node that was not routed, and for an unreadable state."""
    needs: Sequence[Need]
    confidence: str = ""
    """Lower bound of the share of runs that agree, rounded down; empty without evidence."""
    lower_bound: float = 0.0
    agreed: int = 0
    """Number of distinct runs that agree."""
    needed: str = ""
    """What the next mode still needs."""
    held: str = ""
    """Latches, pin and limits that hold the mode."""
    pinned_by: str = ""
    """Person and reason of the pin; those of latches are among the needs."""
    python_requests: int = 0
    """Requests of the last day that Python answered."""
    direct_requests: int = 0
    open_divergences: int = 0
    in_doubt: int = 0
    python: Times | None = None
    direct: Times | None = None
    epoch: str | None = None

    @property
    def requests(self) -> int:
        return self.python_requests + self.direct_requests


@dataclass(frozen=True, slots=True)
class ModeTotal:
    mode: Mode
    nodes: int
    requests: int
    """Requests of the last day."""


@dataclass(frozen=True, slots=True)
class FleetPage:
    """All nodes, those that need a person first."""

    rows: Sequence[FleetRow]
    paging: Paging
    modes: Sequence[ModeTotal]
    nodes: int
    not_routed: int
    unreadable: int
    needing: int
    """Nodes that need a person."""
    requests: int
    """Requests of the last day."""
    direct_requests: int
    open_divergences: int
    in_doubt: int
    stopped: KillSwitch | None
    """Stop of all nodes, if any."""
    warnings: Sequence[str]
    written_us: int | None
    has_metrics: bool
    """Whether times come from the metrics of the service; otherwise from the runs timed last."""
    sort: str
    mode: str | None
    needs: bool
    name: str | None


def read_fleet(context: Context) -> FleetPage:
    """Read every store once; only the nodes of the page are read in detail."""
    stores = context.stores
    mode = context.choice("mode", (*(each.value for each in LADDER), NOT_ROUTED))
    needs = context.choice("needs", ("yes",)) is not None
    name, sort = context.text("name"), context.choice("sort", SORTS, SORTS[0]) or SORTS[0]
    opened, overview, warnings = _read_store(stores)
    highest = {} if opened is None else {each.key.node: opened.highest(each.key.node) for each in overview.nodes}
    doubts, notes = read_doubts(stores)
    totals = fleet(overview, highest, context.now_us)
    rows = _rows(overview, highest, doubts, totals.days, context.now_us, read_file_ids(stores))
    chosen = [each for each in rows if _is_chosen(each, mode, needs, name)]
    states = {each.key.node: each for each in overview.nodes}
    chosen.sort(key=lambda row: (_sort_key(row, sort, states.get(row.node)), row.node))
    first = (context.page_number() - 1) * PAGE_ROWS
    shown = chosen[first : first + PAGE_ROWS]
    try:
        samples = read_metrics(stores.config)
        durations = None if samples is None else durations_of(samples)
    except OSError as problem:
        durations = None
        notes = [*notes, f"times are not from the metrics of the service: {problem}"]
    return FleetPage(
        rows=[_complete_row(row, opened, states.get(row.node), durations) for row in shown],
        paging=context.paging(first + PAGE_ROWS < len(chosen), len(chosen)),
        modes=[ModeTotal(each, totals.nodes[each], totals.requests[each]) for each in LADDER],
        nodes=len(rows),
        not_routed=sum(each.epoch is None for each in rows),
        unreadable=totals.unreadable,
        needing=sum(bool(each.needs) for each in rows),
        requests=totals.requests.total(),
        direct_requests=totals.engines[Engine.DIRECT],
        open_divergences=sum(each.open_divergences for each in rows),
        in_doubt=sum(doubts.values()),
        stopped=overview.killed,
        warnings=[*warnings, *overview.warnings, *notes],
        written_us=overview.written_us,
        has_metrics=durations is not None,
        sort=sort,
        mode=mode,
        needs=needs,
        name=name,
    )


def _read_store(stores: Stores) -> tuple[OpenStore | None, Overview, list[str]]:
    """Return an empty overview with a warning where there is no store: the files are shown nevertheless."""
    warnings = unsent_findings(stores)
    try:
        opened = open_configured(stores)
    except Unavailable as problem:
        return None, Overview("", (), None, ()), [*warnings, f"{problem.what}. {problem.remedy}"]
    try:
        return opened, read_overview(opened.store, opened.settings), warnings
    except BadState as problem:
        raise Unavailable(
            "the migration store", str(problem), "Stop all nodes anew: `vesper migrate kill --all --why TEXT`."
        ) from None


def read_doubts(stores: Stores, node: str | None = None) -> tuple[Counter[str], list[str]]:
    """Count the runs in doubt by node, of all nodes or one, with notes about uncounted runs."""
    try:
        found = stores.journal.find(status=Status.IN_DOUBT, node=node, limit=MAX_DOUBTS)
    except Unavailable:
        return Counter(), []  # no journal: no node with effects has run
    except JournalError as problem:
        return Counter(), [f"runs in doubt are not counted: {problem}"]
    more = [f"more than {MAX_DOUBTS:,} runs are in doubt; the newest are counted"] if len(found) == MAX_DOUBTS else []
    return Counter(each.node_id for each in found), more


def read_file_ids(stores: Stores) -> Mapping[str, Path]:
    try:
        return stores.nodes.paths()
    except Unavailable:
        return {}


def _rows(
    overview: Overview,
    highest: Mapping[str, Mode | None],
    doubts: Mapping[str, int],
    days: Mapping[NodeKey, Mapping[str, int]],
    now_us: int,
    files: Mapping[str, Path],
) -> list[FleetRow]:
    routed = {each.key.node: each for each in overview.nodes}
    found = [
        _row(each, highest.get(name), doubts.get(name, 0), days[each.key], now_us) for name, each in routed.items()
    ]
    for name in sorted({*files, *doubts} - routed.keys()):
        needs = needs_of(name, None, None, None, doubts.get(name, 0))
        found.append(FleetRow(name, None, needs, in_doubt=doubts.get(name, 0)))
    return found


def _row(each: NodeOverview, highest: Mode | None, in_doubt: int, day: Mapping[str, int], now_us: int) -> FleetRow:
    node, state = each.key.node, each.state
    direct = sum(count for name, count in day.items() if name.endswith(_DIRECT))
    return FleetRow(
        node,
        None if state is None else running_mode(state, highest),
        needs_of(node, state, each.problem, highest, in_doubt),
        agreed=0 if state is None else state.clean,
        held="" if state is None else held_text(state, highest, now_us),
        pinned_by="" if state is None or state.pin is None else f"by {state.pin.who}: {state.pin.why}",
        python_requests=sum(day.values()) - direct,
        direct_requests=direct,
        open_divergences=0 if state is None else len(state.open),
        in_doubt=in_doubt,
        epoch=each.key.epoch,
    )


def _is_chosen(row: FleetRow, mode: str | None, needs: bool, name: str | None) -> bool:
    if mode == NOT_ROUTED and row.epoch is not None:
        return False
    if mode not in (None, NOT_ROUTED) and (row.mode is None or row.mode.value != mode):
        return False
    return (not needs or bool(row.needs)) and (name is None or name.casefold() in row.node)


def _sort_key(row: FleetRow, sort: str, each: NodeOverview | None) -> float:
    """Return the sort key of a row; rows with equal keys are ordered by name."""
    match sort:
        case "mode":
            return -1 if row.mode is None else row.mode.level
        case "confidence":
            return 1 if each is None or each.state is None else -_bound(each.state)
        case "traffic":
            return -row.requests
        case "divergences":
            return -row.open_divergences
        case "in_doubt":
            return -row.in_doubt
        case "needs":
            return min((need.kind.urgency for need in row.needs), default=len(NeedKind))
        case _:
            return 0


def _bound(state: NodeState) -> float:
    return 1.0 if state.is_complete else lower_bound(state.clean + state.divergences, state.divergences)


def _complete_row(
    row: FleetRow, opened: OpenStore | None, each: NodeOverview | None, durations: Durations | None
) -> FleetRow:
    """Add the facts that are read only for rows of the shown page."""
    if durations is not None:
        python, direct = (durations.get((row.node, engine)) for engine in (Engine.PYTHON, Engine.DIRECT))
        row = replace(row, python=python, direct=direct)
    if opened is None or each is None or each.state is None:
        return row
    if durations is None and (state := read_node(opened.store, each.key, opened.settings).state) is not None:
        python, direct = (times_of_state(state, engine) for engine in (Engine.PYTHON, Engine.DIRECT))
        row = replace(row, python=python, direct=direct)
    return replace(
        row,
        confidence=confidence_text(each.state) if each.state.clean else "",
        lower_bound=_bound(each.state),
        needed=needed_text(each.state, opened.highest(row.node)),
    )
