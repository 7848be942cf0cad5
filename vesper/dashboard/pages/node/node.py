"""One node: confidence over time, paths, contracts, epochs, settings and history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from vesper.compiler import Compiled
from vesper.config.migration import MigrationSettings
from vesper.dashboard.draw.plot import draw_confidence
from vesper.dashboard.page import Context, Paging
from vesper.dashboard.pages.fleet.actions import find_node_key
from vesper.dashboard.pages.fleet.fleet import read_doubts, read_file_ids
from vesper.dashboard.pages.fleet.needs import Need, needs_of
from vesper.dashboard.pages.node.contracts import Contracts, read_contracts
from vesper.dashboard.problem import NotFound, Unavailable
from vesper.dashboard.service import open_configured
from vesper.dashboard.words import share_text
from vesper.engines.path import Point
from vesper.migration.compare.path_words import path_words
from vesper.migration.compare.paths import PathNote
from vesper.migration.control.modes import Mode
from vesper.migration.control.state import NodeState
from vesper.migration.router.points import PointsUnavailable, points_of_epoch
from vesper.migration.stores.codec import BadState
from vesper.migration.stores.configured import OpenStore
from vesper.migration.stores.history_text import parse_record, record_lines
from vesper.migration.stores.ledger import KillSwitch, read_kill_switch, verify_history
from vesper.migration.stores.overview import NodeOverview, confidence_text, read_node, read_paths, running_mode
from vesper.migration.stores.series import Series, read_series
from vesper.migration.stores.status_text import facts_of, held_text, path_name, path_need
from vesper.migration.stores.store import Line, NodeKey, keys_of
from vesper.values.model import printable
from vesper.values.node_id import split_node_id

HISTORY_ROWS = 50


@dataclass(frozen=True, slots=True)
class PathRow:
    """A path with its evidence."""

    letter: str
    words: str
    agreed: int
    """Distinct runs of traffic that agree."""
    generated: int
    """Distinct generated inputs that agree."""
    is_proven: bool
    need: str
    open_divergences: int


@dataclass(frozen=True, slots=True)
class EpochRow:
    """An epoch of the node in the store."""

    epoch: str
    mode: Mode | None
    confidence: str
    agreed: int
    written_us: int | None
    is_shown: bool


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A line of the history."""

    number: int
    at_us: int | None
    who: str
    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Fact:
    """A named text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class RoutedNode:
    """A node as the store knows it, in one epoch."""

    epoch: str
    mode: Mode | None
    """Mode in effect; None where the state is unreadable."""
    held: str
    """Latches, pin and limits that hold the mode."""
    facts: Sequence[Fact]
    """Facts as `vesper status NODE` shows them."""
    is_pinned: bool
    is_latched: bool
    series: Series | None
    series_note: str
    """Why there is no plot, if so."""
    paths: Sequence[PathRow]
    epochs: Sequence[EpochRow]
    """All epochs, the one written last first."""
    history: Sequence[HistoryRow]
    """Lines of one page, the newest first."""
    paging: Paging
    damage: str | None
    """The first defect of the history, if any."""

    def plot(self) -> Markup:
        assert self.series is not None
        return Markup(draw_confidence(self.series))  # escapes all texts


@dataclass(frozen=True, slots=True)
class NodePage:
    """A node of the store, of the project's files, or of both."""

    node: str
    file: str | None
    """File of the node, relative to the project; None where no file declares it."""
    file_note: str
    """Why contracts and conditions are not shown, if so."""
    needs: Sequence[Need]
    stopped: KillSwitch | None
    """Stop of all nodes, if any."""
    settings: Sequence[Fact]
    """Settings of the migration that apply to the node."""
    versions: Sequence[str]
    """Other versions of the node, in files and in the store."""
    contracts: Contracts | None
    routed: RoutedNode | None


def read_node_page(context: Context) -> NodePage:
    """Read the node from its store and its file; either may be missing, but not both."""
    stores, node = context.stores, context.path["node"]
    epoch = context.text("epoch")
    file, compiled, note = _read_file(context, node)
    doubts, _ = read_doubts(stores, node)
    files = read_file_ids(stores)
    opened = key = None
    try:
        opened = open_configured(stores)
        key = find_node_key(opened, node, epoch)
    except (NotFound, Unavailable):
        if file is None or epoch is not None:
            raise
    known = {*files} if opened is None else {*files, *(each.node for each in keys_of(opened.store))}
    routed, state, problem, highest = None, None, None, None
    if opened is not None and key is not None:
        found = read_node(opened.store, key, opened.settings)
        state, problem, highest = found.state, found.problem, opened.highest(node)
        routed, why_not = _read_routed(context, opened, found, compiled)
        note = note or why_not
    return NodePage(
        node,
        file,
        note,
        needs_of(node, state, problem, highest, doubts[node]),
        None if opened is None else read_kill_switch(opened.store),
        _settings(stores.config.migration_settings(), node),
        _versions(node, known),
        None if compiled is None else read_contracts(stores, compiled),
        routed,
    )


def _read_file(context: Context, node: str) -> tuple[str | None, Compiled | None, str]:
    """Return the file, the checked node, and why there is none."""
    nodes = context.stores.nodes
    try:
        path = nodes.path(node)
    except (NotFound, Unavailable) as problem:
        return None, None, problem.what
    folder = context.stores.config.folder
    name = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.as_posix()
    compiled, _ = nodes.compiled(node)
    return name, compiled, "" if compiled is not None else f"{name} has errors: `vesper check {name}` shows them"


def _read_routed(
    context: Context, opened: OpenStore, found: NodeOverview, compiled: Compiled | None
) -> tuple[RoutedNode, str]:
    """Return the node of the store, and why conditions of its paths are not shown."""
    store, key, state, now_us = opened.store, found.key, found.state, context.now_us
    highest, history = opened.highest(key.node), store.history(key)
    series, series_note = _read_series(opened, key, now_us)
    first = (context.page_number() - 1) * HISTORY_ROWS
    epochs = [read_node(store, each, opened.settings) for each in keys_of(store) if each.node == key.node]
    points: Sequence[Point] = ()
    why_not = ""
    if compiled is not None:
        try:
            points = points_of_epoch(compiled, compiled.path, key.epoch, opened.migration.of(key.node).tolerances)
        except PointsUnavailable as problem:
            compiled, why_not = None, f"conditions of paths are not shown: {problem}"
    routed = RoutedNode(
        epoch=key.epoch,
        mode=None if state is None else running_mode(state, highest),
        held="" if state is None else held_text(state, highest, now_us),
        facts=[] if state is None else [Fact(*each) for each in facts_of(found, state, highest, history, now_us)],
        is_pinned=state is not None and state.pin is not None,
        is_latched=state is not None and bool(state.latches),
        series=series,
        series_note=series_note,
        paths=() if state is None else _paths(opened, state, compiled, points),
        epochs=[_epoch_row(each, key) for each in sorted(epochs, key=lambda each: -each.written_us)],
        history=[history_row(each) for each in history[::-1][first : first + HISTORY_ROWS]],
        paging=context.paging(first + HISTORY_ROWS < len(history), len(history)),
        damage=verify_history(history),
    )
    return routed, why_not


def _read_series(opened: OpenStore, key: NodeKey, now_us: int) -> tuple[Series | None, str]:
    try:
        found = read_series(opened.store, key, now_us)
    except BadState as problem:
        return None, str(problem)
    except (ValueError, KeyError, TypeError):
        return None, "the history has a record that this Vesper does not know; the table below shows it"
    return found, "" if found is not None else "it has no history yet: the plot begins with its first compared run"


def _paths(opened: OpenStore, state: NodeState, compiled: Compiled | None, points: Sequence[Point]) -> list[PathRow]:
    def words(name: str, note: PathNote | None) -> str:
        return path_name(name) if note is None else "; ".join(path_words(note, compiled, points))

    return [
        PathRow(
            each.letter,
            words(each.name, each.note) or path_name(each.name),
            each.seen.clean,
            each.seen.generated,
            each.is_proven,
            path_need(each),
            each.seen.open,
        )
        for each in read_paths(opened.store, state)
    ]


def _epoch_row(each: NodeOverview, shown: NodeKey) -> EpochRow:
    state = each.state
    return EpochRow(
        each.key.epoch,
        None if state is None else state.mode,
        "" if state is None or not state.clean else confidence_text(state),
        0 if state is None else state.clean,
        each.written_us or None,
        each.key == shown,
    )


def history_row(line: Line) -> HistoryRow:
    """Return a line of a history in words."""
    record = parse_record(line)
    at_us = record.get("at_us")
    inner = record.get("latch") or record.get("pin")
    who = record.get("who") or (inner.get("who") if isinstance(inner, dict) else None)
    texts = record_lines(record) or [printable(line.text[:200])]
    return HistoryRow(line.number, at_us if type(at_us) is int else None, printable(str(who or "controller")), texts)


def _versions(node: str, known: Iterable[str]) -> list[str]:
    """Return the other versions of a node, in order."""
    own = split_node_id(node)
    found = {each: split_node_id(each) for each in known if each != node}
    same = [(split[1], each) for each, split in found.items() if own and split and split[0] == own[0]]
    return [each for _, each in sorted(same)]


def _settings(settings: MigrationSettings, node: str) -> list[Fact]:
    own = settings.of(node)
    approvals = ", ".join(settings.approvals) or "none: evidence alone promotes"
    found = [
        Fact("max_mode", own.max_mode or "no limit"),
        Fact("approvals", approvals),
        Fact("canary", f"{share_text(own.canary or settings.canary)} of requests answer direct in canary_direct"),
        Fact("sample", f"{share_text(settings.sample, 2)} of requests are verified in direct_only"),
        Fact("routing_key", ", ".join(own.routing_key) or "all inputs"),
    ]
    for each in own.tolerances:
        distance = " or ".join(filter(None, (each.absolute, each.relative and f"{each.relative} relative")))
        text = f"{each.field} may differ by {distance} until {each.until}: {each.why}"
        found.append(Fact("tolerance", printable(text)))
    return found
