"""The direct engine at arm's length: whatever it does wrong comes back as words, and never as an exception.

It is advanced beside Python, or on the records of an execution that has ended. What its path is made of is noted on the
way.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Protocol, TypeGuard

from vesper.engines.engine import DEFAULT_LIMITS, Blocked, Completion, Done, Limits
from vesper.engines.outcome import EngineFault, LimitHit, Outcome
from vesper.engines.path import Point
from vesper.migration.compare.paths import PathNote, ending_of, prefix_name, settled_text
from vesper.migration.compare.transcript import Exchange
from vesper.values.vesper_error import VesperError

_NOT_ITS_OWN = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""What goes through the engine from outside, besides a cancellation. Anything else that is raised there, panics among
it, is its own."""
_MESSAGE = 500


class NotAsked(VesperError):
    """The direct engine is not asked this time, and that is no fault of it: all of its workers are busy."""


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
    """What is asked of the direct engine here: `DirectProgram`, or one that stands in for it."""

    def points(self) -> tuple[Point, ...]: ...

    def call_pathed(
        self, inputs: Mapping[str, object], key: bytes, now: datetime | None = None, limits: Limits | None = None
    ) -> PathedAnswer: ...

    def start_pathed(
        self, inputs: Mapping[str, object], key: bytes, now: datetime | None = None, limits: Limits | None = None
    ) -> PathedExecution: ...


class ScriptedProgram(Protocol):
    """One that is quicker where it knows beforehand what it will be answered."""

    def start_scripted(
        self,
        inputs: Mapping[str, object],
        key: bytes,
        now: datetime | None,
        limits: Limits | None,
        exchanges: Sequence[Exchange],
    ) -> PathedExecution: ...


def is_scripted(program: PathedProgram) -> TypeGuard[ScriptedProgram]:
    """Not by `isinstance`, which looks at every method of such a protocol anew: it stands on every request that is
    followed, and took a fifth of that."""
    return hasattr(type(program), "start_scripted")


@dataclass(frozen=True, slots=True)
class Broke:
    """The direct engine gave no answer that could be compared."""

    what: str
    error: BaseException | None = None
    """What it raised, where it raised."""
    is_fault: bool = True
    """False where it is not to blame: a limit that the caller gave, or it was not asked."""


@lru_cache(64)
def _usual(deadline: float | None) -> Limits:
    """Made once, because it stands on every request."""
    return Limits(DEFAULT_LIMITS.fuel, deadline)


class DirectSide:
    """One execution of the direct engine. `deadline` is how many seconds it may compute, whatever its limits are."""

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
        """`script` is what it will be advanced with, where that is known."""
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
            self._limits = _usual(deadline) if limits is None else Limits(limits.fuel, deadline)
        self._deadline = deadline
        self._is_sensitive = is_sensitive
        self._execution: PathedExecution | None = None
        self._ready: Done | Broke | None = None
        self._waits_for = 0
        self._spent_ns = 0
        self.points = b""
        """The path so far."""
        self.fingerprint = 0
        """Of what was read; known when it has ended."""

    @property
    def took_ns(self) -> int:
        """How long it computed."""
        return self._spent_ns

    def call(self) -> Done | Broke:
        """The whole execution of a node without effects, in one call. The first `advance` gives the same again."""
        began = time.perf_counter_ns()
        try:
            answer = self._program.call_pathed(self._inputs, self._key, self._now, self._limits)
            self.points, self.fingerprint = answer.path, answer.fingerprint
            step: Done | Broke = Done(answer.outcome, ())
        except BaseException as error:  # noqa: BLE001  # a panic is no `Exception`
            step = self._raised(error)
        self._spent_ns += time.perf_counter_ns() - began
        judged = self._judged(step)
        assert not isinstance(judged, Blocked)
        self._ready = judged
        return judged

    def advance(self, answer: Exchange | None) -> Blocked | Done | Broke:
        """Goes on with what came of the request that it waits for; None at the beginning."""
        if self._ready is not None:
            ready, self._ready = self._ready, None
            return ready
        began = time.perf_counter_ns()
        try:
            step: Blocked | Done | Broke = self._moved(answer)
        except BaseException as error:  # noqa: BLE001  # a panic is no `Exception`
            step = self._raised(error)
        self._spent_ns += time.perf_counter_ns() - began
        return self._judged(step)

    def _moved(self, answer: Exchange | None) -> Blocked | Done:
        if self._execution is None:
            given = (self._inputs, self._key, self._now, self._limits)
            if self._script and is_scripted(self._program):
                self._execution = self._program.start_scripted(*given, self._script)
            else:
                self._execution = self._program.start_pathed(*given)
        completions = () if answer is None else (Completion(self._waits_for, answer.value, answer.failure),)
        step = self._execution.advance(completions)
        if isinstance(step, Blocked):
            (request,) = step.requests
            self._waits_for = request.id
        else:
            self.fingerprint = self._execution.fingerprint()
        self.points = self._execution.path()
        return step

    def _raised(self, error: BaseException) -> Broke:
        if isinstance(error, _NOT_ITS_OWN) or _is_cancellation(error):
            raise error
        if isinstance(error, NotAsked):
            return Broke(str(error), error, is_fault=False)
        # A message may hold a value, and what is said of a fault is kept where nothing is encrypted.
        told = type(error).__name__ if self._is_sensitive else f"{type(error).__name__}: {error}"
        return Broke(f"it raised {told}"[:_MESSAGE], error)

    def _judged(self, step: Blocked | Done | Broke) -> Blocked | Done | Broke:
        if isinstance(step, Done):
            match step.outcome:
                case EngineFault(message):
                    told = "" if self._is_sensitive else f": {message}"
                    return Broke(f"it is at fault{told}"[:_MESSAGE])
                case LimitHit("time") if not self._has_own_deadline:
                    return Broke("the limit on time was hit", is_fault=False)
                case LimitHit("time"):
                    return self._late()
                case LimitHit(limit) if limit != "fuel":
                    return Broke(f"it hit a limit on {limit}, which is not its own"[:_MESSAGE])
        is_late = self._deadline is not None and self._spent_ns > self._deadline * 1_000_000_000
        return self._late() if is_late and not isinstance(step, Broke) else step

    def _late(self) -> Broke:
        return Broke(f"it computed for more than {self._deadline:g} s")


class Trail:
    """What the note of a path is made of, as an execution goes on."""

    def __init__(self) -> None:
        self._settled: tuple[str, ...] = ()
        """Each way that a step came out, in order: rounds of a loop add nothing new."""
        self._prefixes: dict[str, None] = {}

    def settle(self, exchange: Exchange) -> None:
        text = settled_text(exchange.request.path, exchange.failure)
        if text not in self._settled:
            self._settled = tuple(sorted((*self._settled, text)))

    def prefix(self, points: bytes, step: str) -> str:
        """The name of the prefix at a request that changes something."""
        name = prefix_name(points, self._settled, step)
        self._prefixes[name] = None
        return name

    def note(self, points: bytes, outcome: Outcome) -> PathNote:
        return PathNote(points, self._settled, ending_of(outcome), tuple(self._prefixes))


def _is_cancellation(error: BaseException) -> bool:
    """True for `asyncio.CancelledError`: there is none where nobody has loaded `asyncio`, and that takes long."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)
