"""Nodes and outcomes as HTML for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vesper.trace.html import pre, table, title
from vesper.values.model import show

if TYPE_CHECKING:
    from vesper.api.node import Node
    from vesper.api.outcome import Outcome


def node_html(node: Node) -> str:
    """Render a node as HTML: intent, inputs, outputs and error fields."""
    parts = [title(node.id, f"{node.type} on {node.engine}: {node.intent}")]
    for name, fields in (("input", node.inputs), ("output", node.outputs), ("error", node.errors)):
        rows = [
            (each.name, each.type, "" if each.required or name != "input" else show(each.default))
            for each in fields.values()
        ]
        parts.append(table((name, "type", "default" if name == "input" else ""), rows))
    return f"<div>{''.join(parts)}</div>"


def outcome_html(outcome: Outcome[Any]) -> str:
    """Render an outcome as HTML: its outputs, or the reason why there are none."""
    name = "outcome" if outcome._node is None else outcome._node.id
    if outcome.error is None:
        rows = [(name, show(each)) for name, each in (outcome.value or {}).items()]
        return f"<div>{title(name, '✓')}{table(('output', 'value'), rows)}</div>"
    error = outcome.error
    return f"<div>{title(name, f'✗ {error.kind} {error.code}')}{pre(error.message)}</div>"
