"""Statistics of decimals: computed exactly and rounded once, at the end."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from math import gcd, isqrt

from vesper.kernels.arithmetic.rounding import SIGNIFICANT, assemble, divide_rounded, parts, scale_of, unbounded_context
from vesper.kernels.raised import Raised
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import MAX_DIGITS, MAX_SCALE

_WIDE = unbounded_context(5 * (MAX_DIGITS + MAX_SCALE))
"""Holds the spread of a million values exactly. Its flags are never read."""


def median(values: Sequence[Decimal]) -> Decimal:
    if not values:
        raise Raised(ErrorCode.EMPTY_COLLECTION)
    return _interpolate(sorted(values), len(values) - 1, 2)


def percentile(values: Sequence[Decimal], percent: Decimal) -> Decimal:
    if not values:
        raise Raised(ErrorCode.EMPTY_COLLECTION)
    if not 0 <= percent <= 100:
        raise Raised(ErrorCode.INVALID_ARGUMENT)
    coefficient, places = parts(percent)
    return _interpolate(sorted(values), coefficient * (len(values) - 1), 100 * 10**places)


def _interpolate(ordered: Sequence[Decimal], numerator: int, denominator: int) -> Decimal:
    """Return the value at the position `numerator / denominator`, interpolated exactly."""
    place, rest = divmod(numerator, denominator)
    low = ordered[place]
    if not rest:
        return low or low.copy_abs()  # zero has no sign
    high = ordered[place + 1]
    scale = max(scale_of(low), scale_of(high))
    least, greatest = _units(low, scale), _units(high, scale)
    return _exact_quotient(least * denominator + rest * (greatest - least), denominator, scale)


def _units(value: Decimal, scale: int) -> int:
    coefficient, places = parts(value)
    return coefficient * int(10 ** (scale - places))


def _exact_quotient(dividend: int, divisor: int, scale: int) -> Decimal:
    """Return `dividend / divisor * 10^-scale`, which terminates, at the smallest scale that is not below this one."""
    common = gcd(dividend, divisor)
    dividend, divisor = dividend // common, divisor // common
    more = 0
    while 10**more % divisor:
        more += 1
    if scale + more > MAX_SCALE:
        raise Raised(ErrorCode.DECIMAL_OVERFLOW)
    return assemble(dividend * 10**more // divisor, scale + more)


def variance(values: Sequence[Decimal]) -> Decimal:
    return _variance(values, 1)


def population_variance(values: Sequence[Decimal]) -> Decimal:
    return _variance(values, 0)


def stddev(values: Sequence[Decimal]) -> Decimal:
    return _root(values, 1)


def population_stddev(values: Sequence[Decimal]) -> Decimal:
    return _root(values, 0)


def _variance(values: Sequence[Decimal], fewer: int) -> Decimal:
    squares, divisor, scale = _variance_fraction(values, fewer)
    return divide_rounded(Decimal(squares).scaleb(-2 * scale, _WIDE), Decimal(divisor), scale)


def _variance_fraction(values: Sequence[Decimal], fewer: int) -> tuple[int, int, int]:
    """Return dividend and divisor of the variance at twice this scale, the largest of the values.

    With n values it is (n * sum of squares - square of the sum) / (n * (n - fewer)).
    """
    count = len(values)
    if not count:
        raise Raised(ErrorCode.EMPTY_COLLECTION)
    if count <= fewer:
        raise Raised(ErrorCode.INVALID_ARGUMENT)
    scale = max(scale_of(value) for value in values)
    units = [_units(value, scale) for value in values]
    return count * sum(unit * unit for unit in units) - sum(units) ** 2, count * (count - fewer), scale


def _root(values: Sequence[Decimal], fewer: int) -> Decimal:
    squares, divisor, scale = _variance_fraction(values, fewer)
    if not squares:
        return assemble(0, scale)
    common = gcd(squares, divisor)
    squares, divisor = squares // common, divisor // common
    upper, lower = isqrt(squares), isqrt(divisor)
    if upper * upper == squares and lower * lower == divisor:
        return divide_rounded(Decimal(upper).scaleb(-scale, _WIDE), Decimal(lower), scale)
    # The root is irrational: 36 digits of it and a last digit that is not zero round as all of them do.
    places = SIGNIFICANT + 2 + max(0, divisor.bit_length() - squares.bit_length())
    root = isqrt(squares * 100**places // divisor)
    return divide_rounded(Decimal(10 * root + 1).scaleb(-scale - places - 1, _WIDE), Decimal(1), 0)
