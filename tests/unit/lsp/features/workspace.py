"""A workspace in memory for tests: texts of files by id, and a position marked with `|`."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types

from vesper.language.diagnostics.source import SourceFile
from vesper.lsp.collection import Collection
from vesper.lsp.positions import to_position
from vesper.lsp.view import View

ROOT = Path("/workspace/nodes")
FEE = """\
node_id: fee_v1
type: function
intent: Work out the fee of a payment.
types:
  Line:
    fields: {sku: string, qty: integer}
inputs:
  amount: {type: decimal, constraints: [{min: 0}, {max: 1000}]}
  country: "enum[DE, FR]"
  lines: array<Line>
outputs:
  success: {fee: decimal}
constants:
  rate: {type: decimal, value: 0.02}
functions:
  capped:
    params: {value: decimal, top: decimal}
    returns: decimal
    value: min(value, top)
flow:
  - step: pieces
    value: SUM(line.qty FOR line IN lines)
  - step: fee
    value: capped(amount * rate, 5) + pieces
  - return: [fee]
testing:
  test_cases:
    - name: small
      inputs: {amount: 10, country: DE, lines: []}
      expect: {fee: 0.20}
"""

RULES = """\
library_id: rules_v1
intent: Rules of prices.
constants:
  discount: {type: decimal, value: 0.9}
functions:
  doubled: {params: {value: decimal}, returns: decimal, value: value * 2}
"""
ORDER = """\
node_id: order_v1
type: workflow
intent: Price an order.
use: [rules_v1]
inputs:
  total: decimal
outputs:
  success: {cost: decimal}
flow:
  - step: priced
    node: fee
    inputs: {amount: total, country: DE, lines: "[]"}
  - step: cost
    value: doubled(priced.fee) + total * discount
  - step: noted
    operation: custom
    name: ledger
    request: [cost]
    returns: integer
    effect: read
    on_error:
      unavailable: {value: 0}
  - return: [cost]
security:
  capabilities_required: [effect.call.ledger]
"""


def marked(text: str, mark: str, source: str = FEE) -> str:
    """Return a source with a text of it replaced by one that has the cursor, `|`."""
    assert text in source
    return source.replace(text, mark, 1)


def open_at(text: str, node_id: str = "fee_v1", **others: str) -> tuple[View, types.Position]:
    """Return the view of a text and the position of its `|`. Other files are given by id."""
    offset = text.index("|")
    clean = text[:offset] + text[offset + 1 :]
    view = open_files(**{node_id: clean, **others})
    return view, to_position(SourceFile("", clean), offset)


def open_files(**texts: str) -> View:
    """Return the view of the first of several files in one collection, all checked."""
    collection = Collection()
    paths = [ROOT / f"{name}.vsp" for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        collection.put(path, text.encode())
    for path in paths:
        collection.check(path)
        collection.settle(path)
    view = collection.view(paths[0])
    assert view is not None
    return view
