"""Order of a type as cuts, which makes sets of values exact half-open ranges.

A cut lies between two neighbouring values. Types with neighbours (integers, days, members) have cuts before each value;
decimals, which have none, have cuts before and after each. Null and NaN lie outside the order of their type and have
ranges of their own at both ends, so one list of ranges describes any set.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_FLOOR, Decimal, localcontext
from functools import cache
from typing import Any, TypeAlias

from vesper.language.tables.model import Interval, ValueSet
from vesper.values.model import MAX_INTEGER, MIN_INTEGER, Scalar
from vesper.values.times import MAX_DURATION
from vesper.values.types import (
    BOOLEAN,
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    INTEGER,
    STRING,
    TIMESTAMP,
    Enum,
    OptionalOf,
    Type,
    without_null,
)

Cut: TypeAlias = tuple[Any, ...]
"""`(0,)` is before null, `(1,)` before the least value, `(2,)` after the greatest and before NaN, `(3,)` the end."""
Range: TypeAlias = tuple[Cut, Cut]
Ranges: TypeAlias = tuple[Range, ...]
"""A set of values: disjoint ranges in ascending order that do not touch."""

NULL_RANGE: Range = ((0,), (1,))
ORDER_RANGE: Range = ((1,), (2,))
NAN_RANGE: Range = ((2,), (3,))
_BORDERS = (ORDER_RANGE[0], NAN_RANGE[0])
_EPOCH = datetime(1, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MAX_PLACES = 1_000


class Axis:
    """Cuts of one type."""

    def __init__(self, type_: Type) -> None:
        inner = without_null(type_)
        self.type = inner
        self._key, self._value = _discrete(inner)
        bounds = _bounds(inner)
        first, last = ORDER_RANGE
        if bounds is not None:
            first, last = (1, bounds[0]), (1, bounds[1] + 1)
        elif inner == STRING:
            first = (1, "")
        self.order: Range = (first, last)
        null = (NULL_RANGE,) if isinstance(type_, OptionalOf) else ()
        nan = (NAN_RANGE,) if inner == FLOAT else ()
        self.domain: Ranges = (*null, self.order, *nan)

    def before(self, value: Scalar) -> Cut:
        """Return the cut before a value."""
        return (1, value if self._key is None else self._key(value))

    def after(self, value: Scalar) -> Cut:
        """Return the cut after a value."""
        if self._key is not None:
            return (1, self._key(value) + 1)
        return (1, value + "\0") if isinstance(value, str) else (1, value, 1)

    def ranges(self, values: ValueSet) -> Ranges:
        """Return the ranges of a set."""
        found = [self._range(each) for each in values.intervals]
        if values.has_null:
            found.append(NULL_RANGE)
        if values.has_nan:
            found.append(NAN_RANGE)
        return union(found)

    def _range(self, interval: Interval) -> Range:
        first, last = self.order
        low, high = interval.low, interval.high
        if low is not None:
            first = self.after(low) if interval.is_low_open else self.before(low)
        if high is not None:
            last = self.before(high) if interval.is_high_open else self.after(high)
        return first, last

    def values(self, ranges: Ranges) -> ValueSet:
        """Return the set with these ranges."""
        intervals = [self._interval(each) for each in ranges if each not in (NULL_RANGE, NAN_RANGE)]
        return ValueSet(tuple(intervals), NULL_RANGE in ranges, NAN_RANGE in ranges)

    def _interval(self, found: Range) -> Interval:
        low, high = found
        first = low != self.order[0]
        last = high != self.order[1]
        if self._value is not None:
            return Interval(self._value(low[1]) if first else None, self._value(high[1] - 1) if last else None)
        if self.type == STRING:
            return _text_interval(low[1] if first else None, high[1] if last else None)
        return Interval(
            low[1] if first else None,
            high[1] if last else None,
            first and len(low) == 3,
            last and len(high) == 2,
        )

    def example(self, found: Range) -> tuple[bool, Scalar | None]:
        """Return whether a value in a range is known, and a short one. Null and NaN are possible values."""
        if found == NULL_RANGE:
            return True, None
        if found == NAN_RANGE:
            return True, float("nan")
        low, high = found
        if self._value is not None:
            return True, self._value(_nearest_key(low[1], high[1] - 1, self._preferred_key()))
        if self.type == STRING:
            return True, _text_between(low[1], high[1] if high != self.order[1] else None)
        if self.type == DECIMAL:
            return _decimal_between(low, high)
        return (True, low[1]) if len(low) == 2 else (False, None)

    def _preferred_key(self) -> int:
        """Return the key of the preferred value for examples."""
        assert self._key is not None
        usual: dict[Type, Scalar] = {DATE: date(2000, 1, 1), TIMESTAMP: datetime(2000, 1, 1, tzinfo=UTC), FLOAT: 0.0}
        return int(self._key(usual[self.type])) if self.type in usual else 0


@cache
def axis_of(type_: Type) -> Axis:
    """Return the axis of a type."""
    return Axis(type_)


def union(ranges: Iterable[Range]) -> Ranges:
    """Return the values of any range. Empty ranges are left out."""
    found: list[Range] = []
    ordered = [each for each in ranges if each[0] < each[1]]
    if len(ordered) < 2:
        return tuple(ordered)
    ordered.sort()
    for low, high in ordered:
        # Null and NaN stay apart from the order, so that each range has values of one kind.
        if found and (low < found[-1][1] or (low == found[-1][1] and low not in _BORDERS)):
            if high > found[-1][1]:
                found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return tuple(found)


def complement(ranges: Ranges, domain: Ranges) -> Ranges:
    """Return the values of a domain that are in no range."""
    found: list[Range] = []
    for first, last in domain:
        start = first
        for low, high in ranges:
            if high <= start:
                continue
            if low >= last:
                break
            if low > start:
                found.append((start, low))
            start = max(start, high)
        if start < last:
            found.append((start, last))
    return tuple(found)


def intersection(left: Ranges, right: Ranges) -> Ranges:
    """Return the values of both sets."""
    found: list[Range] = []
    one = other = 0
    while one < len(left) and other < len(right):
        low, high = max(left[one][0], right[other][0]), min(left[one][1], right[other][1])
        if low < high:
            found.append((low, high))
        if left[one][1] <= right[other][1]:
            one += 1
        else:
            other += 1
    return tuple(found)


# -- keys of types with neighbours ----------------------------------------------------------------


def _discrete(type_: Type) -> tuple[Callable[[Any], int] | None, Callable[[int], Scalar] | None]:
    """Return the functions from a value to its key and back. None for types whose values have no neighbours."""
    if isinstance(type_, Enum):
        members = type_.members
        return members.index, lambda key: members[key]
    keys: dict[Type, tuple[Callable[[Any], int], Callable[[int], Scalar]]] = {
        INTEGER: (int, int),
        BOOLEAN: (int, bool),
        DATE: (date.toordinal, date.fromordinal),
        TIMESTAMP: (lambda value: (value - _EPOCH) // _MICROSECOND, lambda key: _EPOCH + key * _MICROSECOND),
        DURATION: (lambda value: value // _MICROSECOND, lambda key: key * _MICROSECOND),
        FLOAT: (_float_key, _float_of_key),
    }
    return keys.get(type_, (None, None))


def _bounds(type_: Type) -> tuple[int, int] | None:
    """Return the least and greatest key of a type with neighbours."""
    if isinstance(type_, Enum):
        return 0, len(type_.members) - 1
    longest = MAX_DURATION // _MICROSECOND
    bounds: dict[Type, tuple[int, int]] = {
        INTEGER: (MIN_INTEGER, MAX_INTEGER),
        BOOLEAN: (0, 1),
        DATE: (date.min.toordinal(), date.max.toordinal()),
        TIMESTAMP: (0, (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND),
        DURATION: (-longest, longest),
        FLOAT: (_float_key(float("-inf")), _float_key(float("inf"))),
    }
    return bounds.get(type_)


def _float_key(value: float) -> int:
    """Return the position of a float in the order of all floats. The zeros are equal."""
    (bits,) = struct.unpack(">q", struct.pack(">d", value))
    return int(bits) if bits >= 0 else -(int(bits) + 2**63)


def _float_of_key(key: int) -> float:
    bits = key if key >= 0 else -key - 2**63
    (value,) = struct.unpack(">d", struct.pack(">q", bits))
    return float(value)


# -- examples -------------------------------------------------------------------------------------


def _nearest_key(low: int, high: int, usual: int) -> int:
    return min(max(low, usual), high)


def _text_interval(low: str | None, high: str | None) -> Interval:
    is_low_open = low is not None and low.endswith("\0")
    is_high_closed = high is not None and high.endswith("\0")
    return Interval(
        low[:-1] if low is not None and is_low_open else low,
        high[:-1] if high is not None and is_high_closed else high,
        is_low_open,
        high is not None and not is_high_closed,
    )


def _text_between(low: str, high: str | None) -> str:
    candidates = ("other", low.removesuffix("\0") + "a", low.removesuffix("\0") + " ", low)
    return next(each for each in candidates if each >= low and (high is None or each < high))


def _decimal_between(low: Cut, high: Cut) -> tuple[bool, Decimal | None]:
    has_low, has_high = len(low) > 1, len(high) > 1
    if has_low and len(low) == 2:
        return True, low[1]
    if not has_low:
        if not has_high:
            return True, Decimal(0)
        return True, high[1] if len(high) == 3 else _floor(high[1], 0) - 1
    if has_high and len(high) == 3:
        return True, high[1]
    with localcontext(prec=3 * _MAX_PLACES):
        for places in range(_MAX_PLACES + 1):
            found = _floor(low[1], places) + Decimal(1).scaleb(-places)
            if not has_high or found < high[1]:
                return True, found
    return False, None


def _floor(value: Decimal, places: int) -> Decimal:
    with localcontext(prec=3 * _MAX_PLACES):
        return value.quantize(Decimal(1).scaleb(-places), rounding=ROUND_FLOOR)


def contains(values: ValueSet, value: Scalar | None, type_: Type) -> bool:
    """Return whether a set has a value of its type."""
    axis = axis_of(type_)
    ranges: Sequence[Range] = axis.ranges(values)
    if value is None:
        return NULL_RANGE in ranges
    if isinstance(value, float) and value != value:
        return NAN_RANGE in ranges
    cut = axis.before(value)
    return any(low <= cut < high for low, high in ranges)
