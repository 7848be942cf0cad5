"""Test cases of a node: the clause that `breaks` selects."""

from __future__ import annotations

import pytest

from tests.support.nodes import small_node
from vesper.compiler import compile_source
from vesper.engines.registry import ENGINES
from vesper.language.diagnostics.source import SourceFile
from vesper.verify.differential.verifier import meets

CASE = "testing:\n  test_cases:\n    - name: one\n      inputs: {{s: {value}}}\n      expect: {{breaks: {clause}}}\n"


@pytest.mark.parametrize(
    "clauses, value, clause, index",
    [
        (["s != 'x y'", "s != 'xy'"], "xy", "\"s != 'xy'\"", 1),
        (["s != 'x y'", "s != 'xy'"], "x y", "\"s != 'x y'\"", 0),
        (["s != 'a'", "s != 'a'"], "a", "\"s!='a'\"", 0),
        (["'s != ''a'''"], "a", "\"s != 'a'\"", 0),
    ],
)
def test_breaks_selects_one_clause(clauses: list[str], value: str, clause: str, index: int) -> None:
    listed = "".join(f"    - {each}\n" for each in clauses)
    rest = f"contracts:\n  preconditions:\n{listed}" + CASE.format(value=value, clause=clause)
    node = small_node("s: string", "- {operation: return, success: {result: s}}", outputs="result: string", rest=rest)
    (case,) = node.cases
    assert case.breaks == ("precondition", index)
    for engine in ENGINES.values():
        assert meets(case, engine.load(node).call(dict(case.inputs)))


def test_breaks_selects_a_constraint_by_its_text() -> None:
    rest = CASE.format(value="0", clause="s >= 0.00000001")
    inputs = "s: {type: decimal, constraints: [{min: 0.00000001}, non_negative]}"
    node = small_node(inputs, "- {operation: return, success: {result: s}}", rest=rest)
    assert node.cases[0].breaks == ("constraint", 0)


def _checked(case: str) -> list[tuple[str, str | None]]:
    head = "node_id: test_v1\ntype: function\nintent: Test\noutputs:\n  success: {r: integer}\n"
    inputs = (
        "inputs:\n  a: integer\n  b: {type: integer, default: 1}\n  c: optional<integer>\n"
        "  d: {type: optional<integer>, absent: no_d}\n"
    )
    flow = "flow:\n  - value: a + b + (c ?? 0) + (d ?? 0) + (IF no_d THEN 1 ELSE 0)\n    step: r\n  - return: [r]\n"
    _, bag = compile_source(SourceFile("test_v1.vsp", f"{head}{inputs}{flow}testing:\n  test_cases:\n    - {case}\n"))
    return [(each.headline, each.help) for each in bag.sorted()]


def test_a_case_may_leave_out_what_a_call_may_leave_out() -> None:
    assert _checked("{name: one, inputs: {a: 1}, expect: {r: 3}}") == []


@pytest.mark.parametrize("expect", ["{r: 1}", "{fails: integer_overflow}"])
def test_a_case_needs_every_input_that_a_call_needs(expect: str) -> None:
    ((headline, help_),) = _checked(f"{{name: one, inputs: {{}}, expect: {expect}}}")
    assert headline == "`inputs` of the case `one` needs `a`"
    assert help_ is not None
    assert help_.startswith("add `a: …` (integer); ")


def test_an_unknown_input_shows_the_inputs_and_what_has_no_value() -> None:
    ((headline, help_),) = _checked("{name: one, inputs: {price: 1}, expect: {r: 1}}")
    assert headline == "no input is named `price`"
    assert help_ == "write one of `a`, `b`, `c`, `d`, `no_d`; `a` has no value"
