"""Arrays; in Python they are lists that nothing changes."""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from itertools import chain
from typing import TypeVar

from vesper.kernels.equality import holds_nan
from vesper.kernels.order import Ordered, order_of, place_of
from vesper.kernels.raised import Raised
from vesper.spec.errors import ErrorCode
from vesper.spec.json_value import canonical_text
from vesper.spec.values import MAX_DIGITS, MAX_ENTRIES, Json, Key

_Item = TypeVar("_Item")
_Key = TypeVar("_Key", bound=Key)
_WITHOUT_ZEROS = Context(prec=MAX_DIGITS, rounding=ROUND_HALF_EVEN, traps=[])


def length(values: Sequence[_Item]) -> int:
    return len(values)


def at(values: Sequence[_Item], index: int) -> _Item:
    # SEMANTICS: Python counts negative indices from the end; here they are out of range.
    if 0 <= index < len(values):
        return values[index]
    raise Raised(ErrorCode.INDEX_OUT_OF_RANGE)


def is_item(value: object, values: Sequence[object]) -> bool:
    # SEMANTICS: Python takes an object that it finds for equal to itself; what holds a NaN equals nothing.
    return value in values and not holds_nan(value)


def contains(values: Sequence[object], value: object) -> bool:
    return is_item(value, values)


def smallest(values: Iterable[Ordered]) -> Ordered:
    """The first of the smallest values."""
    found = list(values)
    if not found:
        raise Raised(ErrorCode.EMPTY_COLLECTION)
    return min(found, key=place_of)


def largest(values: Iterable[Ordered]) -> Ordered:
    """The first of the largest values."""
    found = list(values)
    if not found:
        raise Raised(ErrorCode.EMPTY_COLLECTION)
    return max(found, key=place_of)


def get(values: Sequence[_Item], index: int) -> _Item | None:
    return values[index] if 0 <= index < len(values) else None


def first(values: Sequence[_Item]) -> _Item | None:
    return values[0] if values else None


def last(values: Sequence[_Item]) -> _Item | None:
    return values[-1] if values else None


def _require(holds: bool) -> None:
    if not holds:
        raise Raised(ErrorCode.INVALID_ARGUMENT)


def _refuse_many(items: int) -> None:
    if items > MAX_ENTRIES:
        raise Raised(ErrorCode.TOO_LARGE)


def take(values: Sequence[_Item], count: int) -> list[_Item]:
    _require(count >= 0)
    return list(values[:count])


def drop(values: Sequence[_Item], count: int) -> list[_Item]:
    _require(count >= 0)
    return list(values[count:])


def slice(values: Sequence[_Item], start: int, end: int) -> list[_Item]:
    _require(start >= 0 and end >= 0)
    return list(values[start:end])


def append(values: Sequence[_Item], value: _Item) -> list[_Item]:
    _refuse_many(len(values) + 1)
    return [*values, value]


def concat(left: Sequence[_Item], right: Sequence[_Item]) -> list[_Item]:
    _refuse_many(len(left) + len(right))
    return [*left, *right]


def replace_at(values: Sequence[_Item], index: int, value: _Item) -> list[_Item]:
    at(values, index)
    return [*values[:index], value, *values[index + 1 :]]


def flatten(values: Sequence[Sequence[_Item]]) -> list[_Item]:
    _refuse_many(sum(map(len, values)))
    return list(chain.from_iterable(values))


def sort(values: Sequence[Ordered], order: str, declared: Sequence[str] = ()) -> list[Ordered]:
    # SEMANTICS: Python keeps the order of equal items in a reversed sort too.
    return sorted(values, key=order_of(declared), reverse=order == "descending")


def distinct(values: Sequence[_Item]) -> list[_Item]:
    firsts: dict[object, _Item] = {}
    for value in values:
        firsts.setdefault(_hashable(value), value)
    return list(firsts.values())


def _hashable(value: object) -> object:
    """Something that is equal, and has the same hash, exactly where two values of one type are equal."""
    match value:
        case Decimal():
            # Text: the hash of a number is known, so that many different ones could be made to share one.
            return str(_WITHOUT_ZEROS.normalize(value)) if value else "0"
        case Json():
            return canonical_text(value)
        case float() if math.isnan(value):
            return object()  # equal to nothing else
        case list():
            return tuple([_hashable(item) for item in value])
        case dict():
            return frozenset([(key, _hashable(item)) for key, item in value.items()])
        case _:
            return value


def range(start: int, end: int, step: int) -> list[int]:
    _require(step != 0)
    # SEMANTICS: Python has no length for a range of 2**63 items, so this counts them itself.
    _refuse_many(-((start - end) // step))
    return list(builtins.range(start, end, step))


def reverse(values: Sequence[_Item]) -> list[_Item]:
    return list(values[::-1])


def chunks(values: Sequence[_Item], size: int) -> list[list[_Item]]:
    _require(size >= 1)
    return [list(values[start : start + size]) for start in builtins.range(0, len(values), size)]


def index_of(values: Sequence[_Item], value: _Item) -> int | None:
    if holds_nan(value):
        return None
    return next((index for index, item in enumerate(values) if item == value), None)


def to_set(values: Sequence[_Key]) -> frozenset[_Key]:
    return frozenset(values)
