"""Types at run time: `instance of`, and conversion to a declared type."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vesper.importers.dmn.code import ADD, COMPARE, Code, null
from vesper.importers.dmn.types import BOOLEAN, DATETIME, SIMPLE, Ty, type_error, unify, unsupported

if TYPE_CHECKING:
    from vesper.importers.dmn.feel.syntax import TypeName
    from vesper.importers.dmn.translate import Translator


def conforms(build: Translator, value: Code, type_name: TypeName) -> Code:
    """Return `value instance of type`. A null is an instance of no type."""
    if value.closure is not None:
        return _boolean(type_name.name in ("function", "Any") and not type_name.parameters)
    if value.range is not None:
        return _range_conforms(value, type_name)
    if value.ty.kind == "null":
        return _boolean(type_name.name in ("null", "Null"))
    if type_name.name in ("function", "range", "null", "Null"):
        return _boolean(False)
    if type_name.name == "context" and not type_name.names:
        wanted: Ty | None = None
        is_instance = value.ty.kind == "context"
    else:
        wanted = build.declared_type(type_name)
        is_instance = _is_subtype(value.ty.required(), wanted)
    if value.ty.kind == "any" and type_name.name not in ("Any", "any"):
        return _kind_test(build, value, type_name)
    if not is_instance:
        if wanted is not None and _may_hold(value.ty, wanted):
            raise unsupported("`instance of` of a list or context whose items may be null")
        return _boolean(False)
    closed = build.close(value)
    if closed.ty.kind == "any":
        path = build.named(closed)
        return build.close(build.combine([path], f"kind({path.text}) != 'null'", BOOLEAN, COMPARE))
    if not closed.ty.is_nullable:
        return _boolean(True)
    return Code(f"{closed.at(ADD)} IS NOT NULL", BOOLEAN, COMPARE)


def _boolean(value: bool) -> Code:
    return Code("true" if value else "false", BOOLEAN)


def _range_conforms(value: Code, type_name: TypeName) -> Code:
    parts = value.range
    assert parts is not None
    end = parts.low or parts.high
    if type_name.name == "Any":
        return _boolean(True)
    if type_name.name != "range":
        return _boolean(False)
    if not type_name.parameters or end is None:
        return _boolean(True)
    wanted = SIMPLE.get(type_name.parameters[0].name)
    return _boolean(wanted is not None and (wanted.kind == "any" or wanted.kind == end.ty.kind))


def _is_subtype(have: Ty, wanted: Ty) -> bool:
    if wanted.kind == "any":
        return True
    if have.kind == "never":
        return True
    if have.is_nullable and not wanted.is_nullable:
        return False
    if have.kind != wanted.kind:
        return False
    if have.kind == "list":
        return _is_subtype(have.item, wanted.item)
    if have.kind == "context":
        for name, ty in zip(wanted.names, wanted.items, strict=True):
            own = have.field(name)
            if own is None or (own.kind != "null" and not _is_subtype(own.required(), ty)):
                return False
    return True


def _may_hold(have: Ty, wanted: Ty) -> bool:
    """Return whether some value of the first type is of the second, nulls inside apart."""
    if have.kind in ("null", "any") or wanted.kind == "any":
        return True
    if have.kind != wanted.kind:
        return False
    if have.kind == "list":
        return _may_hold(have.item, wanted.item)
    if have.kind == "context":
        return all(
            (own := have.field(name)) is not None and _may_hold(own, ty)
            for name, ty in zip(wanted.names, wanted.items, strict=True)
        )
    return True


def _kind_test(build: Translator, value: Code, type_name: TypeName) -> Code:
    kinds = {"number": "number", "string": "string", "boolean": "boolean", "context": "object"}
    kind = "array" if type_name.name == "list" else kinds.get(type_name.name)
    if kind is None or type_name.parameters or value.ty.is_nullable:
        raise unsupported("`instance of` of a value of any type")
    path = build.named(value)
    return build.close(build.combine([path], f"kind({path.text}) == '{kind}'", BOOLEAN, COMPARE))


def coerce(build: Translator, code: Code, ty: Ty) -> Code:
    """Return code for a value as a declared type. Raises a type error for a value that cannot be of that type."""
    if code.closure is not None or code.range is not None:
        return code
    have = code.ty
    if have.kind == "null":
        return null(ty, build.records)
    if ty.kind == "any":
        return code
    if have.kind == "any":
        return build.from_any(code, ty)
    if ty.kind == "list" and have.kind != "list":
        return _convert(build, build.as_list(code), ty)
    if have.kind == "list" and ty.kind != "list":
        return _singleton(build, code, ty)
    if have.kind == "date" and ty.kind == "datetime":
        value = build.strict(code, "day")
        return build.combine([value], f"to_timestamp({value.text})", replace(DATETIME, zone="Z"))
    if have.kind == ty.kind and have.kind in ("time", "datetime"):
        return code
    return _convert(build, code, ty)


def _singleton(build: Translator, code: Code, ty: Ty) -> Code:
    """Return the item of a list of one item; any other list is null."""
    if code.ty.item.kind == "never":
        return null(ty, build.records)
    items = build.core(build.strict(code, "items"), "items")
    items = build.guarded(items, f"length({items.text}) != 1")
    return coerce(build, build.combine([items], f"{items.text}[0]", items.ty.item), ty)


def _convert(build: Translator, code: Code, ty: Ty) -> Code:
    have = code.value_type
    if have.kind == "context" and ty.kind == "context":
        return _context(build, code, ty)
    both = unify(have, ty)
    if both is None or (both.required() != ty.required() and not _is_subtype(both.required(), ty)):
        if have.kind == "list" and ty.kind == "list" and ty.item.kind == "any":
            return code
        if both is not None and both.kind in ("list", "context"):
            return code
        raise type_error(f"a {have.describe()} where the model declares a {ty.describe()}")
    if have.kind == "list" and both.kind == "list" and have.item.kind == "never":
        found = build.convert(code, ty.required())
        return code if found is None else found
    return code


def _context(build: Translator, code: Code, ty: Ty) -> Code:
    """Return a context whose entries are those that the type declares, in its order; all must be there."""
    from vesper.importers.dmn.types import context_of, field_names

    if any(name not in code.ty.names for name in ty.names):
        raise type_error("a context without an entry that the model declares")
    types = dict(zip(code.ty.names, code.ty.items, strict=True))
    if all(unify(types[name], wanted) is not None for name, wanted in zip(ty.names, ty.items, strict=True)):
        return code  # further entries stay
    if len(types) > len(ty.names):
        raise unsupported("a context with further entries, of which one is converted")
    path = build.core(build.strict(code, "context"), "context")
    parts, found_types = [], {}
    for name, wanted in zip(ty.names, ty.items, strict=True):
        value = build.close(coerce(build, build.property(path, name), wanted))
        found_types[name] = value.ty
    found = context_of(found_types)
    names = field_names(found)
    for name, wanted in zip(ty.names, ty.items, strict=True):
        value = build.close(coerce(build, build.property(replace(path, steps=()), name), wanted))
        parts.append(f"{names[name]}: {value.at(2)}")
    return build.combine([path], f"{{{', '.join(parts)}}}", found)
