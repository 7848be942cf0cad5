"""Names with a lead and a candidate: counts, groups of changed outcomes; promote, withdraw, resume."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from vesper.compiler import Compiled
from vesper.dashboard.action import Action, Context, Done, Refused, Role
from vesper.dashboard.page import Page, filled
from vesper.dashboard.pages.node.node import HistoryRow, history_row
from vesper.dashboard.problem import NotFound
from vesper.dashboard.service import open_configured
from vesper.dashboard.stores import Stores, Topic
from vesper.migration.candidates import decisions
from vesper.migration.candidates.counts import MAX_GROUPS, RESULTS, Group
from vesper.migration.candidates.decisions import Order
from vesper.migration.candidates.overview import NameOverview, pair_of_files, read_name, read_names
from vesper.migration.candidates.record import DecisionKind
from vesper.migration.router.orders import decide_candidate
from vesper.migration.stores.ledger import verify_history
from vesper.migration.stores.store import name_key
from vesper.values.model import printable

_HISTORY_ROWS = 50


@dataclass(frozen=True, slots=True)
class NameLine:
    """A name with its lead and its candidate."""

    name: str
    state: str
    lead: str
    candidate: str
    compared: int
    changed: int
    changed_share: float | None
    results: Mapping[str, int]
    since_us: int | None
    started_by: str
    last_us: int | None
    decision: str
    """Who decided what and why, where a decision applies."""
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class Versions:
    """All names, in order."""

    lines: tuple[NameLine, ...]


@dataclass(frozen=True, slots=True)
class NameView:
    """One name: its counts, groups with examples, and history."""

    line: NameLine
    groups: tuple[Group, ...]
    history: tuple[HistoryRow, ...]
    """The newest first."""
    damage: str | None
    """The first defect of the history, if any."""


def read_versions(context: Context) -> Versions:
    """Read the names of the settings and of the store."""
    stores = context.stores
    names = read_names(open_configured(stores).store, stores.config.versions, _compiler(stores))
    return Versions(tuple(map(_line, names)))


def read_version(context: Context) -> NameView:
    """Read the name of the path."""
    found, store = _read(context, MAX_GROUPS), open_configured(context.stores).store
    lines = store.history(name_key(found.name))
    rows = tuple(history_row(each) for each in reversed(lines))[:_HISTORY_ROWS]
    return NameView(_line(found), tuple(found.counts.top_groups()), rows, verify_history(lines))


def _read(context: Context, with_examples: int = 0) -> NameOverview:
    stores, name = context.stores, context.path["name"]
    store, settings = open_configured(stores).store, stores.config.versions.get(name)
    found = read_name(store, name, settings, pair_of_files(settings, _compiler(stores)), with_examples)
    if settings is None and found.started is None:
        raise NotFound(f"no name `{printable(name[:80])}` has a lead and a candidate", "The page Versions lists them.")
    return found


def _compiler(stores: Stores) -> Callable[[str], Compiled | None]:
    def compile_version(version: str) -> Compiled | None:
        try:
            return stores.nodes.compiled(version)[0]
        except NotFound:
            return None

    return compile_version


def _line(found: NameOverview) -> NameLine:
    counts, decision, started = found.counts, found.decision, found.started
    return NameLine(
        printable(found.name),
        found.state,
        found.lead or "",
        found.candidate or "",
        counts.compared,
        counts.results["changed"],
        counts.changed_share,
        {each: counts.results[each] for each in RESULTS},
        None if started is None else started.at_us,
        "" if started is None else printable(started.who),
        counts.last_us,
        "" if decision is None else printable(f"{decision.kind} by {decision.who}: {decision.why}"),
        found.notes(),
    )


def decide(kind: DecisionKind, context: Context, fields: Mapping[str, str]) -> Done:
    """Store a decision about the candidate of the path."""
    stores, opened = context.stores, open_configured(context.stores)
    order = Order(kind, context.caller.name, fields["reason"], context.now_us)
    try:
        text = decide_candidate(opened, _read(context), order, _compiler(stores))
    except decisions.Refused as problem:
        raise Refused(printable(str(problem)), "The page of the name shows its state.") from None
    return Done(text, filled("/versions/{name}", context.path))


PAGES = (
    Page(
        name="versions",
        path="/versions",
        title="Versions",
        read=read_versions,
        template="versions/list.html",
        summary="Names with a lead and a candidate: compared runs and the share of changed outcomes.",
        topics=frozenset({Topic.MIGRATION, Topic.FILES}),
        menu="Versions",
    ),
    Page(
        name="version",
        path="/versions/{name}",
        title="Versions of {name}",
        read=read_version,
        template="versions/name.html",
        summary="One name: changed outcomes by paths and field with examples, and the history of its candidates.",
        topics=frozenset({Topic.MIGRATION, Topic.FILES}),
    ),
)

ACTIONS = (
    Action(
        name="promote_candidate",
        path="/versions/{name}/promote",
        role=Role.OPERATOR,
        perform=partial(decide, "promoted"),
        summary="The candidate leads new runs in all processes within a second; runs under way end as they began.",
    ),
    Action(
        name="withdraw_candidate",
        path="/versions/{name}/withdraw",
        role=Role.OPERATOR,
        perform=partial(decide, "withdrawn"),
        summary="The candidate neither follows nor leads, also after it was promoted.",
    ),
    Action(
        name="resume_candidate",
        path="/versions/{name}/resume",
        role=Role.OPERATOR,
        perform=partial(decide, "resumed"),
        summary="The candidate follows again; its counts go on.",
    ),
)
