"""The overview of the journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from vesper.dashboard.page import Context, Paging
from vesper.dashboard.pages.journal.doubt import DoubtView, doubt_views
from vesper.journal.entry_text import words
from vesper.journal.journal import Journal, JournalError, Status, Summary
from vesper.journal.owner import is_dead
from vesper.values.model import printable
from vesper.values.node_id import is_of_node

MAX_COUNTED = 1_000
"""Runs in doubt, and unfinished ones, that are counted."""
MAX_RECOVERED = 25
"""Runs that one click recovers."""
_DOUBTS_A_PAGE = 20
_MAX_UNFINISHED = 50
_NEWEST = 1_000


@dataclass(frozen=True, slots=True)
class UnfinishedRun:
    """A run that its process left."""

    run: Summary
    is_owner_gone: bool
    """False where the owner may live, and only its lease has run out."""


@dataclass(frozen=True, slots=True)
class StateCount:
    """How many of the newest runs have a state."""

    state: str
    runs: int


@dataclass(frozen=True, slots=True)
class JournalOverview:
    """What the journal holds, what needs a person first."""

    in_doubt: int
    """At most 1,000 are counted."""
    is_in_doubt_capped: bool
    doubts: tuple[DoubtView, ...]
    problems: tuple[str, ...]
    """Runs in doubt that cannot be read."""
    paging: Paging
    unfinished: int
    is_unfinished_capped: bool
    left: tuple[UnfinishedRun, ...]
    """The oldest unfinished runs."""
    max_recovered: int
    """When the runs in doubt and the unfinished ones were found."""
    newest: int
    """Number of the newest runs that `states` counts: at most 1,000."""
    newest_since_us: int | None
    states: tuple[StateCount, ...]


def read_overview(context: Context) -> JournalOverview:
    """Read the journal without a count of all runs."""
    journal = context.stores.journal
    all_in_doubt = journal.find(status=Status.IN_DOUBT, limit=MAX_COUNTED)
    all_unfinished = journal.unfinished(MAX_COUNTED)
    node = context.text("node")
    in_doubt, unfinished = (
        [each for each in runs if node is None or is_of_node(each.node_id, node)]
        for runs in (all_in_doubt, all_unfinished)
    )
    start = (context.page_number() - 1) * _DOUBTS_A_PAGE
    page = in_doubt[start : start + _DOUBTS_A_PAGE]
    doubts: list[DoubtView] = []
    problems: list[str] = []
    for each in page:
        try:
            doubts += doubt_views(journal, journal.read(each.execution))
        except JournalError as problem:
            problems.append(printable(str(problem)))
    left = _drop_ended(journal, unfinished[:_MAX_UNFINISHED])
    newest = journal.find(limit=_NEWEST)  # of all nodes: the journal sorts those of one
    counts = Counter(_state(each) for each in newest)
    return JournalOverview(
        len(in_doubt),
        len(all_in_doubt) >= MAX_COUNTED,
        tuple(doubts),
        tuple(problems),
        context.paging(len(in_doubt) > start + _DOUBTS_A_PAGE),
        len(unfinished),
        len(all_unfinished) >= MAX_COUNTED,
        tuple(UnfinishedRun(each, not each.owner or is_dead(each.owner)) for each in left),
        MAX_RECOVERED,
        len(newest),
        newest[-1].started_us if newest else None,
        tuple(StateCount(state, runs) for state, runs in counts.most_common()),
    )


def _drop_ended(journal: Journal, summaries: Sequence[Summary]) -> list[Summary]:
    """Leave out runs that were taken over or ended after they were found."""
    found = []
    for each in summaries:
        try:
            now = journal.read(each.execution).summary
        except JournalError:
            found.append(each)  # its own page shows the damage
            continue
        if (now.status, now.fence) == (Status.RUNNING, each.fence):
            found.append(now)
    return found


def _state(summary: Summary) -> str:
    return words(summary.status if summary.outcome is None else f"{summary.status}: {summary.outcome}")
