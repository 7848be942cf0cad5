"""Typed values in the files of this folder, such as `{decimal: "1.50"}`."""

from __future__ import annotations

from typing import Any

from vesper.values.json_value import parse_json
from vesper.values.model import Value, accept, from_json, plain
from vesper.values.types import DECIMAL, JSON, ArrayOf, OptionalOf, Type, declared_type


def typed_form(form: dict[str, Any]) -> tuple[Type, Value]:
    ((text, value),) = form.items()
    type_ = declared_type(text)
    return type_, plain(read_form(type_, value))


def read_form(type_: Type, form: Any) -> Value:
    """Read a value; JSON need not be canonical, and a long decimal may be 9E+999."""
    if isinstance(type_, ArrayOf):
        return [read_form(type_.element, item) for item in form]
    if isinstance(type_, OptionalOf):
        return None if form is None else read_form(type_.inner, form)
    if type_ == JSON:
        return parse_json(form)
    return accept(type_, form) if type_ == DECIMAL else from_json(type_, form)
