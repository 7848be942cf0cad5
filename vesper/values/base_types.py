"""Type test for a caller's objects that ignores overridden `__class__`."""

from __future__ import annotations

from typing import TypeGuard, TypeVar

_Kind = TypeVar("_Kind")


def is_a(given: object, kind: type[_Kind]) -> TypeGuard[_Kind]:
    """Return whether the object's real type is a subtype. `isinstance` would accept an overridden `__class__`."""
    return issubclass(type(given), kind)
