"""Symbolic runs against the reference engine; `make proof-claims` does the same for every node and random programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proofs.solver.held import Held
from vesper.compiler import Compiled, compile_file
from vesper.engines.outcome import ContractBroken
from vesper.engines.python_engine import PythonEngine
from vesper.proof.bounds import FINDING, PROOF, Bounds
from vesper.proof.context import Context
from vesper.proof.inputs import SymbolicInputs
from vesper.proof.run import run_symbolically
from vesper.proof.solver import MODEL, NEVER, Solver
from vesper.verify.inputs.generator import InputGenerator

_NODES = Path(__file__).parents[3] / "nodes"
_SAMPLE = (
    "payments/payment_decision_v1.vsp",
    "finance/subscription_proration_v1.vsp",
    "finance/invoice_rounding_v1.vsp",
    "rules/tax_credit_v1.vsp",
)


def _compiled(name: str) -> Compiled:
    compiled, _ = compile_file(_NODES / name)
    assert compiled is not None
    return compiled


@pytest.mark.parametrize("bounds", [PROOF, FINDING], ids=["proof", "finding"])
@pytest.mark.parametrize("name", _SAMPLE)
def test_what_happens_is_possible_and_nothing_else_where_exact(name: str, bounds: Bounds) -> None:
    compiled = _compiled(name)
    held = Held(compiled, bounds)
    generator = InputGenerator(compiled.node, 7, seeks_boundaries=False)
    for _ in range(6):
        assert held.hold(generator.draw()) is None
    assert held.decided > 0


def test_clauses_of_a_payment_are_proven() -> None:
    node = _compiled(_SAMPLE[0]).node
    inputs = SymbolicInputs(Context(PROOF), node)
    run = run_symbolically(node, inputs)
    solver = Solver(inputs)
    clauses = [each for each in run.checks if each.phase == "postcondition"]
    assert len(clauses) == len(node.postconditions) == 2
    assert {solver.decide(each.fails).kind for each in clauses} == {NEVER}
    assert not run.bounded


def test_a_model_is_an_input_with_that_outcome() -> None:
    compiled = _compiled(_SAMPLE[0])
    inputs = SymbolicInputs(Context(FINDING), compiled.node)
    run = run_symbolically(compiled.node, inputs)
    broken = next(each for each in run.endings if each.phase == "precondition")
    found = Solver(inputs, small=True).decide(broken.guard)
    assert found.kind == MODEL
    given = inputs.read(found.model)
    assert given is not None
    outcome = PythonEngine().load(compiled).call(given)
    assert isinstance(outcome, ContractBroken)
    assert (outcome.phase, outcome.index) == ("precondition", broken.index)
