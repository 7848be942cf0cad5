"""Arrays; in Python, lists that are never changed."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, TypeVar

from vesper.kernels.order import Ordered, order_of
from vesper.kernels.raised import Raised
from vesper.kernels.runtime.equality import are_equal, hashable, holds_nan
from vesper.kernels.work import count_work
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import MAX_ENTRIES, Key

_Item = TypeVar("_Item")
_Key = TypeVar("_Key", bound=Key)


def length(values: Sequence[_Item]) -> int:
    return len(values)


def at(values: Sequence[_Item], index: int) -> _Item:
    # SEMANTICS: Python counts negative indices from the end; here they are out of range.
    if 0 <= index < len(values):
        return values[index]
    raise Raised(ErrorCode.INDEX_OUT_OF_RANGE)


def equal(left: Sequence[object], right: Sequence[object]) -> bool:
    return are_equal(left, right)


def not_equal(left: Sequence[object], right: Sequence[object]) -> bool:
    return not are_equal(left, right)


def count(values: Sequence[_Item]) -> int:
    return len(values)


def is_item(value: object, values: Sequence[object]) -> bool:
    return _is_item(value, values)


def _is_item(value: object, values: Sequence[object]) -> bool:
    # SEMANTICS: Python's `in` takes identical objects for equal; a value that holds a NaN equals nothing.
    return value in values and not holds_nan(value)


def contains(values: Sequence[object], value: object) -> bool:
    return _is_item(value, values)


def smallest(values: Iterable[Ordered], declared: Sequence[str] = ()) -> Ordered:
    """Return the first of the smallest values."""
    found = list(values)
    if not found:
        raise Raised(ErrorCode.EMPTY_COLLECTION)
    return builtins.min(found, key=order_of(declared))


def largest(values: Iterable[Ordered], declared: Sequence[str] = ()) -> Ordered:
    """Return the first of the largest values."""
    found = list(values)
    if not found:
        raise Raised(ErrorCode.EMPTY_COLLECTION)
    return builtins.max(found, key=order_of(declared))


def min(values: Sequence[Ordered], declared: Sequence[str] = ()) -> Ordered:
    return smallest(values, declared)


def max(values: Sequence[Ordered], declared: Sequence[str] = ()) -> Ordered:
    return largest(values, declared)


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
        firsts.setdefault(hashable(value), value)
    return list(firsts.values())


def range(start: int, end: int, step: int) -> list[int]:
    return list(loop_numbers(start, end, step))


def loop_numbers(start: int, end: int, step: int) -> Sequence[int]:
    """Return the numbers of a loop over a range, without building a list."""
    _require(step != 0)
    # SEMANTICS: Python has no length for a range of 2**63 items, so the count is computed here.
    _refuse_many(-((start - end) // step))
    return builtins.range(start, end, step)


def zip(left: Sequence[object], right: Sequence[object]) -> list[Any]:
    # SEMANTICS: Python's zip would stop at the end of the shorter one.
    _require(len(left) == len(right))
    return [{"first": first, "second": second} for first, second in builtins.zip(left, right, strict=True)]


def enumerate(values: Sequence[object]) -> list[Any]:
    return [{"index": index, "value": value} for index, value in builtins.enumerate(values)]


def reverse(values: Sequence[_Item]) -> list[_Item]:
    return list(values[::-1])


def chunks(values: Sequence[_Item], size: int) -> list[list[_Item]]:
    _require(size >= 1)
    return [list(values[start : start + size]) for start in builtins.range(0, len(values), size)]


def index_of(values: Sequence[_Item], value: _Item) -> int | None:
    if holds_nan(value):
        return None
    return next((index for index, item in builtins.enumerate(values) if item == value), None)


def to_set(values: Sequence[_Key]) -> frozenset[_Key]:
    return frozenset(values)


count_work("array", globals())
