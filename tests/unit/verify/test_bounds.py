"""Bounds from constraints, and generated inputs that satisfy them."""

from __future__ import annotations

from fractions import Fraction

from tests.support.nodes import ROOT, compiled, small_node
from vesper.engines.outcome import ContractBroken, Returned
from vesper.engines.registry import ENGINES
from vesper.verify.inputs.bounds import Bounds, length_bounds, number_bounds
from vesper.verify.inputs.generator import InputGenerator


def test_bounds_are_read_from_constraints() -> None:
    node = small_node(
        "a: {type: decimal, constraints: [positive, {max: 0.5}]}\ns: {type: string, constraints: [{length: 2}]}",
        "- {operation: return, success: {result: a}}",
    ).node
    assert number_bounds(node) == {"a": Bounds(Fraction(0), Fraction(1, 2))}
    assert length_bounds(node) == {"s": Bounds(Fraction(2), Fraction(2))}


def test_bounds_of_record_fields_go_by_their_names() -> None:
    node = compiled(ROOT / "nodes/checks/fraud_score_v1.vsp").node
    assert number_bounds(node)["hour"] == Bounds(Fraction(0), Fraction(23))


def test_strings_are_drawn_from_the_patterns_of_constraints() -> None:
    node = small_node(
        'number: {type: string, constraints: [{pattern: "^ord_[a-zA-Z0-9]{16}$"}]}',
        "- {operation: return, success: {result: length(number)}}",
        "result: integer",
    )
    program = ENGINES["python"].load(node)
    generator = InputGenerator(node.node, seed=1)
    outcomes = [program.call(generator.draw()) for _ in range(200)]
    passed = sum(isinstance(each, Returned) for each in outcomes)
    stopped = sum(isinstance(each, ContractBroken) for each in outcomes)
    assert passed > 150
    assert stopped > 5
