"""Objects of subclasses whose methods lie or fail; values must be read from the base type."""

from __future__ import annotations

from decimal import Decimal
from typing import Any


def _never(*_: object, **__: object) -> Any:
    raise AssertionError("an overridden method was called")


class _Text(str):
    __slots__ = ()
    __eq__ = __ne__ = __str__ = __len__ = __iter__ = __contains__ = __lt__ = _never
    isascii = encode = _never
    __hash__ = str.__hash__


class _Int(int):
    __slots__ = ()
    __eq__ = __lt__ = __le__ = __int__ = __index__ = __str__ = __add__ = __radd__ = _never
    __hash__ = int.__hash__


class _Decimal(Decimal):
    __slots__ = ()
    __eq__ = __lt__ = __add__ = __radd__ = __str__ = as_tuple = is_finite = _never
    __hash__ = Decimal.__hash__


class _Float(float):
    __slots__ = ()
    __eq__ = __float__ = __str__ = _never
    __hash__ = float.__hash__


class _List(list[Any]):
    __slots__ = ()
    __iter__ = __len__ = __getitem__ = _never


class _Dict(dict[Any, Any]):
    __slots__ = ()
    __iter__ = __len__ = __getitem__ = __contains__ = keys = values = items = get = _never


def lying(value: Any) -> Any:
    """Return the value as an object of a lying subclass, or unchanged without one."""
    kinds = {str: _Text, int: _Int, Decimal: _Decimal, float: _Float, list: _List, dict: _Dict}
    kind = kinds.get(type(value))
    return value if kind is None else kind(value)
