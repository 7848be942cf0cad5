"""Sets; in Python they are frozensets."""

from __future__ import annotations

from typing import TypeVar

_Key = TypeVar("_Key", bool, int, str)


def is_member(value: _Key, members: frozenset[_Key]) -> bool:
    return value in members
