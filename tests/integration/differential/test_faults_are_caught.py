"""The verifier finds engines with one changed operation of the IR.

A fault that it misses here would be missed in the Rust kernels too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import pytest

from tests.support.nodes import PAYMENT_DECISION, compiled, compiled_ir
from vesper.cli.verify.text import difference_text
from vesper.compiler import Compiled
from vesper.engines.engine import Engine, Program
from vesper.engines.python_engine import PythonEngine
from vesper.language.ir import nodes as ir
from vesper.verify.differential.verifier import Report, Verifier

SWAPS = {
    "decimal.add": "decimal.subtract",
    "decimal.subtract": "decimal.add",
    "decimal.multiply": "decimal.add",
    "decimal.less": "decimal.less_or_equal",
    "decimal.less_or_equal": "decimal.less",
    "decimal.greater": "decimal.greater_or_equal",
    "decimal.greater_or_equal": "decimal.greater",
    "integer.add": "integer.subtract",
    "integer.less": "integer.less_or_equal",
    "integer.greater_or_equal": "integer.greater",
    "integer.equal": "integer.greater_or_equal",
    "enum.equal": "enum.not_equal",
}


class WrongEngine:
    """An engine that runs another program than the given one."""

    name = "wrong"

    def __init__(self, instead: Compiled) -> None:
        self._instead = instead

    def load(self, compiled: Compiled) -> Program:
        del compiled
        return PythonEngine().load(self._instead)


def _swap(expression: ir.Expression, target: int) -> ir.Expression:
    """Return the tree with the operation at `target` swapped."""
    match expression:
        case ir.Call():
            op = SWAPS[expression.op] if expression.index == target else expression.op
            return replace(expression, op=op, args=tuple(_swap(each, target) for each in expression.args))
        case ir.If():
            condition, then, otherwise = (_swap(each, target) for each in ir.children(expression))
            return replace(expression, condition=condition, then=then, otherwise=otherwise)
        case ir.Logical():
            return replace(expression, left=_swap(expression.left, target), right=_swap(expression.right, target))
        case _:
            return expression


def _faulty(node: ir.Node, target: int) -> ir.Node:
    def clauses(of: tuple[ir.Clause, ...]) -> tuple[ir.Clause, ...]:
        return tuple(replace(clause, holds=_swap(clause.holds, target)) for clause in of)

    body = tuple(
        replace(each, value=_swap(each.value, target)) if isinstance(each, ir.Step) else each for each in node.body
    )
    return replace(
        node,
        constraints=clauses(node.constraints),
        preconditions=clauses(node.preconditions),
        body=body,
        postconditions=clauses(node.postconditions),
    )


def _targets() -> Iterator[tuple[int, str]]:
    for expression in compiled(PAYMENT_DECISION).node.expressions():
        if isinstance(expression, ir.Call) and expression.op in SWAPS:
            yield expression.index, expression.op


def _verify_against_fault(node: Compiled, target: int) -> Report:
    wrong = WrongEngine(compiled_ir(_faulty(node.node, target)))
    engines: dict[str, Engine] = {"python": PythonEngine(), "wrong": wrong}
    return Verifier(node, engines, seed=5).run(4000, stop_after=1)


@pytest.mark.parametrize("target, op", list(_targets()))
def test_a_swapped_operation_is_found(target: int, op: str) -> None:
    node = compiled(PAYMENT_DECISION)
    report = _verify_against_fault(node, target)
    if _is_fee_clause(node.node, target):
        assert report.passed
        return
    assert report.differences, f"{op} at {target} was not noticed in {report.executions} inputs"


def _is_fee_clause(node: ir.Node, target: int) -> bool:
    """Return whether the change is undetectable: every fee is over 0.30, so `>=` and `>` agree."""
    return node.postconditions[0].holds.index == target


def test_the_report_names_the_step_and_the_smallest_input() -> None:
    node = compiled(PAYMENT_DECISION)
    target = next(index for index, op in _targets() if op == "decimal.less_or_equal")
    report = _verify_against_fault(node, target)
    difference = report.differences[0]
    assert difference.step == "fee"
    assert difference.inputs["amount"] == Decimal(100), "`amount <= 100` against `amount < 100` differ at 100 alone"
    assert difference.inputs["balance"] == 0
    assert difference.inputs["currency"] == "USD"
    assert "flagged" not in difference.inputs, "what has a default is left out"
    text = difference_text(node, difference, None)
    assert "the engines disagree on `payment_decision_v1` at step `fee`" in text
    assert "amount=100" in text
    assert "python: true here" in text
    assert "wrong:  false here" in text
