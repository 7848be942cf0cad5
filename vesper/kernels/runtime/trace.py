"""Callback of the traced form of generated code."""

from __future__ import annotations

from typing import Protocol, TypeVar

_Value = TypeVar("_Value")


class Mark(Protocol):
    """Callback `mark(index, value)`: records the value of expression `index` and returns it."""

    def __call__(self, index: int, value: _Value, /) -> _Value: ...
