"""Due times of a schedule, jitter, and the decision on due times."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from vesper.language.work_bindings import ScheduleField
from vesper.schedules.timetable import MAX_CATCH_UP, ScheduleRow, Timetable, time_text, us_of

MINUTE = 60_000_000
HOUR = 60 * MINUTE
NOON = us_of(datetime(2026, 11, 18, 12, tzinfo=UTC))


def table(cron: str = "0 * * * *", jitter_us: int = 0, overlap: str = "skip", missed: str = "latest") -> Timetable:
    return Timetable("report_v1", ScheduleField(cron, "UTC", jitter_us, overlap, missed, "{}", None))


def row_at(timetable: Timetable, next_us: int = NOON) -> ScheduleRow:
    return timetable.described(ScheduleRow(next_us=next_us))


def decided(timetable: Timetable, now_us: int, is_busy: bool = False) -> tuple[list[str], int, int]:
    row = timetable.decide(row_at(timetable), now_us, lambda: is_busy)
    return [time_text(each)[11:16] for each in row.pending], row.missed_count, row.skipped_count


@pytest.mark.parametrize(
    "missed, late_us, expected",
    [
        ("latest", 0, (["12:00"], 0, 0)),
        ("skip", 0, (["12:00"], 0, 0)),
        ("all", 0, (["12:00"], 0, 0)),
        ("skip", MINUTE - 1, (["12:00"], 0, 0)),
        ("skip", MINUTE, ([], 1, 0)),
        ("latest", 3 * HOUR + 5 * MINUTE, (["15:00"], 3, 0)),
        ("skip", 3 * HOUR + 5 * MINUTE, ([], 4, 0)),
        ("skip", 3 * HOUR, (["15:00"], 3, 0)),
        ("all", 3 * HOUR + 5 * MINUTE, (["12:00", "13:00", "14:00", "15:00"], 0, 0)),
    ],
)
def test_missed_times_follow_the_policy(missed: str, late_us: int, expected: object) -> None:
    assert decided(table(missed=missed), NOON + late_us) == expected


def test_nothing_is_decided_early() -> None:
    row = row_at(table())
    assert table().decide(row, NOON - 1, lambda: False) is row


def test_a_decision_moves_to_the_next_due_time() -> None:
    row = table().decide(row_at(table()), NOON + 3 * HOUR, lambda: False)
    assert time_text(row.next_us) == "2026-11-18T16:00:00Z"


def test_an_overlapping_time_is_skipped_queued_or_allowed() -> None:
    assert decided(table(overlap="skip"), NOON, is_busy=True) == ([], 0, 1)
    assert decided(table(overlap="queue"), NOON, is_busy=True) == (["12:00"], 0, 0)
    assert decided(table(overlap="allow"), NOON, is_busy=True) == (["12:00"], 0, 0)


def test_a_year_without_a_process_is_bounded() -> None:
    pending, missed, skipped = decided(table("* * * * *", missed="all"), NOON + 365 * 24 * HOUR)
    assert (len(pending), pending[-1], missed, skipped) == (MAX_CATCH_UP, "12:00", 0, 0)
    waiting = replace(row_at(table()), pending=tuple(range(MAX_CATCH_UP)))
    full = table(overlap="queue").decide(waiting, NOON, lambda: True)
    assert (len(full.pending), full.skipped_count) == (MAX_CATCH_UP, 1)


def test_jitter_is_repeatable_and_ends_before_the_next_due_time() -> None:
    hourly = table(jitter_us=5 * MINUTE)
    starts = [hourly.start_of(NOON + hour * HOUR) - NOON - hour * HOUR for hour in range(50)]
    assert starts == [
        table(jitter_us=5 * MINUTE).start_of(NOON + hour * HOUR) - NOON - hour * HOUR for hour in range(50)
    ]
    assert len(set(starts)) > 40
    assert all(0 <= each <= 5 * MINUTE for each in starts)
    often = table("* * * * *", jitter_us=HOUR)
    assert all(0 <= often.start_of(NOON + index * MINUTE) - NOON - index * MINUTE < MINUTE for index in range(50))


def test_a_time_waits_for_its_jitter() -> None:
    timetable = table(jitter_us=5 * MINUTE)
    start_us = timetable.start_of(NOON)
    assert decided(timetable, start_us - 1)[0] == []
    assert decided(timetable, start_us)[0] == ["12:00"]


def test_another_text_begins_from_now_and_other_policies_do_not() -> None:
    row = row_at(table())
    assert table("30 * * * *").adopted(row, NOON + HOUR).next_us == NOON + HOUR + 30 * MINUTE
    kept = table(overlap="allow").adopted(row, NOON + HOUR)
    assert (kept.next_us, kept.overlap) == (NOON, "allow")
    assert not table(overlap="allow").fits(row)
    assert ScheduleRow.from_body(kept.to_body()) == kept
