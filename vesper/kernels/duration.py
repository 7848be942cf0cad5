"""Signed durations in microseconds, at most 3,652,059 days, as Python's `timedelta`.

Arithmetic uses whole microseconds, because dividing a `timedelta` by a number would use floats.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal

from vesper.kernels.arithmetic.rounding import assemble, divide_rounded, rounded_quotient
from vesper.kernels.raised import Raised
from vesper.values.generated.errors import ErrorCode
from vesper.values.problem import ProblemKind, ValueProblem
from vesper.values.times import MAX_DURATION, duration_text, parse_duration

_MICROSECOND = timedelta(microseconds=1)
_MAX_MICROSECONDS = MAX_DURATION // _MICROSECOND
_MILLISECOND, _SECOND, _MINUTE, _HOUR, _DAY = 1_000, 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000


def _duration_of(microseconds: int) -> timedelta:
    if not -_MAX_MICROSECONDS <= microseconds <= _MAX_MICROSECONDS:
        raise Raised(ErrorCode.TIME_OVERFLOW)
    return timedelta(microseconds=microseconds)


def equal(left: timedelta, right: timedelta) -> bool:
    return left == right


def not_equal(left: timedelta, right: timedelta) -> bool:
    return left != right


def less(left: timedelta, right: timedelta) -> bool:
    return left < right


def less_or_equal(left: timedelta, right: timedelta) -> bool:
    return left <= right


def greater(left: timedelta, right: timedelta) -> bool:
    return left > right


def greater_or_equal(left: timedelta, right: timedelta) -> bool:
    return left >= right


def add(left: timedelta, right: timedelta) -> timedelta:
    return _duration_of(total_microseconds(left) + total_microseconds(right))


def subtract(left: timedelta, right: timedelta) -> timedelta:
    return _duration_of(total_microseconds(left) - total_microseconds(right))


def multiply(value: timedelta, factor: int) -> timedelta:
    return _duration_of(total_microseconds(value) * factor)


def divide(value: timedelta, divisor: int) -> timedelta:
    if divisor == 0:
        raise Raised(ErrorCode.DIVISION_BY_ZERO)
    return _duration_of(rounded_quotient(total_microseconds(value), divisor, "half_even"))


def ratio(left: timedelta, right: timedelta) -> Decimal:
    if not right:
        raise Raised(ErrorCode.DIVISION_BY_ZERO)
    return divide_rounded(Decimal(total_microseconds(left)), Decimal(total_microseconds(right)), 0)


def negate(value: timedelta) -> timedelta:
    return -value


def abs(value: timedelta) -> timedelta:
    return value if value >= timedelta(0) else -value


def parse(value: str) -> timedelta:
    try:
        return parse_duration(value)
    except ValueProblem as problem:
        is_read = problem.kind is ProblemKind.OUT_OF_RANGE
        raise Raised(ErrorCode.TIME_OVERFLOW if is_read else ErrorCode.BAD_FORMAT) from None


def text(value: timedelta) -> str:
    return duration_text(value)


def total_seconds(value: timedelta) -> Decimal:
    return assemble(total_microseconds(value), 6)


def total_microseconds(value: timedelta) -> int:
    return value // _MICROSECOND


def from_microseconds(count: int) -> timedelta:
    return _duration_of(count)


def from_milliseconds(count: int) -> timedelta:
    return _duration_of(count * _MILLISECOND)


def from_seconds(count: int) -> timedelta:
    return _duration_of(count * _SECOND)


def from_minutes(count: int) -> timedelta:
    return _duration_of(count * _MINUTE)


def from_hours(count: int) -> timedelta:
    return _duration_of(count * _HOUR)


def from_days(count: int) -> timedelta:
    return _duration_of(count * _DAY)


def sum(values: Iterable[timedelta]) -> timedelta:
    total = timedelta(0)
    for value in values:
        total = add(total, value)
    return total
