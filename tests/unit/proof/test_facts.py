"""What the solver knows of operations that it does not compute: enough for a true claim, too little for a false one."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from tests.support.nodes import compiled_text
from vesper.compiler import Compiled
from vesper.engines.outcome import ContractBroken
from vesper.engines.python_engine import PythonEngine
from vesper.proof.bounds import PROOF
from vesper.proof.context import Context
from vesper.proof.inputs import SymbolicInputs
from vesper.proof.run import run_symbolically
from vesper.proof.solver import NEVER, Solver

_NODE = """\
node_id: known_v1
type: function
intent: Claim something
inputs:
  x: integer
  xs: array<integer>
  a: set<integer>
  b: set<integer>
  s: string
  day: date
  to: date
  d: decimal
outputs:
  success: {n: integer}
contracts:
  preconditions: [x >= 0 AND x <= 20, to >= day]
  postconditions: ["CLAIM"]
flow:
FLOW
"""
_ZERO = "  - return: {n: 0}"
_IN_LOOP = """\
  - step: counted
    operation: loop
    over: item IN xs
    state: {rounds: 0}
    steps:
      - {operation: return, when: item < 0, success: {n: item}}
    next: {rounds: rounds + 1}
  - return: {n: 0}"""
_BY_KEY = '  - return: {n: "get({each: each FOR each IN xs}, x) ?? x"}'
_COUNTED = (
    '  - return: {n: "IF (count_by(each FOR each IN xs)) CONTAINS x THEN (count_by(each FOR each IN xs))[x] ELSE 1"}'
)
_GIVEN: dict[str, Any] = {
    "x": 0, "xs": [], "a": set(), "b": set(), "s": "", "day": date(2024, 1, 1), "to": date(2024, 1, 31),
    "d": Decimal("0.5"),
}  # fmt: skip


@pytest.mark.parametrize(
    "flow, claim, is_false, given",
    [
        (_IN_LOOP, "n <= 0", "n == 0", {"xs": [-1]}),
        (_BY_KEY, "n == x", "n == 0", {"x": 7}),
        (_COUNTED, "n >= 1", "n == 1", {"x": 3, "xs": [3, 3]}),
        (_ZERO, "is_subset(difference(a, b), a)", "is_subset(difference(a, b), b)", {"a": {1}}),
        (_ZERO, "is_subset(b, union(a, b))", "is_subset(union(a, b), b)", {"a": {1}}),
        (_ZERO, "length(intersection(a, b)) <= length(union(a, b))", "length(union(a, b)) <= length(b)", {"a": {1}}),
        (_ZERO, "x NOT IN a OR x IN put(a, 1)", "x NOT IN put(a, 1)", {"x": 1}),
        (_ZERO, "days_between(add_months(day, months_between(day, to)), to) < 31", "days_between(day, to) < 30", {}),
        (_ZERO, "months_between(day, to) >= years_between(day, to) * 12", "months_between(day, to) > 0", {}),
        (_ZERO, "add_months(day, 2) > day", "add_months(day, 1) > add_days(day, 31)", {}),
        (_ZERO, "add_business_days(day, 2) > day", "add_business_days(day, x) > day", {}),
        (_ZERO, "is_business_day(add_business_days(day, 1))", "is_business_day(day)", {"day": date(2024, 1, 6)}),
        (_ZERO, "length(pad_start(s, 5)) >= 5", "length(pad_start(s, 5)) == 5", {"s": "abcdef"}),
        (_ZERO, "length(text(x)) <= 2", "length(text(x)) == 2", {}),
        (_ZERO, "round(d, x, floor) <= d", "round(d, x, up) <= d", {}),
        (_ZERO, "div(d, 3, x, ceiling) >= div(d, 3, x, floor)", "div(d, 3, x, ceiling) == div(d, 3, x, floor)", {}),
    ],
)
def test_a_true_claim_is_proven_and_a_false_one_is_not(
    flow: str, claim: str, is_false: str, given: dict[str, Any]
) -> None:
    true, false = (compiled_text(_NODE.replace("CLAIM", each).replace("FLOW", flow)) for each in (claim, is_false))
    outcome = PythonEngine().load(false).call(_GIVEN | given)
    assert isinstance(outcome, ContractBroken), outcome
    assert _is_proven(true)
    assert not _is_proven(false)


def _is_proven(compiled: Compiled) -> bool:
    inputs = SymbolicInputs(Context(PROOF), compiled.node)
    [check] = [each for each in run_symbolically(compiled.node, inputs).checks if each.phase == "postcondition"]
    return Solver(inputs, seconds=20).decide(check.fails).kind == NEVER
