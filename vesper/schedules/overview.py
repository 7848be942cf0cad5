"""Reader of schedules for the command and the dashboard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vesper.compiler import compile_file
from vesper.journal.journal import Journal
from vesper.language.work_bindings import ScheduleField, schedule_of
from vesper.repository.locate import is_library_file, node_files
from vesper.schedules.rows import last_run, read_rows
from vesper.schedules.timetable import GRACE_US, ScheduleRow, Timetable, time_text


@dataclass(frozen=True, slots=True)
class ScheduleLine:
    """A schedule as recorded in the journal.

    If no process has served its node yet, the values come from the node's file.
    """

    node_id: str
    state: str
    """`scheduled`, `waiting` (for a run's end), `paused`, `unserved` (overdue: no process has the job) or `new`."""
    next_us: int | None
    """The next due time, before its jitter; None in a pause."""
    row: ScheduleRow
    last_execution: str | None
    last_status: str | None
    """`queued`, `running`, `waiting`, `in_doubt`, or the outcome of a run that has ended."""

    def to_json(self) -> dict[str, Any]:
        row = asdict(self.row)
        times = {"next": self.next_us, "last": row.pop("last_us"), "paused": row.pop("paused_us") or None}
        return {
            "node": self.node_id,
            "state": self.state,
            **{name: None if time_us is None else time_text(time_us) for name, time_us in times.items()},
            "last_execution": self.last_execution,
            "last_status": self.last_status,
            **{name: value for name, value in row.items() if name != "next_us"},
            "pending": [time_text(each) for each in self.row.pending],
        }


def declared_schedules(root: Path) -> dict[str, ScheduleField]:
    """Return the schedules of a folder's nodes; `vesper check` reports nodes with errors."""
    found: dict[str, ScheduleField] = {}
    for path in node_files([root]):
        if is_library_file(path) or b"scheduled_job" not in path.read_bytes():
            continue
        compiled, _ = compile_file(path)
        if compiled is not None and (field := schedule_of(compiled)) is not None:
            found[compiled.node.node_id] = field
    return found


def overview(journal: Journal | None, now_us: int, fields: Mapping[str, ScheduleField]) -> list[ScheduleLine]:
    """Return all schedules of the journal, and those of `fields` that no process has served, by node."""
    rows: dict[str, tuple[int | None, ScheduleRow]] = {} if journal is None else {**read_rows(journal)}
    for node_id, field in fields.items():
        due_us, row = rows.get(node_id, (None, ScheduleRow()))
        if not row.cron:
            rows[node_id] = due_us, Timetable(node_id, field).adopted(row, now_us)
    return [_line(journal, name, *rows[name], now_us) for name in sorted(rows)]


def _line(journal: Journal | None, node_id: str, due_us: int | None, row: ScheduleRow, now_us: int) -> ScheduleLine:
    if row.paused_by is not None:
        state = "paused"
    elif due_us is None:
        state = "new"
    elif now_us - due_us > GRACE_US:
        state = "unserved"
    else:
        state = "waiting" if row.pending else "scheduled"
    last = None if journal is None else last_run(journal, node_id, row)
    return ScheduleLine(
        node_id,
        state,
        None if state == "paused" or not row.cron else row.next_us,
        row,
        None if last is None else last.execution,
        None if last is None else last.outcome or str(last.status),
    )
