"""The JSON of models, and its schemas for the API document; both derive from the dataclasses."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

_PLAIN: Final[dict[object, dict[str, object]]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
    Decimal: {"type": "string"},
    Fraction: {"type": "number"},
    Path: {"type": "string"},
    object: {},
    Any: {},
}


def read_json(data: bytes) -> Any:
    """Return the value of a JSON text. Raises `ValueError`, also for a text with half a surrogate pair."""
    found = json.loads(data)
    json.dumps(found, ensure_ascii=False).encode()  # no file and no store can hold the half
    return found


def json_bytes(model: object) -> bytes:
    """Return the JSON text of a model. Bytes of a file name that are no UTF-8 become escapes."""
    text = json.dumps(to_json(model), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "backslashreplace")


def to_json(value: object) -> object:
    """Return the JSON value of a dataclass and its parts. Raises `TypeError` for other objects."""
    match value:
        case None | bool() | int() | float():
            return value
        case Enum():
            return to_json(value.value)
        case str():
            return str(value)
        case Mapping():
            return {str(to_json(key)): to_json(each) for key, each in value.items()}
        case AbstractSet():
            return sorted((to_json(each) for each in value), key=str)
        case Sequence():
            return [to_json(each) for each in value]
        case Decimal() | Path():
            return str(value)
        case Fraction():
            return float(value)
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: to_json(getattr(value, each.name)) for each in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} has no JSON form: a model consists of dataclasses and plain values")


class Schemas:
    """Schemas of types; dataclasses become components by their name."""

    def __init__(self) -> None:
        self.components: dict[str, dict[str, object]] = {}
        self._names: dict[type, str] = {}

    def of(self, kind: object) -> dict[str, object]:
        """Return the schema of a type. Raises `TypeError` for a type without one."""
        if kind in _PLAIN:
            return dict(_PLAIN[kind])
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin in (typing.Union, types.UnionType):
            return {"anyOf": [self.of(each) for each in arguments]}
        if origin is typing.Literal:
            return {"enum": list(arguments)}
        if origin is tuple and Ellipsis not in arguments:
            return {"type": "array", "prefixItems": [self.of(each) for each in arguments], "minItems": len(arguments)}
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.of(arguments[1])}
        if isinstance(origin, type) and issubclass(origin, Sequence | AbstractSet):
            return {"type": "array", "items": self.of(arguments[0])}
        if isinstance(kind, type) and issubclass(kind, Enum):
            return {"enum": [to_json(each.value) for each in kind]}
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            return {"$ref": f"#/components/schemas/{self._component(kind)}"}
        if isinstance(kind, type) and issubclass(kind, str):
            return {"type": "string"}
        raise TypeError(f"{kind} has no schema: a model consists of dataclasses and plain types")

    def _component(self, kind: type) -> str:
        found = self._names.get(kind)
        if found is None:
            found = kind.__name__
            if found in self.components:
                found = f"{kind.__module__.split('.')[-2].capitalize()}{found}"
            self._names[kind] = found
            self.components[found] = {}
            hints = typing.get_type_hints(kind)
            names = [each.name for each in dataclasses.fields(kind)]
            self.components[found] = {
                "type": "object",
                "description": (kind.__doc__ or "").strip().split("\n")[0],
                "properties": {each: self.of(hints[each]) for each in names},
                "required": names,
                "additionalProperties": False,
            }
        return found
