"""Waves on both engines: the same requests in the same order, the same ends and the same marks, at every limit."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeAlias

import pytest

from tests.support.nodes import compiled_text
from vesper.engines.compare import same_outcome, same_requests
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.engine import DEFAULT_LIMITS, Blocked, Completion, Limits, Program, Request
from vesper.engines.outcome import EngineFault, LimitHit, Outcome
from vesper.engines.python_engine import PythonEngine

Programs: TypeAlias = tuple[Program, Program]
_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_NESTED = """\
node_id: nested_v1
type: data_transform
intent: Nest parallel steps and loops in flight
inputs:
  names: array<string>
outputs:
  success:
    found: array<integer>
flow:
  - step: all
    over: name IN names WHERE length(name) < 9
    max: 40
    max_in_flight: 3
    steps:
      - operation: parallel
        steps:
          - - {step: a, operation: random, min: 1, max: 9}
            - {operation: validation, require: ["a != 3"]}
          - step: b
            over: i IN range(1, length(name) + 1)
            max_in_flight: 2
            steps:
              - {step: c, operation: random, min: i, max: 9}
            collect: quot(10, c)
        on_error:
          timeout, unavailable, invalid_argument: {steps: [{step: again, operation: uuid}]}
    collect: a + sum(x FOR x IN b.collected)
    on_error:
      any: {value: {collected: [0]}}
  - operation: return
    success: {found: all.collected}
security:
  capabilities_required: [random.read.system]
"""


def _answer(request: Request, seed: int) -> Completion:
    """Return the same completion for a path on every engine and at every time."""
    chance = random.Random(f"{seed} {request.path}")
    match chance.randrange(14):
        case 0:
            return Completion(request.id, failure="timeout")
        case 1:
            return Completion(request.id, failure="unavailable")
        case 2:
            return Completion(request.id, 0)  # a division by zero follows
        case _:
            return Completion(request.id, "u" if request.effect == "uuid_new" else chance.randrange(1, 9))


def _load(text: str) -> Programs:
    compiled = compiled_text(text)
    return PythonEngine().load(compiled), DirectEngine().load(compiled)


def _run(
    program: Program, inputs: dict[str, object], seed: int, limits: Limits, first: int | None, is_traced: bool
) -> tuple[list[Request], list[int], Outcome, tuple[tuple[int, object], ...]]:
    execution = program.start(inputs, _NOW, limits, is_traced=is_traced)
    step = execution.advance(())
    asked: list[Request] = []
    sizes: list[int] = []
    while isinstance(step, Blocked):
        if not asked or step.requests[0].id > asked[-1].id:
            asked += step.requests
            sizes.append(len(step.requests))
        given: Sequence[Request] = step.requests if first is None else step.requests[:first]
        step = execution.advance(tuple(_answer(each, seed) for each in given))
    return asked, sizes, step.outcome, tuple(step.marks)


def _assert_same(
    programs: Programs, inputs: dict[str, object], seed: int, limits: Limits = DEFAULT_LIMITS
) -> list[int]:
    found = [
        _run(program, inputs, seed, limits, first, is_traced)
        for program in programs
        for first, is_traced in ((None, True), (1, True), (None, False))
    ]
    asked, sizes, outcome, marks = found[0]
    for number, (asked_too, sizes_too, outcome_too, marks_too) in enumerate(found):
        assert not isinstance(outcome_too, EngineFault), outcome_too
        assert [(each.id, each.path) for each in asked_too] == [(each.id, each.path) for each in asked], number
        assert same_requests(asked_too, asked)
        assert sizes_too == sizes
        assert same_outcome(outcome_too, outcome), (number, outcome_too, outcome)
        if number not in (2, 5):
            assert marks_too == marks, number
    return sizes


@pytest.fixture(scope="module")
def nested() -> Programs:
    return _load(_NESTED)


def test_both_engines_ask_for_the_same_waves(nested: Programs) -> None:
    widest = 0
    for seed in range(60):
        chance = random.Random(seed)
        names = ["x" * chance.randrange(10) for _ in range(chance.randrange(7))]
        widest = max(widest, *_assert_same(nested, {"names": names}, seed), 0)
    assert widest >= 6


def test_a_limit_ends_both_engines_at_the_same_place(nested: Programs) -> None:
    ended = 0
    for seed in range(12):
        for fuel in range(0, 20, 3):
            _assert_same(nested, {"names": ["xx", "xxx", "x"]}, seed, Limits(fuel=fuel))
        for memory in (16_383, 16_384, 40_000, 65_536, 98_304, 98_305, 114_700, 131_072):
            _assert_same(nested, {"names": ["xx", "xxx", "x"]}, seed, Limits(memory=memory))
            outcome = _run(nested[1], {"names": ["xx", "xxx", "x"]}, seed, Limits(memory=memory), None, False)[2]
            ended += outcome == LimitHit("memory")
    assert ended >= 12
