"""Nodes of a small shop: a library, a node that uses it, and a caller."""

from __future__ import annotations

from pathlib import Path

RULES = """library_id: rules_v1
intent: Rules of prices

constants:
  rate: {type: decimal, value: 0.02}
"""

FEE = """node_id: fee_v1
type: function
intent: Work out a fee

use: [rules_v1]

inputs:
  amount: decimal

outputs:
  success:
    fee: decimal

flow:
  - step: fee
    operation: compute
    value: amount * rate

  - operation: return
    success: [fee]

testing:
  test_cases:
    - name: a hundred
      inputs: {amount: 100}
      expect: {fee: 2.00}
    - name: wrong
      inputs: {amount: 100}
      expect: {fee: 3.00}
"""

ORDER = """node_id: order_v1
type: workflow
intent: Add the fee of an order

inputs:
  total: decimal

outputs:
  success:
    sum: decimal

flow:
  - step: charged
    operation: call_node
    node: fee_v1
    inputs: {amount: total}

  - step: sum
    operation: compute
    value: total + charged.fee

  - operation: return
    success: [sum]
"""


def write_shop(root: Path) -> Path:
    """Write the three files to `nodes` below a folder; return that folder."""
    nodes = root / "nodes"
    nodes.mkdir()
    for name, text in (("rules_v1", RULES), ("fee_v1", FEE), ("order_v1", ORDER)):
        (nodes / f"{name}.vsp").write_text(text)
    return nodes
