"""Recursive record types: typed views of json.

A value of a record type that contains itself is a json in the IR. The checker knows the fields: reading one is a CAST
of that field, and a record literal is converted to json. So the limits of json bound how deep a value nests, and
engines know nothing of such types.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.values.types import (
    JSON,
    ArrayOf,
    MapOf,
    OptionalOf,
    Outside,
    Record,
    Recursive,
    Type,
)


def find_recursive(declared: Iterable[ast.RecordType | ast.NamedType]) -> set[str]:
    """Return the names of record types that contain themselves, directly or through others."""
    by_name = {each.name.text: each for each in declared}
    mentions = {name: _mentioned_names(each) & by_name.keys() for name, each in by_name.items()}
    return {
        name
        for name, each in by_name.items()
        if isinstance(each, ast.RecordType) and name in _reachable_names(name, mentions)
    }


def _reachable_names(name: str, mentions: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [*mentions[name]]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += mentions[each]
    return found


def _mentioned_names(declared: ast.RecordType | ast.NamedType) -> set[str]:
    texts = [declared.type] if isinstance(declared, ast.NamedType) else [each.type for each in declared.fields]
    found: set[str] = set()
    while texts:
        text = texts.pop()
        if isinstance(text, ast.TypeApplied):
            texts += text.arguments
        elif isinstance(text, ast.TypeName):
            found.add(text.name.text)
    return found


def contains_directly(type_: Type, wanted: Recursive) -> bool:
    """Return whether every value of a type contains one of `wanted`.

    No value of a recursive type could then be finite.
    """
    seen: set[int] = set()
    waiting = [type_]
    while waiting:
        each = waiting.pop()
        if each is wanted:
            return True
        if isinstance(each, Record | Recursive) and id(each) not in seen:
            seen.add(id(each))
            waiting += [inner for _, inner in each.fields]
    return False


def read_field(base: ir.Expression, name: str, place: ir.Place) -> ir.Field | None:
    """Return `base.name` as a CAST of that field. None if the type has no such field."""
    assert isinstance(base.type, Recursive)
    type_ = dict(base.type.fields).get(name)
    if type_ is None:
        return None
    names = () if base.type.outside is None else tuple(each for each in base.type.outside.names if each[0] == name)
    record = Record(((name, type_),), None, Outside(names) if names else None)
    cast = ir.Call("json.cast", (record,), (base,), record, place)
    return ir.Field(cast, name, type_, place)


def as_record(type_: Recursive) -> Record:
    """Return the record with the fields of a recursive type."""
    return Record(type_.fields, type_.name, type_.outside)


def build(value: ir.Expression, type_: Recursive) -> ir.Expression:
    """Convert a record with the fields of a recursive type to that type."""
    return ir.Call("json.from_value", (as_record(type_),), (value,), type_, value.place)


def erase_type(type_: Type) -> Type:
    """Return a type with json for every recursive type in it."""
    match type_:
        case Recursive():
            return JSON
        case ArrayOf(inner):
            found = erase_type(inner)
            return type_ if found is inner else ArrayOf(found)
        case OptionalOf(inner):
            found = erase_type(inner)
            return type_ if found is inner else OptionalOf(found)
        case MapOf(key, value):
            found = erase_type(value)
            return type_ if found is value else MapOf(key, found)
        case Record(fields):
            erased = tuple((name, erase_type(each)) for name, each in fields)
            is_same = all(new is old for (_, new), (_, old) in zip(erased, fields, strict=True))
            return type_ if is_same else replace(type_, fields=erased)
        case _:
            return type_


def erase(node: ir.Node) -> ir.Node:
    """Return a node with JSON for every recursive type.

    Its expressions are changed in place, so no other node may share them.
    """
    for expression in node.expressions():
        if isinstance(expression, ir.Array):
            object.__setattr__(expression, "of", erase_type(expression.of))
            continue
        if isinstance(expression, ir.Call):
            object.__setattr__(expression, "of", tuple(map(erase_type, expression.of)))
        if isinstance(expression, ir.RecordValue) and expression.declared is not None:
            object.__setattr__(expression, "declared", erase_type(expression.declared))
        if "type" in type(expression).__slots__:
            object.__setattr__(expression, "type", erase_type(expression.type))
    return replace(
        node,
        inputs=tuple(replace(each, type=erase_type(each.type)) for each in node.inputs),
        outputs=tuple(replace(each, type=erase_type(each.type)) for each in node.outputs),
        errors=tuple(replace(each, type=erase_type(each.type)) for each in node.errors),
        constants=tuple(replace(each, type=erase_type(each.type)) for each in node.constants),
        functions=tuple(
            replace(
                each,
                returns=erase_type(each.returns),
                parameters=tuple(replace(part, type=erase_type(part.type)) for part in each.parameters),
            )
            for each in node.functions
        ),
    )
