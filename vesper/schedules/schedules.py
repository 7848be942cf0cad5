"""Schedules of a process: begin the runs of `scheduled_job` nodes when they are due, once among all processes.

A row has one job's state. A process first commits its decision by compare-and-swap (`pending`), then begins the decided
runs, each with a key that names its due time, then commits the row without them. A process that dies in between
leaves a row that any other one continues; the keys keep a run from beginning twice.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from vesper.host.background import Repeating
from vesper.host.background_work import WorkNode, WorkState
from vesper.host.host import Host
from vesper.host.run_context import RunContext, entered
from vesper.journal.journal import KeyTaken
from vesper.language.work_bindings import ScheduleField, queue_of, schedule_of
from vesper.observe.metrics import count, observe
from vesper.queues.retrying import next_attempt
from vesper.queues.rules import Terms, lane_of
from vesper.schedules.rows import context_of, last_run, put_row, read_rows
from vesper.schedules.timetable import GRACE_US, PAUSED_DUE_US, ScheduleRow, Timetable, time_text
from vesper.values.generated.metrics import SCHEDULES_LATE, SCHEDULES_MISSED

_POLL_SECONDS = 0.5
_LEASE_US = 5_000_000
"""Time after which other processes begin the runs of a decision."""
_OVERLAP_POLL_US = 1_000_000
_LAST_OUTCOMES = ("returned", "declared_error")
"""Outcomes that no attempt follows."""
_log = logging.getLogger("vesper.schedules")


class ScheduledNode(WorkNode, Protocol):
    """A loaded node, which also converts inputs."""

    def _to_plain(self, given: object) -> Any: ...
    def _run_at(self, given: Any, now: Any) -> Any: ...


def store_now_us(host: Host) -> int:
    """Return the time by which all processes decide, whatever the clocks of their machines say."""
    return host.journal.now_us()


class Schedules:
    """Background work of a process: the schedules of its nodes."""

    def __init__(self, host: Host, nodes: Sequence[ScheduledNode]) -> None:
        self._host = host
        fields = [(node, schedule_of(node._compiled)) for node in nodes]
        self._jobs = {node.id: _Job(host, node, Timetable(node.id, field)) for node, field in fields if field}
        self._thread = Repeating("vesper-schedules", _POLL_SECONDS, self._poll)
        self._is_running = False
        self._problem: str | None = None

    def start(self) -> None:
        if self._jobs and not self._is_running:
            self._is_running = True
            self._thread.start()

    def stop(self, timeout: float | None = None) -> bool:
        """Stop after the decision under way: runs that have begun are the keeper's."""
        self._thread.stop()
        self._is_running = False
        return True

    def state(self) -> WorkState:
        return WorkState("schedules", self._is_running, self._problem, {"jobs": sorted(self._jobs)})

    def step(self) -> None:
        """Advance every job that is due. Raises the first problem after all of them."""
        journal = self._host.journal
        next_us = journal.next_due(["schedule"])
        is_due = next_us is not None and next_us <= store_now_us(self._host)
        if not is_due and not any(job.is_new for job in self._jobs.values()):
            return
        rows = read_rows(journal)
        problem: Exception | None = None
        for name, job in self._jobs.items():
            try:
                job.advance(*rows.get(name, (None, ScheduleRow())))
            except Exception as error:  # noqa: BLE001  # it concerns this job, and others are due
                problem = problem or error
        if problem is not None:
            raise problem

    def _poll(self) -> None:
        try:
            self.step()
        except Exception as error:  # noqa: BLE001  # reported in the state and retried
            text = f"{type(error).__name__}: {error}"
            if text != self._problem:
                _log.warning("schedules are late, and tried again: %s", text)
            self._problem = text
        else:
            self._problem = None


class _Job:
    """One scheduled node in this process."""

    def __init__(self, host: Host, node: ScheduledNode, timetable: Timetable) -> None:
        self._host = host
        self._node = node
        self._timetable = timetable
        self.is_new = True
        """True until the row has had this process's text once: the last deployment decides."""

    def advance(self, due_us: int | None, row: ScheduleRow) -> None:
        """Continue a row with its due time; insert a missing one."""
        now_us = store_now_us(self._host)
        if not self._timetable.fits(row):
            is_abandoned = due_us is not None and now_us - due_us > GRACE_US
            if not (self.is_new or not row.cron or is_abandoned):
                return  # a later deployment has another text
            row = self._timetable.adopted(row, now_us)
            due_us = self._put(row, self._due_of(row, now_us), due_us)
        self.is_new = self.is_new and due_us is None
        if due_us is not None and due_us <= now_us:
            self._fire(due_us, row, now_us)

    def _fire(self, due_us: int, row: ScheduleRow, now_us: int) -> None:
        decided = self._timetable.decide(row, now_us, lambda: self._is_busy(row))
        if decided != row or self._can_begin(row):  # one process begins the runs, until its lease is over
            leased_us = self._put(decided, now_us + _LEASE_US, due_us)
            if leased_us is None:
                return
            count(SCHEDULES_MISSED, (self._node.id, "late"), decided.missed_count - row.missed_count)
            count(SCHEDULES_MISSED, (self._node.id, "overlap"), decided.skipped_count - row.skipped_count)
            due_us, row = leased_us, decided
        while self._can_begin(row):
            time_us, *rest = row.pending
            self._begin(time_us, now_us)
            row = replace(row, pending=tuple(rest), last_us=time_us, run_count=row.run_count + 1)
        self._put(row, self._due_of(row, now_us), due_us)

    def _can_begin(self, row: ScheduleRow) -> bool:
        return bool(row.pending) and (row.overlap == "allow" or not self._is_busy(row))

    def _begin(self, time_us: int, now_us: int) -> None:
        try:
            begin_run(self._host, self._node, self._timetable.field, time_us, context_of(self._node.id, time_us))
        except KeyTaken:  # another process has begun it
            return
        observe(SCHEDULES_LATE, (self._node.id,), (now_us - self._timetable.start_of(time_us)) / 1_000_000)

    def _is_busy(self, row: ScheduleRow) -> bool:
        """Return whether the run of the last due time, or an attempt after it, has not ended."""
        found = last_run(self._host.journal, self._node.id, row)
        while found is not None and found.status == "ended" and found.outcome not in _LAST_OUTCOMES:
            follower, is_over = next_attempt(self._host, found.execution)
            if is_over or follower is None:
                return not is_over
            found = self._host.journal.summary(follower)
        return found is not None and found.status != "ended"

    def _due_of(self, row: ScheduleRow, now_us: int) -> int:
        if row.paused_by is not None:
            return PAUSED_DUE_US
        return now_us + _OVERLAP_POLL_US if row.pending else self._timetable.start_of(row.next_us)

    def _put(self, row: ScheduleRow, due_us: int, expected_us: int | None) -> int | None:
        """Return the due time of the changed row; None where another process was faster."""
        return put_row(self._host.journal, self._node.id, row, due_us, expected_us)


def begin_run(host: Host, node: ScheduledNode, field: ScheduleField, time_us: int, context: RunContext) -> str:
    """Commit a queued run for a due time, and return its id. Raises `KeyTaken` and `BadInput`."""
    given = [field.inputs_json.strip()[1:-1].strip()]
    if field.time_field is not None:
        given.append(f"{json.dumps(field.time_field)}: {json.dumps(time_text(time_us))}")
    text = "{" + ", ".join(filter(None, given)) + "}"
    plain = node._to_plain(text)
    if plain.refused:
        node._run_at(text, None).unwrap()  # raises the refusal
    inputs, queue = plain.inputs, queue_of(node._compiled)
    with entered(context):
        if queue is None:
            return host.put_run(node._prepare(host), inputs, host.moment())
        lane = lane_of(node._compiled.node, queue, inputs)
        return host.put_run(
            node._prepare(host),
            inputs,
            host.moment(),
            queue=queue.name,
            lane=lane,
            priority=queue.priority,
            body=Terms(queue.attempts, queue.backoff, lane, tenant=context.tenant).to_body(),
        )
