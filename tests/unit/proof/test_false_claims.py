"""False claims that are easy to take for proven: the reference runs an input against each of them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.support.nodes import compiled_text
from vesper.compiler import Compiled
from vesper.engines.engine import Completion, Request
from vesper.engines.outcome import ContractBroken, Failed
from vesper.engines.python_engine import PythonEngine
from vesper.proof.bounds import PROOF
from vesper.proof.context import Context
from vesper.proof.inputs import SymbolicInputs
from vesper.proof.run import Check, run_symbolically
from vesper.proof.solver import NEVER, Solver
from vesper.verify.inputs.responses import run_with

_HEAD = """\
node_id: claimed_v1
type: function
intent: Claim what is false
inputs: {x: integer, y: integer, xs: "array<integer>"}
outputs:
  success: {n: integer}
contracts:
  preconditions: [x != y]
  postconditions: [CLAIM]
flow:
"""
_RETURN_IN_LOOP = """\
  - step: counted
    operation: loop
    over: item IN xs
    state: {rounds: 0}
    steps:
      - {operation: return, when: item < 0, success: {n: item}}
    next: {rounds: rounds + 1}
  - return: {n: 0}
"""
_RAISE_IN_LOOP = """\
node_id: claimed_v1
type: function
intent: Claim what is false
inputs: {xs: "array<integer>"}
outputs:
  success: {n: integer}
  error: {error_code: "enum[negative]"}
contracts:
  invariants: [error.error_code IS NULL]
flow:
  - step: counted
    operation: loop
    over: item IN xs
    state: {rounds: 0}
    steps:
      - {operation: raise, when: item < 0, error: {error_code: negative}}
    next: {rounds: rounds + 1}
  - return: {n: 0}
"""
_REQUEST = """\
node_id: asked_v1
type: scheduled_job
intent: Claim that a status is an error of client or server
outputs:
  success: {n: integer}
  error: {error_code: "enum[moved]"}
security:
  capabilities_required: [network.http_client.bank]
contracts:
  invariants: [error.error_code IS NULL]
flow:
  - step: answer
    operation: external_api_call
    provider: bank
    method: GET
    endpoint: /rate
    expect: integer
    on_error:
      http_4xx, http_5xx: {value: 0}
      http_error: {return_error: {error_code: moved}}
      any: {value: 1}
  - return: {n: answer}
"""

_ASKED_IN_TURNS = """\
node_id: asked_v1
type: scheduled_job
intent: Claim that a bank answers alike
inputs: {xs: {type: "array<integer>", default: [1]}}
outputs:
  success: {n: integer}
security:
  capabilities_required: [network.http_client.bank]
contracts:
  postconditions: ["n == 0"]
flow:
  - step: turns
    operation: loop
    over: turn IN [1, 2]
    state: {one: 0, two: 0}
    steps:
      - step: asked
        operation: loop
        over: item IN xs
        state: {last: 0}
        steps:
          - step: answer
            operation: external_api_call
            provider: bank
            method: GET
            endpoint: /rate
            expect: integer
            on_error:
              any: {value: 1}
        next: {last: answer}
    next: {one: asked.last, two: one}
  - return: {n: turns.one - turns.two}
"""


def _checks(compiled: Compiled) -> dict[tuple[str | None, str | None], list[tuple[Check, str]]]:
    inputs = SymbolicInputs(Context(PROOF), compiled.node)
    run = run_symbolically(compiled.node, inputs)
    solver = Solver(inputs)
    found: dict[tuple[str | None, str | None], list[tuple[Check, str]]] = {}
    for each in run.checks:
        found.setdefault((each.phase, each.code), []).append((each, solver.decide(each.fails).kind))
    return found


@pytest.mark.parametrize(
    "claim, flow, given",
    [
        ("n == x", "  - return: {n: '[k FOR k IN {k: k FOR k IN [x, y]}][0]'}\n", {"x": 2, "y": 1}),
        ("n >= 0", _RETURN_IN_LOOP, {"x": 0, "y": 1, "xs": [-1]}),
    ],
    ids=["order of a map", "return in a loop"],
)
def test_a_false_postcondition_is_not_proven(claim: str, flow: str, given: dict[str, object]) -> None:
    node = compiled_text(_HEAD.replace("CLAIM", claim) + flow)
    outcome = PythonEngine().load(node).call({"xs": [], **given})
    assert isinstance(outcome, ContractBroken)
    assert outcome.phase == "postcondition"
    [(_, decision)] = _checks(node)["postcondition", None]
    assert decision != NEVER


def test_an_error_raised_in_a_loop_is_not_excluded() -> None:
    node = compiled_text(_RAISE_IN_LOOP)
    outcome = PythonEngine().load(node).call({"xs": [-1]})
    assert isinstance(outcome, ContractBroken)
    [(_, decision)] = _checks(node)["invariant", None]
    assert decision != NEVER


def test_the_first_member_of_a_set_may_fail_before_another_decides() -> None:
    flow = "  - return: {n: 'IF (EXISTS m IN to_set([x, y]) SATISFIES m - 1 > 1) THEN 1 ELSE 0'}\n"
    claim = "x != 5 OR n >= 0"
    text = _HEAD.replace("CLAIM", claim).replace("[x != y]", "[x == 5, y < 0]") + flow
    node = compiled_text(text)
    assert isinstance(PythonEngine().load(node).call({"x": 5, "y": -(2**63), "xs": []}), Failed)
    assert any(decision != NEVER for _, decision in _checks(node)[None, "integer_overflow"])


def test_a_status_that_is_no_error_of_client_or_server_is_a_failure_too() -> None:
    node = compiled_text(_REQUEST)

    def redirect(request: Request) -> Completion:
        return Completion(request.id, failure="http_302")

    done = run_with(PythonEngine().load(node), {}, datetime(2026, 11, 18, tzinfo=UTC), redirect)
    assert isinstance(done.outcome, ContractBroken)
    [(_, decision)] = _checks(node)["invariant", None]
    assert decision != NEVER


def test_a_loop_that_asks_in_each_round_of_another_has_other_answers() -> None:
    node = compiled_text(_ASKED_IN_TURNS)

    def count(request: Request) -> Completion:
        return Completion(request.id, result=request.id)

    done = run_with(PythonEngine().load(node), {}, datetime(2026, 11, 18, tzinfo=UTC), count)
    assert isinstance(done.outcome, ContractBroken)
    [(_, decision)] = _checks(node)["postcondition", None]
    assert decision != NEVER
