"""Results of the matching rows of a decision table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from vesper.kernels.raised import Raised
from vesper.kernels.runtime.equality import are_equal
from vesper.values.generated.errors import ErrorCode

_Item = TypeVar("_Item")


def only(results: Sequence[Any]) -> Any:
    """Return the only result; None if there is none, which the type of a table with `otherwise` excludes."""
    if len(results) > 1:
        raise Raised(ErrorCode.TABLE_CONFLICT)
    return results[0] if results else None


def same(results: Sequence[Any]) -> Any:
    """Return the result that all rows have; None if there is none, as in `only`."""
    if any(not are_equal(results[0], other) for other in results[1:]):
        raise Raised(ErrorCode.TABLE_CONFLICT)
    return results[0] if results else None


def allowed(value: _Item, is_allowed: bool) -> _Item:
    if not is_allowed:
        raise Raised(ErrorCode.INVALID_ARGUMENT)
    return value
