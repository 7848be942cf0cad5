"""The order of a type's values, for operations over any ordered type.

Python compares booleans, integers, decimals, strings, bytes and times as the language does. Floats have one order for
sorting, in which NaN has a place and the two zeros have two. A member of an enum is a plain string there and
does not know its type, so where a type argument is an enum generated code gives the members too, as `declared`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar


class Comparable(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


Ordered = TypeVar("Ordered", bound=Comparable)


def order_of(declared: Sequence[str]) -> Callable[[Any], Comparable]:
    """What to compare values by: their place among the declared members, or without those the values themselves."""
    if not declared:
        return place_of
    places = {member: place for place, member in enumerate(declared)}
    return places.__getitem__


def place_of(value: Any) -> Comparable:
    """What Python may compare a value of an ordered type by."""
    # SEMANTICS: Python's `<` has no place for NaN, and takes -0.0 and 0.0 for one.
    return _place_of_float(value) if isinstance(value, float) else value


def _place_of_float(value: float) -> tuple[bool, float, float]:
    return (True, 0.0, 0.0) if math.isnan(value) else (False, value, math.copysign(1.0, value))
