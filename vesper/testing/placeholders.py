"""Placeholders for sensitive values in recordings.

A sensitive input or part of an answer keeps its shape: letters become `x`, digits of a text `0`, digits of a number
`1`, so that lengths, patterns and signs are preserved. The same placeholder replaces the value in later answers and
inside longer texts. A secret becomes `secret:NAME`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, cast

from vesper.language.ir.taint import Flow
from vesper.values.json_value import Json
from vesper.values.model import Value, sorted_map
from vesper.values.numbers import decimal_text, parse_decimal
from vesper.values.period import Period
from vesper.values.strict_json import JsonContent
from vesper.values.types import JSON, ArrayOf, Enum, MapOf, OptionalOf, Record, SetOf, Type

_MIN_PART_CHARACTERS = 4
"""Minimum characters of a text that is also replaced inside longer texts."""


class Placeholders:
    """Placeholders of one run. `redact` replaces secrets by `secret:NAME`."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._whole: dict[tuple[type, object], object] = {}
        self._parts: dict[str, str] = {}

    def replace(self, type_: Type, value: Value, by: Value | None = None) -> Value:
        """Return the placeholder of a sensitive value and replace the value from now on."""
        found = _shape(type_, value) if by is None else by
        self._add_replacement(value, found)
        return found

    def replace_parts(self, type_: Type, value: Value, flow: Flow) -> Value:
        """Return a value with placeholders for its sensitive parts, and replace these from now on."""
        if not flow.sources:
            return value
        match type_, value:
            case _ if flow.whole:
                return self.replace(type_, value)
            case OptionalOf(inner), _:
                return None if value is None else self.replace_parts(inner, value, flow)
            case ArrayOf(element), list():
                return [self.replace_parts(element, item, flow) for item in value]
            case Record(fields), dict():
                named = cast(dict[str, Value], value)
                return {name: self.replace_parts(field, named[name], flow.field(name)) for name, field in fields}
            case _:
                return self.replace(type_, value)

    def hide(self, type_: Type, value: Value) -> Value:
        """Return a value with all replaced parts as placeholders, and without secrets."""
        match type_, value:
            case OptionalOf(inner), _:
                return None if value is None else self.hide(inner, value)
            case ArrayOf(element), list():
                return [self.hide(element, item) for item in value]
            case SetOf(element), frozenset():
                return frozenset(cast(Any, self.hide(element, item)) for item in value)
            case MapOf(key, of), dict():
                entries = {cast(Any, self.hide(key, each)): self.hide(of, item) for each, item in value.items()}
                return sorted_map(MapOf(key, of), entries)
            case Record(fields), dict():
                named = cast(dict[str, Value], value)
                return {name: self.hide(field, named[name]) for name, field in fields}
            case _ if isinstance(value, Json):
                return Json(cast(JsonContent, _map_json(value.content, self._leaf, self._name)))
            case Enum(), _:
                return value
            case _:
                return cast(Value, self._leaf(value))

    def _leaf(self, value: object) -> object:
        whole = self._whole.get((type(value), value))
        if whole is not None:
            return whole
        if not isinstance(value, str):
            return value
        for old, new in self._parts.items():
            value = value.replace(old, new)
        return self._redact(value)

    def _name(self, name: str) -> str:
        """Return the name of a JSON field, replaced if it is sensitive; short names are kept."""
        return str(self._leaf(name)) if len(name) >= _MIN_PART_CHARACTERS else name

    def _add_replacement(self, old: object, new: object) -> None:
        """Pair the parts of a value with the parts of its placeholder."""
        if isinstance(old, Json) and isinstance(new, Json):
            self._add_replacement(old.content, new.content)
        elif isinstance(old, Mapping) and isinstance(new, Mapping):
            for (old_key, old_item), (new_key, new_item) in zip(old.items(), new.items(), strict=False):
                if old_key != new_key:
                    self._add_replacement(old_key, new_key)
                self._add_replacement(old_item, new_item)
        elif isinstance(old, list | tuple) and isinstance(new, list | tuple):
            for one, other in zip(old, new, strict=False):
                self._add_replacement(one, other)
        elif isinstance(old, frozenset) and isinstance(new, frozenset):
            for one, other in zip(sorted(cast(Any, old)), sorted(cast(Any, new)), strict=False):
                self._add_replacement(one, other)
        elif not isinstance(old, bool | None) and type(old) is type(new):
            self._whole[type(old), old] = new
            if isinstance(old, str) and isinstance(new, str) and len(old) >= _MIN_PART_CHARACTERS:
                self._parts[old] = new


def _shape(type_: Type, value: Value) -> Value:
    """Return a value of the same type and shape that reveals nothing of the original."""
    match type_, value:
        case OptionalOf(inner), _:
            return None if value is None else _shape(inner, value)
        case ArrayOf(element), list():
            return [_shape(element, item) for item in value]
        case SetOf(element), frozenset():
            return frozenset(cast(Any, _shape(element, item)) for item in value)
        case MapOf(key, of), dict():
            entries = {cast(Any, _shape(key, each)): _shape(of, item) for each, item in value.items()}
            return sorted_map(MapOf(key, of), entries)
        case Record(fields), dict():
            named = cast(dict[str, Value], value)
            return {name: _shape(field, named[name]) for name, field in fields}
        case _ if type_ == JSON:
            assert isinstance(value, Json)
            return Json(cast(JsonContent, _map_json(value.content, _shape_leaf, str)))
        case Enum(members=members), _:
            return members[0]
        case _:
            return cast(Value, _shape_leaf(value))


def _map_json(content: JsonContent, leaf: Callable[[object], object], name: Callable[[str], str]) -> object:
    """Return JSON content with every scalar and field name mapped."""
    if isinstance(content, tuple):
        return tuple(_map_json(each, leaf, name) for each in content)
    if isinstance(content, dict):
        found = {name(key): _map_json(each, leaf, name) for key, each in content.items()}
        return {key: found[key] for key in sorted(found)}
    return leaf(content)


def _shape_leaf(value: object) -> object:
    match value:
        case None:
            return None
        case bool():
            return False
        case int():
            return int(_ones(str(value)))
        case Decimal():
            return parse_decimal(_ones(decimal_text(value)))
        case float():
            return -1.0 if value < 0 else 1.0
        case str():
            return "".join(map(_shape_character, value))
        case bytes():
            return bytes(len(value))
        case datetime():
            return datetime(2000, 1, 1, tzinfo=UTC)
        case date():
            return date(2000, 1, 1)
        case timedelta():
            return timedelta(seconds=1)
        case time():
            return time(12)
        case Period():
            return Period(1)
        case _:
            raise TypeError(f"there is no placeholder for a {type(value).__name__}")


def _ones(text: str) -> str:
    return "".join("1" if each.isdigit() else each for each in text)


def _shape_character(character: str) -> str:
    if character.isdigit():
        return "0"
    if character.isalpha():
        return "X" if character.isupper() else "x"
    return character
