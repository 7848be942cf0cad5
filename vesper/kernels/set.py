"""Sets; in Python they are frozensets."""

from __future__ import annotations

from typing import TypeVar

_Key = TypeVar("_Key", bool, int, str)


def is_member(value: _Key, members: frozenset[_Key]) -> bool:
    return value in members


def length(members: frozenset[_Key]) -> int:
    return len(members)


def contains(members: frozenset[_Key], value: _Key) -> bool:
    return value in members


def members_in_order(order: tuple[str, ...], members: frozenset[str]) -> list[str]:
    """The members of a set of an enum, in the order of the enum."""
    return [member for member in order if member in members]
