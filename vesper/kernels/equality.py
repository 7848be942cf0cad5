"""Where Python's `==` is not the language's: a value that holds a NaN equals nothing, not even itself."""

from __future__ import annotations

import math


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
