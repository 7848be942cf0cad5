"""Recorded runs of a journal as cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from vesper.changes.backtest.cases import ERASED, NO_INPUTS, UNREADABLE, Answer, Case, Excluded, not_ended_reason
from vesper.host.outcomes import recorded_outcome
from vesper.journal.entry import Entry, Kind
from vesper.journal.journal import Journal, JournalError, Status, Summary
from vesper.trace.journalled import requests_by_path
from vesper.values.node_id import is_of_node, split_node_id


@dataclass(frozen=True, slots=True)
class Selection:
    """Which recorded runs are replayed."""

    nodes: tuple[str, ...]
    """Node ids."""
    since_us: int | None = None
    until_us: int | None = None
    limit: int | None = None
    """At most this many runs, the newest."""


def versions_of(known: list[str], wanted: str) -> tuple[str, ...]:
    """Return the ids of all versions of a node; of an id without a version the id alone."""
    parts = split_node_id(wanted)
    return tuple(each for each in known if is_of_node(each, wanted if parts is None else parts[0])) or (wanted,)


def journal_runs(journal: Journal, selection: Selection) -> Iterator[Case | Excluded]:
    """Yield the selected runs, newest first with a limit, else in the order of their ids."""
    for summary in _summaries(journal, selection):
        yield run_of(journal, summary)


def _summaries(journal: Journal, selection: Selection) -> Iterator[Summary]:
    if selection.limit is None:
        found: Iterator[Summary] = map(journal.summary, journal.executions())
        yield from (each for each in found if _is_selected(each, selection))
        return
    # Runs that are newer than `until` are left out after the query, so pages are read until there are enough.
    left, offset = selection.limit, 0
    while left > 0 and (page := _newest(journal, selection, offset + max(left, 1_000))[offset:]):
        offset += len(page)
        chosen = [each for each in page if _is_selected(each, selection)][:left]
        left -= len(chosen)
        yield from chosen


def _newest(journal: Journal, selection: Selection, limit: int) -> list[Summary]:
    found = [
        each for node in selection.nodes for each in journal.find(node=node, since_us=selection.since_us, limit=limit)
    ]
    return sorted(found, key=lambda each: (each.started_us, each.execution), reverse=True)[:limit]


def _is_selected(summary: Summary, selection: Selection) -> bool:
    if summary.node_id not in selection.nodes:
        return False
    since, until = selection.since_us, selection.until_us
    return (since is None or summary.started_us >= since) and (until is None or summary.started_us < until)


def run_of(journal: Journal, summary: Summary) -> Case | Excluded:
    """Return one run as a case."""
    name = summary.execution
    if summary.status is not Status.ENDED:
        return Excluded(name, not_ended_reason(summary.status.value))
    try:
        stored = journal.read(name).entries
    except JournalError:
        return Excluded(name, UNREADABLE)
    if any(each.is_erased for each in stored):
        return Excluded(name, ERASED)
    start, end = stored[0].entry, stored[-1].entry
    inputs, now = start.body.get("inputs"), start.body.get("now")
    if not isinstance(inputs, Mapping) or not isinstance(now, datetime):
        return Excluded(name, NO_INPUTS)
    answers = {
        path: _answer(each.asked or each.settled, each.settled)
        for path, each in requests_by_path(stored).items()
        if each.settled is not None
    }
    outcome = recorded_outcome(end.body) if end.kind is Kind.END and "outcome" in end.body else None
    return Case(name, inputs, now, answers, outcome, summary.semantic_hash)


def _answer(asked: Entry, settled: Entry) -> Answer:
    fixed, arguments = asked.body.get("fixed"), asked.body.get("arguments")
    code = settled.body.get("code")
    return Answer(
        asked.effect,
        fixed if isinstance(fixed, Mapping) else None,
        arguments if isinstance(arguments, Mapping) else None,
        settled.body.get("value"),
        None if code is None else str(code),
    )
