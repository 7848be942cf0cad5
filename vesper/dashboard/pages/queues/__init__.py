"""Queues: depth, lanes and dead letters; pause, resume, requeue, drop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vesper.dashboard.action import Action, Context, Done, Refused, Role
from vesper.dashboard.page import Page, Paging, Parameter, filled
from vesper.dashboard.pages.journal.actions import open_host
from vesper.dashboard.stores import Topic
from vesper.dashboard.words import queue_at
from vesper.journal.due import Due
from vesper.journal.journal import Journal, JournalError
from vesper.queues import overview
from vesper.queues.overview import QueuedRun, QueueLine, find_dead, lane_lines, queue_lines, queued_runs
from vesper.values.model import printable

_LETTERS_A_PAGE = 50
_RUNS_SHOWN = 20
_LOOK_AGAIN = "Nothing was changed. Load the page again: another person may have been faster."


@dataclass(frozen=True, slots=True)
class Queues:
    """All queues, by name."""

    lines: tuple[QueueLine, ...]


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in a queue, or a dead letter."""

    execution: str
    node: str
    lane: str
    state: str
    priority: int
    due_us: int | None
    attempt: int
    attempts: int
    code: str | None
    """Why a dead letter failed."""


@dataclass(frozen=True, slots=True)
class QueueView:
    """One queue: its longest lanes, its first runs and its dead letters."""

    line: QueueLine
    lanes: tuple[QueueLine, ...]
    runs: tuple[RunLine, ...]
    letters: tuple[RunLine, ...]
    paging: Paging
    """Of the dead letters."""


def read_queues(context: Context) -> Queues:
    """Read all queues that have runs, dead letters or a pause."""
    return Queues(tuple(queue_lines(context.stores.journal)))


def read_queue(context: Context) -> QueueView:
    """Read the queue of the path; one without rows is empty."""
    journal, name, now_us = context.stores.journal, queue_at(context.path["queue"]), context.now_us
    line = next((each for each in queue_lines(journal) if each.queue == name), QueueLine(name))
    start = (context.page_number() - 1) * _LETTERS_A_PAGE
    letters = queued_runs(journal, name, now_us, dead=True, limit=start + _LETTERS_A_PAGE + 1)
    return QueueView(
        line,
        tuple(lane_lines(journal, name)),
        tuple(_run(each) for each in queued_runs(journal, name, now_us, limit=_RUNS_SHOWN)),
        tuple(_run(each) for each in letters[start : start + _LETTERS_A_PAGE]),
        context.paging(len(letters) > start + _LETTERS_A_PAGE),
    )


def _run(run: QueuedRun) -> RunLine:
    due = run.due
    lane = printable(due.lane)
    return RunLine(
        due.execution or "", due.node_id or "", lane, run.state, due.priority, due.due_us, run.attempt, run.attempts,
        run.code,
    )  # fmt: skip


def pause_queue(context: Context, fields: Mapping[str, str]) -> Done:
    """Let no worker claim runs of the queue until it is resumed."""
    name = queue_at(context.path["queue"])
    if not overview.pause(context.stores.journal, name, context.caller.name, fields["reason"]):
        raise Refused(f"the queue {printable(name)} is paused already", _LOOK_AGAIN)
    return _done(context, f"The queue {printable(name)} is paused; runs under way end.")


def resume_queue(context: Context, fields: Mapping[str, str]) -> Done:
    """End the pause of the queue."""
    name = queue_at(context.path["queue"])
    if not overview.resume(context.stores.journal, name, context.caller.name, fields["reason"]):
        raise Refused(f"the queue {printable(name)} is not paused", _LOOK_AGAIN)
    return _done(context, f"Workers take runs of {printable(name)} again.")


def requeue(context: Context, fields: Mapping[str, str]) -> Done:
    """Queue a new run with the inputs of a dead letter."""
    with open_host(context, "use the file that the nodes run with") as host:
        due = _letter(host.journal, fields)
        execution = overview.requeue(host, due, context.caller.name, fields["reason"])
    return _done(context, f"{due.execution} is queued again{'' if execution is None else f' as {execution}'}.")


def drop(context: Context, fields: Mapping[str, str]) -> Done:
    """Delete a dead letter; its run stays in the journal."""
    due = _letter(context.stores.journal, fields)
    if not overview.drop(context.stores.journal, due, context.caller.name, fields["reason"]):
        raise Refused("the dead letter is gone", _LOOK_AGAIN)
    return _done(context, f"Dropped the dead letter of {due.execution}.")


def _letter(journal: Journal, fields: Mapping[str, str]) -> Due:
    try:
        return find_dead(journal, fields.get("execution", ""))
    except JournalError as problem:
        raise Refused(printable(str(problem)), _LOOK_AGAIN) from None


def _done(context: Context, message: str) -> Done:
    return Done(message, filled("/workload/queues/{queue}", context.path))


PAGES = (
    Page(
        name="queues",
        path="/workload/queues",
        title="Queues",
        read=read_queues,
        template="queues/list.html",
        summary="Queues with the runs that wait, are delayed or run, the oldest of them, and dead letters.",
        topics=frozenset({Topic.JOURNAL}),
    ),
    Page(
        name="queue",
        path="/workload/queues/{queue}",
        title="Queue {queue}",
        read=read_queue,
        template="queues/queue.html",
        summary="One queue with its longest lanes, first runs and dead letters.",
        parameters=(Parameter("page", "integer", "Page of the dead letters, from 1."),),
    ),
)

ACTIONS = (
    Action(
        name="pause_queue",
        path="/workload/queues/{queue}/pause",
        role=Role.OPERATOR,
        perform=pause_queue,
        summary="No worker takes runs of this queue until it is resumed. Runs under way end, new ones are queued.",
    ),
    Action(
        name="resume_queue",
        path="/workload/queues/{queue}/resume",
        role=Role.OPERATOR,
        perform=resume_queue,
        summary="Workers take runs of this queue again.",
    ),
    Action(
        name="requeue_letter",
        path="/workload/queues/{queue}/requeue",
        role=Role.OPERATOR,
        perform=requeue,
        summary="Queues a new run with the same inputs, all attempts anew. Its effects may be performed.",
    ),
    Action(
        name="drop_letter",
        path="/workload/queues/{queue}/drop",
        role=Role.OPERATOR,
        perform=drop,
        summary="Deletes the dead letter. The failed run stays in the journal; nothing repeats it.",
    ),
)
