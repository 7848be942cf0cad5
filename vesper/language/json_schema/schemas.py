"""JSON Schemas of types, for the inputs and outputs of a service."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, TypeAlias

from vesper.language.json_schema.facts import ITEM, KEY, Facts, Path
from vesper.language.json_schema.patterns import TEXTS, WRITTEN_DECIMAL, decimal_pattern, ecma_pattern
from vesper.values.json_forms import has_names
from vesper.values.types import (
    DECIMAL,
    JSON,
    ArrayOf,
    Enum,
    MapOf,
    OptionalOf,
    Outside,
    Record,
    Recursive,
    SetOf,
    Type,
)

Schema: TypeAlias = dict[str, Any]
NULL: Schema = {"type": "null"}
_LONG = 2**63
_PLAIN: dict[str, Schema] = {
    "boolean": {"type": "boolean"},
    "string": {"type": "string"},
    "date": {"type": "string", "format": "date"},
    "timestamp": {"type": "string", "format": "date-time"},
    "bytes": {"type": "string", "contentEncoding": "base64"},
    "duration": {"type": "string"},
    "time_of_day": {"type": "string"},
    "period": {"type": "string"},
}


class Components:
    """The named schemas of a document."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}
        self._recursive: dict[tuple[int, bool], str] = {}

    def add(self, name: str, schema: Schema, is_input: bool) -> Schema:
        """Return a reference to a schema with this name or a similar one. Equal schemas share one."""
        for each in self._names(name, is_input):
            if self.schemas.setdefault(each, schema) == schema:
                return _ref(each)
        raise AssertionError("names never end")

    def reserve(self, type_: Recursive, is_input: bool) -> tuple[str, bool]:
        """Return the name of a recursive type, and whether it is new. The caller then sets its schema."""
        known = self._recursive.get((id(type_), is_input))
        if known is not None:
            return known, False
        name = next(each for each in self._names(type_.name, is_input) if each not in self.schemas)
        self._recursive[(id(type_), is_input)] = name
        self.schemas[name] = {}
        return name, True

    @staticmethod
    def _names(name: str, is_input: bool) -> itertools.chain[str]:
        first = [name] if is_input else [name, f"{name}Output"]
        return itertools.chain(first, (f"{first[-1]}{number}" for number in itertools.count(2)))


class SchemaWriter:
    """Writes schemas of the values of one node, either of inputs or of outputs."""

    def __init__(self, components: Components, facts: Mapping[Path, Facts], is_input: bool, has_numbers: bool) -> None:
        """With `has_numbers` the service writes decimals as JSON numbers."""
        self._components = components
        self._facts = facts
        self._is_input = is_input
        self._has_numbers = has_numbers

    def value(self, type_: Type, path: Path, is_text: bool = False) -> Schema:
        """Return the schema of the value at a path. With `is_text`, for a parameter, it is not a JSON number."""
        match type_:
            case OptionalOf(inner):
                found = self.value(inner, path, is_text)
                return found if found == {} or is_text else {"anyOf": [found, NULL]}
            case ArrayOf(element) | SetOf(element):
                unique = {"uniqueItems": True} if isinstance(type_, SetOf) else {}
                items = self.value(element, (*path, ITEM), is_text)
                return {"type": "array", "items": items, **unique, **self._sizes(path, "Items")}
            case MapOf(key, value) if has_names(key):
                names = self.value(key, (*path, KEY))
                named = {} if names == {"type": "string"} else {"propertyNames": names}
                values = {"additionalProperties": self.value(value, (*path, ITEM))}
                return {"type": "object", **values, **named, **self._sizes(path, "Properties")}
            case MapOf(key, value):
                return self._pairs(key, value, path)
            case Recursive(name):
                name, is_new = self._components.reserve(type_, self._is_input)
                if is_new:
                    written = self.record(type_.fields, type_.outside, path)
                    self._components.schemas[name] = written | {"additionalProperties": True}
                # The service takes such a value as any JSON; a field is read where the node uses it.
                return {"anyOf": [_ref(name), {}]}
            case Record(fields, name, outside):
                written = self.record(fields, outside, path)
                return written if name is None else self._components.add(name, written, self._is_input)
            case Enum(members, outside):
                return {"type": "string", "enum": list(outside or members)}
            case _:
                return self._scalar(type_, path, is_text)

    def record(
        self,
        fields: tuple[tuple[str, Type], ...],
        outside: Outside | None,
        path: Path = (),
        defaults: Mapping[str, Any] | None = None,
    ) -> Schema:
        """Return the schema of an object. `defaults` are JSON values of fields that a caller can leave out."""
        names, given = outside or Outside(), defaults or {}
        hidden, sparse = names.hidden(), {name for name, _ in names.flags}
        properties: Schema = {}
        required = []
        for name, type_ in fields:
            if name in hidden:
                continue
            key = names.name_of(name)
            properties[key] = self.value(type_, (*path, name))
            if name in given:
                properties[key] = {**properties[key], "default": given[name]}
            is_optional = isinstance(type_, OptionalOf) if self._is_input else False
            if not is_optional and name not in sparse and name not in given:
                required.append(key)
        return {
            "type": "object",
            "properties": properties,
            **({"required": required} if required else {}),
            "additionalProperties": names.rest is not None,
        }

    def _pairs(self, key: Type, value: Type, path: Path) -> Schema:
        """Return the schema of a map whose keys are not names: an array of pairs.

        For an input an object is also valid.
        """
        keys, values = self.value(key, (*path, KEY)), self.value(value, (*path, ITEM))
        pair = {"type": "array", "prefixItems": [keys, values], "items": False, "minItems": 2, "maxItems": 2}
        listed = {"type": "array", "items": pair, **self._sizes(path, "Items")}
        if not self._is_input:
            return listed
        named: Schema = {"type": "object", "additionalProperties": values, "propertyNames": keys}
        if keys.get("type") != "string":
            named = {"type": "object", "maxProperties": 0}
        return {"anyOf": [listed, {**named, **self._sizes(path, "Properties")}]}

    # -- scalars ----------------------------------------------------------------------------------

    def _scalar(self, type_: Type, path: Path, is_text: bool) -> Schema:
        facts = self._facts.get(path, Facts())
        if type_ == JSON:
            return {}
        if type_ == DECIMAL:
            return self._decimal(facts, is_text)
        match str(type_):
            case "integer":
                low = -_LONG if facts.low is None else max(-_LONG, int(facts.low) + facts.is_low_open)
                high = _LONG - 1 if facts.high is None else min(_LONG - 1, int(facts.high) - facts.is_high_open)
                return {"type": "integer", "format": "int64", "minimum": low, "maximum": high}
            case "float":
                number = {"type": "number", "format": "double", **bounds(facts)}
                is_bounded = facts.low is not None or facts.high is not None
                return number if is_bounded else {"anyOf": [number, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
            case "string":
                return self._string(facts, path)
            case name:
                pattern = {"pattern": TEXTS[name]} if name in TEXTS else {}
                return {**_PLAIN[name], **pattern}

    def _decimal(self, facts: Facts, is_text: bool) -> Schema:
        number: Schema = {"type": "number", **bounds(facts)}
        if self._is_input:
            text = {"type": "string", "format": "decimal", "pattern": decimal_pattern(facts)}
            return text if is_text else {"anyOf": [text, number]}
        return number if self._has_numbers else {"type": "string", "format": "decimal", "pattern": WRITTEN_DECIMAL}

    def _string(self, facts: Facts, path: Path) -> Schema:
        found: Schema = {"type": "string", **self._sizes(path, "Length")}
        patterns = [each for text in facts.patterns if (each := ecma_pattern(text)) is not None]
        if len(patterns) == 1:
            found["pattern"] = patterns[0]
        elif patterns:
            found["allOf"] = [{"pattern": each} for each in patterns]
        return found

    def _sizes(self, path: Path, what: str) -> Schema:
        facts = self._facts.get(path, Facts())
        found = {f"min{what}": facts.min_length, f"max{what}": facts.max_length}
        return {name: bound for name, bound in found.items() if bound is not None and bound >= 0}


class InlineSchemaWriter(SchemaWriter):
    """Writes schemas without references. Records are repeated, and a recursive one allows any value."""

    def __init__(self, facts: Mapping[Path, Facts], is_input: bool, has_numbers: bool) -> None:
        super().__init__(Components(), facts, is_input, has_numbers)

    def value(self, type_: Type, path: Path, is_text: bool = False) -> Schema:
        match type_:
            case Record(fields, _, outside):
                return self.record(fields, outside, path)
            case Recursive():
                return {}
            case _:
                return super().value(type_, path, is_text)


def bounds(facts: Facts) -> Schema:
    """Return the keywords for the bounds of a number."""
    low, high = (None if each is None else _number(each) for each in (facts.low, facts.high))
    found = {
        "exclusiveMinimum" if facts.is_low_open else "minimum": low,
        "exclusiveMaximum" if facts.is_high_open else "maximum": high,
    }
    return {name: bound for name, bound in found.items() if bound is not None}


def _number(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}
