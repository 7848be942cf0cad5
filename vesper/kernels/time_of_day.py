"""Times on a clock to the microsecond, as Python's `time` without a zone."""

from __future__ import annotations

from datetime import time, timedelta

from vesper.kernels.raised import Raised
from vesper.values.generated.errors import ErrorCode
from vesper.values.problem import ValueProblem
from vesper.values.times import parse_time, time_text

_MICROSECOND = timedelta(microseconds=1)
_DAY = timedelta(days=1)


def equal(left: time, right: time) -> bool:
    return left == right


def not_equal(left: time, right: time) -> bool:
    return left != right


def less(left: time, right: time) -> bool:
    return left < right


def less_or_equal(left: time, right: time) -> bool:
    return left <= right


def greater(left: time, right: time) -> bool:
    return left > right


def greater_or_equal(left: time, right: time) -> bool:
    return left >= right


def parse(value: str) -> time:
    try:
        return parse_time(value)
    except ValueProblem:
        raise Raised(ErrorCode.BAD_FORMAT) from None


def from_parts(hour: int, minute: int, second: int) -> time:
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        raise Raised(ErrorCode.INVALID_ARGUMENT)
    return time(hour, minute, second)


def text(value: time) -> str:
    return time_text(value)


def hour(value: time) -> int:
    return value.hour


def minute(value: time) -> int:
    return value.minute


def second(value: time) -> int:
    return value.second


def microsecond(value: time) -> int:
    return value.microsecond


def add(value: time, length: timedelta) -> time:
    return at(since_midnight(value) + length % _DAY)


def subtract(value: time, length: timedelta) -> time:
    return at(since_midnight(value) - length % _DAY)


def since(end: time, start: time) -> timedelta:
    return since_midnight(end) - since_midnight(start)


def since_midnight(value: time) -> timedelta:
    """Return the duration from midnight."""
    return timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)


def at(length: timedelta) -> time:
    """Return the time this long after midnight, on whichever day."""
    seconds, microseconds = divmod(length % _DAY // _MICROSECOND, 1_000_000)
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, microseconds)
