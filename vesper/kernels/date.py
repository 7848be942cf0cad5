"""Days of the proleptic Gregorian calendar, 0001-01-01 to 9999-12-31, as Python's `date`."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Literal, TypeAlias

from vesper.kernels.calendar import patterns, zones
from vesper.kernels.calendar.business_days import BusinessDays
from vesper.kernels.raised import Raised
from vesper.kernels.work import count_work
from vesper.values.generated.errors import ErrorCode
from vesper.values.period import Period
from vesper.values.problem import ValueProblem
from vesper.values.times import date_text, parse_date

Weekday: TypeAlias = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_WEEKDAYS: tuple[Weekday, ...] = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_FIRST, _LAST = date.min.toordinal(), date.max.toordinal()


def equal(left: date, right: date) -> bool:
    return left == right


def not_equal(left: date, right: date) -> bool:
    return left != right


def less(left: date, right: date) -> bool:
    return left < right


def less_or_equal(left: date, right: date) -> bool:
    return left <= right


def greater(left: date, right: date) -> bool:
    return left > right


def greater_or_equal(left: date, right: date) -> bool:
    return left >= right


def parse(value: str) -> date:
    try:
        return parse_date(value)
    except ValueProblem:
        raise Raised(ErrorCode.BAD_FORMAT) from None


def from_parts(year: int, month: int, day: int) -> date:
    is_month = 1 <= year <= 9999 and 1 <= month <= 12
    if not is_month or not 1 <= day <= days_of(year, month):
        raise Raised(ErrorCode.INVALID_ARGUMENT)
    return date(year, month, day)


def text(value: date) -> str:
    return date_text(value)


def to_timestamp(value: date) -> datetime:
    return datetime(value.year, value.month, value.day, tzinfo=UTC)


def days_of(year: int, month: int) -> int:
    """Return the number of days of a month."""
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if is_leap and month == 2 else _DAYS[month - 1]


# -- counting -------------------------------------------------------------------------------------


def add_days(value: date, count: int) -> date:
    return _day(value.toordinal() + count)


def _day(number: int) -> date:
    """Return the day with this number, with 0001-01-01 as 1."""
    if _FIRST <= number <= _LAST:
        return date.fromordinal(number)
    raise Raised(ErrorCode.TIME_OVERFLOW)


def add_months(value: date, count: int) -> date:
    years, month = divmod(value.month - 1 + count, 12)
    year = value.year + years
    if not 1 <= year <= 9999:
        raise Raised(ErrorCode.TIME_OVERFLOW)
    return date(year, month + 1, min(value.day, days_of(year, month + 1)))


def add_years(value: date, count: int) -> date:
    return add_months(value, 12 * count)


def days_between(start: date, end: date) -> int:
    return end.toordinal() - start.toordinal()


def months_between(start: date, end: date) -> int:
    if end < start:
        return -months_between(end, start)
    months = 12 * (end.year - start.year) + end.month - start.month
    # In the final month the day of the start may not be reached yet.
    return months if add_months(start, months) <= end else months - 1


def years_between(start: date, end: date) -> int:
    months = months_between(start, end)
    # SEMANTICS: rounds toward zero; Python's // rounds down.
    return months // 12 if months >= 0 else -(-months // 12)


# -- parts ----------------------------------------------------------------------------------------


def weekday(value: date) -> Weekday:
    return _WEEKDAYS[value.weekday()]


def weekday_number(value: date) -> int:
    return value.isoweekday()


def year(value: date) -> int:
    return value.year


def month(value: date) -> int:
    return value.month


def day(value: date) -> int:
    return value.day


def day_of_year(value: date) -> int:
    return value.toordinal() - date(value.year, 1, 1).toordinal() + 1


def days_in_month(value: date) -> int:
    return days_of(value.year, value.month)


def start_of_month(value: date) -> date:
    return value.replace(day=1)


def end_of_month(value: date) -> date:
    return value.replace(day=days_in_month(value))


# -- business days --------------------------------------------------------------------------------


def is_business_day(value: date, holidays: frozenset[date], weekend: frozenset[str]) -> bool:
    return weekday(value) not in weekend and value not in holidays


def add_business_days(value: date, count: int, holidays: frozenset[date], weekend: frozenset[str]) -> date:
    days = _business_days(holidays, weekend)
    if count == 0:
        return value
    number = value.toordinal()
    wanted = days.up_to(number) + count if count > 0 else days.up_to(number - 1) + 1 + count
    if not 1 <= wanted <= days.up_to(_LAST):
        raise Raised(ErrorCode.TIME_OVERFLOW)
    return _day(days.nth(wanted, _LAST))


def business_days_between(start: date, end: date, holidays: frozenset[date], weekend: frozenset[str]) -> int:
    days = _business_days(holidays, weekend)
    # Counts the days from `start` on and before `end`; the sign changes where they are reversed.
    return days.up_to(end.toordinal() - 1) - days.up_to(start.toordinal() - 1)


def _business_days(holidays: frozenset[date], weekend: frozenset[str]) -> BusinessDays:
    if len(weekend) == len(_WEEKDAYS):
        raise Raised(ErrorCode.INVALID_ARGUMENT)
    free = frozenset(_WEEKDAYS.index(name) for name in weekend)
    return BusinessDays(free, (holiday.toordinal() for holiday in holidays))


# -- periods and weeks ----------------------------------------------------------------------------


def add_period(value: date, length: Period) -> date:
    return add_months(value, length.months)


def subtract_period(value: date, length: Period) -> date:
    return add_months(value, -length.months)


def period_between(start: date, end: date) -> Period:
    return Period(months_between(start, end))


def iso_week(value: date) -> int:
    return value.isocalendar().week


def iso_week_year(value: date) -> int:
    return value.isocalendar().year


def from_iso_week(year: int, week: int, day: int) -> date:
    try:
        return date.fromisocalendar(year, week, day)
    except (ValueError, OverflowError):
        raise Raised(ErrorCode.INVALID_ARGUMENT) from None


# -- patterns, moments and zones ------------------------------------------------------------------


def parse_pattern(value: str, pattern: str) -> date:
    return patterns.read(value, pattern, has_time=False)[0].date()


def format_pattern(value: date, pattern: str) -> str:
    return patterns.write(value, pattern)


def at_time(value: date, time: time) -> datetime:
    return datetime.combine(value, time, UTC)


def at_zone(day: date, time: time, zone: str, ambiguous: str) -> datetime:
    local = datetime.combine(day, time)
    offset = zones.offset_of_local(local, zone, ambiguous)
    try:
        return (local - offset).replace(tzinfo=UTC)
    except OverflowError:
        raise Raised(ErrorCode.TIME_OVERFLOW) from None


count_work("date", globals())
