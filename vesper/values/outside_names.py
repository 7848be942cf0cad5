"""Outside names: the form that a type has in JSON and Arrow, and values in that form.

`spelled_type` returns a type whose names are the outside ones, so that every reader and writer of JSON works on
ordinary types; `to_inside` and `to_outside` convert values between the two. Defined in docs/spec/values.md.

JSON leaves absent fields out. The columns of a table are the same in every row, so with `columns` flags and undeclared
keys are fields of their own.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import cache
from typing import Any

from vesper.values.types import (
    ArrayOf,
    Enum,
    MapOf,
    OptionalOf,
    Outside,
    Record,
    SetOf,
    SpelledRecord,
    Type,
    declared_type,
)

MAX_OUTSIDE_NAME = 128
OUTSIDE_NAME_HELP = f"it has 1 to {MAX_OUTSIDE_NAME} characters, and none of them is a control character"


def is_outside_name(text: str) -> bool:
    """Return whether a text can be an outside name."""
    is_control = any(unicodedata.category(each) == "Cc" for each in text)
    return 0 < len(text) <= MAX_OUTSIDE_NAME and not is_control


def spelled_type(type_: Type, columns: bool = False) -> Type:
    """Return the type with outside names. A type without them is returned as the same object."""
    match type_:
        case Enum(_, outside):
            return Enum(outside) if outside else type_
        case OptionalOf(inner):
            spelled = spelled_type(inner, columns)
            return type_ if spelled is inner else OptionalOf(spelled)
        case ArrayOf(inner):
            spelled = spelled_type(inner, columns)
            return type_ if spelled is inner else ArrayOf(spelled)
        case SetOf(inner):
            spelled = spelled_type(inner, columns)
            return type_ if spelled is inner else SetOf(spelled)
        case MapOf(key, value):
            names, values = spelled_type(key, columns), spelled_type(value, columns)
            return type_ if names is key and values is value else MapOf(names, values)
        case Record():
            return spelled_record(type_, columns)
        case _:
            return type_


def spelled_record(type_: Record, columns: bool = False) -> Record:
    """Return `spelled_type` of a record."""
    fields = [(name, spelled_type(field, columns)) for name, field in type_.fields]
    outside = type_.outside
    if outside is None:
        is_same = all(new is old for (_, new), (_, old) in zip(fields, type_.fields, strict=True))
        return type_ if is_same else Record(tuple(fields), type_.name)
    if columns:
        flags = tuple((outside.name_of(name), flag) for name, flag in outside.flags)
        named = tuple((outside.name_of(name), field) for name, field in fields)
        return Record(named, type_.name, Outside((), flags, outside.rest))
    hidden = outside.hidden()
    return SpelledRecord(
        tuple((outside.name_of(name), field) for name, field in fields if name not in hidden),
        type_.name,
        is_open=outside.rest is not None,
        sparse=frozenset(outside.name_of(name) for name, _ in outside.flags),
    )


@cache
def spelled_pair(text: str) -> tuple[Type, Type]:
    """Return the type of a text, and that type with outside names."""
    type_ = declared_type(text)
    return type_, spelled_type(type_)


def to_inside(type_: Type, value: Any, columns: bool = False) -> Any:
    """Return a value of the type, from one of its `spelled_type`."""
    match type_:
        case Enum(members, outside):
            return members[outside.index(value)] if outside else value
        case OptionalOf(inner):
            return None if value is None else to_inside(inner, value, columns)
        case ArrayOf(inner):
            return [to_inside(inner, item, columns) for item in value]
        case SetOf(inner):
            return frozenset(to_inside(inner, item, columns) for item in value)
        case MapOf(key, of):
            return {to_inside(key, name): to_inside(of, item, columns) for name, item in value.items()}
        case Record(fields, _, outside) if outside is None or columns:
            named = outside or Outside()
            return {name: to_inside(field, value[named.name_of(name)], columns) for name, field in fields}
        case Record():
            return _inside_record(type_, value)
        case _:
            return value


def _inside_record(type_: Record, value: Mapping[str, Any]) -> dict[str, Any]:
    outside = type_.outside or Outside()
    flagged = {flag: name for name, flag in outside.flags}
    found: dict[str, Any] = {}
    for name, field in type_.fields:
        if name == outside.rest:
            declared = {outside.name_of(own) for own, _ in type_.fields if own not in outside.hidden()}
            found[name] = {key: value[key] for key in sorted(value) if key not in declared}
        elif name in flagged:
            found[name] = outside.name_of(flagged[name]) not in value
        else:
            given = value.get(outside.name_of(name))
            found[name] = None if given is None else to_inside(field, given)
    return found


def to_outside(type_: Type, value: Any, columns: bool = False) -> Any:
    """Return a value of the type's `spelled_type`. A part that is no value of its type stays as it is."""
    match type_, value:
        case Enum(members, outside), str():
            return outside[members.index(value)] if outside and value in members else value
        case OptionalOf(inner), _:
            return None if value is None else to_outside(inner, value, columns)
        case ((ArrayOf(inner) | SetOf(inner)), (list() | tuple() | set() | frozenset())):
            return type(value)([to_outside(inner, item, columns) for item in value])
        case MapOf(key, of), dict():
            return {to_outside(key, name): to_outside(of, item, columns) for name, item in value.items()}
        case Record(), dict():
            return _outside_record(type_, value, columns)
        case _:
            return value


def _outside_record(type_: Record, value: Mapping[Any, Any], columns: bool) -> dict[Any, Any]:
    outside, types = type_.outside or Outside(), dict(type_.fields)
    hidden: set[str] = set() if columns else outside.hidden()
    left_out = set() if columns else {name for name, flag in outside.flags if value.get(flag) is True}
    found = {
        outside.name_of(name): to_outside(types[name], item, columns) if name in types else item
        for name, item in value.items()
        if name not in hidden and name not in left_out
    }
    rest = None if columns or outside.rest is None else value.get(outside.rest)
    if isinstance(rest, dict):
        # SEMANTICS: an entry under the name of a declared field is not written.
        declared = {outside.name_of(name) for name in types if name not in hidden}
        found |= {key: item for key, item in rest.items() if key not in declared}
    return found
