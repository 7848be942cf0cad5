"""Cron texts: fields, faults, and due times against an oracle that visits every minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from tests.proofs.schedules.cron_oracle import MINUTE, Oracle
from vesper.language.cron import CronMistake, parse_cron

DAY = timedelta(days=1)
CHANGES = {
    "Europe/Berlin": ("2026-03-29T01:00", "2026-10-25T01:00"),
    "America/New_York": ("2026-03-08T07:00", "2027-11-07T06:00"),
    "Australia/Lord_Howe": ("2026-10-03T15:30", "2027-04-03T15:00"),
    "America/Santiago": ("2026-09-06T04:00", "2027-04-04T03:00"),
    "Asia/Kolkata": ("2026-01-01T00:00",),
}


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def due(text: str, zone: str, begin: str, count: int) -> list[str]:
    cron, at, found = parse_cron(text), moment(begin), []
    for _ in range(count):
        at = cron.next_after(at, zone)
        found.append(f"{at:%m-%dT%H:%M}")
    return found


def drawn(random: Random) -> tuple[str, list[set[int]]]:
    """Return a cron text and the values of its fields."""
    texts, sets = [], []
    for low, high, share in ((0, 59, 0.2), (0, 23, 0.4), (1, 31, 0.7), (1, 12, 0.8), (0, 6, 0.7)):
        whole = set(range(low, high + 1))
        if random.random() < share:
            texts.append("*")
            sets.append(whole)
        elif random.random() < 0.4:
            step = random.randint(2, 9)
            texts.append(f"*/{step}")
            sets.append(set(range(low, high + 1, step)))
        else:
            begin = random.randint(low, high)
            end = random.randint(begin, high)
            extra = random.randint(low, high)
            texts.append(f"{begin}-{end},{extra}")
            sets.append({*range(begin, end + 1), extra})
    return " ".join(texts), sets


@pytest.mark.parametrize("zone", CHANGES)
def test_due_times_equal_those_of_an_oracle_over_minutes(zone: str) -> None:
    random = Random(zone)
    for change in CHANGES[zone]:
        begin, end = moment(change) - DAY * 0.7, moment(change) + DAY * 0.7
        for _ in range(6):
            text, sets = drawn(random)
            try:
                cron = parse_cron(text)
            except CronMistake:
                continue
            expected = Oracle(sets, zone).between(begin, end)
            assert list(cron.due_between(begin, end - MINUTE, zone)) == expected, text
            if expected:
                place = random.randrange(len(expected))
                assert cron.previous_before(expected[place] + MINUTE / 2, zone) == expected[place], text


def test_a_skipped_time_is_due_at_the_end_of_the_gap() -> None:
    assert due("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00", 3) == ["03-28T01:30", "03-29T01:00", "03-30T00:30"]
    assert due("*/20 2 * * *", "Europe/Berlin", "2026-03-28T12:00", 2) == ["03-29T01:00", "03-30T00:00"]


def test_a_repeated_time_is_due_once() -> None:
    assert due("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", 2) == ["10-25T00:30", "10-26T01:30"]


def test_all_hours_are_real_hours() -> None:
    assert due("30 * * * *", "Europe/Berlin", "2026-03-29T00:00", 2) == ["03-29T00:30", "03-29T01:30"]
    assert due("30 * * * *", "Europe/Berlin", "2026-10-25T00:00", 3) == ["10-25T00:30", "10-25T01:30", "10-25T02:30"]


def test_names_the_last_day_and_leap_years() -> None:
    assert due("@monthly", "UTC", "2026-01-15T00:00", 2) == ["02-01T00:00", "03-01T00:00"]
    assert due("0 6 L * *", "UTC", "2028-01-31T12:00", 2) == ["02-29T06:00", "03-31T06:00"]
    assert due("0 0 29 feb *", "UTC", "2026-01-01T00:00", 1) == ["02-29T00:00"]
    assert due("0 0 13 * FRI", "UTC", "2026-02-01T00:00", 3) == ["02-06T00:00", "02-13T00:00", "02-20T00:00"]
    assert due("0 9 * * sat-sun", "UTC", "2026-11-18T00:00", 3) == ["11-21T09:00", "11-22T09:00", "11-28T09:00"]


@pytest.mark.parametrize(
    "text, part, message, help_text",
    [
        ("61 * * * *", "61", "'61' is no minute", "write a number from 0 to 59"),
        ("0 0 * 13 *", "13", "'13' is no month", "or a name from JAN to DEC"),
        ("0 0 * * MO", "MO", "'MO' is no day of week", "a name from SUN to SAT"),
        ("0 1,x * * *", "x", "'x' is no hour", "from 0 to 23"),
        ("0 22-4 * * *", "22-4", "runs backwards", "write 22-23,0-4"),
        ("5/15 * * * *", "5/15", "has no range", "write 5-59/15"),
        ("*/0 * * * *", "*/0", "'0' is no step", "as in */15"),
        ("0 0 31 2,4 *", "31", "day 31 never occurs", "write L"),
        ("0 0 , * *", ",", "'' is no day of month", "L for the last day"),
        ("0 0 0 * * *", "0 0 0 * * *", "five fields, this one has 6", "seconds have no field"),
        ("@nightly", "@nightly", "@nightly is no named schedule", "@daily"),
        ("", "", "this one has 0", "minute, hour"),
    ],
)
def test_faults_have_a_place_and_a_help(text: str, part: str, message: str, help_text: str) -> None:
    with pytest.raises(CronMistake) as caught:
        parse_cron(text)
    mistake = caught.value
    assert text[mistake.start : mistake.end] == part
    assert message in mistake.message
    assert help_text in mistake.help
