"""`testing.properties`: claims over one and two runs, checked on every engine, with shrunk counterexamples."""

from __future__ import annotations

import pytest

from vesper.cli.test.failure_text import claim_failure_text
from vesper.compiler import Compiled, compile_source
from vesper.engines.registry import ENGINES
from vesper.language.diagnostics.source import SourceFile
from vesper.verify.claims import ClaimResult
from vesper.verify.node_tests import NodeTester

FEE = """\
node_id: fee_v1
type: function
intent: Charge a fee
inputs:
  amount: {{type: decimal, constraints: [positive, {{max: 10000}}]}}
  plan: enum[basic, plus]
outputs:
  success: {{fee: decimal, total: decimal}}
functions:
  is_large: {{params: {{a: decimal}}, returns: boolean, value: a > limit}}
constants:
  limit: {{type: decimal, value: 1000}}
flow:
  - step: fee
    operation: decision_table
    rows:
      - {{when: is_large(amount) AND plan == plus, then: 1.00}}
      - {{otherwise: amount * 0.02}}
  - operation: return
    success: {{fee: fee, total: amount + fee}}
testing:
  properties:
    - {property}
"""


def compiled_with(property_: str) -> tuple[Compiled | None, list[str]]:
    compiled, bag = compile_source(SourceFile("fee_v1.vsp", FEE.format(property=property_)))
    return compiled, [each.headline for each in bag.sorted()]


def result_of(property_: str, engine: str = "python") -> tuple[Compiled, ClaimResult]:
    compiled, problems = compiled_with(property_)
    assert compiled is not None, problems
    (found,) = NodeTester(compiled, {engine: ENGINES[engine]}).run_claims(40, 0)
    return compiled, found


@pytest.mark.parametrize(
    "property_",
    [
        "{name: grows, holds: total >= amount AND output.fee > 0 AND input.amount == amount}",
        "{name: same, twice: {same except: []}, holds: first == second}",
        "{name: monotone, given: {plan: basic}, twice: {same except: [amount]}, holds: first.fee == first.total / 51}",
        "{name: other plan, twice: {same except: [plan]}, where: NOT is_large(amount), holds: first.fee == second.fee}",
        "{name: limit, where: amount > limit, holds: is_large(amount)}",
    ],
)
def test_claims_that_hold(property_: str) -> None:
    _, found = result_of(property_)
    assert found.passed
    assert found.examples == 40


@pytest.mark.parametrize("engine", [*ENGINES])
def test_a_counterexample_over_two_runs_is_shrunk_and_shown(engine: str) -> None:
    claim = (
        "{name: monotone, twice: {same except: [amount]}, where: first.input.amount < second.input.amount, "
        "holds: first.fee <= second.fee}"
    )
    compiled, found = result_of(claim, engine)
    assert not found.passed
    text = claim_failure_text(compiled, found, 0)
    assert text.splitlines()[:4] == [
        "error: property `monotone` of fee_v1 does not hold: `first.fee <= second.fee`",
        "  --> fee_v1.vsp:23",
        '  first: plan="plus", amount=51  ->  returned fee=1.02, total=52.02',
        '  second: plan="plus", amount=1001  ->  returned fee=1.00, total=1002.00',
    ]


def test_a_counterexample_of_one_run_and_a_claim_that_fails() -> None:
    _, found = result_of("{name: small, holds: fee < 10}")
    assert found.failure is not None
    assert found.failure.code is None
    _, failing = result_of("{name: division, holds: 1 / (fee - fee) > 0}")
    assert failing.failure is not None
    assert failing.failure.code == "division_by_zero"


def test_a_claim_that_is_never_tried_fails() -> None:
    compiled, found = result_of("{name: never, where: amount > 10000, holds: fee > 0}")
    assert not found.passed
    assert "was never tried" in claim_failure_text(compiled, found, 0)


@pytest.mark.parametrize(
    "property_, problem",
    [
        ("{name: a, holds: fees > 0}", "no output, input or constant is named `fees`"),
        ("{name: a, holds: fee}", "expected boolean, found decimal"),
        ("{name: a, twice: {same except: [amounts]}, holds: first == second}", "no input is named `amounts`"),
        (
            "{name: a, twice: {same except: [amount]}, holds: amount > 0}",
            "no input, constant or earlier step is named `amount`",
        ),
        ("{name: a, twice: {}, holds: first == second}", "`twice` needs `same except`"),
        ("{name: a, given: {plans: plus}, holds: fee > 0}", "no input is named `plans`"),
        ("{name: a}", "a property needs `holds`"),
    ],
)
def test_faulty_properties_are_reported(property_: str, problem: str) -> None:
    compiled, problems = compiled_with(property_)
    assert compiled is None
    assert problem in problems


def test_properties_take_no_part_in_the_semantic_hash_and_effects_are_refused() -> None:
    with_one, _ = compiled_with("{name: a, holds: fee > 0}")
    without, _ = compile_source(
        SourceFile("fee_v1.vsp", FEE.partition("testing:")[0].replace("{{", "{").replace("}}", "}"))
    )
    assert with_one is not None
    assert without is not None
    assert with_one.semantic_hash == without.semantic_hash
    effects = """\
node_id: clock_v1
type: event_handler
intent: Read a cache
inputs: {event_id: string}
outputs: {success: {seen: boolean}, error: {error_code: "enum[cache_unavailable]", message: string}}
flow:
  - step: known
    operation: cache
    cache: events
    action: get
    key: event_id
    returns: optional<string>
  - operation: return
    success: {seen: known IS NOT NULL}
security: {capabilities_required: [cache.read.events]}
testing:
  properties:
    - {name: a, holds: seen}
"""
    _, bag = compile_source(SourceFile("clock_v1.vsp", effects))
    assert any("`properties` of a node with effects" in each.headline for each in bag.sorted())
