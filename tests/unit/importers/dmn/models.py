"""Small DMN models as text, and the evaluation of their nodes on both engines."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from vesper.compiler import compile_source
from vesper.engines.outcome import Outcome, Returned
from vesper.engines.registry import engine_named
from vesper.importers.dmn.importing import import_file
from vesper.importers.dmn.nodes import ImportedNode
from vesper.language.diagnostics.source import SourceFile
from vesper.values.model import plain, scalar_text

NAMESPACE = "https://www.omg.org/spec/DMN/20230324/MODEL/"


def write_model(path: Path, body: str) -> Path:
    """Write a model of these elements."""
    path.write_text(f'<definitions xmlns="{NAMESPACE}" name="m" namespace="urn:m">{body}</definitions>', "utf-8")
    return path


def literal_decision(name: str, text: str, requires: str = "", type_ref: str = "") -> str:
    """Return a decision of one FEEL expression."""
    typed = f' typeRef="{type_ref}"' if type_ref else ""
    return (
        f'<decision name="{name}" id="{name}"><variable name="{name}"{typed}/>{requires}'
        f"<literalExpression><text>{escape(text)}</text></literalExpression></decision>"
    )


def input_data(name: str, type_ref: str) -> str:
    """Return an input."""
    return f'<inputData name="{name}" id="{name}"><variable name="{name}" typeRef="{type_ref}"/></inputData>'


def require(*names: str, kind: str = "requiredInput") -> str:
    """Return requirements of a decision."""
    return "".join(f'<informationRequirement><{kind} href="#{name}"/></informationRequirement>' for name in names)


def import_one(path: Path, name: str) -> ImportedNode:
    """Import one decision."""
    (node,) = import_file(path, [name], []).nodes
    return node


def run_node(node: ImportedNode, inputs: dict[str, Any]) -> Outcome:
    """Run a node on both engines, which must agree."""
    compiled, bag = compile_source(SourceFile(f"{node.node_id}.vsp", node.text))
    assert compiled is not None, f"{node.text}\n{[each.headline for each in bag.sorted()]}"
    first, second = (engine_named(engine).load(compiled).call(inputs) for engine in ("python", "interp"))
    assert first == second
    return first


def output_json(node: ImportedNode, outcome: Outcome) -> Any:
    """Return the output as JSON with numbers, without trailing zeros."""
    assert isinstance(outcome, Returned), outcome
    return _shown(plain(outcome.value[node.output]))


def _shown(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, list):
        return [_shown(each) for each in value]
    if isinstance(value, dict):
        return {name: _shown(each) for name, each in value.items()}
    if value is None or isinstance(value, str | bool | int):
        return value

    return scalar_text(value)
