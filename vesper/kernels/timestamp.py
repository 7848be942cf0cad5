"""Moments in UTC to the microsecond, years 1 to 9999, as Python's aware `datetime`."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

from vesper.kernels.calendar import patterns, zones
from vesper.kernels.date import add_months
from vesper.kernels.raised import Raised
from vesper.kernels.time_of_day import at as clock_time
from vesper.kernels.time_of_day import since_midnight
from vesper.kernels.work import count_work
from vesper.values.generated.errors import ErrorCode
from vesper.values.period import Period
from vesper.values.problem import ProblemKind, ValueProblem
from vesper.values.times import parse_timestamp, timestamp_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SECOND = timedelta(seconds=1)


def equal(left: datetime, right: datetime) -> bool:
    return left == right


def not_equal(left: datetime, right: datetime) -> bool:
    return left != right


def less(left: datetime, right: datetime) -> bool:
    return left < right


def less_or_equal(left: datetime, right: datetime) -> bool:
    return left <= right


def greater(left: datetime, right: datetime) -> bool:
    return left > right


def greater_or_equal(left: datetime, right: datetime) -> bool:
    return left >= right


def add(moment: datetime, length: timedelta) -> datetime:
    try:
        return moment + length
    except OverflowError:
        raise Raised(ErrorCode.TIME_OVERFLOW) from None


def subtract(moment: datetime, length: timedelta) -> datetime:
    return add(moment, -length)


def since(end: datetime, start: datetime) -> timedelta:
    return end - start


def parse(value: str) -> datetime:
    try:
        return parse_timestamp(value)
    except ValueProblem as problem:
        is_read = problem.kind is ProblemKind.OUT_OF_RANGE
        raise Raised(ErrorCode.TIME_OVERFLOW if is_read else ErrorCode.BAD_FORMAT) from None


def text(value: datetime) -> str:
    return timestamp_text(value)


def to_date(value: datetime) -> date:
    return value.date()


def year(value: datetime) -> int:
    return value.year


def month(value: datetime) -> int:
    return value.month


def day(value: datetime) -> int:
    return value.day


def hour(value: datetime) -> int:
    return value.hour


def minute(value: datetime) -> int:
    return value.minute


def second(value: datetime) -> int:
    return value.second


def microsecond(value: datetime) -> int:
    return value.microsecond


def epoch_microseconds(value: datetime) -> int:
    # SEMANTICS: not through `timestamp()`, which is a float.
    return (value - _EPOCH) // _MICROSECOND


def epoch_seconds(value: datetime) -> int:
    return (value - _EPOCH) // _SECOND


def from_epoch_microseconds(count: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=count)
    except OverflowError:
        raise Raised(ErrorCode.TIME_OVERFLOW) from None


def from_epoch_seconds(count: int) -> datetime:
    return from_epoch_microseconds(1_000_000 * count)


def truncate(value: datetime, unit: str) -> datetime:
    match unit:
        case "day":
            return value.replace(hour=0, minute=0, second=0, microsecond=0)
        case "hour":
            return value.replace(minute=0, second=0, microsecond=0)
        case "minute":
            return value.replace(second=0, microsecond=0)
        case "second":
            return value.replace(microsecond=0)
        case _:
            raise AssertionError(f"{unit} is no unit")


def to_time(value: datetime) -> time:
    return value.time()


def add_period(moment: datetime, length: Period) -> datetime:
    return datetime.combine(add_months(moment.date(), length.months), moment.time(), UTC)


def subtract_period(moment: datetime, length: Period) -> datetime:
    return add_period(moment, Period(-length.months))


# -- zones and patterns ---------------------------------------------------------------------------


def local_date(moment: datetime, zone: str) -> date:
    return add(moment, zones.offset_at(moment, zone)).date()


def local_time(moment: datetime, zone: str) -> time:
    return clock_time(since_midnight(moment.time()) + zones.offset_at(moment, zone))


def utc_offset(moment: datetime, zone: str) -> timedelta:
    return zones.offset_at(moment, zone)


def parse_pattern(value: str, pattern: str) -> datetime:
    local, minutes = patterns.read(value, pattern, has_time=True)
    return add(local.replace(tzinfo=UTC), timedelta(minutes=-minutes))


def format_pattern(value: datetime, pattern: str) -> str:
    return patterns.write(value, pattern)


count_work("timestamp", globals())
