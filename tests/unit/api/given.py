"""The nodes that the tests of the API call, small enough to be read with the test."""

from __future__ import annotations

from pathlib import Path

import vesper

ROOT = Path(__file__).parents[3]
NODES = ROOT / "nodes"
ENGINES = ("python", "interp")
PAYMENT = {"amount": "50.00", "balance": "100.00", "currency": "USD", "country": "DE", "user_age_days": 400}

BASKET = """\
node_id: basket_v1
type: function
intent: Price a basket

types:
  Line:
    fields: {sku: string, qty: integer, price: decimal, tags: "set<enum[new, sale]>", note: optional<string>}

inputs:
  lines: array<Line>
  kind: enum[retail, trade]
  rates: {type: "map<enum[new, sale], decimal>"}
  days: {type: "map<date, integer>"}
  buyer: optional<Line>
  divisor: {type: integer, default: 1}

outputs:
  success:
    total: decimal
    kind: enum[retail, trade]
    days: integer
    value: integer
  error:
    error_code: enum[empty_basket]
    message: string
    lines: integer

flow:
  - operation: raise
    when: length(lines) == 0
    error: {error_code: empty_basket, message: "nothing to buy for {kind}", lines: length(lines)}
  - operation: return
    success:
      total: SUM(line.price * line.qty FOR line IN lines) + SUM(rate FOR key, rate IN rates)
      kind: kind
      days: SUM(n FOR day, n IN days)
      value: quot(100, divisor)
"""

CLOCK = """\
node_id: stamp_v1
type: scheduled_job
intent: Say when it ran

inputs:
  add: {type: integer, default: 0}

outputs:
  success: {at: timestamp, add: integer}

flow:
  - operation: return
    success: {at: now(), add: add}
"""

ASKING = """\
node_id: greet_v1
type: event_handler
intent: Greet a customer by name

inputs:
  event_id: string

outputs:
  success: {text: string}
  error:
    error_code: enum[not_found]

flow:
  - step: name
    operation: database_query
    query: SELECT name FROM customers WHERE id = :event_id
    bind: [event_id]
    returns: string
  - operation: return
    success: {text: "'hello ' + name"}

security:
  capabilities_required: [database.read.customers]
"""

ODD = """\
node_id: odd_v1
type: function
intent: 'Names that Python uses otherwise: \"\"\" and \\'

types:
  Inputs:
    fields: {date: date, until: date, str: string, list: array<string>, class: integer}
  Any:
    fields: {bytes: bytes, more: bytes}

inputs:
  date: date
  until: date
  self: string
  int: integer
  many: array<Inputs>
  one: optional<Any>
  name: {type: string, default: x}
  free: json
  far: float
  more: "map<date, set<string>>"

outputs:
  success:
    date: date
    until: date
    value: string
    overload: integer
    property: integer
    many: array<Inputs>
    one: optional<Any>
    dict: "map<string, array<integer>>"
    more: "map<date, set<string>>"
    free: json

flow:
  - operation: return
    success:
      date: date
      until: until
      value: self + name + text(far)
      overload: int
      property: int
      many: many
      one: one
      dict: "{'a': [int]}"
      more: more
      free: free
"""


def written(folder: Path, text: str) -> Path:
    """The file of a node, in a folder of nodes."""
    name = text.split("\n", 1)[0].removeprefix("node_id: ")
    path = folder / "nodes" / f"{name}.vsp"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def basket(folder: Path, engine: str) -> vesper.Node:
    return vesper.load(written(folder, BASKET), engine=engine)
