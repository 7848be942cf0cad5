"""Rounding of decimals: once, from the exact value, independent of the host's context.

A number is split into an integer coefficient and a scale, and reassembled within the limits. Quotients and powers use
own contexts without traps, with exponents wider than any value.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal, Inexact

from vesper.kernels.raised import Raised
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import MAX_DIGITS, MAX_SCALE

SIGNIFICANT = 34
"""Significant digits of a rounded quotient or power."""

_MAX_EXPONENT = 10_000_000


def unbounded_context(digits: int) -> Context:
    """Return a context for results of at most this many digits. New each time, because its flags are read."""
    return Context(
        prec=digits,
        rounding=ROUND_HALF_EVEN,
        Emin=-_MAX_EXPONENT,
        Emax=_MAX_EXPONENT,
        capitals=1,
        clamp=0,
        flags=[],
        traps=[],
    )


# Wide enough for every operand and for results of two of them. Its flags are never read.
_WIDE = unbounded_context(4 * (MAX_DIGITS + MAX_SCALE))


def scale_of(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int), "every decimal is finite"
    return -exponent


def parts(number: Decimal) -> tuple[int, int]:
    """Return coefficient and scale."""
    scale = scale_of(number)
    return int(_WIDE.scaleb(number, scale)), scale


def assemble(coefficient: int, scale: int) -> Decimal:
    """Return the decimal of a coefficient and scale. A negative scale is written out as zeros."""
    # SEMANTICS: not through text, whose length CPython limits for integers.
    return _assemble(Decimal(coefficient), scale)


def _assemble(coefficient: Decimal, scale: int) -> Decimal:
    if not coefficient:
        scale = max(scale, 0)
    if scale > MAX_SCALE or coefficient.adjusted() - min(scale, 0) >= MAX_DIGITS:
        raise Raised(ErrorCode.DECIMAL_OVERFLOW)
    placed = _WIDE.scaleb(coefficient, -scale)
    return placed if scale >= 0 else _WIDE.quantize(placed, Decimal(1))


def rescale(number: Decimal, scale: int) -> Decimal:
    """Return the number with another scale, which must hold it exactly."""
    # Zero has one digit at any scale.
    if scale > MAX_SCALE or (number and number.adjusted() + scale >= MAX_DIGITS):
        raise Raised(ErrorCode.DECIMAL_OVERFLOW)
    return _WIDE.quantize(number, Decimal((0, (1,), -scale)))


def divide_rounded(left: Decimal, right: Decimal, scale: int) -> Decimal:
    """Return the quotient in at most 34 digits.

    An exact quotient has this scale, or the smallest larger one that holds it.
    """
    if not left:
        return rescale(Decimal(0), scale)
    context = unbounded_context(SIGNIFICANT)
    quotient = context.divide(left, right)
    if context.flags[Inexact]:
        return write_out(quotient)
    # SEMANTICS: `decimal` gives an exact quotient the exponent nearest to the ideal one, which may be above 0.
    smallest = scale_of(context.normalize(quotient))
    return fit_scale(quotient, max(scale, smallest))


def fit_scale(number: Decimal, scale: int) -> Decimal:
    """Return an exact result with this scale. Trailing zeros beyond 34 digits are dropped."""
    if number.adjusted() + scale >= SIGNIFICANT:
        scale = max(SIGNIFICANT - 1 - number.adjusted(), 0)
    return rescale(number, scale)


def write_out(number: Decimal) -> Decimal:
    """Return a rounded result in plain notation, with zeros instead of a positive exponent."""
    return rescale(number, max(scale_of(number), 0))


def rounded_quotient(dividend: int, divisor: int, mode: str) -> int:
    """Return the exact quotient rounded to an integer, in one of the seven modes."""
    is_negative = (dividend < 0) != (divisor < 0)
    quotient, rest = divmod(abs(dividend), abs(divisor))
    if rest and _rounds_away_from_zero(mode, 2 * rest - abs(divisor), quotient % 2 == 1, is_negative):
        quotient += 1
    return -quotient if is_negative else quotient


def _rounds_away_from_zero(mode: str, past_half: int, is_odd: bool, is_negative: bool) -> bool:
    """Return whether to round away from zero. `past_half` is the distance beyond the middle, 0 for a tie."""
    match mode:
        case "half_even":
            return past_half > 0 or (past_half == 0 and is_odd)
        case "half_up":
            return past_half >= 0
        case "half_down":
            return past_half > 0
        case "up":
            return True
        case "down":
            return False
        case "floor":
            return is_negative
        case "ceiling":
            return not is_negative
        case _:
            raise AssertionError(f"{mode} is no rounding mode")
