"""Queues as commands and pages show them, and what people change about them. Changes are lines of the audit log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from vesper.engines.outcome import outcome_code
from vesper.host.host import Host
from vesper.host.outcomes import recorded_outcome
from vesper.journal.audit import audit_change
from vesper.journal.due import Due
from vesper.journal.errors import JournalError
from vesper.journal.journal import Journal, Status
from vesper.journal.moments import moment_json
from vesper.queues.retrying import Place, retry
from vesper.queues.rules import DEAD_SUFFIX, QUEUED, Terms

MAX_QUEUES = 1_000
_PAGE = 500
_PAUSE = "pause"
"""Kind of the row of a paused queue."""


@dataclass(frozen=True, slots=True)
class QueueLine:
    """A queue, or one of its lanes."""

    queue: str
    waiting: int = 0
    """Runs that are due and wait for a worker."""
    delayed: int = 0
    running: int = 0
    dead: int = 0
    oldest_us: int | None = None
    """The time since which the oldest run is due."""
    lane: str | None = None
    paused_by: str | None = None
    paused_why: str | None = None

    def to_json(self) -> dict[str, Any]:
        oldest = None if self.oldest_us is None else moment_json(self.oldest_us)
        found = {**asdict(self), "oldest": oldest}
        del found["oldest_us"]
        return found


@dataclass(frozen=True, slots=True)
class QueuedRun:
    """A run with a row in a queue."""

    due: Due
    state: str
    """`waiting`, `delayed`, `running`, `dead`."""
    attempt: int
    attempts: int
    retry_of: str | None
    code: str | None = None
    """Why a dead letter failed: a code, or the kind of its outcome."""

    def to_json(self) -> dict[str, Any]:
        due = self.due
        return {
            "execution": due.execution,
            "node_id": due.node_id,
            "queue": due.queue.removesuffix(DEAD_SUFFIX),
            "lane": due.lane,
            "state": self.state,
            "priority": due.priority,
            "due": None if due.due_us is None else moment_json(due.due_us),
            "attempt": self.attempt,
            "attempts": self.attempts,
            "retry_of": self.retry_of,
            "code": self.code,
        }


def queue_lines(journal: Journal) -> list[QueueLine]:
    """Return all queues that have rows or are paused, by name."""
    found: dict[str, QueueLine] = {}
    for each in journal.queue_depths(None, 2 * MAX_QUEUES):
        name = each.queue.removesuffix(DEAD_SUFFIX)
        line = found.setdefault(name, QueueLine(name))
        if name != each.queue:
            found[name] = replace(line, dead=each.count)
        elif name:  # the queue without a name is that of started runs, which keepers serve
            found[name] = replace(
                line, waiting=each.waiting, delayed=each.delayed, running=each.running, oldest_us=each.oldest_us
            )
    for row in journal.due(kind=_PAUSE, limit=MAX_QUEUES):
        body = json.loads(row.body)
        line = found.get(row.name, QueueLine(row.name))
        found[row.name] = replace(line, paused_by=body["by"], paused_why=body["why"])
    return [found[name] for name in sorted(found) if name]


def lane_lines(journal: Journal, queue: str, limit: int = 20) -> list[QueueLine]:
    """Return the longest lanes of a queue."""
    return [
        QueueLine(queue, each.waiting, each.delayed, each.running, 0, each.oldest_us, each.lane)
        for each in journal.queue_depths(queue, limit)
    ]


def queued_runs(
    journal: Journal, queue: str, now_us: int, *, dead: bool = False, limit: int = 100, after: int | None = None
) -> list[QueuedRun]:
    """Return runs of a queue in the order in which they were put there; of its dead letters with `dead`."""
    rows = journal.due(kind=QUEUED, queue=queue + DEAD_SUFFIX if dead else queue, limit=limit, after=after)
    return [_queued_run(journal, each, now_us) for each in rows]


def _queued_run(journal: Journal, due: Due, now_us: int) -> QueuedRun:
    terms = Terms.from_body(due.body)
    if due.queue.endswith(DEAD_SUFFIX):
        state = "dead"
    elif due.owner and due.lease_until_us > now_us:
        state = "running"
    else:
        state = "delayed" if due.due_us is not None and due.due_us > now_us else "waiting"
    code = _failure(journal, due) if state == "dead" else None
    return QueuedRun(due, state, terms.attempt, terms.attempts, terms.retry_of, code)


def _failure(journal: Journal, due: Due) -> str | None:
    if due.execution is None:  # pruned
        return None
    end = journal.read(due.execution).entries[-1]
    if end.is_erased or "outcome" not in end.entry.body:
        return None
    outcome = recorded_outcome(end.entry.body)
    return outcome_code(outcome) or outcome.kind


def pause(journal: Journal, queue: str, by: str, why: str) -> bool:
    """Stop workers from claiming runs of a queue; False where it is paused already."""
    is_changed = journal.put_due(_PAUSE, queue, None, json.dumps({"by": by, "why": why}), None)
    if is_changed:
        audit_change(journal, "queue_pause", "", "", by, queue=queue, why=why)
    return is_changed


def resume(journal: Journal, queue: str, by: str, why: str = "") -> bool:
    """Let workers claim runs of a queue again; False where it is not paused."""
    rows = journal.due(kind=_PAUSE, name=queue, limit=1)
    is_changed = bool(rows) and journal.remove(rows[0])
    if is_changed:
        audit_change(journal, "queue_resume", "", "", by, queue=queue, why=why)
    return is_changed


def dead_letters(journal: Journal, queue: str) -> Iterator[Due]:
    """Return the dead letters of a queue, oldest first."""
    after = None
    while rows := journal.due(kind=QUEUED, queue=queue + DEAD_SUFFIX, limit=_PAGE, after=after):
        yield from rows
        after = rows[-1].id


def find_dead(journal: Journal, execution: str) -> Due:
    """Return the dead letter of a run. Raises `JournalError` where it is none."""
    for each in journal.due(kind=QUEUED, execution=execution, limit=1):
        if each.queue.endswith(DEAD_SUFFIX):
            return each
    raise JournalError(f"execution {execution} is no dead letter; `vesper queue dead` lists them")


def requeue(host: Host, due: Due, by: str, why: str = "") -> str | None:
    """Queue a new run with the inputs of a dead letter, all attempts anew; None where that was done already."""
    assert due.execution is not None  # a row of this kind has a run
    terms = replace(Terms.from_body(due.body), attempt=1, retry_of=due.execution)
    place = Place(due.queue.removesuffix(DEAD_SUFFIX), due.priority, terms)
    execution = retry(host, host.journal.read(due.execution), place)
    host.journal.remove(due)
    audit_change(host.journal, "queue_requeue", due.execution, due.node_id or "", by, queue=place.queue, why=why)
    return execution


def drop(journal: Journal, due: Due, by: str, why: str = "") -> bool:
    """Delete a dead letter; its run stays in the journal. False where it is gone already."""
    is_changed = journal.remove(due)
    if is_changed:
        audit_change(journal, "queue_drop", due.execution or "", due.node_id or "", by, queue=due.queue, why=why)
    return is_changed


def cancel(journal: Journal, execution: str, by: str, why: str) -> Status:
    """Cancel a queued or waiting run. Raises `JournalError` for one that is under way or has ended."""
    status = journal.cancel(execution, why, by)
    audit_change(journal, "run_cancel", execution, journal.summary(execution).node_id, by, why=why)
    return status
