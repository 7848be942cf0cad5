"""Integers of 64 bits; an operation whose result does not fit fails."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal

from vesper.kernels.arithmetic import statistics
from vesper.kernels.arithmetic.rounding import divide_rounded, rounded_quotient
from vesper.kernels.raised import Raised
from vesper.kernels.work import count_work
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import MAX_INTEGER, MIN_INTEGER

_BITS = 64
_ALL_BITS = (1 << _BITS) - 1
_TEXT = re.compile(r"[+-]?[0-9]+")
_MAX_TEXT_DIGITS = 19


def checked(number: int) -> int:
    """Return the number if it fits 64 bits, else raise `integer_overflow`."""
    # SEMANTICS: Python integers do not overflow; Vesper's do.
    if MIN_INTEGER <= number <= MAX_INTEGER:
        return number
    raise Raised(ErrorCode.INTEGER_OVERFLOW)


def checked_sum(numbers: Iterable[int]) -> int:
    """Return the sum from the left; each partial sum must fit."""
    total = 0
    for number in numbers:
        total += number
        if not MIN_INTEGER <= total <= MAX_INTEGER:  # inlined, since it runs for every item
            raise Raised(ErrorCode.INTEGER_OVERFLOW)
    return total


def sum(values: Sequence[int]) -> int:
    return checked_sum(values)


def avg(values: Sequence[int]) -> Decimal:
    if not values:
        raise Raised(ErrorCode.EMPTY_COLLECTION)
    return divide_rounded(Decimal(builtins.sum(values)), Decimal(len(values)), 0)


def add(left: int, right: int) -> int:
    return checked(left + right)


def subtract(left: int, right: int) -> int:
    return checked(left - right)


def multiply(left: int, right: int) -> int:
    return checked(left * right)


def negate(value: int) -> int:
    return checked(-value)


def equal(left: int, right: int) -> bool:
    return left == right


def not_equal(left: int, right: int) -> bool:
    return left != right


def less(left: int, right: int) -> bool:
    return left < right


def less_or_equal(left: int, right: int) -> bool:
    return left <= right


def greater(left: int, right: int) -> bool:
    return left > right


def greater_or_equal(left: int, right: int) -> bool:
    return left >= right


def divide(left: int, right: int) -> Decimal:
    _refuse_zero(right)
    return divide_rounded(Decimal(left), Decimal(right), 0)


def quot(left: int, right: int) -> int:
    _refuse_zero(right)
    # SEMANTICS: Python's // rounds toward negative infinity.
    return checked(rounded_quotient(left, right, "down"))


def rem(left: int, right: int) -> int:
    _refuse_zero(right)
    # SEMANTICS: Python's % has the sign of the right operand.
    return left - right * rounded_quotient(left, right, "down")


def div_floor(left: int, right: int) -> int:
    _refuse_zero(right)
    return checked(left // right)


def mod(left: int, right: int) -> int:
    _refuse_zero(right)
    return left % right


def _refuse_zero(divisor: int) -> None:
    if divisor == 0:
        raise Raised(ErrorCode.DIVISION_BY_ZERO)


def abs(value: int) -> int:
    return checked(-value if value < 0 else value)


def sign(value: int) -> int:
    return (value > 0) - (value < 0)


def pow(base: int, exponent: int) -> int:
    if exponent < 0:
        raise Raised(ErrorCode.INVALID_ARGUMENT)
    if -1 <= base <= 1:
        return base if exponent % 2 else base * base if exponent else 1
    # SEMANTICS: the power of any other base has more bits than the exponent; a huge one is never computed.
    if exponent >= _BITS:
        raise Raised(ErrorCode.INTEGER_OVERFLOW)
    return checked(base**exponent)


def to_float(value: int) -> float:
    return float(value)


def text(value: int) -> str:
    return str(value)


def parse(value: str) -> int:
    if _TEXT.fullmatch(value) is None:
        raise Raised(ErrorCode.BAD_FORMAT)
    # SEMANTICS: CPython rejects integers of many digits, including leading zeros.
    digits = value.lstrip("+-").lstrip("0") or "0"
    if len(digits) > _MAX_TEXT_DIGITS:
        raise Raised(ErrorCode.INTEGER_OVERFLOW)
    return checked(-int(digits) if value.startswith("-") else int(digits))


def bit_and(left: int, right: int) -> int:
    return left & right


def bit_or(left: int, right: int) -> int:
    return left | right


def bit_xor(left: int, right: int) -> int:
    return left ^ right


def bit_not(value: int) -> int:
    return ~value


def shift_left(value: int, count: int) -> int:
    _refuse_count(count)
    return checked(value << count)


def shift_right(value: int, count: int) -> int:
    _refuse_count(count)
    return value >> count


def _refuse_count(count: int) -> None:
    if not 0 <= count < _BITS:
        raise Raised(ErrorCode.INVALID_ARGUMENT)


def bit_count(value: int) -> int:
    # SEMANTICS: Python counts the bits of the absolute value.
    return (value & _ALL_BITS).bit_count()


def median(values: Sequence[int]) -> Decimal:
    return statistics.median([Decimal(value) for value in values])


def percentile(values: Sequence[int], percent: Decimal) -> Decimal:
    return statistics.percentile([Decimal(value) for value in values], percent)


def variance(values: Sequence[int]) -> Decimal:
    return statistics.variance([Decimal(value) for value in values])


def population_variance(values: Sequence[int]) -> Decimal:
    return statistics.population_variance([Decimal(value) for value in values])


def stddev(values: Sequence[int]) -> Decimal:
    return statistics.stddev([Decimal(value) for value in values])


def population_stddev(values: Sequence[int]) -> Decimal:
    return statistics.population_stddev([Decimal(value) for value in values])


count_work("integer", globals())
