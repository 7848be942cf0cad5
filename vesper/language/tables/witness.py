"""Values of a point as text, for messages."""

from __future__ import annotations

from collections.abc import Sequence

from vesper.language.tables.analysis import Point
from vesper.language.tables.axis import axis_of
from vesper.values.model import Value, to_json
from vesper.values.types import STRING, Type, without_null

_MAX_SHOWN = 8
"""Maximum number of columns that a message shows."""


def show_point(labels: Sequence[str], types: Sequence[Type], point: Point) -> str | None:
    """Return a point as text: `amount = 100, country = 'DE'`. None if no value of a range is known."""
    shown: list[str] = []
    for label, type_, found in zip(labels, types, point, strict=True):
        is_known, value = axis_of(type_).example(found)
        if not is_known:
            return None
        shown.append(f"{label} = {show_value(value, type_)}")
    if not shown:
        return "any values"
    more = f" and {len(shown) - _MAX_SHOWN} more" if len(shown) > _MAX_SHOWN else ""
    return ", ".join(shown[:_MAX_SHOWN]) + more


def show_value(value: Value, type_: Type) -> str:
    """Return a value in the syntax of expressions and cells."""
    inner = without_null(type_)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    form = to_json(inner, value)
    return f"'{form}'" if inner == STRING else str(form)
