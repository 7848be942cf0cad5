"""Arrays; in Python they are lists that nothing changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TypeVar

from vesper.kernels.raised import Raised
from vesper.spec.errors import ErrorCode

_Item = TypeVar("_Item")
_Comparable = TypeVar("_Comparable", int, str, Decimal)


def length(values: Sequence[_Item]) -> int:
    return len(values)


def at(values: Sequence[_Item], index: int) -> _Item:
    # SEMANTICS: Python counts negative indices from the end; here they are out of range.
    if 0 <= index < len(values):
        return values[index]
    raise Raised(ErrorCode.INDEX_OUT_OF_RANGE)


def is_item(value: object, values: Sequence[object]) -> bool:
    return value in values


def contains(values: Sequence[object], value: object) -> bool:
    return value in values


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
