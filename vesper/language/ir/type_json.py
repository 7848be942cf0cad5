"""JSON form of types in IR documents."""

from __future__ import annotations

from typing import Any

from vesper.values.types import PRIMITIVES, ArrayOf, Enum, MapOf, OptionalOf, Outside, Primitive, Record, SetOf, Type


def type_to_json(type_: Type) -> object:
    """Return the JSON form of a type."""
    match type_:
        case Primitive(name):
            return name
        case Enum(members, outside):
            texts = {name: text for name, text in zip(members, outside, strict=False) if name != text}
            return {"enum": list(members)} | ({"as": texts} if texts else {})
        case SetOf(element):
            return {"set": type_to_json(element)}
        case ArrayOf(element):
            return {"array": type_to_json(element)}
        case OptionalOf(inner):
            return {"optional": type_to_json(inner)}
        case MapOf(key, value):
            return {"map": [type_to_json(key), type_to_json(value)]}
        case Record(fields, _, outside):
            entries = [field_to_json(name, each, outside) for name, each in fields]
            rest = None if outside is None else outside.rest
            return {"record": entries} | ({} if rest is None else {"rest": rest})
        case _:
            raise AssertionError(f"no value has type {type_}")


def field_to_json(name: str, type_: Type, outside: Outside | None = None) -> dict[str, object]:
    """Return the JSON form of a field, an input or an output."""
    form: dict[str, object] = {"name": name, "type": type_to_json(type_)}
    if outside is None:
        return form
    named, flag = outside.name_of(name), dict(outside.flags).get(name)
    return form | ({} if named == name else {"as": named}) | ({} if flag is None else {"absent": flag})


def outside_from_json(fields: Any, rest: Any = None) -> Outside | None:
    """Return the outside names of a list of named types."""
    outside = Outside(
        tuple((each["name"], each["as"]) for each in fields if "as" in each),
        tuple((each["name"], each["absent"]) for each in fields if "absent" in each),
        rest,
    )
    return None if outside == Outside() else outside


def type_from_json(form: Any) -> Type:
    """Return the type of a JSON form."""
    if isinstance(form, str):
        return PRIMITIVES[form]
    body: Any
    if "enum" in form:
        members = tuple(form["enum"])
        texts = form.get("as", {})
        return Enum(members, tuple(texts.get(name, name) for name in members) if texts else ())
    if "record" in form:
        body = form["record"]
        fields = tuple((each["name"], type_from_json(each["type"])) for each in body)
        return Record(fields, None, outside_from_json(body, form.get("rest")))
    ((kind, body),) = form.items()
    match kind:
        case "set":
            return SetOf(type_from_json(body))
        case "array":
            return ArrayOf(type_from_json(body))
        case "optional":
            return OptionalOf(type_from_json(body))
        case "map":
            return MapOf(type_from_json(body[0]), type_from_json(body[1]))
        case _:
            raise KeyError(kind)
