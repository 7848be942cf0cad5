"""Sets; in Python, frozensets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from vesper.kernels.order import order_of
from vesper.kernels.raised import Raised
from vesper.kernels.work import count_work
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import MAX_ENTRIES, Key

_Key = TypeVar("_Key", bound=Key)


def equal(left: frozenset[_Key], right: frozenset[_Key]) -> bool:
    return left == right


def not_equal(left: frozenset[_Key], right: frozenset[_Key]) -> bool:
    return left != right


def is_member(value: _Key, members: frozenset[_Key]) -> bool:
    return value in members


def length(members: frozenset[_Key]) -> int:
    return len(members)


def contains(members: frozenset[_Key], value: _Key) -> bool:
    return value in members


def members_in_order(order: tuple[_Key, ...], members: frozenset[_Key]) -> list[_Key]:
    """Return the members of a set of an enum, in the enum's order."""
    return [member for member in order if member in members]


def union(left: frozenset[_Key], right: frozenset[_Key]) -> frozenset[_Key]:
    return _union(left, right)


def _union(left: frozenset[_Key], right: frozenset[_Key]) -> frozenset[_Key]:
    if len(left) + sum(value not in left for value in right) > MAX_ENTRIES:
        raise Raised(ErrorCode.TOO_LARGE)
    return left | right


def intersection(left: frozenset[_Key], right: frozenset[_Key]) -> frozenset[_Key]:
    return left & right


def difference(left: frozenset[_Key], right: frozenset[_Key]) -> frozenset[_Key]:
    return left - right


def is_subset(left: frozenset[_Key], right: frozenset[_Key]) -> bool:
    return left <= right


def is_disjoint(left: frozenset[_Key], right: frozenset[_Key]) -> bool:
    return left.isdisjoint(right)


def put(members: frozenset[_Key], value: _Key) -> frozenset[_Key]:
    return _union(members, frozenset([value]))


def remove(members: frozenset[_Key], value: _Key) -> frozenset[_Key]:
    return members - {value}


def to_array(members: frozenset[_Key], declared: Sequence[str] = ()) -> list[_Key]:
    return sorted(members, key=order_of(declared))


count_work("set", globals())
