"""The pathed form of the direct engine: it does what the plain one does, and says which way it went."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.support.nodes import compiled, compiled_text, worked_nodes, written_for_tests
from tests.unit.engines.path_tables import PASSED, READ, Passed, Read, node
from tests.unit.engines.test_numeric_loops import INPUTS as NUMERIC_INPUTS
from tests.unit.engines.test_numeric_loops import LOOPS
from tests.unit.engines.test_numeric_loops import node as numeric_node
from vesper.compiler import Compiled
from vesper.engines.direct_engine import DirectEngine, DirectProgram
from vesper.engines.engine import Blocked, Completion, Done, Limits, Request, run_observed
from vesper.engines.outcome import Failed, LimitHit, Outcome
from vesper.engines.path import conditions_of, conditions_of_marks, points_of
from vesper.engines.python_engine import PythonEngine
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.inputs.responses import MAX_REQUESTS, NOON, GeneratedResponses, Responder, run_with
from vesper.verify.programs.nodes import draw_program

KEY = bytes(range(16))
INPUTS = 5
PROGRAMS = int(os.environ.get("VESPER_PATH_PROGRAMS", "12"))
"""How many random programs are compared; more of them are a campaign for a quiet machine."""
FEW_UNITS = (0, 1, 2, 3, 5, 8, 13, 70, 600)
"""Units of fuel that end a run early, in the first rounds of a loop and after many."""


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
        limits = Limits(fuel=FEW_UNITS[(seed + number) % len(FEW_UNITS)])
        little = run_pathed(direct, inputs, now, respond, limits)
        _same(little, _plain(direct, inputs, now, respond, limits), (inputs, limits))
        traced = run_with(direct, inputs, now, respond, limits)
        assert conditions_of(little.path, points) == conditions_of_marks(traced.marks, node.node), (inputs, limits)
        assert isinstance(little.outcome, LimitHit) or repr(little) == repr(pathed)
        # Whatever is changed without changing what was read changes nothing.
        for name, value in generator.draw().items():
            changed = {**inputs, name: value}
            other = run_pathed(direct, changed, now, respond)
            if (other.path, other.fingerprint) == (pathed.path, pathed.fingerprint):
                assert repr(other) == repr(pathed), (inputs, changed)


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


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_programs_go_the_same_way_in_every_form(seed: int) -> None:
    check(compiled_text(draw_program(seed).text()), seed, 5)


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
        for fuel in (10_000, 0, 8, 65):
            limits = Limits(fuel)
            pathed = direct.call_pathed(inputs, KEY, None, limits)
            assert repr(pathed.outcome) == repr(direct.call(inputs, None, limits)), (inputs, fuel)
            marks = run_observed(direct, inputs, None, limits).marks
            assert conditions_of(pathed.path, points) == conditions_of_marks(marks, compiled.node), (inputs, fuel)


def _answered(program: DirectProgram, inputs: Mapping[str, object], answers: list[Completion]) -> tuple[bytes, int]:
    execution = program.start_pathed(inputs, KEY, NOON)
    step = execution.advance(())
    for answer in answers:
        assert isinstance(step, Blocked)
        step = execution.advance((answer,))
    return execution.path(), execution.fingerprint()


def test_what_comes_back_is_read() -> None:
    program = DirectEngine().load(node("asks"))
    inputs = {"a": "x", "b": "y"}
    begun = _answered(program, inputs, [])
    values = [_answered(program, inputs, [Completion(0, text)]) for text in ("one", "two", "one")]
    failed = [_answered(program, inputs, [Completion(0, failure=code)]) for code in ("timeout", "unavailable")]
    prints = [begun[1], values[0][1], values[1][1], failed[0][1], failed[1][1]]
    assert len(set(prints)) == len(prints)
    assert values[0] == values[2]
    # `b` is in the second request, and nobody asks for that before the first was answered.
    other: dict[str, object] = {**inputs, "b": "z"}
    assert _answered(program, other, []) == begun
    assert _answered(program, other, [Completion(0, failure="timeout")]) == failed[0]
    assert _answered(program, other, [Completion(0, "one")]) != values[0]
    end = [Completion(0, "one"), Completion(1, "two")]
    turned_round = [Completion(0, "two"), Completion(1, "one")]
    assert _answered(program, inputs, end)[1] != _answered(program, inputs, turned_round)[1]


def test_the_time_of_the_start_counts_where_it_is_read() -> None:
    program = DirectEngine().load(node("time"))

    def fingerprint(is_asked: bool, now: datetime) -> int:
        return program.call_pathed({"is_asked": is_asked}, KEY, now).fingerprint

    assert fingerprint(True, NOON) != fingerprint(True, NOON + timedelta(seconds=1))
    assert fingerprint(False, NOON) == fingerprint(False, NOON + timedelta(seconds=1))


def test_inputs_that_are_refused_have_passed_nothing() -> None:
    program = DirectEngine().load(node("choice"))
    fine: dict[str, object] = {"a": 1, "b": 2, "c": 3, "unused": 4}
    refused = [program.call_pathed({**fine, **wrong}, KEY) for wrong in ({"a": "x"}, {"a": "y"}, {"b": "x"}, {"z": 1})]
    assert all(isinstance(each.outcome, Failed) for each in refused)
    assert {each.path for each in refused} == {bytes(8)}
    # The same problem is the same fingerprint, whatever was given.
    assert refused[0].fingerprint == refused[1].fingerprint
    assert len({each.fingerprint for each in refused}) == 3
    execution = program.start_pathed({**fine, "a": "x"}, KEY)
    before = execution.path(), execution.fingerprint()
    assert isinstance(execution.advance(()), Done)
    assert before == (execution.path(), execution.fingerprint()) == (bytes(8), refused[0].fingerprint)


def siphash(key: bytes, data: bytes) -> int:
    """SipHash-2-4, as its authors describe it."""
    mask = 2**64 - 1
    k0, k1 = (int.from_bytes(key[at : at + 8], "little") for at in (0, 8))
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def left(word: int, by: int) -> int:
        return (word << by | word >> 64 - by) & mask

    def round_() -> None:
        for first, second, turned, by, half in ((0, 1, 1, 13, 1), (2, 3, 3, 16, 0), (0, 3, 3, 21, 0), (2, 1, 1, 17, 1)):
            v[first] = (v[first] + v[second]) & mask
            v[turned] = left(v[turned], by) ^ v[first]
            if half:
                v[first] = left(v[first], 32)

    padded = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) % 256])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        v[3] ^= word
        round_()
        round_()
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(4):
        round_()
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def test_fingerprints_depend_on_the_key() -> None:
    program = DirectEngine().load(node("choice"))
    inputs = {"a": 1, "b": 2, "c": 3, "unused": 4}
    one, other = (program.call_pathed(inputs, key) for key in (KEY, bytes(16)))
    assert (one.outcome, one.path) == (other.outcome, other.path)
    assert one.fingerprint != other.fingerprint
    # Nothing of it depends on the process: evidence is kept over restarts and shared by processes.
    assert one.fingerprint == siphash(KEY, b"i\0\0\0\0i\1\0\0\0\0\0\0\0" + b"i\1\0\0\0i\2\0\0\0\0\0\0\0")
    for wrong in (b"", bytes(15), bytes(17)):
        with pytest.raises(ValueError, match="16 bytes"):
            program.call_pathed(inputs, wrong)
        with pytest.raises(ValueError, match="16 bytes"):
            program.start_pathed(inputs, wrong)


def test_an_execution_without_a_path_says_so() -> None:
    execution = DirectEngine().load(node("choice")).start({"a": 1, "b": 2, "c": 3, "unused": 4})
    with pytest.raises(ValueError, match="start_pathed"):
        execution.path()
    with pytest.raises(ValueError, match="start_pathed"):
        execution.fingerprint()


def test_a_path_of_many_words() -> None:
    """Numbers stay the same beyond one word, and a loop whose points lie in two words is no exception."""
    value = " + ".join(f"(IF a > {each} THEN sum(i FOR i IN range(0, a)) ELSE {each})" for each in range(50))
    text = (
        "node_id: wide_v1\ntype: function\nintent: Has many points\ninputs: {a: integer, n: integer}\n"
        "outputs: {success: {result: integer}}\nflow:\n"
        f'  - {{step: total, operation: compute, value: "sum({value} FOR k IN range(0, n))"}}\n'
        "  - {operation: return, success: {result: total}}\n"
    )
    compiled = compiled_text(text)
    direct, points = DirectEngine().load(compiled), DirectEngine().load(compiled).points()
    assert len(points) == 50 * 5 + 3
    for a, n in ((-1, 1), (25, 2), (100, 100)):
        pathed = direct.call_pathed({"a": a, "n": n}, KEY)
        assert pathed.outcome == direct.call({"a": a, "n": n})
        assert len(pathed.path) == 8 * 4
        marks = run_observed(direct, {"a": a, "n": n}).marks
        assert conditions_of(pathed.path, points) == conditions_of_marks(marks, compiled.node)
        loops = [each for each in points_of(pathed.path, points) if each.kind == "loop"]
        assert [each.outcome for each in loops] == ["many"] * max(0, min(a, 50)) + ["one" if n == 1 else "many"]
