"""Sets of possible values: each set holds every value that an expression can have.

`meet` is the intersection (None: empty), `join` a set that holds both. Sets may be too large and never too small, so
conclusions from them are true of every execution that computes the value.

Each check of a node creates hundreds of these sets. INVARIANT: they are never changed, although not frozen (creating a
frozen one takes three times as long); `meet` may return one of its operands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from vesper.values.model import MAX_INTEGER, MIN_INTEGER, Value
from vesper.values.types import STRING, ArrayOf, Enum, MapOf, OptionalOf, Primitive, SetOf, Type

Number: TypeAlias = int | Fraction
MAX_BITS = 4096
"""Maximum size of an end in bits. Longer ends are moved outwards, so that nested products stay bounded."""
MAX_VALUES = 64
"""Maximum number of distinct strings in a set; larger sets record only the lengths."""

LESS, EQUAL, GREATER = 1, 2, 4
UNEQUAL = LESS | GREATER
ANY_ORDER = LESS | EQUAL | GREATER


@dataclass(slots=True)
class Interval:
    """Numbers between two ends; None means unbounded. INVARIANT: whole intervals have closed integer ends."""

    low: Number | None
    high: Number | None
    is_whole: bool
    low_is_open: bool = False
    high_is_open: bool = False

    @property
    def single(self) -> Number | None:
        """Return the only number of the interval, or None."""
        return self.low if self.low == self.high else None

    def has(self, number: Number) -> bool:
        above = self.low is None or self.low < number or (self.low == number and not self.low_is_open)
        return above and (self.high is None or number < self.high or (self.high == number and not self.high_is_open))


@dataclass(slots=True)
class Choice:
    """Some members of an enum, or some of true and false."""

    values: frozenset[str | bool]


@dataclass(slots=True)
class Texts:
    """Strings by their length, with the values if there are few."""

    length: Interval
    values: frozenset[str] | None = None


@dataclass(slots=True)
class Nullable:
    """A set of null, values, or both. It is never empty."""

    has_null: bool
    value: Known | None


@dataclass(slots=True)
class Sized:
    """A collection by its length."""

    length: Interval


@dataclass(frozen=True, slots=True)
class Anything:
    """The set of all values, about which nothing is known."""


Known: TypeAlias = Interval | Choice | Texts | Nullable | Sized | Anything

ANYTHING = Anything()
INTEGERS = Interval(MIN_INTEGER, MAX_INTEGER, True)
DECIMALS = Interval(None, None, False)
LENGTHS = Interval(0, MAX_INTEGER, True)
BOOLEANS = Choice(frozenset((True, False)))
TRUE, FALSE = Choice(frozenset((True,))), Choice(frozenset((False,)))
COLLECTIONS = Sized(LENGTHS)
_PRIMITIVES: dict[str, Known] = {
    "integer": INTEGERS,
    "decimal": DECIMALS,
    "boolean": BOOLEANS,
    "string": Texts(LENGTHS),
}


def of_type(type_: Type) -> Known:
    """Return the set of all values of the type."""
    if type(type_) is Primitive:
        return _PRIMITIVES.get(type_.name, ANYTHING)
    match type_:
        case Enum(members):
            return Choice(frozenset(members))
        case OptionalOf(inner):
            return Nullable(True, of_type(inner))
        case ArrayOf() | SetOf() | MapOf():
            return COLLECTIONS
        case _:
            return ANYTHING


def of_value(type_: Type, value: Value) -> Known:
    """Return the set with one value."""
    if isinstance(type_, OptionalOf):
        return Nullable(True, None) if value is None else Nullable(False, of_value(type_.inner, value))
    match value:
        case bool():
            return TRUE if value else FALSE
        case int():
            return exactly(value)
        case Decimal():
            return _of_decimal(value)
        case str() if isinstance(type_, Enum):
            return Choice(frozenset((value,)))
        case str() if type_ == STRING:
            return texts(frozenset((value,)))
        case list() | frozenset() | dict():
            return Sized(exactly(len(value)))
        case _:
            return ANYTHING


@lru_cache(maxsize=1024)  # zero, one and a hundred are in most nodes, and creating a fraction is slow
def _of_decimal(value: Decimal) -> Interval:
    fraction = Fraction(value)
    number = fraction.numerator if fraction.denominator == 1 else fraction  # integers are faster
    return widen_ends(number, number, False)


def exactly(number: int) -> Interval:
    return Interval(number, number, True)


def texts(values: frozenset[str]) -> Texts:
    """Return the set of these strings. There must be at least one."""
    lengths = [len(value) for value in values]
    return Texts(Interval(min(lengths), max(lengths), True), values if len(values) <= MAX_VALUES else None)


def interval(
    low: Number | None, high: Number | None, is_whole: bool, low_is_open: bool = False, high_is_open: bool = False
) -> Interval | None:
    """Return the numbers between the ends, or None if there are none."""
    if is_whole:
        if low is not None and (low_is_open or type(low) is not int):
            low = math.floor(low) + 1 if low_is_open else math.ceil(low)
        if high is not None and (high_is_open or type(high) is not int):
            high = math.ceil(high) - 1 if high_is_open else math.floor(high)
        low_is_open = high_is_open = False
    if low is not None and high is not None and (low > high or (low == high and (low_is_open or high_is_open))):
        return None
    return Interval(low, high, is_whole, low_is_open and low is not None, high_is_open and high is not None)


def widen_ends(low: Number | None, high: Number | None, is_whole: bool) -> Interval:
    """Return a closed interval. Ends with too many digits for arithmetic are moved outwards."""
    if low is not None and _is_long(low):
        low = math.floor(low)
        low = None if _is_long(low) else low
    if high is not None and _is_long(high):
        high = math.ceil(high)
        high = None if _is_long(high) else high
    return Interval(low, high, is_whole)


def _is_long(number: Number) -> bool:
    if isinstance(number, int):
        return number.bit_length() > MAX_BITS
    return max(number.numerator.bit_length(), number.denominator.bit_length()) > MAX_BITS


# -- sets -----------------------------------------------------------------------------------------


def meet(one: Known, other: Known) -> Known | None:
    """Return the intersection; None if it is empty."""
    if one is other or other is ANYTHING:
        return one
    if isinstance(one, Interval) and isinstance(other, Interval):  # the common case
        return _meet_intervals(one, other)
    match one, other:
        case Choice(values), Choice(others):
            if values <= others:
                return one
            common = values & others
            return None if not common else other if len(common) == len(others) else Choice(common)
        case Texts(), Texts():
            return _meet_texts(one, other)
        case Nullable(null, value), Nullable(other_null, other_value):
            both = None if value is None or other_value is None else meet(value, other_value)
            return Nullable(null and other_null, both) if both is not None or (null and other_null) else None
        case Sized(length), Sized(other_length):
            between = _meet_intervals(length, other_length)
            return one if between is length else None if between is None else Sized(between)
        case Anything(), _:
            return other
        case _:
            return one


def _meet_intervals(one: Interval, other: Interval) -> Interval | None:
    if other is DECIMALS:
        return one
    if one is DECIMALS:
        return other
    low, low_is_open, high, high_is_open = one.low, one.low_is_open, one.high, one.high_is_open
    is_whole = one.is_whole or other.is_whole
    is_same = is_whole == one.is_whole
    end = other.low
    if end is not None and (low is None or end > low or (other.low_is_open and not low_is_open and end == low)):
        low, low_is_open, is_same = end, other.low_is_open, False
    end = other.high
    if end is not None and (high is None or end < high or (other.high_is_open and not high_is_open and end == high)):
        high, high_is_open, is_same = end, other.high_is_open, False
    return one if is_same else interval(low, high, is_whole, low_is_open, high_is_open)


def _meet_texts(one: Texts, other: Texts) -> Texts | None:
    length = _meet_intervals(one.length, other.length)
    if length is None:
        return None
    if one.values is None and other.values is None:
        return one if length is one.length else Texts(length)
    values = one.values if one.values is not None else other.values
    assert values is not None
    if one.values is not None and other.values is not None:
        values = one.values & other.values
    values = frozenset(value for value in values if length.has(len(value)))
    return texts(values) if values else None


def join(one: Known, other: Known) -> Known:
    """Return a set of possible values that includes those of both arguments; `ANYTHING` for different kinds."""
    if one is other or one == other:
        return one
    match one, other:
        case Interval(), Interval():
            low, low_is_open = _lower(one.low, one.low_is_open, other.low, other.low_is_open, outer=True)
            high, high_is_open = _higher(one.high, one.high_is_open, other.high, other.high_is_open, outer=True)
            return Interval(low, high, one.is_whole and other.is_whole, low_is_open, high_is_open)
        case Choice(values), Choice(others):
            return Choice(values | others)
        case Texts(length, values), Texts(other_length, others):
            if values is not None and others is not None:
                return texts(values | others)
            return Texts(_hull(length, other_length))
        case Nullable(null, value), Nullable(other_null, other_value):
            either = value if other_value is None else other_value if value is None else join(value, other_value)
            return Nullable(null or other_null, either)
        case Sized(length), Sized(other_length):
            return Sized(_hull(length, other_length))
        case _:
            return ANYTHING


def _hull(one: Interval, other: Interval) -> Interval:
    both = join(one, other)
    assert isinstance(both, Interval)
    return both


def _higher(
    one: Number | None, one_is_open: bool, other: Number | None, other_is_open: bool, outer: bool = False
) -> tuple[Number | None, bool]:
    """Return the greater end. It bounds both operands for lower ends, or with `outer` for upper ends."""
    if one is None or other is None:
        return (None, False) if outer else (other, other_is_open) if one is None else (one, one_is_open)
    if one == other:
        return one, (one_is_open and other_is_open) if outer else (one_is_open or other_is_open)
    return (one, one_is_open) if one > other else (other, other_is_open)


def _lower(
    one: Number | None, one_is_open: bool, other: Number | None, other_is_open: bool, outer: bool = False
) -> tuple[Number | None, bool]:
    """Return the smaller end. It bounds both operands for upper ends, or with `outer` for lower ends."""
    if one is None or other is None:
        return (None, False) if outer else (other, other_is_open) if one is None else (one, one_is_open)
    if one == other:
        return one, (one_is_open and other_is_open) if outer else (one_is_open or other_is_open)
    return (one, one_is_open) if one < other else (other, other_is_open)


# -- order ----------------------------------------------------------------------------------------


def possible_orders(one: Known, other: Known) -> int:
    """Return the possible orders of two values, as a combination of LESS, EQUAL and GREATER."""
    if isinstance(one, Interval) and isinstance(other, Interval):
        orders = EQUAL if _meet_intervals(one, other) is not None else 0
        if one.low is None or other.high is None or one.low < other.high:
            orders |= LESS
        return orders | GREATER if one.high is None or other.low is None or one.high > other.low else orders
    match one, other:
        case Choice(values), Choice(others):
            same = EQUAL if values & others else 0
            return same | (0 if len(values) == 1 and values == others else UNEQUAL)
        case Texts(), Texts():
            return _text_orders(one, other)
        case Nullable(), Nullable():
            return _orders_with_null(one, other)
        case _:
            return ANY_ORDER


def _text_orders(one: Texts, other: Texts) -> int:
    if one.values is None or other.values is None:
        return UNEQUAL | (EQUAL if meet(one, other) is not None else 0)
    orders = 0
    for value in one.values:
        for each in other.values:
            orders |= LESS if value < each else EQUAL if value == each else GREATER
    return orders


def _orders_with_null(one: Nullable, other: Nullable) -> int:
    inner = 0 if one.value is None or other.value is None else possible_orders(one.value, other.value)
    same = (one.has_null and other.has_null) or inner & EQUAL
    one_only = (one.has_null and other.value is not None) or (other.has_null and one.value is not None)
    return (EQUAL if same else 0) | (UNEQUAL if one_only or inner & UNEQUAL else 0)


def swap_orders(orders: int) -> int:
    """Return the orders with the operands swapped."""
    return _REVERSED[orders]


_REVERSED = tuple((each & EQUAL) | (each & LESS) * 4 | (each & GREATER) // 4 for each in range(ANY_ORDER + 1))


def restrict(one: Known, orders: int, other: Known) -> Known | None:
    """Return the values of `one` that have a given order to some value of `other`. None if there are none."""
    if orders == EQUAL:
        return meet(one, other)
    if isinstance(one, Interval) and isinstance(other, Interval):
        if orders & GREATER == 0:
            is_open = other.high_is_open or not orders & EQUAL
            return _meet_intervals(one, Interval(None, other.high, False, False, is_open))
        if orders & LESS == 0:
            is_open = other.low_is_open or not orders & EQUAL
            return _meet_intervals(one, Interval(other.low, None, False, is_open))
        return _without(one, other.single) if orders == UNEQUAL else one
    match one, other:
        case Choice(values), Choice(others) if orders & EQUAL == 0 and len(others) == 1:
            return Choice(values - others) if values - others else None
        case Texts(), Texts() if one.values is not None and other.values is not None:
            if orders & EQUAL or len(other.values) > 1:
                return one
            return texts(one.values - other.values) if one.values - other.values else None
        case Nullable(null, value), Nullable(other_null, other_value) if orders & EQUAL == 0:
            if other_value is None:  # not equal to null
                return Nullable(False, value) if value is not None else None
            if other_null or value is None:
                return one
            rest = restrict(value, UNEQUAL, other_value)
            return Nullable(null, rest) if null or rest is not None else None
        case _:
            return one


def _without(one: Interval, number: Number | None) -> Known | None:
    if number is None or number not in (one.low, one.high):
        return one
    low_is_open = one.low_is_open or number == one.low
    return interval(one.low, one.high, one.is_whole, low_is_open, one.high_is_open or number == one.high)


# -- arithmetic -----------------------------------------------------------------------------------


def plus(one: Interval, other: Interval) -> Interval:
    """Return the set of sums."""
    low = None if one.low is None or other.low is None else one.low + other.low
    high = None if one.high is None or other.high is None else one.high + other.high
    found = widen_ends(low, high, one.is_whole and other.is_whole)
    if one.low_is_open or other.low_is_open:
        found.low_is_open = found.low is not None and found.low == low
    if one.high_is_open or other.high_is_open:
        found.high_is_open = found.high is not None and found.high == high
    return found


def negative(one: Interval) -> Interval:
    """Return the set of negated numbers."""
    low = None if one.high is None else -one.high
    high = None if one.low is None else -one.low
    return Interval(low, high, one.is_whole, one.high_is_open, one.low_is_open)


def times(one: Interval, other: Interval) -> Interval:
    """Return the set of products. Ends are closed, except that a product of non-zero numbers is not zero."""
    products = [_product(a, b) for a in _ends(one) for b in _ends(other)]
    low = None if any(sign < 0 for sign, _ in products) else min(number for _, number in products)
    high = None if any(sign > 0 for sign, _ in products) else max(number for _, number in products)
    found = widen_ends(low, high, one.is_whole and other.is_whole)
    if one.has(0) or other.has(0):
        return found
    never_zero = interval(found.low, found.high, found.is_whole, found.low == 0, found.high == 0)
    return found if never_zero is None else never_zero


_End: TypeAlias = tuple[int, Number]
"""An end: -1 and 1 in front mark the infinities, 0 a number."""


def _ends(one: Interval) -> tuple[_End, _End]:
    return (-1, 0) if one.low is None else (0, one.low), (1, 0) if one.high is None else (0, one.high)


def _product(one: _End, other: _End) -> _End:
    if one[0] == 0 and other[0] == 0:
        return 0, one[1] * other[1]
    # Zero times an unbounded end is zero; the other pairs of ends cover the remaining products.
    sign = (one[0] or _sign(one[1])) * (other[0] or _sign(other[1]))
    return sign, 0


def _sign(number: Number) -> int:
    number = number if isinstance(number, int) else number.numerator
    return (number > 0) - (number < 0)


def magnitude(one: Interval) -> Interval:
    """Return the set of absolute values."""
    if one.low is not None and one.low >= 0:
        return one
    mirrored = negative(one)
    if one.high is not None and one.high <= 0:
        return mirrored
    upper = None if one.low is None or one.high is None else max(-one.low, one.high)
    return Interval(0, upper, one.is_whole)
