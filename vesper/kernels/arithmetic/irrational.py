"""Roots, exponentials, logarithms and fractional powers of decimals, rounded once to 34 digits.

`decimal` rounds `sqrt`, `exp`, `ln` and `log10` correctly. Its `power` is only almost always correctly rounded, so a
fractional power is computed with more digits until every number within its error rounds to the same result.
"""

from __future__ import annotations

from decimal import Decimal, Inexact

from vesper.kernels.arithmetic.rounding import (
    SIGNIFICANT,
    divide_rounded,
    fit_scale,
    rescale,
    scale_of,
    unbounded_context,
    write_out,
)
from vesper.kernels.raised import Raised
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import MAX_DIGITS, MAX_SCALE

_MAX_EXPONENT = Decimal(2_400)
"""Bound of the natural logarithm of every decimal: e^2400 has more than 1,040 digits."""
_MAX_ROOT = 4 * (MAX_DIGITS + MAX_SCALE)
"""No coefficient but 1 is a perfect power of a higher degree: 2^8000 has more than 2,000 digits."""
_MAX_EXACT_POWER = 120
"""The power of no coefficient but 1 to a larger exponent fits 35 digits: 2^120 has 37."""


def sqrt(value: Decimal) -> Decimal:
    if value < 0:
        raise Raised(ErrorCode.INVALID_ARGUMENT)
    least_scale = (scale_of(value) + 1) // 2
    if not value:
        return rescale(Decimal(0), least_scale)
    context = unbounded_context(SIGNIFICANT)
    root = context.sqrt(value)
    if context.flags[Inexact]:
        return write_out(root)
    return fit_scale(root, max(scale_of(context.normalize(root)), least_scale))


def exp(value: Decimal) -> Decimal:
    if not value:
        return Decimal(1)
    if abs(value) > _MAX_EXPONENT:
        raise Raised(ErrorCode.DECIMAL_OVERFLOW)
    return write_out(unbounded_context(SIGNIFICANT).exp(value))


def ln(value: Decimal) -> Decimal:
    if value <= 0:
        raise Raised(ErrorCode.INVALID_ARGUMENT)
    return Decimal(0) if value == 1 else write_out(unbounded_context(SIGNIFICANT).ln(value))


def log10(value: Decimal) -> Decimal:
    if value <= 0:
        raise Raised(ErrorCode.INVALID_ARGUMENT)
    logarithm = unbounded_context(SIGNIFICANT).log10(value)
    return rescale(logarithm, 0) if _is_power_of_ten(value) else write_out(logarithm)


def _is_power_of_ten(value: Decimal) -> bool:
    return unbounded_context(MAX_DIGITS).normalize(value).as_tuple().digits == (1,)


def fractional_power(base: Decimal, exponent: Decimal) -> Decimal:
    """Return the power of a decimal to an exponent that is not whole."""
    if base < 0:
        raise Raised(ErrorCode.INVALID_ARGUMENT)
    if not base:
        if exponent < 0:
            raise Raised(ErrorCode.DIVISION_BY_ZERO)
        return Decimal(0)
    if base == 1:
        return Decimal(1)
    exact = _exact_power(base, exponent)
    return exact if exact is not None else _rounded_power(base, exponent)


def _exact_power(base: Decimal, exponent: Decimal) -> Decimal | None:
    """Return the power if it is rational and short, otherwise None. A short power can be exact or a tie."""
    numerator, degree = exponent.as_integer_ratio()
    if degree > _MAX_ROOT:
        return None
    # The base is rational, and its root is so where numerator and denominator in lowest terms are perfect powers.
    upper, lower = (_whole_root(number, degree) for number in base.as_integer_ratio())
    if upper is None or lower is None:
        return None
    root = unbounded_context(MAX_DIGITS + MAX_SCALE).divide(Decimal(upper), Decimal(lower))
    if _is_power_of_ten(root):
        zeros = root.adjusted() * numerator
        if not -MAX_SCALE <= zeros < MAX_DIGITS:
            raise Raised(ErrorCode.DECIMAL_OVERFLOW)
        return rescale(Decimal((0, (1,), zeros)), max(-zeros, 0))
    if abs(numerator) > _MAX_EXACT_POWER:
        return None
    power = unbounded_context(_MAX_EXACT_POWER * (MAX_DIGITS + MAX_SCALE)).power(root, abs(numerator))
    if numerator < 0:
        return divide_rounded(Decimal(1), power, 0)
    rounding = unbounded_context(SIGNIFICANT)
    result = rounding.plus(power)
    if rounding.flags[Inexact]:
        return write_out(result)
    return fit_scale(result, max(scale_of(rounding.normalize(result)), 0))


def _whole_root(number: int, degree: int) -> int | None:
    """Return the root of a positive integer if it is whole, by bisection."""
    low, high = 1, 1 << (number.bit_length() // degree + 1)
    while low < high:
        middle = (low + high) // 2
        if middle**degree < number:
            low = middle + 1
        else:
            high = middle
    return low if low**degree == number else None


def _rounded_power(base: Decimal, exponent: Decimal) -> Decimal:
    """Return the power, which is neither exact nor a tie, rounded once."""
    digits = SIGNIFICANT + 16
    while True:
        # A rounded logarithm and its product with the exponent are wrong by less than 10^(4 - digits) after the point.
        context = unbounded_context(digits + 4)
        product = context.multiply(context.ln(base), exponent)
        if abs(product) > _MAX_EXPONENT:
            raise Raised(ErrorCode.DECIMAL_OVERFLOW)
        power = context.exp(product)
        error = power.scaleb(5 - digits, context)
        rounding = unbounded_context(SIGNIFICANT)
        least, most = (rounding.plus(bound) for bound in (context.subtract(power, error), context.add(power, error)))
        if least == most and scale_of(least) == scale_of(most):
            return write_out(least)
        digits *= 2
