"""`vesper nodes show --format json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vesper.cli.output.outcomes import json_value
from vesper.compiler import Compiled
from vesper.language.check.cases import Case
from vesper.language.ir.nodes import Clause, Input, Node, Output, Raise, Require, Return
from vesper.language.ir.statements import all_statements, value_type
from vesper.repository.describe import capabilities, dependencies, operations, record_types


def show_json(path: Path, compiled: Compiled) -> dict[str, Any]:
    """Return a node as JSON values; types are text."""
    node = compiled.node
    return {
        "id": node.node_id,
        "type": node.type,
        "path": path.as_posix(),
        "intent": node.source.intent,
        "types": {
            name: {field: str(type_) for field, type_ in record.fields} for name, record in record_types(node).items()
        },
        "inputs": [_input(node, each) for each in node.inputs],
        "outputs": [{"name": each.name, "type": str(each.type)} | _outside(each) for each in node.outputs],
        "errors": [{"name": each.name, "type": str(each.type)} | _outside(each) for each in node.errors],
        "constants": [
            {"name": each.name, "type": str(each.type), "value": json_value(each.value)} for each in node.constants
        ],
        "preconditions": [_clause(each) for each in node.preconditions],
        "postconditions": [_clause(each) for each in node.postconditions],
        "invariants": [_clause(each) for each in node.invariants],
        "steps": [
            {"name": each.name, "type": str(value_type(each)), "line": each.place.line}
            for each in all_statements(node.body)
            if not isinstance(each, Return | Raise | Require) and not each.name.startswith("_")
        ],
        "cases": [_case(node, each) for each in compiled.cases],
        "semantic_hash": compiled.semantic_hash,
        "source_hash": node.source.sha256,
        "ir_bytes": len(compiled.ir),
        "expressions": len(node.expressions()),
        "operations": operations(node),
        "dependencies": list(dependencies(node)),
        "capabilities": list(capabilities(node)),
    }


def _input(node: Node, each: Input) -> dict[str, Any]:
    constraints = [_clause(clause) for clause in node.constraints if clause.input == each.name]
    shown: dict[str, Any] = {"name": each.name, "type": str(each.type), "constraints": constraints}
    shown |= _outside(each)
    return shown if each.default is None else shown | {"default": json_value(each.default)}


def _outside(each: Input | Output) -> dict[str, str]:
    found = {} if each.outside is None else {"as": each.outside}
    return found if each.flag is None else found | {"absent": each.flag}


def _clause(clause: Clause) -> dict[str, Any]:
    return {"clause": clause.text, "line": clause.holds.place.line}


def _case(node: Node, case: Case) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": case.name,
        "inputs": {name: json_value(value) for name, value in case.inputs.items()},
    }
    if case.error is not None:
        return shown | {"error": {name: json_value(value) for name, value in case.error.items()}}
    if case.fails is not None:
        return shown | {"fails": case.fails}
    if case.breaks is None:
        return shown | {"expect": {name: json_value(value) for name, value in (case.expect or {}).items()}}
    phase, index = case.breaks
    return shown | {"breaks": dict(node.phases())[phase][index].text}
