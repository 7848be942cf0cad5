"""A wrapper of the direct engine that returns every failure as a value.

The engine is advanced beside Python, or on the records of an ended execution. A `PathNoteBuilder` collects its path.

The engine is advanced beside Python, or on the records of an ended execution. The trail collects its path.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Protocol, TypeGuard

from vesper.engines.engine import DEFAULT_LIMITS, Blocked, Completion, Done, Limits
from vesper.engines.outcome import COUNTED_LIMITS, EngineFault, LimitHit, Outcome
from vesper.engines.path import Point
from vesper.migration.compare.paths import PathNote, ending_of, prefix_name, settled_text
from vesper.migration.compare.transcript import Exchange
from vesper.values.vesper_error import VesperError

_FOREIGN_EXCEPTIONS = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""Exceptions that pass through the engine from outside, besides a cancellation. All others, panics included, are faults
of the engine."""
_MAX_MESSAGE_CHARS = 500


class NotAsked(VesperError):
    """The direct engine does not run this time, for example because all workers are busy. Not a fault."""


class PathedAnswer(Protocol):
    @property
    def outcome(self) -> Outcome: ...
    @property
    def path(self) -> bytes: ...
    @property
    def fingerprint(self) -> int: ...


class PathedExecution(Protocol):
    def advance(self, completions: Sequence[Completion]) -> Blocked | Done: ...
    def path(self) -> bytes: ...
    def fingerprint(self) -> int: ...


class PathedProgram(Protocol):
    """The interface of the direct engine here: `DirectProgram`, or a substitute."""

    def points(self) -> tuple[Point, ...]: ...

    def call_pathed(
        self, inputs: Mapping[str, object], key: bytes, now: datetime | None = None, limits: Limits | None = None
    ) -> PathedAnswer: ...

    def start_pathed(
        self, inputs: Mapping[str, object], key: bytes, now: datetime | None = None, limits: Limits | None = None
    ) -> PathedExecution: ...


class ScriptedProgram(Protocol):
    """A program that runs faster where the completions are known beforehand."""

    def start_scripted(
        self,
        inputs: Mapping[str, object],
        key: bytes,
        now: datetime | None,
        limits: Limits | None,
        exchanges: Sequence[Exchange],
    ) -> PathedExecution: ...


def is_scripted(program: PathedProgram) -> TypeGuard[ScriptedProgram]:
    """Return True where the program takes a script.

    It avoids `isinstance`, which inspects every method of a protocol: that took a fifth of a shadow run.
    """
    return hasattr(type(program), "start_scripted")


@dataclass(frozen=True, slots=True)
class Broke:
    """An execution of the direct engine without a comparable outcome."""

    what: str
    error: BaseException | None = None
    """Exception that it raised, if any."""
    is_fault: bool = True
    """False where the engine is not at fault: a limit of the caller, or no run."""


@lru_cache(64)
def _limits_with_deadline(deadline: float | None) -> Limits:
    """Return the default limits with this deadline. Cached, because every request needs them."""
    return replace(DEFAULT_LIMITS, seconds=deadline)


class DirectSide:
    """One execution of the direct engine. `deadline` bounds its computing in seconds, whatever its limits."""

    __slots__ = (
        "_deadline", "_execution", "_has_own_deadline", "_inputs", "_is_sensitive", "_key", "_limits", "_now",
        "_program", "_ready", "_script", "_spent_ns", "_waits_for", "fingerprint", "points",
    )  # fmt: skip

    def __init__(
        self,
        program: PathedProgram,
        key: bytes,
        inputs: Mapping[str, object],
        now: datetime | None,
        limits: Limits | None,
        deadline: float | None = None,
        *,
        is_sensitive: bool = False,
        script: Sequence[Exchange] = (),
    ) -> None:
        """`script` holds the completions, where they are known beforehand."""
        self._program = program
        self._script = script
        self._key = key
        self._inputs = inputs
        self._now = now
        self._has_own_deadline = deadline is not None and (
            limits is None or limits.seconds is None or deadline < limits.seconds
        )
        self._limits = limits
        if self._has_own_deadline:
            self._limits = _limits_with_deadline(deadline) if limits is None else replace(limits, seconds=deadline)
        self._deadline = deadline
        self._is_sensitive = is_sensitive
        self._execution: PathedExecution | None = None
        self._ready: Done | Broke | None = None
        self._waits_for = 0
        self._spent_ns = 0
        self.points = b""
        """Path so far."""
        self.fingerprint = 0
        """Fingerprint of all that was read; known once the execution has ended."""

    @property
    def took_ns(self) -> int:
        """The time that the engine computed, in nanoseconds."""
        return self._spent_ns

    def call(self) -> Done | Broke:
        """Run a node without effects in one call. A first `advance` returns the same outcome."""
        began = time.perf_counter_ns()
        try:
            answer = self._program.call_pathed(self._inputs, self._key, self._now, self._limits)
            self.points, self.fingerprint = answer.path, answer.fingerprint
            step: Done | Broke = Done(answer.outcome, ())
        except BaseException as error:  # noqa: BLE001  # a panic is a `BaseException`
            step = self._fault_of(error)
        self._spent_ns += time.perf_counter_ns() - began
        judged = self._check_step(step)
        assert not isinstance(judged, Blocked)
        self._ready = judged
        return judged

    def advance(self, answer: Exchange | None) -> Blocked | Done | Broke:
        """Continue with the completion of the pending request; None at the start."""
        if self._ready is not None:
            ready, self._ready = self._ready, None
            return ready
        began = time.perf_counter_ns()
        try:
            step: Blocked | Done | Broke = self._advance_execution(answer)
        except BaseException as error:  # noqa: BLE001  # a panic is a `BaseException`
            step = self._fault_of(error)
        self._spent_ns += time.perf_counter_ns() - began
        return self._check_step(step)

    def _advance_execution(self, answer: Exchange | None) -> Blocked | Done:
        if self._execution is None:
            given = (self._inputs, self._key, self._now, self._limits)
            if self._script and is_scripted(self._program):
                self._execution = self._program.start_scripted(*given, self._script)
            else:
                self._execution = self._program.start_pathed(*given)
        completions = () if answer is None else (Completion(self._waits_for, answer.value, answer.failure),)
        step = self._execution.advance(completions)
        if isinstance(step, Blocked):
            first = self._waits_for = step.requests[0].id
            if any(each.id != number for number, each in enumerate(step.requests, start=first)):
                raise ValueError("the requests of a wave are not numbered in order")
        else:
            self.fingerprint = self._execution.fingerprint()
        self.points = self._execution.path()
        return step

    def _fault_of(self, error: BaseException) -> Broke:
        if isinstance(error, _FOREIGN_EXCEPTIONS) or _is_cancellation(error):
            raise error
        if isinstance(error, NotAsked):
            return Broke(str(error), error, is_fault=False)
        # A message may contain input values, and reports of faults are stored without encryption.
        told = type(error).__name__ if self._is_sensitive else f"{type(error).__name__}: {error}"
        return Broke(f"it raised {told}"[:_MAX_MESSAGE_CHARS], error)

    def _check_step(self, step: Blocked | Done | Broke) -> Blocked | Done | Broke:
        if isinstance(step, Done):
            match step.outcome:
                case EngineFault(message):
                    told = "" if self._is_sensitive else f": {message}"
                    return Broke(f"it is at fault{told}"[:_MAX_MESSAGE_CHARS])
                case LimitHit("time") if not self._has_own_deadline:
                    return Broke("the limit on time was hit", is_fault=False)
                case LimitHit("time"):
                    return self._missed_deadline()
                case LimitHit(limit) if limit not in COUNTED_LIMITS:
                    return Broke(f"it hit a limit on {limit}, which is not its own"[:_MAX_MESSAGE_CHARS])
        is_late = self._deadline is not None and self._spent_ns > self._deadline * 1_000_000_000
        return self._missed_deadline() if is_late and not isinstance(step, Broke) else step

    def _missed_deadline(self) -> Broke:
        return Broke(f"it computed for more than {self._deadline:g} s")


class PathNoteBuilder:
    """The parts of a path's note, collected during an execution."""

    def __init__(self) -> None:
        self._settled: tuple[str, ...] = ()
        """Distinct results of steps, sorted: rounds of a loop add nothing new."""
        self._prefixes: dict[str, None] = {}

    def settle(self, exchange: Exchange) -> None:
        text = settled_text(exchange.request.path, exchange.failure)
        if text not in self._settled:
            self._settled = tuple(sorted((*self._settled, text)))

    def prefix(self, points: bytes, step: str) -> str:
        """Record the prefix at a request that is not a read, and return its name."""
        name = self.name_at(points, step)
        self._prefixes[name] = None
        return name

    def name_at(self, points: bytes, step: str) -> str:
        """Return the name of the prefix at a request."""
        return prefix_name(points, self._settled, step)

    def note(self, points: bytes, outcome: Outcome) -> PathNote:
        return PathNote(points, self._settled, ending_of(outcome), tuple(self._prefixes))


def _is_cancellation(error: BaseException) -> bool:
    """Return True for `asyncio.CancelledError`, without importing `asyncio`, which is slow."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)
