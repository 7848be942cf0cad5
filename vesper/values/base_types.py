"""Looking at a caller's object without believing what it says of itself."""

from __future__ import annotations

from typing import TypeGuard, TypeVar

_Kind = TypeVar("_Kind")


def is_a(given: object, kind: type[_Kind]) -> TypeGuard[_Kind]:
    """Like `isinstance`, which believes what an object says of its own class; this does not."""
    return issubclass(type(given), kind)
