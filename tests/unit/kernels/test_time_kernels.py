"""Dates, timestamps and durations: the calendar against a count of days, limits, and invalid texts."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from fractions import Fraction

import pytest

from tests.support.waiting import processor_seconds
from vesper.kernels import date as dates
from vesper.kernels import duration as durations
from vesper.kernels import timestamp as timestamps
from vesper.kernels.raised import Raised
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import MAX_INTEGER, MIN_INTEGER

OVERFLOW, INVALID, BAD = ErrorCode.TIME_OVERFLOW, ErrorCode.INVALID_ARGUMENT, ErrorCode.BAD_FORMAT
LAST = date(9999, 12, 31)
FIRST = date(1, 1, 1)
DAYS = 3_652_059
WEEKEND = frozenset({"saturday", "sunday"})
EVERY_DAY = frozenset({"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"})


def result(function: Callable[..., object], *arguments: object) -> object:
    try:
        return function(*arguments)
    except Raised as raised:
        return raised.code


def drawn_day(draw: random.Random) -> date:
    return date.fromordinal(draw.choice([draw.randint(1, DAYS), draw.randint(1, 800), draw.randint(DAYS - 800, DAYS)]))


def test_calendar_equals_a_count_of_days() -> None:
    """Count the days one by one, without a calendar."""
    lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    number = 0
    for year in range(1, 10_000):
        is_leap = (year % 4 == 0) ^ (year % 100 == 0) ^ (year % 400 == 0)
        of_year = 0
        for month, length in enumerate(lengths, start=1):
            days = length + (is_leap and month == 2)
            first = dates.from_parts(year, month, 1)
            assert dates.days_between(FIRST, first) == number
            assert dates.add_days(FIRST, number) == first
            assert dates.days_in_month(first) == days
            assert dates.end_of_month(first) == dates.from_parts(year, month, days)
            assert result(dates.from_parts, year, month, days + 1) == INVALID
            assert dates.day_of_year(first) == of_year + 1
            assert dates.weekday_number(first) == number % 7 + 1
            number += days
            of_year += days
    assert number == DAYS


@pytest.mark.parametrize("parts", [(0, 1, 1), (10_000, 1, 1), (2024, 0, 1), (2024, 13, 1), (2024, 1, 0), (-1, 1, 1)])
def test_invalid_day_is_rejected(parts: tuple[int, int, int]) -> None:
    assert result(dates.from_parts, *parts) == INVALID


def test_months_between_is_the_greatest_count_up_to_the_end() -> None:
    draw = random.Random(1)
    for _ in range(3000):
        start, end = sorted((drawn_day(draw), drawn_day(draw)))
        months = dates.months_between(start, end)
        assert dates.add_months(start, months) <= end
        after = result(dates.add_months, start, months + 1)
        assert after == OVERFLOW or (isinstance(after, date) and after > end)
        assert dates.months_between(end, start) == -months
        assert dates.years_between(end, start) == -dates.years_between(start, end) == -(months // 12)


@pytest.mark.parametrize("count", [MIN_INTEGER, MAX_INTEGER, 10**6 * 4, -(10**6) * 4])
def test_counts_beyond_the_calendar_overflow(count: int) -> None:
    for function in (dates.add_days, dates.add_months, dates.add_years):
        assert result(function, date(2024, 2, 29), count) == OVERFLOW
    assert result(dates.add_business_days, date(2024, 2, 29), count, frozenset(), WEEKEND) == OVERFLOW


def walk(value: date, count: int, holidays: frozenset[date], weekend: frozenset[str]) -> object:
    """Return `add_business_days` computed one day at a time."""
    while count:
        step = 1 if count > 0 else -1
        if not FIRST.toordinal() <= value.toordinal() + step <= LAST.toordinal():
            return OVERFLOW
        value = date.fromordinal(value.toordinal() + step)
        if dates.is_business_day(value, holidays, weekend):
            count -= step
    return value


def test_business_days_equal_a_count_of_days() -> None:
    draw = random.Random(2)
    names = sorted(EVERY_DAY)
    for _ in range(1500):
        start = drawn_day(draw)
        around = [start.toordinal() + draw.randint(-40, 40) for _ in range(draw.randrange(20))]
        holidays = frozenset(date.fromordinal(number) for number in around if 1 <= number <= DAYS)
        weekend = frozenset(draw.sample(names, draw.randrange(7)))
        count = draw.randint(-25, 25)
        found = result(dates.add_business_days, start, count, holidays, weekend)
        assert found == walk(start, count, holidays, weekend)
        end = date.fromordinal(min(max(start.toordinal() + draw.randint(-60, 60), 1), DAYS))
        first, last = sorted((start.toordinal(), end.toordinal()))
        wanted = sum(dates.is_business_day(date.fromordinal(each), holidays, weekend) for each in range(first, last))
        sign = 1 if start <= end else -1
        assert dates.business_days_between(start, end, holidays, weekend) == sign * wanted


def test_business_days_of_ten_thousand_years_are_fast() -> None:
    with processor_seconds(0.1):
        found = dates.add_business_days(FIRST, 2_608_000, frozenset(), WEEKEND)
        assert dates.business_days_between(FIRST, found, frozenset(), WEEKEND) == 2_608_000


def test_week_without_business_days_is_rejected() -> None:
    for count in (0, 1, MAX_INTEGER):
        assert result(dates.add_business_days, LAST, count, frozenset(), EVERY_DAY) == INVALID
    assert result(dates.business_days_between, LAST, LAST, frozenset(), EVERY_DAY) == INVALID
    assert not dates.is_business_day(LAST, frozenset(), EVERY_DAY)


@pytest.mark.parametrize(
    "text",
    [
        "2024-2-29", "2024-02-30", "0000-01-01", "10000-01-01", "+2024-01-01", "2024-01-01 ", " 2024-01-01", "",
        "2024-01-01\n", "٢٠٢٤-01-01", "2024/01/01", "2024-W01-1", "2024-001", "20240101", "2024-01-01T00:00:00Z",
    ],
)  # fmt: skip
def test_invalid_date_text_is_rejected(text: str) -> None:
    assert result(dates.parse, text) == BAD


@pytest.mark.parametrize(
    "text",
    [
        "2024-02-29T12:30:00", "2024-02-29T12:30Z", "2024-02-29T24:00:00Z", "2024-02-29T23:59:60Z",
        "2024-02-29T12:30:00.Z", "2024-02-29T12:30:00.0000000000Z", "2024-02-29T12:30:00.0000001Z",
        "2024-02-29T12:30:00,5Z", "2024-02-29T12:30:00+0200", "2024-02-29T12:30:00+24:00", "2024-02-29T12:30:00+02:60",
        "2024-02-29T12:30:00+02", "2024-02-29T12:30:00Z ", "2024-02-29T12:30:00Z\n", "2024-02-29_12:30:00Z",
        "2023-02-29T12:30:00Z", "2024-02-29T12:30:00UTC", "2024-02-29T12:60:00Z", "2024-02-29T1:30:00Z", "",
        "2024-02-29T12:30:00+02:00:00", "0000-02-29T12:30:00Z",
    ],
)  # fmt: skip
def test_invalid_timestamp_text_is_rejected(text: str) -> None:
    assert result(timestamps.parse, text) == BAD


@pytest.mark.parametrize(
    "text, shown",
    [
        ("2024-02-29 12:30:00.100000000z", "2024-02-29T12:30:00.100000Z"),
        ("2024-02-29T00:30:00+01:00", "2024-02-28T23:30:00Z"),
        ("2024-02-29T23:30:00-23:59", "2024-03-01T23:29:00Z"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
        ("9999-12-31T23:59:59-00:01", OVERFLOW),
        ("0001-01-01T00:00:00+00:01", OVERFLOW),
    ],
)
def test_timestamps_as_text(text: str, shown: object) -> None:
    assert result(lambda: timestamps.text(timestamps.parse(text))) == shown


@pytest.mark.parametrize(
    "text, shown",
    [
        ("P1D", "P1D"), ("+P1DT2H3M4.5S", "P1DT2H3M4.5S"), ("-PT0S", "PT0S"), ("PT36H", "P1DT12H"), ("0s", "PT0S"),
        ("1d2h3m4.000001s5ms6us", "P1DT2H3M4.005007S"), ("-90s", "-PT1M30S"), ("PT0.000001S", "PT0.000001S"),
        ("3652059d", "P3652059D"), ("3652059d1us", OVERFLOW), ("-P3652059DT0.000001S", OVERFLOW),
        ("P" + "0" * 5000 + "1D", "P1D"), ("P" + "9" * 5000 + "D", OVERFLOW), ("1m", "PT1M"), ("1ms", "PT0.001S"),
        ("P", BAD), ("PT", BAD), ("P1DT", BAD), ("", BAD), ("-", BAD), ("1", BAD), ("P1M", BAD), ("P1Y", BAD),
        ("P1W", BAD), ("PT1.5H", BAD), ("PT1,5S", BAD), ("1s1m", BAD), ("1S", BAD), ("p1d", BAD), ("PT1.0000001S", BAD),
        ("1.5m", BAD), ("1 d", BAD), ("--1d", BAD), ("PT1S\n", BAD), ("1.s", BAD), (".5s", BAD), ("P-1D", BAD),
        ("1d ", BAD), ("٣s", BAD), ("PT1S1M", BAD),
    ],
)  # fmt: skip
def test_durations_as_text(text: str, shown: object) -> None:
    assert result(lambda: durations.text(durations.parse(text))) == shown


def test_durations_are_exact() -> None:
    draw = random.Random(3)
    most = DAYS * 86_400_000_000
    for _ in range(3000):
        number = draw.choice([draw.randint(-most, most), draw.randint(-10, 10), most - draw.randint(0, 5)])
        factor = draw.choice([draw.randint(MIN_INTEGER, MAX_INTEGER), draw.randint(-7, 7), MIN_INTEGER])
        length = timedelta(microseconds=number)
        assert durations.total_microseconds(length) == number
        assert durations.total_seconds(length) == Decimal(number).scaleb(-6, Context(prec=40))
        assert durations.total_seconds(length).as_tuple().exponent == -6
        assert durations.parse(durations.text(length)) == length
        product = result(durations.multiply, length, factor)
        assert product == (timedelta(microseconds=number * factor) if abs(number * factor) <= most else OVERFLOW)
        if factor:
            quotient = durations.divide(length, factor)
            assert durations.total_microseconds(quotient) == round(Fraction(number, factor))
    assert result(durations.divide, timedelta(1), 0) == ErrorCode.DIVISION_BY_ZERO


def test_sums_add_from_the_left() -> None:
    longest = timedelta(days=DAYS)
    assert durations.sum([longest, -longest, longest]) == longest
    assert result(durations.sum, [longest, timedelta(microseconds=1), -longest]) == OVERFLOW


def test_timestamps_from_epoch_counts() -> None:
    for count in (-62135596800, 253402300799):
        assert timestamps.epoch_seconds(timestamps.from_epoch_seconds(count)) == count
    for count in (-62135596801, 253402300800, MIN_INTEGER, MAX_INTEGER):
        assert result(timestamps.from_epoch_seconds, count) == OVERFLOW
        assert result(timestamps.from_epoch_microseconds, count * 1_000_000) == OVERFLOW
    moment = datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
    assert timestamps.epoch_seconds(moment) == timestamps.epoch_microseconds(moment) == -1


def test_timestamp_arithmetic() -> None:
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)
    whole = timestamps.since(last, first)
    assert timestamps.add(first, whole) == last
    assert timestamps.subtract(last, whole) == first
    assert timestamps.since(first, last) == -whole
    assert result(timestamps.add, last, timedelta(microseconds=1)) == OVERFLOW
    assert result(timestamps.subtract, first, timedelta(days=DAYS)) == OVERFLOW
    assert timestamps.truncate(last, "day") == dates.to_timestamp(timestamps.to_date(last))
