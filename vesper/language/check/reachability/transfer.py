"""Value sets of operation results, computed from the sets of the operands by the specification.

An operation that is not listed yields its whole type. Failures are no results: an interval that leaves 64 bits is cut
off, because values outside never exist.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from vesper.language.check.reachability.intervals import (
    ANYTHING,
    INTEGERS,
    LENGTHS,
    Interval,
    Known,
    Nullable,
    Sized,
    Texts,
    interval,
    magnitude,
    meet,
    negative,
    plus,
    times,
)

MAX_SCALE = 100
"""Maximum absolute scale that is analysed; greater ones would need numbers of thousands of bits."""


def result(op: str, operands: tuple[Known, ...]) -> Known | None:
    """Return the possible results for operands with these values. None if the operation always fails."""
    arithmetic = _OF_NUMBERS.get(op)
    if arithmetic is not None:
        numbers = tuple([each for each in operands if isinstance(each, Interval)])
        if len(numbers) == len(operands):
            found = arithmetic(numbers)
            return meet(found, INTEGERS) if op in _OF_INTEGERS else found
    other = _OTHERS.get(op)
    return ANYTHING if other is None else other(operands)


def _quotient(numbers: tuple[Interval, ...]) -> Interval:
    """Return the sign of a quotient only.

    It is rounded, a tiny one may become zero, and rounding never crosses zero.
    """
    one, other = numbers
    if other.has(0) and (other.low is None or other.low < 0) and (other.high is None or other.high > 0):
        return Interval(None, None, False)
    sign = times(one, other)
    low = 0 if sign.low is not None and sign.low >= 0 else None
    high = 0 if sign.high is not None and sign.high <= 0 else None
    return Interval(low, high, False)


def _remainder(numbers: tuple[Interval, ...]) -> Interval:
    """Return the results of `rem`: smaller than the divisor, with the sign of the dividend."""
    one, other = numbers
    size = magnitude(other).high
    limit = None if size is None else size - 1
    low = 0 if one.low is not None and one.low >= 0 else None if limit is None else -limit
    high = 0 if one.high is not None and one.high <= 0 else limit
    return interval(low, high, True) or INTEGERS


def _modulo(numbers: tuple[Interval, ...]) -> Interval:
    """Return the results of `mod`: smaller than the divisor, with the sign of the divisor."""
    _, other = numbers
    low = 0 if other.low is None or other.low >= 0 else other.low + 1
    high = 0 if other.high is None or other.high <= 0 else other.high - 1
    return interval(low, high, True) or INTEGERS


def _signs(numbers: tuple[Interval, ...]) -> Interval:
    one = numbers[0]
    nearest = 0 if one.has(0) else 1
    low = nearest if one.low is not None and one.low >= 0 else -1
    high = -nearest if one.high is not None and one.high <= 0 else 1
    return Interval(low, high, True)


def _whole(numbers: tuple[Interval, ...]) -> Interval:
    """Return the results of `floor`, `ceil` and `trunc`.

    They differ by less than one from the operand, and rounding preserves order.
    """
    one = numbers[0]
    low = None if one.low is None else math.floor(one.low)
    high = None if one.high is None else math.ceil(one.high)
    return interval(low, high, True) or INTEGERS


_ARITHMETIC: dict[str, Callable[[tuple[Interval, ...]], Interval]] = {
    "add": lambda numbers: plus(*numbers),
    "subtract": lambda numbers: plus(numbers[0], negative(numbers[1])),
    "multiply": lambda numbers: times(*numbers),
    "negate": lambda numbers: negative(numbers[0]),
    "abs": lambda numbers: magnitude(numbers[0]),
    "sign": _signs,
    "from_integer": lambda numbers: Interval(numbers[0].low, numbers[0].high, False),
    "divide": _quotient,
    "rem": _remainder,
    "mod": _modulo,
}
_OF_NUMBERS = {f"{family}.{verb}": of for family in ("integer", "decimal") for verb, of in _ARITHMETIC.items()}
_OF_INTEGERS = frozenset(f"integer.{verb}" for verb in _ARITHMETIC if verb != "divide")


# -- operations on other values -------------------------------------------------------------------


def _round(operands: tuple[Known, ...]) -> Known | None:
    """Return the results of `decimal.round`. They are less than a step away and never cross zero."""
    one, scale = operands[0], operands[1]
    if not isinstance(one, Interval) or not isinstance(scale, Interval):
        return ANYTHING
    if scale.single is None or not -MAX_SCALE <= scale.single <= MAX_SCALE:
        return ANYTHING
    exponent = -int(scale.single)
    step = Fraction(10**exponent) if exponent >= 0 else Fraction(1, 10**-exponent)
    low, high = one.low, one.high
    if low is not None:
        low = max(low - step, Fraction(0)) if low >= 0 else low - step
    if high is not None:
        high = min(high + step, Fraction(0)) if high <= 0 else high + step
    return Interval(low, high, False)


def _whole_number(operands: tuple[Known, ...]) -> Known | None:
    return meet(INTEGERS, _whole((operands[0],))) if isinstance(operands[0], Interval) else INTEGERS


def _length(operands: tuple[Known, ...]) -> Known | None:
    return operands[0].length if isinstance(operands[0], Texts | Sized) else LENGTHS


def _concatenation(operands: tuple[Known, ...]) -> Known | None:
    match operands:
        case (Texts() as one, Texts() as other):
            length = meet(LENGTHS, plus(one.length, other.length))
            return Texts(length) if isinstance(length, Interval) else None
        case (Sized() as one, Sized() as other):
            length = meet(LENGTHS, plus(one.length, other.length))
            return Sized(length) if isinstance(length, Interval) else None
        case _:
            return ANYTHING


def _lesser(operands: tuple[Known, ...]) -> Known | None:
    return _extreme(operands, is_least=True)


def _greater(operands: tuple[Known, ...]) -> Known | None:
    return _extreme(operands, is_least=False)


def _extreme(operands: tuple[Known, ...], is_least: bool) -> Known | None:
    one, other = operands
    if not isinstance(one, Interval) or not isinstance(other, Interval):
        return ANYTHING
    # The result is one of the two and bounded by both, so the nearer of the far ends applies.
    lows, highs = (one.low, other.low), (one.high, other.high)
    if is_least:
        low = None if None in lows else min(each for each in lows if each is not None)
        high = min((each for each in highs if each is not None), default=None)
    else:
        low = max((each for each in lows if each is not None), default=None)
        high = None if None in highs else max(each for each in highs if each is not None)
    return Interval(low, high, one.is_whole and other.is_whole)


def _clamp(operands: tuple[Known, ...]) -> Known | None:
    _, low, high = operands
    if not isinstance(low, Interval) or not isinstance(high, Interval):
        return ANYTHING
    return interval(low.low, high.high, low.is_whole)


def _some(operands: tuple[Known, ...]) -> Known | None:
    return Nullable(False, operands[0])


def _value(operands: tuple[Known, ...]) -> Known | None:
    return operands[0].value if isinstance(operands[0], Nullable) else ANYTHING


_OTHERS: dict[str, Callable[[tuple[Known, ...]], Known | None]] = {
    "decimal.round": _round,
    "decimal.floor": _whole_number,
    "decimal.ceil": _whole_number,
    "decimal.trunc": _whole_number,
    "decimal.to_integer": _whole_number,
    "text.length": _length,
    "array.length": _length,
    "set.length": _length,
    "map.length": _length,
    "text.concat": _concatenation,
    "array.concat": _concatenation,
    "value.min": _lesser,
    "value.max": _greater,
    "value.clamp": _clamp,
    "optional.some": _some,
    "optional.unwrap": _value,
    "optional.require": _value,
    "optional.in_force": _value,
}
