"""Order of values, for operations over any ordered type.

Python compares booleans, integers, decimals, strings, bytes and times as the language does. Floats have a total order
for sorting, in which NaN comes last and -0.0 before 0.0. An enum member is a plain string without its type, so
generated code passes the members of the enum as `declared`. Arrays, records and optionals are compared part by part, so
generated code passes the text of their type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from vesper.values.types import ArrayOf, Enum, OptionalOf, Record, Type, declared_type


class Comparable(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


Ordered = TypeVar("Ordered", bound=Comparable)


def order_of(declared: Sequence[str]) -> Callable[[Any], Any]:
    """Return the sort key of an ordered type.

    `declared` is the text of the type, the members of an enum, or absent where values order themselves.
    """
    if isinstance(declared, str):
        return _order_of_text(declared)
    if not declared:
        return place_of
    places = {member: place for place, member in enumerate(declared)}
    return places.__getitem__


@lru_cache(maxsize=1024)
def _order_of_text(text: str) -> Callable[[Any], Any]:
    return _order_of_type(declared_type(text))


def _order_of_type(type_: Type) -> Callable[[Any], Any]:
    match type_:
        case ArrayOf(element):
            of_item = _order_of_type(element)
            return lambda value: [of_item(item) for item in value]
        case Record(fields):
            parts = [(name, _order_of_type(each)) for name, each in fields]
            return lambda value: [of_field(value[name]) for name, of_field in parts]
        case OptionalOf(inner):
            of_value = _order_of_type(inner)
            # SEMANTICS: null comes first.
            return lambda value: (False,) if value is None else (True, of_value(value))
        case Enum(members):
            return order_of(members)
        case _:
            return place_of


def place_of(value: Any) -> Comparable:
    """Return the object by which Python compares a value of an ordered type."""
    # SEMANTICS: Python's `<` does not order NaN, and treats -0.0 and 0.0 as equal.
    return _place_of_float(value) if isinstance(value, float) else value


def _place_of_float(value: float) -> tuple[bool, float, float]:
    return (True, 0.0, 0.0) if math.isnan(value) else (False, value, math.copysign(1.0, value))
