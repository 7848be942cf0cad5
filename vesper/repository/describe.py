"""Descriptions of a node from its IR, as text and lists. Reads no files and prints nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable

from vesper.language.ir.nodes import Call, Constant, Input, Node, Output, Request
from vesper.language.ir.statements import all_statements, value_type
from vesper.values.generated.effects import EFFECTS
from vesper.values.types import ArrayOf, MapOf, OptionalOf, Record, SetOf, Type


def signature(inputs: Iterable[tuple[str, str]], outputs: Iterable[tuple[str, str]]) -> str:
    """Return inputs and outputs on one line, from names and types."""
    return f"({_format_fields(inputs)}) → ({_format_fields(outputs)})"


def _format_fields(declared: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name}: {type_}" for name, type_ in declared)


def operations(node: Node) -> dict[str, int]:
    """Return the operations that a node uses, by name, with the number of uses."""
    used = [expression.op for expression in node.expressions() if isinstance(expression, Call)]
    return {op: used.count(op) for op in sorted(set(used))}


def record_types(node: Node) -> dict[str, Record]:
    """Return the named record types of inputs, outputs, constants and steps."""
    found: dict[str, Record] = {}
    declared: tuple[Input | Output | Constant, ...] = (*node.inputs, *node.outputs, *node.constants)
    for each in declared:
        _collect(each.type, found)
    for statement in all_statements(node.body):
        type_ = value_type(statement)
        if type_ is not None:
            _collect(type_, found)
    return found


def _collect(type_: Type, found: dict[str, Record]) -> None:
    match type_:
        case Record(fields, name):
            for _, field in fields:
                _collect(field, found)
            if name is not None:
                found.setdefault(name, type_)
        case ArrayOf(inner) | SetOf(inner) | OptionalOf(inner):
            _collect(inner, found)
        case MapOf(key, value):
            _collect(key, found)
            _collect(value, found)


def dependencies(node: Node) -> tuple[str, ...]:
    """Return the ids of the called nodes, in order."""
    return tuple(callee.node for callee in node.calls)


def capabilities(node: Node) -> tuple[str, ...]:
    """Return the capabilities that a node and the nodes it calls must be granted."""
    return node.grants.required


def needs(node: Node) -> dict[str, list[str]]:
    """Return the steps that need each capability, from the IR. For SQL the declared capabilities decide."""
    found: dict[str, list[str]] = {capability: [] for capability in node.grants.required}
    for statement in all_statements(node.body):
        if isinstance(statement, Request):
            name = statement.name.lstrip("_")
            for capability in _capabilities_of_request(statement, found):
                found.setdefault(capability, []).append(name)
    return found


def _capabilities_of_request(request: Request, declared: Iterable[str]) -> list[str]:
    template = EFFECTS[request.effect].capability
    if "{table}" not in template:
        return [template.format(**request.fixed)]
    words = re.findall(r"\w+", request.fixed["sql"].lower())
    # The written table comes first: INSERT INTO t, UPDATE t, DELETE FROM t.
    written = None if request.effect == "database_query" else words[1 if words[0] == "update" else 2]
    found = [f"database.write.{written}"] if written is not None else []
    tables = [each for each in declared if each.startswith("database.read.")]
    return found + [each for each in tables if each.rpartition(".")[2] in words and each.rpartition(".")[2] != written]
