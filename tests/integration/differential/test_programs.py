"""Random programs on both engines from a fixed seed, and on engines with planted defects."""

from __future__ import annotations

from dataclasses import replace

from tests.support.nodes import compiled_ir
from vesper.cli.verify.text import failure_text
from vesper.compiler import Compiled
from vesper.engines.engine import Engine, Program
from vesper.engines.python_engine import PythonEngine
from vesper.language.ir import nodes as ir
from vesper.verify.differential.forms import COMPARED
from vesper.verify.programs.campaign import examine, verify_programs
from vesper.verify.programs.nodes import draw_program


def test_engines_agree_on_random_programs() -> None:
    report = verify_programs(COMPARED, count=60, seed=20261115, stop_after=5)
    texts = [f"{failure_text(each, None, None)}\n\n{each.text}" for each in report.failures]
    assert not texts, "\n\n" + "\n\n".join(texts)
    assert report.programs == 60
    assert report.not_comparable == 0
    assert report.outcomes["returned"] * 5 > report.executions * 2, "too few of the programs come to their end"


def test_what_preconditions_say_about_null_is_known_to_the_generator() -> None:
    """Regression: `k3 ?? k0` was drawn under the precondition `k3 IS NOT NULL`, which is refused."""
    drafts = [draw_program(20261115000000 + number) for number in range(120)]
    telling = [draft for draft in drafts if any(clause.when_true for clause in draft.preconditions)]
    assert len(telling) >= 3
    assert [examine(draft, COMPARED, 1, inputs_each=2) for draft in telling] == [None] * len(telling)


class _ForgetsNegation:
    """An engine that drops every `NOT` of the body."""

    name = "wrong"

    def load(self, compiled: Compiled) -> Program:
        body = tuple(
            replace(each, value=_without_not(each.value)) if isinstance(each, ir.Step) else each
            for each in compiled.node.body
        )
        return PythonEngine().load(compiled_ir(replace(compiled.node, body=body)))


def _without_not(expression: ir.Expression) -> ir.Expression:
    match expression:
        case ir.Call(op="boolean.not", args=(operand,)):
            return operand
        case ir.If():
            condition, then, otherwise = (_without_not(each) for each in ir.children(expression))
            return replace(expression, condition=condition, then=then, otherwise=otherwise)
        case ir.Logical():
            left, right = (_without_not(each) for each in ir.children(expression))
            return replace(expression, left=left, right=right)
        case _:
            return expression


def test_a_fault_is_found_in_a_program_and_the_program_is_reduced() -> None:
    engines: dict[str, Engine] = {"python": PythonEngine(), "wrong": _ForgetsNegation()}
    report = verify_programs(engines, count=100, seed=3, inputs_each=5, stop_after=1, max_tries=40)
    (failure,) = report.failures
    assert failure.kind == "disagreement"
    assert "NOT " in failure.text or " => " in failure.text
    drawn = draw_program(failure.seed).text()
    assert len(failure.text) < len(drawn), f"{drawn}\n\n{failure.text}"
    assert "the engines disagree on" in failure_text(failure, None, None)
