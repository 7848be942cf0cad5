"""The tool that a client sees of a node: its intent, and JSON Schemas of its inputs and outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_types import Tool, ToolAnnotations

from vesper.api.json_calls import json_value
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements
from vesper.language.json_schema.facts import Path, find_facts
from vesper.language.json_schema.schemas import InlineSchemaWriter, Schema
from vesper.values.types import DECIMAL, Enum, Type

if TYPE_CHECKING:
    from vesper.api.node import Node
    from vesper.compiler import Compiled


class ToolSchemaWriter(InlineSchemaWriter):
    """Writes decimals as texts: a JSON number of a client may have lost digits before it arrives."""

    def value(self, type_: Type, path: Path, is_text: bool = False) -> Schema:
        return super().value(type_, path, is_text or type_ == DECIMAL)


def tool_of(node: Node) -> Tool:
    """Return the description of a node as a tool."""
    compiled = node._compiled
    return Tool(
        name=node.served_as,
        description=_description(compiled.node),
        input_schema=_input_schema(compiled),
        output_schema=_output_schema(compiled),
        annotations=ToolAnnotations(
            title=node.served_as, read_only_hint=_only_reads(compiled), open_world_hint=not compiled.node.is_pure()
        ),
    )


def _description(node: ir.Node) -> str:
    codes = node.errors[0].type if node.errors else None
    ends = f" Ends with an error of: {', '.join(codes.members)}." if isinstance(codes, Enum) else ""
    return f"{node.source.intent.rstrip('.')}.{ends}"


def _input_schema(compiled: Compiled) -> dict[str, Any]:
    node = compiled.node
    record = ir.record_of(node.inputs)
    declared = (each.type for each in node.inputs) if compiled.declared is None else compiled.declared[0]
    fields = tuple(zip((name for name, _ in record.fields), declared, strict=True))
    facts = find_facts((*node.constraints, *node.preconditions), "input")
    defaults = {
        each.name: json_value(each.type, each.default)
        for each in node.inputs
        if each.default is not None and each.name not in node.flagged
    }
    return ToolSchemaWriter(facts, is_input=True, has_numbers=False).record(fields, record.outside, (), defaults)


def _output_schema(compiled: Compiled) -> dict[str, Any]:
    node = compiled.node
    record = ir.record_of(node.outputs)
    declared = (each.type for each in node.outputs) if compiled.declared is None else compiled.declared[1]
    fields = tuple(zip((name for name, _ in record.fields), declared, strict=True))
    facts = find_facts(node.postconditions, "output")
    return ToolSchemaWriter(facts, is_input=False, has_numbers=False).record(fields, record.outside)


def _only_reads(compiled: Compiled) -> bool:
    """Return whether no request of the node, or of one that it calls, changes anything."""
    requests = (each for each in all_statements(compiled.node.body) if isinstance(each, ir.Request))
    return all(each.effect_class == "read" for each in requests) and all(map(_only_reads, compiled.callees))
