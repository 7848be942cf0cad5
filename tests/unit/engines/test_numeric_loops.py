"""Loops of numbers agree on every engine: failures, handlers, exits and fuel in the middle of a round."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.support.nodes import compiled_text
from vesper.compiler import Compiled
from vesper.engines.compare import Agree, compare
from vesper.engines.engine import Done, Limits, Program, run_observed
from vesper.engines.outcome import Failed, LimitHit, Returned
from vesper.engines.registry import ENGINES

LARGEST = 2**63 - 1


def node(loop: str, outputs: str = "{a: run.a, b: run.b}", types: str = "{a: integer, b: integer}") -> Compiled:
    """A node that runs a loop over `n` (rounds), `p` and `q` (integers), `f` (a float) and `xs` (integers)."""
    return compiled_text(
        "node_id: numeric_v1\ntype: function\nintent: Runs a loop of numbers\n"
        "inputs: {n: integer, p: integer, q: integer, f: float, xs: array<integer>}\n"
        f"outputs: {{success: {types}}}\nflow:\n  - step: run\n    operation: loop\n{loop}\n"
        f"  - operation: return\n    success: {outputs}\n"
    )


LOOPS = {
    "sums that overflow in the middle": """\
    over: i IN range(0, n)
    state: {a: p, b: q}
    next: {a: a + i * i, b: b - a}""",
    "a state that is moved round": """\
    over: i IN range(0, n)
    state: {a: p, b: q}
    next: {a: b, b: a}""",
    "a state that stays": """\
    over: i IN range(n, 0, 0 - 2)
    state: {a: p, b: q}
    next: {b: i}""",
    "items of an array": """\
    over: x IN xs WHERE mod(x, 3) != 0
    state: {a: p, b: 0}
    next: {a: a + x, b: b + 1}""",
    "an end that is computed and may fail": """\
    over: i IN range(0, n)
    state: {a: p, b: q}
    next: {a: a + 1, b: b + a}
    stop_when: a * b * b > 1000000""",
    "no items, only a condition": """\
    while: a < n
    max: 50
    state: {a: p, b: q}
    next: {a: a + 3, b: "mod(b * 7 + a, 1000003)"}""",
    "a limit on rounds": """\
    over: i IN range(0, n)
    max: 20
    state: {a: p, b: q}
    next: {a: a + 1, b: b + i}""",
    "a sum in every round": """\
    over: i IN range(0, n)
    state: {a: p, b: q}
    next:
      a: a + sum(i * j FOR j IN range(0, i))
      b: count(j FOR j IN range(i, n, q) WHERE mod(j, 2) == 0)""",
    "something that must hold": """\
    over: i IN range(0, n)
    state: {a: p, b: q}
    steps:
      - {operation: validation, require: [a < 1000]}
    next: {a: a + i, b: b + 1}""",
    "a failure that a step handles": """\
    over: i IN range(0, n)
    state: {a: p, b: q}
    steps:
      - {step: share, operation: compute, value: "quot(100, i - q)", on_error: {division_by_zero: {value: 7}}}
    next: {a: a + share, b: b + share}""",
    "a choice whose other side would fail": """\
    over: i IN range(0, n)
    state: {a: p, b: q}
    next: {a: "IF i == q THEN a ELSE a + quot(1000, i - q)", b: "IF b > 100 THEN b - 100 ELSE b + a * 3"}""",
    "a way out of the node": """\
    over: i IN range(0, n)
    state: {a: p, b: q}
    steps:
      - operation: conditional
        condition: a > 950
        then: [{operation: return, success: {a: b, b: i}}]
    next: {a: a + 5, b: b + 1}""",
    "branches of steps": """\
    over: i IN range(0, n)
    state: {a: p, b: q}
    steps:
      - step: more
        operation: decision_table
        rows:
          - {when: "mod(i, 5) == 0", then: a * 2}
          - {when: a > b AND i > 3, then: a - b}
          - {otherwise: i}
    next: {a: "bit_and(a + more, 65535)", b: "IF more > i OR b < 0 THEN b + 1 ELSE b - 1"}""",
}

INPUTS: list[dict[str, object]] = [
    {"n": 0, "p": 1, "q": 2, "f": 0.5, "xs": []},
    {"n": 40, "p": 0, "q": 1, "f": 0.5, "xs": [1, 2, 3, 4, 5, 6, 7]},
    {"n": 40, "p": LARGEST - 500, "q": 3, "f": -0.0, "xs": [7, LARGEST, 1]},
    {"n": 33, "p": -7, "q": -(2**63) + 5, "f": 1e300, "xs": list(range(-20, 20))},
    {"n": -3, "p": 5, "q": 20, "f": float("inf"), "xs": [0]},
    {"n": 12, "p": 900, "q": 11, "f": float("nan"), "xs": [5] * 30},
]


def agreed(compiled: Compiled, inputs: Mapping[str, object], fuels: list[int | None]) -> None:
    programs: list[Program] = [engine.load(compiled) for engine in ENGINES.values()]
    for fuel in fuels:
        limits = Limits() if fuel is None else Limits(fuel)
        called = [Done(program.call(inputs, None, limits), ()) for program in programs]
        observed = run_observed(programs[-1], inputs, None, limits).outcome
        for other in [*called[1:], Done(observed, ())]:
            assert isinstance(compare(called[0], other), Agree), (inputs, fuel, called[0], other)


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_comes_to_the_same(name: str) -> None:
    compiled = node(LOOPS[name])
    for inputs in INPUTS:
        agreed(compiled, inputs, [None, 0, 1, 7, 8, 9, 30])


def test_a_failure_in_the_middle_is_where_it_is() -> None:
    compiled = node(LOOPS["sums that overflow in the middle"])
    outcome = ENGINES["interp"].load(compiled).call({"n": 1000, "p": LARGEST - 5000, "q": 0, "f": 0.0, "xs": []})
    assert isinstance(outcome, Failed)
    assert outcome.code == "integer_overflow"


def test_a_handler_of_the_loop_sees_what_was_before_it() -> None:
    loop = LOOPS["sums that overflow in the middle"] + "\n    on_error: {integer_overflow: {value: '{a: p, b: q}'}}"
    compiled = node(loop)
    inputs = {"n": 1000, "p": LARGEST - 5000, "q": 4, "f": 0.0, "xs": []}
    agreed(compiled, inputs, [None, 10, 100])
    assert ENGINES["interp"].load(compiled).call(inputs) == Returned({"a": LARGEST - 5000, "b": 4})


def test_fuel_ends_a_long_loop_to_the_unit() -> None:
    compiled = node(LOOPS["a state that is moved round"])
    inputs = {"n": 9000, "p": 1, "q": 2, "f": 0.0, "xs": []}
    program = ENGINES["interp"].load(compiled)
    for fuel in (0, 1, 4095, 4096, 4097, 5119, 5120, 5121, 8999):
        assert program.call(inputs, None, Limits(fuel)) == LimitHit("fuel"), fuel
    assert program.call(inputs, None, Limits(9000)) == Returned({"a": 1, "b": 2})


def test_a_range_that_is_too_long_fails_as_an_array_of_it_would() -> None:
    compiled = node(LOOPS["a state that is moved round"])
    for n in (1_000_000, 1_000_001, LARGEST):
        agreed(compiled, {"n": n, "p": 1, "q": 2, "f": 0.0, "xs": []}, [5])
