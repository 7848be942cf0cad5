"""Failures of the verifier itself: faults shared by all engines, too many uncomparable inputs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import pytest

from tests.support.nodes import PAYMENT_DECISION, compiled, compiled_text
from vesper.compiler import Compiled
from vesper.engines.engine import Done, Engine, Limits, Observer, Program, PureExecution
from vesper.engines.outcome import EngineFault, LimitHit, Outcome
from vesper.engines.registry import ENGINES
from vesper.verify.differential.verifier import Verifier
from vesper.verify.programs.campaign import examine
from vesper.verify.programs.nodes import draw_program


class Answers:
    """An engine with the same outcome for every program."""

    def __init__(self, name: str, outcome: Outcome) -> None:
        self.name, self._outcome = name, outcome
        self.semantic_hash = ""

    def load(self, compiled: Compiled) -> Program:
        del compiled
        return self

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        del inputs, now, limits
        return self._outcome

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> PureExecution:
        del inputs, now, limits, observe, is_traced
        return PureExecution(lambda: Done(self._outcome, ()))


def both(outcome: Outcome) -> dict[str, Engine]:
    return {"one": Answers("one", outcome), "other": Answers("other", outcome)}


@pytest.mark.parametrize("names", [("one", "other"), ("one",)])
def test_a_fault_that_all_engines_share_is_a_failure(names: tuple[str, ...]) -> None:
    engines = {name: engine for name, engine in both(EngineFault("broken")).items() if name in names}
    report = Verifier(compiled(PAYMENT_DECISION), engines, seed=1).run(5)
    assert report.differences
    assert not report.passed


def test_a_random_program_on_which_all_engines_break_is_a_failure() -> None:
    failure = examine(draw_program(1), both(EngineFault("broken")), 1, 3)
    assert failure is not None
    assert failure.kind == "disagreement"


def test_too_many_uncomparable_executions_fail() -> None:
    report = Verifier(compiled(PAYMENT_DECISION), both(LimitHit("time")), seed=1).run(50)
    assert report.not_comparable == 50
    assert not report.differences
    assert not report.passed


ENDLESS = """node_id: endless_v1
type: http_handler
intent: Ask until somebody says stop
outputs: {success: {rounds: integer}, error: {error_code: "enum[away]", message: string}}
flow:
  - step: asked
    operation: loop
    while: "true"
    max: 100000
    state: {rounds: {type: integer, value: 0}}
    steps:
      - {step: at, operation: clock, on_error: {any: {value: "timestamp('2026-11-15T12:00:00Z')"}}}
    next: {rounds: rounds + 1}
  - {operation: raise, when: asked.rounds < 0, error: {error_code: away, message: "'no'"}}
  - {operation: return, success: {rounds: asked.rounds}}
security: {capabilities_required: [clock.read.system]}
"""


def test_an_execution_with_endless_requests_is_not_comparable() -> None:
    report = Verifier(compiled_text(ENDLESS), ENGINES, seed=1).run(2)
    assert report.not_comparable == 2
    assert not report.differences
    assert not report.passed
