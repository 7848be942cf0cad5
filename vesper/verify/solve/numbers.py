"""Numbers, times and durations as fractions, so that one arithmetic solves for all of them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import isfinite

from vesper.values.model import MAX_INTEGER, MIN_INTEGER
from vesper.values.period import Period

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_EXTRA_PLACES = 12


def to_number(value: object) -> Fraction | None:
    """Return a value as a number: times as days or microseconds. None for other types."""
    match value:
        case bool():
            return None
        case int() | Decimal():
            return Fraction(value)
        case float():
            return Fraction(value) if isfinite(value) else None
        case datetime():
            return Fraction((value - _EPOCH) // _MICROSECOND)
        case date():
            return Fraction(value.toordinal())
        case timedelta():
            return Fraction(value // _MICROSECOND)
        case Period():
            return Fraction(value.months)
        case _:
            return None


def from_number(given: object, number: Fraction) -> object | None:
    """Return a number in the form of another value; None if that form cannot hold it."""
    try:
        match given:
            case int():
                rounded = round(number)
                return rounded if MIN_INTEGER <= rounded <= MAX_INTEGER else None
            case Decimal():
                return _decimal_like(given, number)
            case float():
                return float(number)
            case datetime():
                return _EPOCH + round(number) * _MICROSECOND
            case date():
                return date.fromordinal(round(number))
            case Period():
                return Period(round(number))
            case _:
                return round(number) * _MICROSECOND
    except (OverflowError, ValueError):
        return None


def _decimal_like(given: Decimal, number: Fraction) -> Decimal:
    """Return a decimal equal to the number if a few more places suffice, else close to it."""
    exponent = given.as_tuple().exponent
    assert isinstance(exponent, int)
    for places in range(-exponent, -exponent + _EXTRA_PLACES):
        scaled = number * 10**places
        if scaled.denominator == 1:
            break
    # Built from digits: arithmetic would round to the current context.
    coefficient = round(number * 10**places)
    return Decimal((int(coefficient < 0), tuple(int(digit) for digit in str(abs(coefficient))), -places))
