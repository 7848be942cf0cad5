"""Optionals; in Python, a value or None."""

from __future__ import annotations

from typing import TypeVar

from vesper.kernels.raised import Raised
from vesper.kernels.runtime.equality import are_equal
from vesper.values.generated.errors import ErrorCode

_Item = TypeVar("_Item")


def some(value: _Item) -> _Item | None:
    return value


def is_null(value: _Item | None) -> bool:
    return value is None


def is_not_null(value: _Item | None) -> bool:
    return value is not None


def equal(left: object, right: object) -> bool:
    return are_equal(left, right)


def not_equal(left: object, right: object) -> bool:
    return not are_equal(left, right)


def unwrap(value: _Item | None) -> _Item:
    if value is None:
        raise Raised(ErrorCode.NULL_VALUE)
    return value


def require(value: _Item | None) -> _Item:
    return unwrap(value)


def in_force(value: _Item | None) -> _Item:
    if value is None:
        raise Raised(ErrorCode.NOT_IN_FORCE)
    return value
