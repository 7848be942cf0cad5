"""Random programs with little fuel: the engines run out at the same place."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.nodes import compiled, compiled_text, worked_nodes
from vesper.compiler import Compiled
from vesper.engines.compare import Agree, compare, same_outcome
from vesper.engines.engine import Limits
from vesper.engines.outcome import LimitHit
from vesper.engines.python_engine import PythonEngine, PythonProgram
from vesper.engines.registry import PAIR
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.inputs.responses import GeneratedResponses, run_case, run_with
from vesper.verify.programs.nodes import draw_program

PROGRAMS = 30
INPUTS = 8
FUELS = (0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 10, 15, 25)


def same_with(node: Compiled, fuel: int, inputs: dict[str, object], seed: str) -> tuple[bool, str]:
    """Return whether the engines agree with this fuel, observed and called; and the outcome."""
    limits, responses = Limits(fuel), GeneratedResponses(node)
    programs = [engine.load(node) for engine in PAIR.values()]
    done = [run_with(program, inputs, responses.now(seed), responses.responder(seed), limits) for program in programs]
    comparison = compare(*done)
    assert isinstance(comparison, Agree), f"{comparison} with {fuel} units\n{inputs}\n{node.source.text}"
    if node.node.is_pure():
        for program in programs:
            called = program.call(inputs, responses.now(seed), limits)
            assert same_outcome(called, done[0].outcome), f"{called} with {fuel} units\n{inputs}\n{node.source.text}"
    return isinstance(done[0].outcome, LimitHit), done[0].outcome.kind


def test_random_programs_with_little_fuel() -> None:
    hits = 0
    for seed in range(9000, 9000 + PROGRAMS):
        node = compiled_text(draw_program(seed).text())
        drawn = InputGenerator(node.node, seed=seed, seeks_boundaries=False)
        for number in range(INPUTS):
            fuel = random.Random(f"{seed} {number}").choice(FUELS)
            hits += same_with(node, fuel, dict(drawn.draw()), str(number))[0]
    assert hits > PROGRAMS, "else this shows little"


def test_no_more_is_spent_than_the_bound_says() -> None:
    """Fuel equal to the bound is always enough."""
    for seed in range(9000, 9000 + PROGRAMS):
        node = compiled_text(draw_program(seed).text())
        program = PythonEngine().load(node)
        drawn, responses = InputGenerator(node.node, seed=seed, seeks_boundaries=False), GeneratedResponses(node)
        limits = Limits(program.fuel_bound) if program.fuel_bound < 2**63 else Limits()
        for number in range(INPUTS):
            seed_ = str(number)
            done = run_with(program, drawn.draw(), responses.now(seed_), responses.responder(seed_), limits)
            assert not isinstance(done.outcome, LimitHit), node.source.text


@pytest.mark.parametrize("path", worked_nodes(), ids=lambda path: path.stem)
def test_the_cases_of_nodes_with_little_fuel(path: Path) -> None:
    """Cases with effects and called nodes, with one unit of fuel less than needed, and with less."""
    node = compiled(path)
    programs = [engine.load(node) for engine in PAIR.values()]
    for case in node.cases[:3]:
        for fuel in FUELS:
            done = [run_case(program, case, Limits(fuel)) for program in programs]
            comparison = compare(*done)
            assert isinstance(comparison, Agree), f"{case.name} with {fuel} units: {comparison}"
            if not isinstance(done[0].outcome, LimitHit):
                break


def test_which_nodes_are_counted() -> None:
    """Most nodes are not metered: their bound is below the default fuel."""
    counted = set()
    for path in worked_nodes():
        program = PythonEngine().load(compiled(path))
        assert isinstance(program, PythonProgram)
        if program.fuel_bound > Limits().fuel:
            counted.add(path.stem)
    assert "payment_decision_v1" not in counted
    assert "order_pricing_v1" not in counted
    assert len(counted) < len(worked_nodes()) / 4
