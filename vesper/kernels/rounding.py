"""Decimals that are rounded: once, from the exact value, never by a context of the host.

A number is taken apart into an integer coefficient and a scale, and put together again within the limits. Quotients
and powers go through contexts of our own, which have no traps and exponents wider than any value.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal, Inexact

from vesper.kernels.raised import Raised
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import MAX_DIGITS, MAX_SCALE

SIGNIFICANT = 34
"""Digits that a rounded quotient or power has."""

_FAR = 10_000_000


def unbounded(digits: int) -> Context:
    """A context for results of at most this many digits; a new one, because flags are read from it."""
    return Context(
        prec=digits, rounding=ROUND_HALF_EVEN, Emin=-_FAR, Emax=_FAR, capitals=1, clamp=0, flags=[], traps=[]
    )


# Wide enough for every operand and for what is made of two of them. Its flags are never read.
_WIDE = unbounded(4 * (MAX_DIGITS + MAX_SCALE))


def scale_of(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int), "every decimal is finite"
    return -exponent


def parts(number: Decimal) -> tuple[int, int]:
    """Coefficient and scale."""
    scale = scale_of(number)
    return int(_WIDE.scaleb(number, scale)), scale


def assembled(coefficient: int, scale: int) -> Decimal:
    """The decimal of this coefficient and scale; zeros are written out where the scale is negative."""
    # SEMANTICS: not by way of text, whose length CPython limits for integers.
    return _assembled(Decimal(coefficient), scale)


def _assembled(coefficient: Decimal, scale: int) -> Decimal:
    if not coefficient:
        scale = max(scale, 0)
    if scale > MAX_SCALE or coefficient.adjusted() - min(scale, 0) >= MAX_DIGITS:
        raise Raised(ErrorCode.DECIMAL_OVERFLOW)
    placed = _WIDE.scaleb(coefficient, -scale)
    return placed if scale >= 0 else _WIDE.quantize(placed, Decimal(1))


def rescaled(number: Decimal, scale: int) -> Decimal:
    """The same number with another scale, which must hold it exactly."""
    # Zero has one digit, whatever its scale.
    if scale > MAX_SCALE or (number and number.adjusted() + scale >= MAX_DIGITS):
        raise Raised(ErrorCode.DECIMAL_OVERFLOW)
    return _WIDE.quantize(number, Decimal((0, (1,), -scale)))


def divided(left: Decimal, right: Decimal, scale: int) -> Decimal:
    """The quotient in at most 34 digits; if that is exact, with this scale or the next larger one that holds it."""
    if not left:
        return rescaled(Decimal(0), scale)
    context = unbounded(SIGNIFICANT)
    quotient = context.divide(left, right)
    if context.flags[Inexact]:
        return written_out(quotient)
    # SEMANTICS: an exact quotient of `decimal` has the exponent that is nearest to the ideal one, which may be above 0.
    smallest = scale_of(context.normalize(quotient))
    return fitted(quotient, max(scale, smallest))


def fitted(number: Decimal, scale: int) -> Decimal:
    """An exact result with this scale, or the largest one with 34 digits where only zeros make it longer."""
    if number.adjusted() + scale >= SIGNIFICANT:
        scale = max(SIGNIFICANT - 1 - number.adjusted(), 0)
    return rescaled(number, scale)


def written_out(number: Decimal) -> Decimal:
    """A rounded result with all its digits; zeros instead of a positive exponent."""
    return rescaled(number, max(scale_of(number), 0))


def rounded_quotient(dividend: int, divisor: int, mode: str) -> int:
    """The integer next to the exact quotient, in one of the seven modes."""
    is_negative = (dividend < 0) != (divisor < 0)
    quotient, rest = divmod(abs(dividend), abs(divisor))
    if rest and _goes_away_from_zero(mode, 2 * rest - abs(divisor), quotient % 2 == 1, is_negative):
        quotient += 1
    return -quotient if is_negative else quotient


def _goes_away_from_zero(mode: str, past_half: int, is_odd: bool, is_negative: bool) -> bool:
    """Which neighbour of a number between two integers: `past_half` is its place beyond the middle, 0 for a tie."""
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
