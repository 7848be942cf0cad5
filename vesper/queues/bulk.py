"""Cancels and retries many runs that an expression selects, at a rate; a repeat continues where the last one ended.

The expression is one of the language, over the fields of `RUN_FIELDS`: it is checked and run as a function node.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic, sleep

from vesper.compiler import compile_source
from vesper.engines.outcome import Returned, outcome_code
from vesper.engines.registry import ENGINES
from vesper.host.host import Host
from vesper.host.outcomes import recorded_outcome
from vesper.journal.audit import audit_change
from vesper.journal.errors import JournalError, NotTaken
from vesper.journal.journal import Journal, Status, Summary
from vesper.language.diagnostics.render.full import render_full
from vesper.language.diagnostics.source import SourceFile
from vesper.queues.overview import cancel
from vesper.queues.retrying import place_of, retry
from vesper.queues.rules import QUEUED
from vesper.values.vesper_error import VesperError

RUN_FIELDS = {
    "node": "string",
    "status": "string",
    "outcome": "optional<string>",
    "code": "optional<string>",
    "started": "timestamp",
    "queue": "optional<string>",
    "lane": "optional<string>",
}
_MAX_RUNS = 10_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RETRIED = {"failed", "limit_hit", "engine_fault", "contract_broken", "denied"}
"""Outcomes of runs that can be retried: a declared error is an answer. Of limits, `cancelled` is none of them."""


class WrongFilter(VesperError):
    """An expression that does not select runs; the message has its diagnostics."""


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one selected run."""

    summary: Summary
    execution: str | None
    """The new run, or the cancelled one; None where nothing was to be done."""
    problem: str | None = None


class RunFilter:
    """Selects runs by an expression such as `node == 'payment_v1' AND code == 'timeout'`."""

    def __init__(self, expression: str) -> None:
        """Check the expression. Raises `WrongFilter`."""
        inputs = "".join(f"  {name}: {type_}\n" for name, type_ in RUN_FIELDS.items())
        text = (
            "node_id: where_v1\ntype: function\nintent: Select runs\n"
            f"inputs:\n{inputs}outputs:\n  success: {{is_selected: boolean}}\n"
            f"flow:\n  - operation: return\n    success:\n      is_selected: {json.dumps(expression)}\n"
        )
        compiled, bag = compile_source(SourceFile("--where", text))
        if compiled is None:
            found = [render_full(bag.source, each) for each in bag.sorted()]
            fields = ", ".join(RUN_FIELDS)
            raise WrongFilter("\n".join([*found[:3], f"an expression over {fields} is expected"]))
        self._program = ENGINES["python"].load(compiled)
        self._reads_code = "code" in expression
        self._reads_place = "queue" in expression or "lane" in expression

    def matches(self, journal: Journal, summary: Summary) -> bool:
        """Return whether a run is selected. Raises `WrongFilter` where the expression fails on it."""
        values = {
            "node": summary.node_id,
            "status": summary.status.value,
            "outcome": summary.outcome,
            "code": _code(journal, summary) if self._reads_code else None,
            "started": _EPOCH + timedelta(microseconds=summary.started_us),
            "queue": None,
            "lane": None,
        }
        if self._reads_place:
            for due in journal.due(kind=QUEUED, execution=summary.execution, limit=1):
                values |= {"queue": due.queue, "lane": due.lane}
        outcome = self._program.call(values)
        if not isinstance(outcome, Returned):
            raise WrongFilter(
                f"--where fails on execution {summary.execution}: {outcome_code(outcome) or outcome.kind}"
            )
        return outcome.value["is_selected"] is True


def _code(journal: Journal, summary: Summary) -> str | None:
    if summary.status is not Status.ENDED or summary.outcome == "returned":
        return None
    end = journal.read(summary.execution).entries[-1]
    return None if end.is_erased else outcome_code(recorded_outcome(end.entry.body))


def _was_cancelled(journal: Journal, summary: Summary) -> bool:
    """Return whether a run was ended on purpose: by a person, or by a later run of its lane."""
    return summary.outcome == "limit_hit" and _code(journal, summary) == "cancelled"


def select(journal: Journal, wanted: RunFilter, is_retry: bool, limit: int | None) -> list[Summary]:
    """Return the runs that can be retried or cancelled and that the filter selects, oldest first."""
    statuses = (Status.ENDED,) if is_retry else (Status.QUEUED, Status.WAITING)
    found = []
    for status in statuses:
        for summary in reversed(journal.find(status=status, limit=_MAX_RUNS)):
            if is_retry and (summary.outcome not in _RETRIED or _was_cancelled(journal, summary)):
                continue
            if wanted.matches(journal, summary):
                found.append(summary)
                if limit is not None and len(found) == limit:
                    return found
    return found


def retry_all(host: Host, found: list[Summary], per_second: float | None, by: str) -> Iterator[Done]:
    """Queue another attempt of each run; each run is retried once, however often this is called."""

    def one(summary: Summary) -> str | None:
        recorded = host.journal.read(summary.execution)
        execution = retry(host, recorded, place_of(host, recorded))
        host.journal.remove(host.journal.due(kind=QUEUED, execution=summary.execution, limit=1))  # its dead letter
        return execution

    audit_change(host.journal, "runs_retry", "", "", by, executions=len(found))  # first: it may be interrupted
    yield from _each(found, per_second, one)


def cancel_all(host: Host, found: list[Summary], per_second: float | None, by: str, why: str) -> Iterator[Done]:
    """Cancel each run; one that has begun or ended meanwhile is left."""

    def one(summary: Summary) -> str | None:
        try:
            cancel(host.journal, summary.execution, by, why)
        except NotTaken:
            return None
        return summary.execution

    yield from _each(found, per_second, one)


def _each(found: list[Summary], per_second: float | None, act: Callable[[Summary], str | None]) -> Iterator[Done]:
    """Act on each run, evenly spaced in time."""
    began = monotonic()
    for number, summary in enumerate(found):
        if per_second is not None:
            sleep(max(0.0, began + number / per_second - monotonic()))
        try:
            yield Done(summary, act(summary))
        except JournalError as problem:
            yield Done(summary, None, str(problem))
