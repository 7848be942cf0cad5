"""Texts of new nodes. A new node is a small valid one, or a copy under the next version."""

from __future__ import annotations

from vesper.language.syntax.declared_id import declared_id
from vesper.values.node_id import MAX_NAME, NODE_ID_HELP, split_node_id

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
""",
    "http_handler": """\
node_id: {node_id}
type: http_handler
intent: Describe in one line what this node answers

inputs:
  currency: {{type: string, constraints: [{{length: 3}}]}}
  amount:   {{type: decimal, constraints: [positive]}}

outputs:
  success:
    fee: decimal
  error:
    error_code: enum[unknown_currency]
    message: string

flow:
  - operation: validation
    require:
      - condition: "currency IN ['EUR', 'USD']"
        error: {{error_code: unknown_currency, message: "there is no fee in {{currency}}"}}

  - operation: return
    success: {{fee: amount * 0.02}}

http:
  method: POST
  path: /{name}/{{currency}}
  errors: {{unknown_currency: 404}}

testing:
  test_cases:
    - name: two percent
      inputs: {{currency: EUR, amount: 50.00}}
      now: 2026-11-15T12:00:00Z
      expect: {{fee: 1.0000}}
    - name: a currency without a fee
      inputs: {{currency: XXX, amount: 1}}
      now: 2026-11-15T12:00:00Z
      expect: {{error: {{error_code: unknown_currency}}}}
""",
}
"""Starter text by node type."""


def name_problem(name: str) -> str | None:
    """Return why a new node cannot have this name; None for a valid one."""
    if split_node_id(name) is not None:
        return f"give the name without its version: `vesper new {name.rpartition('_v')[0]}`"
    if split_node_id(f"{name}_v1") is None:
        return (
            f"`{name}_v1` cannot be the name of a node; {NODE_ID_HELP}: "
            f"lower-case letters, digits and underscores, a letter first, at most {MAX_NAME} characters in all"
        )
    return None


def starter(node_id: str, type_: str) -> str:
    """Return the text of a node of this type that passes every check."""
    return STARTERS[type_].format(node_id=node_id, name=node_id.rpartition("_v")[0])


def replace_id(text: str, node_id: str) -> str | None:
    """Return the text with another id; None where it declares none."""
    declared = declared_id(text)
    if declared is None:
        return None
    _, span = declared
    return text[: span.start] + node_id + text[span.end :]
