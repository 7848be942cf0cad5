"""Years and months of either sign, at most 9,999 years, as `Period`."""

from __future__ import annotations

from decimal import Decimal

from vesper.kernels.arithmetic.rounding import divide_rounded
from vesper.kernels.raised import Raised
from vesper.values.generated.errors import ErrorCode
from vesper.values.period import MAX_MONTHS, Period
from vesper.values.problem import ProblemKind, ValueProblem
from vesper.values.times import parse_period

__all__ = ["Period"]  # generated code names this type


def _period_of(months: int) -> Period:
    if not -MAX_MONTHS <= months <= MAX_MONTHS:
        raise Raised(ErrorCode.TIME_OVERFLOW)
    return Period(months)


def equal(left: Period, right: Period) -> bool:
    return left == right


def not_equal(left: Period, right: Period) -> bool:
    return left != right


def less(left: Period, right: Period) -> bool:
    return left < right


def less_or_equal(left: Period, right: Period) -> bool:
    return left <= right


def greater(left: Period, right: Period) -> bool:
    return left > right


def greater_or_equal(left: Period, right: Period) -> bool:
    return left >= right


def parse(value: str) -> Period:
    try:
        return parse_period(value)
    except ValueProblem as problem:
        is_read = problem.kind is ProblemKind.OUT_OF_RANGE
        raise Raised(ErrorCode.TIME_OVERFLOW if is_read else ErrorCode.BAD_FORMAT) from None


def text(value: Period) -> str:
    return str(value)


def from_years(count: int) -> Period:
    return _period_of(12 * count)


def from_months(count: int) -> Period:
    return _period_of(count)


def total_months(value: Period) -> int:
    return value.months


def add(left: Period, right: Period) -> Period:
    return _period_of(left.months + right.months)


def subtract(left: Period, right: Period) -> Period:
    return _period_of(left.months - right.months)


def multiply(value: Period, factor: int) -> Period:
    return _period_of(value.months * factor)


def ratio(left: Period, right: Period) -> Decimal:
    if not right.months:
        raise Raised(ErrorCode.DIVISION_BY_ZERO)
    return divide_rounded(Decimal(left.months), Decimal(right.months), 0)


def negate(value: Period) -> Period:
    return Period(-value.months)


def abs(value: Period) -> Period:
    return value if value.months >= 0 else negate(value)
