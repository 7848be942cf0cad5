"""JSON form of types in IR documents."""

from __future__ import annotations

from typing import Any

from vesper.values.types import PRIMITIVES, ArrayOf, Enum, MapOf, OptionalOf, Primitive, Record, SetOf, Type


def type_to_json(type_: Type) -> object:
    """Return the JSON form of a type."""
    match type_:
        case Primitive(name):
            return name
        case Enum(members):
            return {"enum": list(members)}
        case SetOf(element):
            return {"set": type_to_json(element)}
        case ArrayOf(element):
            return {"array": type_to_json(element)}
        case OptionalOf(inner):
            return {"optional": type_to_json(inner)}
        case MapOf(key, value):
            return {"map": [type_to_json(key), type_to_json(value)]}
        case Record(fields):
            return {"record": [{"name": name, "type": type_to_json(each)} for name, each in fields]}
        case _:
            raise AssertionError(f"no value has type {type_}")


def type_from_json(form: Any) -> Type:
    """Return the type of a JSON form."""
    if isinstance(form, str):
        return PRIMITIVES[form]
    ((kind, body),) = form.items()
    match kind:
        case "enum":
            return Enum(tuple(body))
        case "set":
            return SetOf(type_from_json(body))
        case "array":
            return ArrayOf(type_from_json(body))
        case "optional":
            return OptionalOf(type_from_json(body))
        case "map":
            return MapOf(type_from_json(body[0]), type_from_json(body[1]))
        case "record":
            return Record(tuple((each["name"], type_from_json(each["type"])) for each in body))
        case _:
            raise KeyError(kind)
