"""JSON Schemas for a model: of a tool's arguments, and of the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping

from vesper.language.check.callees import Interface
from vesper.language.json_schema.facts import Facts, Path, find_facts
from vesper.language.json_schema.schemas import InlineSchemaWriter, Schema, bounds
from vesper.values.json_forms import json_form
from vesper.values.json_value import Json, canonical_text
from vesper.values.types import DECIMAL, INTEGER, Enum, OptionalOf, Record, Type


class ModelSchemaWriter(InlineSchemaWriter):
    """Writes short schemas without references, which every provider accepts."""

    def __init__(self, facts: Mapping[Path, Facts] | None = None) -> None:
        super().__init__(facts or {}, is_input=True, has_numbers=True)

    def value(self, type_: Type, path: Path, is_text: bool = False) -> Schema:
        match type_:
            case Enum(members, outside):
                return {"type": "string", "enum": list(outside or members)}
            case _ if type_ in (INTEGER, DECIMAL):
                return {"type": "integer" if type_ == INTEGER else "number", **bounds(self._facts.get(path, Facts()))}
            case _:
                return super().value(type_, path, is_text)


def answer_schema(outputs: Record) -> Schema:
    """Return the schema of an answer with these outputs."""
    return ModelSchemaWriter().value(outputs, ())


def arguments_schema(tool: Interface) -> Schema:
    """Return the schema of a tool's arguments. It has the bounds of constraints and preconditions."""
    node = tool.node
    clauses = () if node is None else (*node.constraints, *node.preconditions)
    defaults = {name: json.loads(text) for name, text in default_arguments(tool).items()}
    fields = tuple((name, type_) for name, type_, _ in tool.inputs)
    return ModelSchemaWriter(find_facts(clauses, "input")).record(fields, None, (), defaults)


def default_arguments(tool: Interface) -> dict[str, str]:
    """Return the default of each argument that is not optional, as JSON text."""
    inputs = () if tool.node is None else tool.node.inputs
    return {
        each.name: canonical_text(Json(json_form(each.type, each.default)))
        for each in inputs
        if each.default is not None and not isinstance(each.type, OptionalOf)
    }
