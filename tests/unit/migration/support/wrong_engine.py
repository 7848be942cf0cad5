"""Engines with a planted fault in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from vesper.compiler import Compiled
from vesper.engines.engine import Blocked, Completion, Done, Engine, Execution, Limits, Observer, Program, Request
from vesper.engines.outcome import Outcome
from vesper.migration.compare.transcript import Exchange, Transcript
from vesper.verify.inputs.responses import run_with

Inputs: TypeAlias = Mapping[str, object]
DoneLie: TypeAlias = Callable[[Inputs, Done], Done]
RequestLie: TypeAlias = Callable[[Request], Request]
Answers: TypeAlias = Mapping[str, object]


class WrongProgram:
    """A program that is right except for its planted faults."""

    def __init__(self, program: Program, at_end: DoneLie | None = None, asking: RequestLie | None = None) -> None:
        self._program = program
        self._at_end = at_end
        self._asking = asking

    @property
    def semantic_hash(self) -> str:
        return self._program.semantic_hash

    def call(self, inputs: Inputs, now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        outcome = self._program.call(inputs, now, limits)
        return outcome if self._at_end is None else self._at_end(inputs, Done(outcome, ())).outcome

    def start(
        self,
        inputs: Inputs,
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> Execution:
        execution = self._program.start(inputs, now, limits, observe, is_traced)
        return _WrongExecution(execution, inputs, self._at_end, self._asking)


class _WrongExecution:
    def __init__(self, execution: Execution, inputs: Inputs, at_end: DoneLie | None, asking: RequestLie | None) -> None:
        self._execution = execution
        self._inputs = inputs
        self._at_end = at_end
        self._asking = asking

    def advance(self, completions: Sequence[Completion]) -> Blocked | Done:
        step = self._execution.advance(completions)
        if isinstance(step, Done):
            return step if self._at_end is None else self._at_end(self._inputs, step)
        if self._asking is None:
            return step
        return replace(step, requests=tuple(map(self._asking, step.requests)))


class WrongEngine:
    """An engine whose programs have planted faults."""

    def __init__(self, engine: Engine, at_end: DoneLie | None = None, asking: RequestLie | None = None) -> None:
        self._engine = engine
        self._at_end = at_end
        self._asking = asking

    @property
    def name(self) -> str:
        return self._engine.name

    def load(self, compiled: Compiled) -> WrongProgram:
        return WrongProgram(self._engine.load(compiled), self._at_end, self._asking)


def recorded(
    program: Program, inputs: Inputs, now: datetime | None = None, answers: Answers | None = None
) -> Transcript:
    """Return a recorded execution with completions by path: a value, or a `Failure`."""
    exchanges: list[Exchange] = []

    def respond(request: Request) -> Completion:
        found = (answers or {})[request.path]
        is_failure = isinstance(found, Failure)
        exchange = Exchange(request, None if is_failure else found, found.code if isinstance(found, Failure) else None)
        exchanges.append(exchange)
        return exchange.completion()

    done = run_with(program, dict(inputs), now, respond)
    return Transcript(inputs, now, tuple(exchanges), done.outcome)


@dataclass(frozen=True)
class Failure:
    code: str
