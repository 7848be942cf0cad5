"""An execution that records itself, so that another engine can follow it later.

It is part of every followed request, so it copies only values that the caller could change afterwards.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias, cast

from vesper.engines.engine import Blocked, Completion, Done, Execution, Limits, Observer, Program, Request
from vesper.engines.outcome import ContractBroken, DeclaredError, Outcome, Returned
from vesper.host.routed import Routed
from vesper.migration.compare.reports import Lost
from vesper.migration.compare.transcript import Exchange, Transcript
from vesper.values.model import Value

_log = logging.getLogger("vesper.migration")

OnDone: TypeAlias = Callable[[Transcript | Lost, int, str | None], None]
"""Called once for each execution that began, with the transcript, the nanoseconds of computing, and the run id (None
without a journal). `Lost` where it cannot be followed."""

LEFT = "the run was left before it ended"
"""Why a run that waits, or whose process ended it without an outcome, cannot be followed."""
_MAX_ITEMS = 200_000
_MAX_DEPTH = 64


class RecordedProgram:
    """A program that forwards every call, and records requests and completions."""

    def __init__(self, program: Program, on_done: OnDone) -> None:
        self._program = program
        self._on_done = on_done

    @property
    def semantic_hash(self) -> str:
        return self._program.semantic_hash

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        began = time.perf_counter_ns()
        outcome = self._program.call(inputs, now, limits)
        took = time.perf_counter_ns() - began
        tell(self._on_done, transcript_of(inputs, now, (), outcome), took, None)
        return outcome

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> RecordedExecution:
        began = time.perf_counter_ns()
        execution = self._program.start(inputs, now, limits, observe, is_traced)
        return RecordedExecution(execution, inputs, now, self._on_done, time.perf_counter_ns() - began)


class RecordedExecution(Routed):
    def __init__(
        self,
        execution: Execution,
        inputs: Mapping[str, object],
        now: datetime | None,
        on_done: OnDone,
        spent_ns: int = 0,
    ) -> None:
        self._execution = execution
        self._inputs = inputs
        self._now = now
        self._on_done = on_done
        self._spent_ns = spent_ns
        self._exchanges: list[Exchange] = []
        self._waits_for: tuple[Request, ...] = ()
        self._name: str | None = None
        self._is_told = False
        self._routed = execution if isinstance(execution, Routed) else None
        """The execution, where engines of the leader's mode run it."""

    def begin(self, execution: str) -> None:
        self._name = execution
        if self._routed is not None:
            self._routed.begin(execution)

    def handed_over(self) -> Mapping[str, object] | None:
        return None if self._routed is None else self._routed.handed_over()

    def advance(self, completions: Sequence[Completion]) -> Blocked | Done:
        for request, completion in zip(self._waits_for, completions, strict=False):
            self._exchanges.append(Exchange(request, completion.result, completion.failure))
        began = time.perf_counter_ns()
        step = self._execution.advance(completions)
        self._spent_ns += time.perf_counter_ns() - began
        if isinstance(step, Blocked):
            self._waits_for = step.requests
        else:
            self._tell(step.outcome)
        return step

    def stop(self, outcome: Outcome | None) -> None:
        if self._routed is not None:
            self._routed.stop(outcome)
        self._tell(outcome)

    def _tell(self, outcome: Outcome | None) -> None:
        if self._is_told:
            return
        self._is_told = True
        found: Transcript | Lost = Lost(LEFT)
        if outcome is not None:
            found = transcript_of(self._inputs, self._now, tuple(self._exchanges), outcome)
        tell(self._on_done, found, self._spent_ns, self._name)


def tell(on_done: OnDone, found: Transcript | Lost, took_ns: int, name: str | None) -> None:
    """Pass a recorded execution to the listener. Its exceptions are logged, and never reach the caller of the node."""
    try:
        on_done(found, took_ns, name)
    except Exception as error:  # noqa: BLE001  # an error of the listener does not concern the execution
        _log.error("what a run came to could not be passed on to be compared: %s", type(error).__name__)


def transcript_of(
    inputs: Mapping[str, object], now: datetime | None, exchanges: tuple[Exchange, ...], outcome: Outcome
) -> Transcript | Lost:
    """Return the transcript of an execution; `Lost` where its values are too large or contain themselves."""
    copier = _Copier()
    try:
        given = copier.values(inputs)
        match outcome:
            case Returned(value) | DeclaredError(value):
                outcome = type(outcome)(cast(dict[str, Value], copier.values(value)))
            case ContractBroken(phase, index, values):
                outcome = ContractBroken(phase, index, cast(dict[str, Value], copier.values(values)))
            case _:
                pass
    except _TooLarge:
        return Lost("the inputs or the outputs are too large, or hold themselves: they are not kept")
    return Transcript(given, now, exchanges, outcome)


class _TooLarge(Exception):
    """A value that is too large to copy, or contains itself."""


class _Copier:
    """Copies of collections, which a caller may change before the shadow run. Immutable values are shared."""

    def __init__(self) -> None:
        self._left = _MAX_ITEMS

    def values(self, values: Mapping[str, object]) -> dict[str, object]:
        if _COLLECTIONS.isdisjoint(map(type, values.values())):
            return dict(values)
        return {name: self.copy(value, 0) for name, value in values.items()}

    def copy(self, value: object, depth: int) -> object:
        if type(value) not in _COLLECTIONS:
            return value
        assert isinstance(value, dict | list | tuple | set)
        self._left -= len(value)
        if self._left < 0 or depth > _MAX_DEPTH:
            raise _TooLarge
        if isinstance(value, dict):
            return {key: self.copy(each, depth + 1) for key, each in value.items()}
        if isinstance(value, set):
            return set(value)
        copied = [self.copy(each, depth + 1) for each in value]
        return copied if isinstance(value, list) else tuple(copied)


_COLLECTIONS = frozenset({dict, list, tuple, set})
