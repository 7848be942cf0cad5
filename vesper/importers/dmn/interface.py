"""Types and values at the boundary of an imported node.

Callers pass and receive DMN's `time`, `date and time` and `years and months duration` as texts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vesper.importers.dmn.code import ADD, LOOSE, OR, Code
from vesper.importers.dmn.temporal import read_text, temporal_text
from vesper.importers.dmn.types import PERIOD, STRING, TEXT, Ty, field_names

if TYPE_CHECKING:
    from vesper.importers.dmn.translate import Translator

_TEXTS = ("time", "datetime", "period")


def outside_type(ty: Ty) -> Ty:
    """Return the type of a value for a caller."""
    if ty.kind in _TEXTS:
        return STRING.optional() if ty.is_nullable else STRING
    if ty.items:
        return replace(ty, items=tuple(map(outside_type, ty.items)))
    return ty


def given_type(ty: Ty) -> Ty:
    """Return the type of an input: its times stay texts until an expression uses them."""
    if ty.kind in _TEXTS:
        return replace(ty, zone=TEXT)
    if ty.items:
        return replace(ty, items=tuple(map(given_type, ty.items)))
    return ty


def read_given(build: Translator, code: Code) -> Code:
    """Return a time of an input; a text outside the grammar is a failure of the node."""
    if code.ty.zone != TEXT:
        return code
    if code.ty.kind != "period":
        return read_text(build, code.ty.kind, code)
    value = build.strict(code, "text")
    groups = build.fresh("parts")
    pattern = "^(-)?P(?:([0-9]+)Y)?(?:([0-9]+)M)?$"
    months = f"parse_integer(get({groups}, 2) ?? '0') * 12 + parse_integer(get({groups}, 3) ?? '0')"
    sign = f"(IF get({groups}, 1) IS NULL THEN 1 ELSE -1)"
    read = f"LET {groups} = require(groups({value.text}, '{pattern}')) IN {sign} * ({months})"
    return build.combine([value], read, PERIOD, LOOSE)


def present(build: Translator, code: Code, shown: Ty) -> Code:
    """Return a value in its form for a caller, with every time as text."""
    have = code.ty
    if have == shown:
        return code
    if have.kind == "list":
        source = build.strict(code, "items")
        item = build.fresh("item")
        inner = build.close(present(build, Code(item, have.item, is_path=True), shown.item))
        written = build.records.written(inner.ty)
        text = f"({inner.text}) AS {written}" if inner.ty.is_nullable else inner.text
        return build.combine([source], f"[{text} FOR {item} IN {source.at(ADD)}]", shown.required())
    if have.kind == "context":
        source = build.core(build.strict(code, "context"), "context")
        own, inside = field_names(have), field_names(shown)
        parts = []
        for name, one, other in zip(have.names, have.items, shown.items, strict=True):
            field = Code(f"{source.text}.{own[name]}", one, is_path=True)
            parts.append(f"{inside[name]}: {build.close(present(build, field, other)).at(OR)}")
        return build.combine([source], f"{{{', '.join(parts)}}}", shown.required())
    if have.zone == TEXT:
        return replace(code, ty=shown)
    found = temporal_text(build, code)
    assert found is not None, have
    return found
