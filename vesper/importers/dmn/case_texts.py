"""Cases of a node from the tests of a model."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from vesper.importers.dmn.cases import Temporal, TestCase
from vesper.importers.dmn.types import Ty, field_names
from vesper.importers.writer import InlineValue, QuotedText

MAX_DIGITS = 15
"""Digits of an expected number; one with more is compared with a tolerance by DMN, and exactly by a case."""
MAX_CASES = 200
_WRITTEN_TIME = re.compile(r"\d\d:\d\d:\d\d(?:Z|[+-](?!00:00)\d\d:\d\d)?$|\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d)?Z?$")


class Unwritable(Exception):
    """A value that no case has in this form."""


def case_entry(case: TestCase, inputs: dict[str, tuple[str, Ty]], output: str, ty: Ty, is_service: bool) -> Any:
    """Return the entry of a case. Raises `Unwritable` with the reason."""
    given = {}
    for name, (inside, type_) in inputs.items():
        if name in case.inputs:
            given[inside] = literal(case.inputs[name], type_)
        elif not type_.is_nullable:
            raise Unwritable(f"it has no `{name}`")
    unknown = [name for name in case.inputs if name not in inputs]
    expected = case.expected
    if is_service and ty.kind == "context" and case.decision in ty.names:
        raise Unwritable("it expects one result of several")
    entry: dict[str, Any] = {"name": QuotedText(case.name)}
    if given or inputs:
        entry["inputs"] = InlineValue(given)
    entry["expect"] = InlineValue({output: literal(expected, ty, is_expected=True)})
    if unknown and not inputs and case.inputs:
        pass  # inputs of other decisions of the model
    return entry


def literal(value: Any, ty: Ty, is_expected: bool = False) -> Any:
    """Return a value as a literal of a case."""
    if value is None:
        if not ty.is_nullable and ty.kind not in ("any", "null"):
            raise Unwritable("it has a null for a value that is never null")
        return "null"
    match ty.kind:
        case "any" | "null":
            return _json(value)
        case "list":
            if not isinstance(value, list):
                raise Unwritable("it has a single value for a list")
            return [literal(each, ty.item, is_expected) for each in value]
        case "context":
            return _record(value, ty, is_expected)
        case "number":
            return _number(value, is_expected)
        case "boolean":
            if not isinstance(value, bool):
                raise Unwritable("it has another value for a boolean")
            return "true" if value else "false"
        case "string":
            if not isinstance(value, str):
                raise Unwritable("it has another value for a string")
            return QuotedText(value)
    if not isinstance(value, Temporal):
        raise Unwritable(f"it has another value for a {ty.describe()}")
    if is_expected and (ty.kind in ("duration", "period") or not _WRITTEN_TIME.match(value.text)):
        raise Unwritable("it expects a time in another spelling")
    return QuotedText(value.text)


def _record(value: Any, ty: Ty, is_expected: bool) -> Any:
    if not isinstance(value, dict) or any(name not in ty.names for name in value):
        raise Unwritable("it has other fields")
    names, types = field_names(ty), dict(zip(ty.names, ty.items, strict=True))
    if any(name not in value and not types[name].is_nullable for name in ty.names):
        raise Unwritable("it has fewer fields")
    return {names[name]: literal(each, types[name], is_expected) for name, each in value.items()}


def _number(value: Any, is_expected: bool) -> str:
    if not isinstance(value, Decimal) or not value.is_finite():
        raise Unwritable("it has another value for a number")
    text = format(value, "f")
    if is_expected and len(text.strip("-0").replace(".", "")) > MAX_DIGITS:
        raise Unwritable("it expects a number within a tolerance")
    return text


def _json(value: Any) -> Any:
    if isinstance(value, Temporal):
        raise Unwritable("it has a time for a value of any type")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, list):
        return [_json(each) for each in value]
    if isinstance(value, dict):
        return {name: _json(each) for name, each in value.items()}
    return "null" if value is None else QuotedText(value)
