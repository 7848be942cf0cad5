"""The order of a type's values, for operations over any ordered type.

Python compares booleans, numbers and strings as the language does. A member of an enum is a plain string there and
does not know its type, so where a type argument is an enum generated code gives the members too, as `declared`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar


class Comparable(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


Ordered = TypeVar("Ordered", bound=Comparable)


def order_of(declared: Sequence[str]) -> Callable[[Any], Comparable]:
    """What to compare values by: their place among the declared members, or without those the values themselves."""
    if not declared:
        return _itself
    places = {member: place for place, member in enumerate(declared)}
    return places.__getitem__


def _itself(value: Any) -> Comparable:
    return value  # type: ignore[no-any-return]  # a value of an ordered type
