"""Floats: IEEE 754 binary64. Arithmetic never fails; conversions to other types may."""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal

from vesper.kernels.integer import checked
from vesper.kernels.raised import Raised
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import ValueProblem
from vesper.values.numbers import float_text, parse_decimal, parse_float


def add(left: float, right: float) -> float:
    return left + right


def subtract(left: float, right: float) -> float:
    return left - right


def multiply(left: float, right: float) -> float:
    return left * right


def divide(left: float, right: float) -> float:
    if right != 0:
        return left / right
    # SEMANTICS: Python raises ZeroDivisionError; IEEE yields a signed infinity, or NaN.
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, math.copysign(1.0, left) * math.copysign(1.0, right))


def negate(value: float) -> float:
    return -value


def equal(left: float, right: float) -> bool:
    return left == right


def not_equal(left: float, right: float) -> bool:
    return left != right


def less(left: float, right: float) -> bool:
    return left < right


def less_or_equal(left: float, right: float) -> bool:
    return left <= right


def greater(left: float, right: float) -> bool:
    return left > right


def greater_or_equal(left: float, right: float) -> bool:
    return left >= right


def abs(value: float) -> float:
    return builtins.abs(value)


def sqrt(value: float) -> float:
    # SEMANTICS: Python raises ValueError for a negative number.
    return math.nan if value < 0 else math.sqrt(value)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise Raised(ErrorCode.NOT_FINITE)
    return value


def floor(value: float) -> int:
    return checked(math.floor(_finite(value)))


def ceil(value: float) -> int:
    return checked(math.ceil(_finite(value)))


def trunc(value: float) -> int:
    return checked(math.trunc(_finite(value)))


def to_integer(value: float) -> int:
    if not _finite(value).is_integer():
        raise Raised(ErrorCode.NOT_WHOLE)
    return checked(int(value))


def to_decimal(value: float) -> Decimal:
    return parse_decimal(float_text(_finite(value)))


def text(value: float) -> str:
    return float_text(value)


def parse(value: str) -> float:
    try:
        return parse_float(value)
    except ValueProblem:
        raise Raised(ErrorCode.BAD_FORMAT) from None


def is_nan(value: float) -> bool:
    return math.isnan(value)


def is_finite(value: float) -> bool:
    return math.isfinite(value)


def sum(values: Iterable[float]) -> float:
    # SEMANTICS: Python's own sum compensates for rounding from 3.12 on.
    total = 0.0
    for value in values:
        total += value
    return total


def avg(values: Sequence[float]) -> float:
    if not values:
        raise Raised(ErrorCode.EMPTY_COLLECTION)
    return sum(values) / len(values)
