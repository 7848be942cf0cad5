"""The one word that the traced form of generated code has over the plain form."""

from __future__ import annotations

from typing import Protocol, TypeVar

_Value = TypeVar("_Value")


class Mark(Protocol):
    """Called as `mark(index, value)`: expression `index` had this value. Gives the value back."""

    def __call__(self, index: int, value: _Value, /) -> _Value: ...
