"""Search of recorded runs, newest first: executions of the journal and stored traces in one list.

The Host names runs by UUIDs of version 7, so ids sort by start time. The journal has an index of ids in ascending order
and reads at most a thousand of them at once: pages go backwards over windows of ids whose width follows their density.
Each page costs the same however many runs the journal has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice

from vesper.engines.outcome import outcome_code
from vesper.host.outcomes import recorded_outcome
from vesper.journal.entry import Kind
from vesper.journal.errors import JournalError
from vesper.journal.journal import Journal, Recorded, Status, Summary
from vesper.trace.library import OUTCOMES, UNFINISHED, Traces
from vesper.trace.model import TraceError
from vesper.trace.store import TraceSummary
from vesper.values.node_id import is_of_node

MAX_READ_RUNS = 1_000
"""Maximum journalled runs that one page of a search reads; a filter may skip most of them."""
_MAX_OPEN_RUNS = 1_000
_PROBED_RUNS = 300
_RARE_SHARE = 0.02
_MAX_WINDOW_IDS = 2_000
_MILLISECOND = 1 << 80
"""A millisecond in the number of a UUID of version 7."""
_LAST = (1 << 128) - 1
_ID_PREFIX = re.compile(r"[0-9a-f-]{1,36}")


class Result(StrEnum):
    """Result of a run as an operator filters it."""

    SUCCESS = "success"
    FAILED = "failed"
    IN_DOUBT = "in doubt"
    RUNNING = "running"


_FAILURES = tuple(each for each in OUTCOMES if each not in ("returned", UNFINISHED))


@dataclass(frozen=True, slots=True)
class Cursor:
    """Last run of a page in each source; the next page begins behind both."""

    execution: str | None = None
    """Id of the last journalled run."""
    trace: tuple[int, str] | None = None
    """Start time and id of the last stored trace."""

    def __str__(self) -> str:
        started, name = self.trace or ("", "")
        return f"{self.execution or ''}~{started}~{name}"

    @staticmethod
    def read(text: str) -> Cursor:
        """Read the text of a cursor. Raises `TraceError`."""
        found = re.fullmatch(r"([0-9a-f-]{0,36})~(?:([0-9]{1,18})~([!-~]{1,200})|~)", text)
        if found is None:
            raise TraceError("the address of this page of runs is not complete: start the search again")
        execution, started, name = found.groups()
        return Cursor(execution or None, None if started is None else (int(started), name))


@dataclass(frozen=True, slots=True)
class RunQuery:
    nodes: tuple[str, ...] | None = None
    """Node ids; None means all."""
    result: Result | None = None
    since_us: int | None = None
    until_us: int | None = None
    key: str | None = None
    """Idempotency key of the caller, or of a request."""
    prefix: str = ""
    """First characters of the id."""
    before: Cursor = field(default_factory=Cursor)


@dataclass(frozen=True, slots=True)
class FoundRun:
    """One run of the list."""

    execution: str
    node_id: str
    result: Result | None
    """None for a stored trace of a run that did not end."""
    outcome: str
    """Kind of the outcome, or the status of a run that has not ended."""
    code: str | None
    """Code of a failure; None for an execution with sensitive data."""
    started_us: int
    duration_us: int | None
    engines: tuple[str, ...]
    is_diverged: bool
    is_sensitive: bool
    is_stored: bool
    """True for a stored trace, False for an execution of the journal."""


@dataclass(frozen=True, slots=True)
class FoundPage:
    runs: tuple[FoundRun, ...]
    next: Cursor | None
    """Start of the next page; None at the end."""
    read: int
    """Journalled runs that were read."""
    unread: int
    """Journalled runs that could not be read: damaged, or sealed under a missing key."""
    searched_us: int | None
    """Start time down to which the journal was searched, where a filter stopped before the page was full."""


def search(traces: Traces, query: RunQuery, limit: int) -> FoundPage:
    """Return the newest runs that match, at most `limit`. Raises `TraceError`."""
    if query.prefix and not _ID_PREFIX.fullmatch(query.prefix):
        raise TraceError(f"{query.prefix[:40]!a} begins no id of a run: ids have digits, letters a to f and `-`")
    scan = _Scan()
    journalled = (
        [] if traces.journal is None else list(_journalled_runs(traces, traces.journal, query, limit + 1, scan))
    )
    stored = [] if query.key is not None else _stored_runs(traces, query, limit + 1)
    if scan.stopped_at is not None:  # older traces follow on a later page, among the executions of their time
        stored = [each for each in stored if _number_at(each.started_us) >= _number(scan.stopped_at)]
    runs = sorted((*journalled, *stored), key=_order, reverse=True)
    shown = tuple(runs[:limit])
    is_full = len(runs) > limit
    if not is_full and scan.stopped_at is None:
        return FoundPage(shown, None, scan.count, scan.unread, None)
    executions = [query.before.execution, *(each.execution for each in shown if not each.is_stored)]
    kept = [query.before.trace, *((each.started_us, each.execution) for each in shown if each.is_stored)]
    last = executions[-1] if is_full else scan.stopped_at
    searched_us = None if is_full or last is None else _time_of(last)
    return FoundPage(shown, Cursor(last, kept[-1]), scan.count, scan.unread, searched_us)


def _order(run: FoundRun) -> tuple[int, int, str]:
    """Return the key of the list: each source in the order of its own pages."""
    if run.is_stored:
        return _number_at(run.started_us), run.started_us, run.execution
    return _number(run.execution), 0, ""


def node_ids_of(traces: Traces, wanted: str) -> tuple[str, ...]:
    """Return the ids that a text selects: an id, or every version of a name."""
    return tuple(each for each in traces.node_ids() if is_of_node(each, wanted))


# -- stored traces --------------------------------------------------------------------------------


def _stored_runs(traces: Traces, query: RunQuery, limit: int) -> list[FoundRun]:
    outcomes: tuple[str, ...] | None = None
    match query.result:
        case Result.SUCCESS:
            outcomes = ("returned",)
        case Result.FAILED:
            outcomes = _FAILURES
        case Result.IN_DOUBT | Result.RUNNING:
            return []
    before = query.before.trace
    if query.until_us is not None and (before is None or before[0] >= query.until_us):
        before = (query.until_us, "")
    found = [
        _of_trace(each)
        for node in (query.nodes if query.nodes is not None else (None,))
        for each in traces.store.find(
            node, query.since_us, limit, before=before, outcomes=outcomes, prefix=query.prefix
        )
    ]
    return sorted(found, key=_order, reverse=True)[:limit]


def _of_trace(each: TraceSummary) -> FoundRun:
    result = None if each.outcome is None else Result.SUCCESS if each.outcome == "returned" else Result.FAILED
    return FoundRun(
        each.trace_id, each.node_id, result, each.outcome or UNFINISHED, each.code, each.started_us, each.duration_us,
        each.engines, each.divergence is not None, each.is_sensitive, True,
    )  # fmt: skip


# -- the journal ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Scan:
    count: int = 0
    found: int = 0
    unread: int = 0
    stopped_at: str | None = None
    """Id of the last run that was read, where the scan ended before the oldest run."""


def _journalled_runs(traces: Traces, journal: Journal, query: RunQuery, limit: int, scan: _Scan) -> Iterator[FoundRun]:
    """Yield matching executions, newest first. A stored trace replaces its execution."""
    last = None
    for execution, known in _candidates(journal, query, *_bounds(query), scan):
        if scan.found == limit:
            return
        if scan.count == MAX_READ_RUNS:
            scan.stopped_at = last
            return
        scan.count, last = scan.count + 1, execution
        try:
            run = _matching(journal, query, execution, known)
        except JournalError:
            scan.unread += 1
            continue
        if run is not None and execution not in traces.store.ids(execution, 1):
            scan.found += 1
            yield run


def _candidates(
    journal: Journal, query: RunQuery, low: int, high: int, scan: _Scan
) -> Iterator[tuple[str, Summary | None]]:
    """Yield ids that may match, newest first, with their summary where it is known."""
    if query.result not in (Result.IN_DOUBT, Result.RUNNING):
        yield from _ended_candidates(journal, query, low, high, scan)
        return
    is_running = query.result is Result.RUNNING
    inside = [
        each
        for status in Status
        if (status.is_under_way if is_running else status is Status.IN_DOUBT)
        for each in journal.find(status=status, since_us=query.since_us, limit=_MAX_OPEN_RUNS)
        if low <= _number(each.execution) < high
    ]
    yield from ((each.execution, each) for each in sorted(inside, key=lambda each: each.execution, reverse=True))


def _ended_candidates(
    journal: Journal, query: RunQuery, low: int, high: int, scan: _Scan
) -> Iterator[tuple[str, Summary | None]]:
    """Yield all ids in order. The index of nodes finds those of a node that few of the newest runs are of.

    That index reads and sorts all runs of the node, so it does not serve nodes with many.
    """
    ids = ids_between(journal, low, high)
    if query.nodes is None:
        yield from ((each, None) for each in ids)
        return
    for each in islice(ids, _PROBED_RUNS):
        high = _number(each)
        yield each, None
    if scan.found >= _PROBED_RUNS * _RARE_SHARE:
        yield from ((each, None) for each in ids)
        return
    summaries = [
        each
        for node in query.nodes
        for each in journal.find(node=node, since_us=query.since_us, limit=MAX_READ_RUNS + 1)
        if low <= _number(each.execution) < high
    ]
    yield from ((each.execution, each) for each in sorted(summaries, key=lambda each: each.execution, reverse=True))


def _matching(journal: Journal, query: RunQuery, execution: str, known: Summary | None) -> FoundRun | None:
    """Return the run with this id if it matches. Raises `JournalError`."""
    recorded = journal.read(execution) if known is None or query.key is not None else None
    summary = known if recorded is None else recorded.summary
    assert summary is not None
    if query.nodes is not None and summary.node_id not in query.nodes:
        return None
    run = of_summary(summary)
    if query.result is not None and run.result is not query.result:
        return None
    if query.key is not None and (recorded is None or not _has_key(recorded, query.key)):
        return None
    if recorded is None:
        return run
    last = recorded.entries[-1].entry
    has_code = last.kind is Kind.END and not (summary.is_sensitive or recorded.entries[-1].is_erased)
    return replace(
        run,
        code=outcome_code(recorded_outcome(last.body)) if has_code else None,
        is_diverged=any(each.entry.kind is Kind.DIVERGENCE for each in recorded.entries),
    )


def of_summary(each: Summary) -> FoundRun:
    """Return an execution of the journal as a run of the list."""
    is_over = each.status is Status.ENDED
    result = Result.IN_DOUBT if each.status is Status.IN_DOUBT else Result.RUNNING
    if is_over:
        result = Result.SUCCESS if each.outcome == "returned" else Result.FAILED
    return FoundRun(
        each.execution, each.node_id, result, (each.outcome or UNFINISHED) if is_over else str(each.status), None,
        each.started_us, each.updated_us - each.started_us if is_over else None, (each.engine,), False,
        each.is_sensitive, False,
    )  # fmt: skip


def _has_key(recorded: Recorded, key: str) -> bool:
    """Return whether a caller gave this key, or a request of a run without sensitive data has it."""
    context = recorded.entries[0].entry.body.get("context")
    if isinstance(context, dict) and context.get("key") == key:
        return True
    return not recorded.summary.is_sensitive and any(each.entry.key == key for each in recorded.entries)


# -- ids ------------------------------------------------------------------------------------------


def ids_between(journal: Journal, low: int, high: int) -> Iterator[str]:
    """Yield the ids of runs from `high`, exclusive, down to `low`, read in windows of adaptive width."""
    oldest = next(iter(journal.executions()), None)
    newest = next(iter(journal.find(limit=1)), None)
    if oldest is None or newest is None:
        return
    low = max(low, _number(oldest))
    # Clocks of processes differ: a run may have a later id than the one that started last.
    high = min(high, _number(newest.execution) + 60_000 * _MILLISECOND)
    width = 1_000 * _MILLISECOND
    while high > low:
        begin = max(low, high - width)
        ids = _window(journal, begin, high)
        if ids is None:
            width = max(1, width // 8)
            continue
        yield from reversed(ids)
        high = begin
        width *= 8 if len(ids) < _MAX_WINDOW_IDS // 10 else 1


def _window(journal: Journal, begin: int, high: int) -> list[str] | None:
    """Return the ids of a window in ascending order; None where it has too many."""
    found: list[str] = []
    for each in journal.executions(after=_text(begin - 1) if begin else None):
        if _number(each) >= high:
            return found
        if len(found) == _MAX_WINDOW_IDS and high - begin > 1:
            return None
        found.append(each)
    return found


def _bounds(query: RunQuery) -> tuple[int, int]:
    digits = query.prefix.replace("-", "")
    low, high = int(digits.ljust(32, "0"), 16), int(digits.ljust(32, "f"), 16) + 1
    if query.since_us is not None:
        low = max(low, _number_at(query.since_us))
    if query.until_us is not None:
        high = min(high, _number_at(query.until_us))
    if query.before.execution is not None:
        high = min(high, _number(query.before.execution))
    return low, high


def _number_at(at_us: int) -> int:
    """Return the smallest number of an id of this millisecond."""
    return min(max(0, at_us) // 1_000 * _MILLISECOND, _LAST)


def _time_of(execution: str) -> int:
    return _number(execution) // _MILLISECOND * 1_000


def _number(execution: str) -> int:
    try:
        return int(execution.replace("-", ""), 16)
    except ValueError:
        raise TraceError(
            f"the journal has a run {execution[:40]!a}, whose id the Host did not make: `vesper journal list` lists it"
        ) from None


def _text(number: int) -> str:
    digits = f"{number:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
