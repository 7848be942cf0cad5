"""Due times of a schedule, and the decision which of them run (docs/spec/schedules.md).

Everything here is a function of the row, the field and the time. Times are microseconds since 1970.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from vesper.language.cron import parse_cron
from vesper.language.work_bindings import ScheduleField

MAX_CATCH_UP = 100
"""Due times that one decision regards, and times that wait for their run; the newest of more."""
GRACE_US = 60_000_000
"""Lateness from which on a due time counts as missed."""
PAUSED_DUE_US = 1 << 62
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """The body of a schedule's row in the due table."""

    cron: str = ""
    """Empty: the next process with the job computes the next due time from now."""
    zone: str = "UTC"
    jitter_us: int = 0
    overlap: str = "skip"
    missed: str = "latest"
    next_us: int = 0
    """The first due time without a decision."""
    pending: tuple[int, ...] = ()
    """Decided due times whose run has not begun."""
    last_us: int | None = None
    """The due time of the last run."""
    paused_by: str | None = None
    paused_us: int = 0
    run_count: int = 0
    missed_count: int = 0
    skipped_count: int = 0

    @classmethod
    def from_body(cls, body: str) -> ScheduleRow:
        found = json.loads(body)
        return cls(**{**found, "pending": tuple(found["pending"])})

    def to_body(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))


class Timetable:
    """The due times of one job."""

    def __init__(self, node_id: str, field: ScheduleField) -> None:
        self.field = field
        self._node_id = node_id
        self._cron = parse_cron(field.cron)

    def next_after(self, time_us: int) -> int:
        return us_of(self._cron.next_after(moment_of(time_us), self.field.zone))

    def start_of(self, due_us: int) -> int:
        """Return the due time with its jitter, which ends before the next due time."""
        if self.field.jitter_us == 0:
            return due_us
        drawn = int.from_bytes(sha256(f"{self._node_id} {due_us}".encode()).digest()[:8])
        return due_us + drawn % min(self.field.jitter_us + 1, self.next_after(due_us) - due_us)

    def started(self, first_us: int, now_us: int) -> list[int]:
        """Return the due times from `first_us` on whose start has come, ascending; the newest of too many."""
        found: list[int] = []
        moment = moment_of(now_us) + _MICROSECOND
        while len(found) < MAX_CATCH_UP:
            moment = self._cron.previous_before(moment, self.field.zone)
            if us_of(moment) < first_us:
                break
            if self.start_of(us_of(moment)) <= now_us:
                found.insert(0, us_of(moment))
        return found

    def fits(self, row: ScheduleRow) -> bool:
        """Return whether the row has this table's text and policies."""
        return self.described(row) == row

    def described(self, row: ScheduleRow) -> ScheduleRow:
        field = self.field
        return replace(
            row,
            cron=field.cron,
            zone=field.zone,
            jitter_us=field.jitter_us,
            overlap=field.overlap,
            missed=field.missed,
        )

    def adopted(self, row: ScheduleRow, now_us: int) -> ScheduleRow:
        """Return the row with this table's text; due times of another text give way to those after now."""
        new = self.described(row)
        is_same = (new.cron, new.zone, new.jitter_us) == (row.cron, row.zone, row.jitter_us)
        return new if is_same else replace(new, next_us=self.next_after(now_us))

    def decide(self, row: ScheduleRow, now_us: int, is_busy: Callable[[], bool]) -> ScheduleRow:
        """Return the row after the decision on every due time whose start has come."""
        due = self.started(row.next_us, now_us)
        if not due:
            return row
        chosen = due
        if self.field.missed == "latest":
            chosen = due[-1:]
        elif self.field.missed == "skip":
            chosen = [each for each in due if now_us - self.start_of(each) < GRACE_US]
        pending = (*row.pending, *chosen)[:MAX_CATCH_UP]
        if self.field.overlap == "skip" and chosen and (row.pending or is_busy()):
            pending = row.pending
        return replace(
            row,
            next_us=self.next_after(due[-1]),
            pending=pending,
            missed_count=row.missed_count + len(due) - len(chosen),
            skipped_count=row.skipped_count + len(row.pending) + len(chosen) - len(pending),
        )


def us_of(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def moment_of(time_us: int) -> datetime:
    return _EPOCH + time_us * _MICROSECOND


def time_text(time_us: int) -> str:
    """Return a due time as keys and outputs have it: `2026-03-29T01:00:00Z`."""
    return f"{moment_of(time_us):%Y-%m-%dT%H:%M:%SZ}"
