"""Texts of new nodes. A new node is a small valid one, or a copy under the next version."""

from __future__ import annotations

from vesper.language.syntax.declared_id import declared_id

STARTERS = {
    "function": """\
node_id: {node_id}
type: function
intent: Describe in one line what this node decides

inputs:
  amount: decimal
  rate:   {{type: decimal, constraints: [{{min: 0}}], default: 0.10}}

outputs:
  success:
    fee: decimal

contracts:
  preconditions:
    - amount > 0
  postconditions:
    - fee >= 0

flow:
  - step: fee
    operation: compute
    value: amount * rate

  - operation: return
    success: [fee]

testing:
  test_cases:
    - name: a tenth, if nothing else is said
      inputs: {{amount: 50.00}}
      expect: {{fee: 5.0000}}
    - name: nothing is worth zero
      inputs: {{amount: 0}}
      expect: {{breaks: amount > 0}}
"""
}
"""Starter text by node type."""


def starter(node_id: str, type_: str) -> str:
    """Return the text of a node of this type that passes every check."""
    return STARTERS[type_].format(node_id=node_id)


def replace_id(text: str, node_id: str) -> str | None:
    """Return the text with another id; None where it declares none."""
    declared = declared_id(text)
    if declared is None:
        return None
    _, span = declared
    return text[: span.start] + node_id + text[span.end :]
