"""The pathed form of the direct engine: it does what the plain one does, and says which way it went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from tests.support.nodes import compiled, compiled_text, worked_nodes, written_for_tests
from tests.unit.engines.path_tables import PASSED, READ, Passed, Read, node
from tests.unit.engines.test_numeric_loops import INPUTS as NUMERIC_INPUTS
from tests.unit.engines.test_numeric_loops import LOOPS
from tests.unit.engines.test_numeric_loops import node as numeric_node
from vesper.compiler import Compiled
from vesper.engines.direct_engine import DirectEngine, DirectProgram
from vesper.engines.engine import Blocked, Done, Limits, Request, run_observed
from vesper.engines.outcome import LimitHit, Outcome
from vesper.engines.path import conditions_of, conditions_of_marks, points_of
from vesper.engines.python_engine import PythonEngine
from vesper.verify.inputs import InputGenerator
from vesper.verify.programs import draw_program
from vesper.verify.responses import MAX_REQUESTS, GeneratedResponses, Responder, run_with

KEY = bytes(range(16))
INPUTS = 12
PROGRAMS = 40
FEW_UNITS = (0, 1, 2, 3, 5, 8, 13, 70, 600)
"""Of fuel: the last two are where a numeric loop looks whether its points were passed."""


@dataclass(frozen=True)
class Run:
    outcome: Outcome
    requests: tuple[Request, ...]
    path: bytes
    fingerprint: int


def run_pathed(
    program: DirectProgram,
    inputs: Mapping[str, object],
    now: datetime,
    respond: Responder,
    limits: Limits | None = None,
) -> Run:
    execution = program.start_pathed(inputs, KEY, now, limits)
    asked: list[Request] = []
    passed = 0
    step = execution.advance(())
    while isinstance(step, Blocked):
        so_far = int.from_bytes(execution.path(), "little")
        assert so_far & passed == passed, "a point that was passed is not any more"
        passed = so_far
        asked.append(step.requests[0])
        assert len(asked) <= MAX_REQUESTS
        step = execution.advance((respond(step.requests[0]),))
    assert step.marks == ()
    return Run(step.outcome, tuple(asked), execution.path(), execution.fingerprint())


def check(node: Compiled, seed: int, count: int) -> None:
    """The pathed form beside the plain one, and its conditions beside the marks of both engines."""
    direct, python = DirectEngine().load(node), PythonEngine().load(node)
    points, responses = direct.points(), GeneratedResponses(node)
    generator = InputGenerator(node.node, seed, seeks_boundaries=False, examples=[case.inputs for case in node.cases])
    for number in range(count):
        inputs = generator.draw()
        now, respond = responses.now(f"{seed} {number}"), responses.responder(f"{seed} {number}")
        pathed = run_pathed(direct, inputs, now, respond)
        _same(pathed, _plain(direct, inputs, now, respond), inputs)
        conditions = conditions_of(pathed.path, points)
        for program in (direct, python):
            traced = run_with(program, inputs, now, respond)
            assert conditions == conditions_of_marks(traced.marks, node.node), inputs
        limits = Limits(fuel=FEW_UNITS[number % len(FEW_UNITS)])
        little = run_pathed(direct, inputs, now, respond, limits)
        _same(little, _plain(direct, inputs, now, respond, limits), (inputs, limits))
        traced = run_with(direct, inputs, now, respond, limits)
        assert conditions_of(little.path, points) == conditions_of_marks(traced.marks, node.node), (inputs, limits)
        assert isinstance(little.outcome, LimitHit) or repr(little) == repr(pathed)


def _plain(
    program: DirectProgram,
    inputs: Mapping[str, object],
    now: datetime,
    respond: Responder,
    limits: Limits | None = None,
) -> Done:
    execution = program.start(inputs, now, limits, is_traced=False)
    asked: list[Request] = []
    step = execution.advance(())
    while isinstance(step, Blocked):
        asked.append(step.requests[0])
        step = execution.advance((respond(step.requests[0]),))
    return Done(step.outcome, (), tuple(asked))


def _same(pathed: Run, plain: Done, what: object) -> None:
    # By their text: a NaN is not equal to itself.
    assert repr(pathed.outcome) == repr(plain.outcome), what
    assert repr(pathed.requests) == repr(plain.requests), what


@pytest.mark.parametrize("path", [*worked_nodes(), *written_for_tests()], ids=lambda path: path.stem)
def test_nodes_go_the_same_way_in_every_form(path: Path) -> None:
    check(compiled(path), 7, INPUTS)


@pytest.mark.parametrize("seed", range(0, PROGRAMS, 10))
def test_random_programs_go_the_same_way_in_every_form(seed: int) -> None:
    for each in range(seed, seed + 10):
        check(compiled_text(draw_program(each).text()), each, 6)


@pytest.mark.parametrize("case", PASSED, ids=lambda case: f"{case.node} {list(case.inputs.values())}")
def test_points_that_are_passed(case: Passed) -> None:
    program = DirectEngine().load(node(case.node))
    path = program.call_pathed(case.inputs, KEY).path
    assert " ".join(each.outcome for each in points_of(path, program.points())) == case.points


@pytest.mark.parametrize("case", READ, ids=lambda case: f"{case.node} {list(case.one.values())} {case.changed}")
def test_a_fingerprint_is_of_what_was_read(case: Read) -> None:
    program = DirectEngine().load(node(case.node))
    one, other = (program.call_pathed({**case.one, **changed}, KEY) for changed in ({}, case.changed))
    assert one.path == other.path
    assert (one.fingerprint == other.fingerprint) is case.is_same


@pytest.mark.parametrize("name", LOOPS)
def test_loops_of_numbers_go_the_same_way(name: str) -> None:
    compiled = numeric_node(LOOPS[name])
    direct, points = DirectEngine().load(compiled), DirectEngine().load(compiled).points()
    for inputs in NUMERIC_INPUTS:
        for fuel in (10_000, 0, 7, 8, 30, 64, 65):
            limits = Limits(fuel)
            pathed = direct.call_pathed(inputs, KEY, None, limits)
            assert repr(pathed.outcome) == repr(direct.call(inputs, None, limits)), (inputs, fuel)
            marks = run_observed(direct, inputs, None, limits).marks
            assert conditions_of(pathed.path, points) == conditions_of_marks(marks, compiled.node), (inputs, fuel)
