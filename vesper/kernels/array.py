"""Arrays; in Python they are lists that nothing changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TypeVar

from vesper.kernels.raised import Raised
from vesper.spec.errors import ErrorCode

_Item = TypeVar("_Item")
_Comparable = TypeVar("_Comparable", int, str, Decimal)


def length(items: Sequence[_Item]) -> int:
    return len(items)


def at(items: Sequence[_Item], index: int) -> _Item:
    # SEMANTICS: Python counts negative indices from the end; here they are out of range.
    if 0 <= index < len(items):
        return items[index]
    raise Raised(ErrorCode.INDEX_OUT_OF_RANGE)


def is_member(value: object, items: Sequence[object]) -> bool:
    return value in items


def contains(items: Sequence[object], value: object) -> bool:
    return value in items


def smallest(values: Iterable[_Comparable]) -> _Comparable:
    """The first of the smallest values."""
    found = list(values)
    if not found:
        raise Raised(ErrorCode.EMPTY_COLLECTION)
    return min(found)


def largest(values: Iterable[_Comparable]) -> _Comparable:
    """The first of the largest values."""
    found = list(values)
    if not found:
        raise Raised(ErrorCode.EMPTY_COLLECTION)
    return max(found)
