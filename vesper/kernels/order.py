"""Order of values, for operations over any ordered type.

Python compares booleans, integers, decimals, strings, bytes and times as the language does. Floats have a total order
for sorting, in which NaN comes last and -0.0 before 0.0. An enum member is a plain string without its type, so
generated code passes the members of the enum as `declared`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar


class Comparable(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


Ordered = TypeVar("Ordered", bound=Comparable)


def order_of(declared: Sequence[str]) -> Callable[[Any], Comparable]:
    """Return the sort key of an ordered type. It is the position among the declared members, if given, or the value."""
    if not declared:
        return place_of
    places = {member: place for place, member in enumerate(declared)}
    return places.__getitem__


def place_of(value: Any) -> Comparable:
    """Return the object by which Python compares a value of an ordered type."""
    # SEMANTICS: Python's `<` does not order NaN, and treats -0.0 and 0.0 as equal.
    return _place_of_float(value) if isinstance(value, float) else value


def _place_of_float(value: float) -> tuple[bool, float, float]:
    return (True, 0.0, 0.0) if math.isnan(value) else (False, value, math.copysign(1.0, value))
