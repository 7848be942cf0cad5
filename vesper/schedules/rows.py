"""Rows of schedules in the due table: reading, compare-and-swap, pauses."""

from __future__ import annotations

from dataclasses import replace

from vesper.host.run_context import RunContext
from vesper.journal.audit import audit_change
from vesper.journal.journal import Journal, Summary
from vesper.schedules.timetable import PAUSED_DUE_US, ScheduleRow, time_text
from vesper.values.vesper_error import VesperError

ACTOR = "schedule"
_PAGE_ROWS = 500


class UnknownSchedule(VesperError):
    """No process has served a schedule of this node."""


def read_rows(journal: Journal) -> dict[str, tuple[int, ScheduleRow]]:
    """Return every schedule's due time and row, by node."""
    found: dict[str, tuple[int, ScheduleRow]] = {}
    after = None
    while page := journal.due(kind="schedule", limit=_PAGE_ROWS, after=after):
        found |= {each.name: (each.due_us or 0, ScheduleRow.from_body(each.body)) for each in page}
        after = page[-1].id
    return found


def put_row(journal: Journal, node_id: str, row: ScheduleRow, due_us: int, expected_us: int | None) -> int | None:
    """Replace the row with the expected due time, or insert one; return the new due time, None without a change.

    Every change has another due time, so that no two processes change one state.
    """
    due_us += due_us == expected_us
    return due_us if journal.put_due("schedule", node_id, due_us, row.to_body(), expected_us) else None


def context_of(node_id: str, time_us: int) -> RunContext:
    """Return the context whose key gives a due time one run."""
    return RunContext(actor=ACTOR, key=f"schedule:{node_id}:{time_text(time_us)}")


def last_run(journal: Journal, node_id: str, row: ScheduleRow) -> Summary | None:
    """Return the run of the last due time; None before the first one, and where it was pruned."""
    if row.last_us is None:
        return None
    found = journal.keyed(node_id, context_of(node_id, row.last_us).to_record())
    return None if found is None else found[0]


def pause(journal: Journal, node_id: str, by: str, why: str = "") -> ScheduleRow:
    """Begin no run of a job until `resume`. Times that wait for their run are skipped."""
    while True:
        due_us, row = read_rows(journal).get(node_id, (None, ScheduleRow()))
        if row.paused_by is not None:
            return row
        skipped = row.skipped_count + len(row.pending)
        row = replace(row, paused_by=by, paused_us=journal.now_us(), pending=(), skipped_count=skipped)
        if put_row(journal, node_id, row, PAUSED_DUE_US, due_us) is not None:
            audit_change(journal, "schedule_pause", "", node_id, by, why=why)
            return row


def resume(journal: Journal, node_id: str, by: str, why: str = "") -> ScheduleRow:
    """End a pause: the next process with the job computes its next due time from then."""
    while True:
        due_us, row = read_rows(journal).get(node_id, (None, ScheduleRow()))
        if due_us is None:
            raise UnknownSchedule(
                f"no process has served a schedule of {node_id}: `vesper work` or `vesper serve` does"
            )
        if row.paused_by is None:
            return row
        row = replace(row, paused_by=None, cron="")
        if put_row(journal, node_id, row, journal.now_us(), due_us) is not None:
            audit_change(journal, "schedule_resume", "", node_id, by, why=why)
            return row
