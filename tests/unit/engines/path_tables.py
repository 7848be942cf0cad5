"""Nodes whose paths and fingerprints are known beforehand: what was passed, and what of it was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from tests.support.nodes import compiled_text
from vesper.compiler import Compiled

_HEAD = "node_id: path_{name}_v1\ntype: {type}\nintent: Goes one way or another\n"

_TEXTS = {
    "choice": """\
inputs: {a: integer, b: integer, c: integer, unused: integer}
outputs: {success: {result: integer}}
flow:
  - {step: chosen, operation: compute, value: "IF a > 0 THEN b ELSE c"}
  - {operation: return, success: {result: chosen}}
""",
    "broken": """\
inputs: {a: integer, b: integer}
outputs: {success: {result: integer}}
contracts:
  preconditions: [a > 0, b > 0]
flow:
  - {operation: return, success: {result: a + b}}
""",
    "early": """\
inputs: {a: integer, b: integer, c: integer}
outputs: {success: {result: integer}}
flow:
  - operation: conditional
    condition: a > 0
    then:
      - operation: conditional
        condition: a > 10
        then: [{operation: return, success: {result: b}}]
  - {step: last, operation: compute, value: c + 1}
  - {operation: return, success: {result: last}}
""",
    "comprehension": """\
inputs: {xs: array<integer>, most: integer, more: integer}
outputs: {success: {result: integer}}
flow:
  - {step: total, operation: compute, value: "sum(x + more FOR x IN xs WHERE x < most)"}
  - {operation: return, success: {result: total}}
""",
    "nested": """\
inputs: {n: integer, m: integer}
outputs: {success: {result: integer}}
flow:
  - {step: total, operation: compute, value: "sum(sum(i * j FOR j IN range(0, m * i)) FOR i IN range(0, n))"}
  - {operation: return, success: {result: total}}
""",
    "twice": """\
inputs: {rows: array<array<string>>}
outputs: {success: {result: integer}}
flow:
  - {step: total, operation: compute, value: "sum(count(x FOR x IN row) FOR row IN rows)"}
  - {operation: return, success: {result: total}}
""",
    "repeated": """\
inputs: {n: integer, stop: integer, limit: integer}
outputs: {success: {result: integer}}
flow:
  - step: run
    operation: loop
    over: i IN range(0, n) WHERE mod(i, 2) == 0
    while: a < limit
    state: {a: 0}
    next: {a: a + 1}
    stop_when: a == stop
  - {operation: return, success: {result: run.a}}
""",
    "numeric": """\
inputs: {n: integer, edge: integer}
outputs: {success: {result: integer}}
flow:
  - step: run
    operation: loop
    over: i IN range(0, n)
    state: {a: 0}
    next: {a: "IF i < edge THEN a + 1 ELSE a - sum(j FOR j IN range(0, 2) WHERE j > i - edge)"}
  - {operation: return, success: {result: run.a}}
""",
    "scored": """\
inputs: {n: integer, begin: integer}
outputs: {success: {total: float, hits: integer}}
flow:
  - step: run
    operation: loop
    over: i IN range(0, n)
    state: {total: 0e0, hits: 0}
    steps:
      - {operation: compute, compute: {x: "to_float(bit_xor(i, begin)) / 4e0"}}
    next:
      total: IF x > 0.2 THEN total + x ELSE total - 0.5 * x
      hits: IF x > 0.2 THEN hits + 1 ELSE hits
  - {operation: return, success: {total: run.total, hits: run.hits}}
""",
    "counted": """\
inputs: {n: integer, first: float}
outputs: {success: {result: float}}
flow:
  - step: run
    operation: loop
    over: i IN range(0, n)
    state: {a: 0e0}
    steps: [{operation: compute, compute: {x: first + to_float(i)}}]
    next: {a: "IF x > 2.5 THEN a + x ELSE a - 0.5 * x"}
  - {operation: return, success: {result: run.a}}
""",
    "handled": """\
inputs: {a: integer, b: integer, c: integer}
outputs: {success: {result: integer}}
flow:
  - step: share
    operation: compute
    value: quot(100, a) + b
    on_error:
      division_by_zero: {value: 7}
      integer_overflow: {return: {result: 0}}
  - {operation: return, success: {result: share + c}}
""",
    "records": """\
types:
  Line: {fields: {price: integer, note: string}}
  Order: {fields: {lines: array<Line>, name: string}}
inputs: {order: Order, others: array<Line>}
outputs: {success: {result: integer}}
flow:
  - {step: total, operation: compute, value: "sum(x.price FOR x IN order.lines) + length(others)"}
  - {operation: return, success: {result: total}}
""",
    "asks": """\
inputs: {a: {type: string, default: x}, b: {type: string, default: y}}
outputs: {success: {first: string, second: string}}
flow:
  - {step: one, operation: database_query, query: "SELECT name FROM people WHERE id = :a", bind: [a], returns: string}
  - {step: other, operation: database_query, query: "SELECT name FROM people WHERE id = :b", bind: [b], returns: string}
  - {operation: return, success: {first: one, second: other}}
security: {capabilities_required: [database.read.people]}
""",
    "given": """\
inputs: {a: integer, b: integer}
outputs: {success: {result: integer}}
flow: [{operation: return, success: {result: a}}]
""",
    "time": """\
inputs: {is_asked: {type: boolean, default: true}}
outputs: {success: {result: integer}}
flow:
  - {step: year, operation: compute, value: "IF is_asked THEN year(now()) ELSE 0"}
  - {operation: return, success: {result: year}}
""",
    "postcondition": """\
inputs: {a: integer, b: integer}
outputs: {success: {result: integer}, error: {error_code: "enum[refused]", message: string}}
contracts:
  postconditions: [b == b OR result > 0]
flow:
  - operation: conditional
    condition: a > 0
    then: [{operation: raise, error: {error_code: refused, message: "no"}}]
  - {operation: return, success: {result: a}}
""",
}


_WITH_EFFECTS = ("asks", "time")


@cache
def node(name: str) -> Compiled:
    return compiled_text(
        _HEAD.format(name=name, type="scheduled_job" if name in _WITH_EFFECTS else "function") + _TEXTS[name]
    )


@dataclass(frozen=True)
class Passed:
    """What an execution passes: kind and outcome of each point, in the order of their numbers."""

    node: str
    inputs: Mapping[str, object]
    points: str


PASSED = [
    Passed("choice", {"a": 1, "b": 2, "c": 3, "unused": 0}, "true"),
    Passed("choice", {"a": 0, "b": 2, "c": 3, "unused": 0}, "false"),
    Passed("broken", {"a": 1, "b": 1}, ""),
    Passed("early", {"a": 0, "b": 2, "c": 3}, "false"),
    Passed("early", {"a": 5, "b": 2, "c": 3}, "true false"),
    Passed("early", {"a": 50, "b": 2, "c": 3}, "true true"),
    Passed("comprehension", {"xs": [], "most": 3, "more": 1}, "none"),
    Passed("comprehension", {"xs": [1], "most": 3, "more": 1}, "true one"),
    Passed("comprehension", {"xs": [9], "most": 3, "more": 1}, "false one"),
    Passed("comprehension", {"xs": [9, 1], "most": 3, "more": 1}, "false true many"),
    Passed("nested", {"n": 0, "m": 1}, "none"),
    Passed("nested", {"n": 1, "m": 1}, "none one"),
    Passed("nested", {"n": 2, "m": 1}, "none one many"),
    Passed("nested", {"n": 2, "m": 2}, "none many many"),
    Passed("nested", {"n": 300, "m": 1}, "none one many many"),
    Passed("twice", {"rows": []}, "none"),
    Passed("twice", {"rows": [[]]}, "none one"),
    Passed("twice", {"rows": [["a"], []]}, "none one many"),
    Passed("twice", {"rows": [["a"], ["a", "b"], ["c"]]}, "one many many"),
    Passed("repeated", {"n": 0, "stop": 9, "limit": 9}, "none"),
    Passed("repeated", {"n": 1, "stop": 9, "limit": 9}, "true true false one"),
    Passed("repeated", {"n": 2, "stop": 9, "limit": 9}, "false true true false one"),
    Passed("repeated", {"n": 2, "stop": 9, "limit": 0}, "true false none"),
    Passed("repeated", {"n": 3, "stop": 1, "limit": 9}, "true true true one"),
    Passed("repeated", {"n": 3, "stop": 9, "limit": 1}, "false true false true false one"),
    Passed("repeated", {"n": 3, "stop": 9, "limit": 9}, "false true true false many"),
    Passed("repeated", {"n": 3000, "stop": 900, "limit": 9999}, "false true true false true many"),
    Passed("repeated", {"n": 3000, "stop": 9999, "limit": 900}, "false true false true false many"),
    Passed("numeric", {"n": 0, "edge": 5}, "none"),
    Passed("numeric", {"n": 1, "edge": 5}, "true one"),
    Passed("numeric", {"n": 2, "edge": 1}, "false true many false true many"),
    Passed("numeric", {"n": 5000, "edge": 9999}, "true many"),
    Passed("numeric", {"n": 5000, "edge": 4990}, "false true many false true many"),
    Passed("numeric", {"n": 5000, "edge": -5}, "false many false many"),
    Passed("scored", {"n": 0, "begin": 1}, "none"),
    Passed("scored", {"n": 1, "begin": 1}, "true true one"),
    Passed("scored", {"n": 1, "begin": 0}, "false false one"),
    Passed("scored", {"n": 2, "begin": 0}, "false true false true many"),
    Passed("scored", {"n": 5000, "begin": 8192}, "true true many"),
    Passed("scored", {"n": 5000, "begin": -8192}, "false false many"),
    Passed("scored", {"n": 5000, "begin": 4999}, "false true false true many"),
    Passed("counted", {"n": 0, "first": 9.0}, "none"),
    Passed("counted", {"n": 1, "first": 9.0}, "true one"),
    Passed("counted", {"n": 1, "first": -9.0}, "false one"),
    Passed("counted", {"n": 9, "first": 9.0}, "true many"),
    Passed("counted", {"n": 9, "first": -9.0}, "false many"),
    Passed("counted", {"n": 9, "first": 0.0}, "false true many"),
    Passed("handled", {"a": 5, "b": 1, "c": 1}, ""),
    Passed("handled", {"a": 0, "b": 1, "c": 1}, "ran"),
]


@dataclass(frozen=True)
class Read:
    """Whether two executions of a node read the same."""

    node: str
    one: Mapping[str, object]
    changed: Mapping[str, object]
    is_same: bool


_CHOICE = {"a": 1, "b": 2, "c": 3, "unused": 4}
_EARLY = {"a": 50, "b": 2, "c": 3}
_FOR = {"xs": [1, 5], "most": 3, "more": 1}
_REPEATED = {"n": 3, "stop": 9, "limit": 9}
_HANDLED = {"a": 5, "b": 1, "c": 1}
_ORDER = {
    "order": {"lines": [{"price": 1, "note": "x"}], "name": "n"},
    "others": [{"price": 1, "note": "x"}],
}


def _lines(count: int) -> dict[str, object]:
    return {"lines": [{"price": 1, "note": "x"}] * count, "name": "n"}


READ = [
    Read("given", {"a": 1, "b": 1}, {"a": 2}, False),
    Read("given", {"a": 1, "b": 1}, {"b": 2}, True),
    Read("choice", _CHOICE, {"a": 2}, False),
    Read("choice", _CHOICE, {"b": 9}, False),
    Read("choice", _CHOICE, {"c": 9}, True),
    Read("choice", _CHOICE, {"unused": 9}, True),
    Read("choice", {**_CHOICE, "a": 0}, {"c": 9}, False),
    Read("choice", {**_CHOICE, "a": 0}, {"b": 9}, True),
    Read("broken", {"a": 0, "b": 1}, {"b": 2}, True),
    Read("broken", {"a": 0, "b": 1}, {"a": -1}, False),
    Read("broken", {"a": 1, "b": 1}, {"b": 2}, False),
    Read("early", _EARLY, {"b": 9}, False),
    Read("early", _EARLY, {"c": 9}, True),
    Read("early", {**_EARLY, "a": 5}, {"c": 9}, False),
    Read("early", {**_EARLY, "a": 5}, {"b": 9}, True),
    Read("early", {**_EARLY, "a": 0}, {"c": 9}, False),
    Read("comprehension", _FOR, {"xs": [1, 6]}, False),
    Read("comprehension", _FOR, {"xs": [1, 5, 5]}, False),
    Read("comprehension", _FOR, {"more": 2}, False),
    Read("comprehension", {**_FOR, "xs": []}, {"more": 2}, True),
    Read("comprehension", {**_FOR, "xs": []}, {"most": 2}, True),
    Read("comprehension", {**_FOR, "xs": [7]}, {"more": 2}, True),
    Read("comprehension", {**_FOR, "xs": [7]}, {"most": 2}, False),
    Read("repeated", _REPEATED, {"stop": 8}, False),
    Read("repeated", {**_REPEATED, "n": 0}, {"stop": 8}, True),
    Read("repeated", {**_REPEATED, "n": 0}, {"limit": 8}, True),
    Read("repeated", {**_REPEATED, "limit": 0}, {"stop": 8}, True),
    Read("repeated", {**_REPEATED, "limit": 0}, {"limit": -1}, False),
    Read("handled", _HANDLED, {"b": 2}, False),
    Read("handled", _HANDLED, {"c": 2}, False),
    Read("handled", {**_HANDLED, "a": 0}, {"b": 2}, True),
    Read("handled", {**_HANDLED, "a": 0}, {"c": 2}, False),
    Read("handled", {**_HANDLED, "b": 2**63 - 1}, {"b": 2**63 - 2}, False),
    Read("handled", {**_HANDLED, "b": 2**63 - 1}, {"c": 2}, True),
    Read("records", _ORDER, {"order": {"lines": [{"price": 1, "note": "y"}], "name": "n"}}, True),
    Read("records", _ORDER, {"order": {"lines": [{"price": 1, "note": "x"}], "name": "m"}}, True),
    Read("records", _ORDER, {"order": {"lines": [{"price": 2, "note": "x"}], "name": "n"}}, False),
    Read("records", {**_ORDER, "order": _lines(2)}, {"order": _lines(3)}, False),
    Read("records", _ORDER, {"others": [{"price": 2, "note": "y"}]}, True),
    Read("records", _ORDER, {"others": []}, False),
    Read("postcondition", {"a": 0, "b": 1}, {"b": 2}, False),
    Read("postcondition", {"a": 1, "b": 1}, {"b": 2}, True),
]
