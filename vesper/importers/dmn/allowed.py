"""Allowed values of inputs as preconditions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vesper.importers.dmn.code import Code
from vesper.importers.dmn.operators import truth
from vesper.importers.dmn.types import Refusal, field_names

if TYPE_CHECKING:
    from vesper.importers.dmn.boxed import BoxedTranslator
    from vesper.importers.dmn.model import ItemDefinition, Model


def allowed_clauses(build: BoxedTranslator, model: Model, type_ref: str, value: Code) -> list[str]:
    """Return the clauses of an input's type. A null satisfies each; a list that cannot be translated has none."""
    item = model.items.get(type_ref.rpartition(":")[2].strip())
    return [] if item is None else _clauses(build, model, item, value, 0)


def _clauses(build: BoxedTranslator, model: Model, item: ItemDefinition, value: Code, depth: int) -> list[str]:
    if depth > 8 or value.ty.kind == "any":
        return []
    if item.is_collection:
        name = build.fresh("item")
        inner = replace(item, is_collection=False)
        source = value.text if not value.ty.is_nullable else f"{value.text} ?? []"
        found = _clauses(build, model, inner, Code(name, value.ty.item, is_path=True), depth + 1)
        return [f"FORALL {name} IN {source} SATISFIES {clause}" for clause in found]
    found = []
    if item.components and value.ty.kind == "context":
        names, types = field_names(value.ty), dict(zip(value.ty.names, value.ty.items, strict=True))
        for component in item.components:
            field = Code(f"{value.text}.{names[component.name]}", types[component.name], is_path=True)
            found += _clauses(build, model, component, field, depth + 1)
        if value.ty.is_nullable:
            found = [f"{value.text} IS NULL OR ({clause})" for clause in found]
    reference = model.items.get(item.type_ref.rpartition(":")[2].strip())
    if reference is not None and not item.components:
        found += _clauses(build, model, reference, value, depth + 1)
    if item.allowed:
        found += _tested(build, item, value)
    return found


def _tested(build: BoxedTranslator, item: ItemDefinition, value: Code) -> list[str]:
    plain = replace(value, ty=value.ty.required())
    try:
        tests = build.cell(item.allowed, {}, item.line)
        parts = [truth(build, build.test(plain, test, {})) for test in tests.tests]
    except Refusal:
        return []
    if not parts:
        return []
    prefix = f"{value.text} == "
    if len(parts) > 1 and all(part.text.startswith(prefix) for part in parts):
        clause = f"{value.text} IN [{', '.join(part.text[len(prefix) :] for part in parts)}]"
    else:
        clause = " OR ".join(part.at(3) for part in parts)
    if tests.is_negated:
        clause = f"NOT ({clause})"
    return [f"{value.text} IS NULL OR {clause}" if value.ty.is_nullable else clause]
