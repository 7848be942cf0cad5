"""Equality of values of one type. A value that holds a NaN equals nothing, not even itself.

Python's `==` of lists and dicts compares identity first, so that a NaN inside one would equal itself.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Context, Decimal

from vesper.values.json_value import canonical_text
from vesper.values.model import MAX_DIGITS, Json

_WITHOUT_ZEROS = Context(prec=MAX_DIGITS, rounding=ROUND_HALF_EVEN, traps=[])


def are_equal(left: object, right: object) -> bool:
    """Return whether two values are equal by the equality of their types, part by part."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(are_equal(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(are_equal(value, right[key]) for key, value in left.items())
    return left == right


def holds_nan(value: object) -> bool:
    match value:
        case float():
            return math.isnan(value)
        case list():
            return any(map(holds_nan, value))
        case dict():
            return any(map(holds_nan, value.values()))
        case _:
            return False


def hashable(value: object) -> object:
    """Return a hashable object that is equal exactly where two values are equal."""
    match value:
        case Decimal():
            # SAFETY: text, because hashes of numbers are predictable and collisions could be forced.
            return str(_WITHOUT_ZEROS.normalize(value)) if value else "0"
        case Json():
            return canonical_text(value)
        case float() if math.isnan(value):
            return object()  # equal to nothing else
        case list():
            return tuple([hashable(item) for item in value])
        case dict():
            return frozenset([(key, hashable(item)) for key, item in value.items()])
        case _:
            return value
