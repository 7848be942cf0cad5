"""A form made from the type of an answer, and the answer of a filled form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vesper.dashboard.problem import BadRequest
from vesper.values.json_mistake import JsonMistake
from vesper.values.strict_json import forms_of_json
from vesper.values.types import (
    BOOLEAN,
    DATE,
    DECIMAL,
    FLOAT,
    INTEGER,
    STRING,
    TIMESTAMP,
    Enum,
    OptionalOf,
    Record,
    Type,
)

_PREFIX = "answer"
_TEXTS = (STRING, DECIMAL, DATE, TIMESTAMP)
"""Types whose JSON form is a text."""
_ABSENT = "–"
_CHOICES = {"yes": True, "no": False}


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of the form, as `ui.form_field` takes it."""

    name: str
    label: str
    kind: str
    hint: str
    choices: tuple[str, ...] = ()
    is_optional: bool = False
    value: str = ""


def form_fields(type_: Type | None) -> tuple[FormField, ...]:
    """Return a field for each member of a record, or one for the whole answer; none where it has no type."""
    if type_ is None:
        return ()
    if isinstance(type_, Record):
        return tuple(
            _field(f"{_PREFIX}.{name}", name.replace("_", " ").capitalize(), each) for name, each in type_.fields
        )
    return (_field(_PREFIX, "Answer", type_),)


def answer_of(type_: Type | None, fields: Mapping[str, str]) -> Any:
    """Return the answer of a form as JSON forms. Raises `BadRequest`."""
    if isinstance(type_, Record):
        found = {name: _value(f"{_PREFIX}.{name}", each, fields) for name, each in type_.fields}
        return {name: each for name, each in found.items() if each is not None}
    return None if type_ is None else _value(_PREFIX, type_, fields)


def _field(name: str, label: str, type_: Type) -> FormField:
    is_optional = isinstance(type_, OptionalOf)
    inner = type_.inner if isinstance(type_, OptionalOf) else type_
    hint = "optional" if is_optional and inner == STRING else str(type_)
    if inner == BOOLEAN or isinstance(inner, Enum):
        choices = inner.members if isinstance(inner, Enum) else tuple(_CHOICES)
        return FormField(name, label, "select", "optional" if is_optional else "", (_ABSENT, *choices))
    is_line = inner in (*_TEXTS, INTEGER, FLOAT)
    return FormField(
        name, label, "text" if is_line else "textarea", hint if is_line else f"JSON: {hint}", (), is_optional
    )


def _value(name: str, type_: Type, fields: Mapping[str, str]) -> Any:
    inner = type_.inner if isinstance(type_, OptionalOf) else type_
    text = fields.get(name, "").strip()
    if isinstance(type_, OptionalOf) and text in ("", _ABSENT):
        return None
    what = "the answer" if name == _PREFIX else f"`{name.removeprefix(f'{_PREFIX}.')}`"
    if inner == BOOLEAN or isinstance(inner, Enum):
        if text == _ABSENT:
            raise BadRequest(f"{what} is not chosen", "Go back and choose one.")
        return _CHOICES.get(text, text) if inner == BOOLEAN else text
    if inner in _TEXTS:
        return text
    try:
        return forms_of_json(text)
    except JsonMistake as mistake:
        raise BadRequest(f"{what} is no {type_}: {mistake.what}", "Go back and correct the field.") from None
