"""Test cases of a node: the clause that `breaks` selects."""

from __future__ import annotations

import pytest

from tests.support.nodes import small_node
from vesper.engines.registry import ENGINES
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
