"""The Engine protocol: what the verifier, the controller, the debugger and the commands know of an engine, and all
they know.

A program is `call`ed when only its outcome counts, and `start`ed when somebody watches: an execution is advanced with
the completions of what it asked for until it is done. An engine never performs an effect; it asks. Executions of pure
programs never block and end at the first `advance`.

Every execution has limits (docs/spec/limits.md). Whoever watches may be told of each mark as it comes: `observe(index,
value)`. The python engine calls it when the expression has its value, the direct engine when `advance` comes back; both
in the order of evaluation, each mark once, and all of them before `Done` is given. What the observer raises goes to who
advanced the execution, which is not to be advanced again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from vesper.engines.outcome import Outcome
from vesper.values.limits import DEFAULT_FUEL, MAX_FUEL
from vesper.values.model import Value

if TYPE_CHECKING:
    from vesper.compiler import Compiled  # a process that only runs nodes loads no compiler

Marks: TypeAlias = tuple[tuple[int, Value], ...]
"""`(index, value)` of every observed expression, in the order in which they were evaluated."""


Observer: TypeAlias = Callable[[int, Value], None]
"""Told of each mark."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one execution may use up, with the nodes that it calls."""

    fuel: int = DEFAULT_FUEL
    """Units: the same number on every engine."""
    seconds: float | None = None
    """How long it may compute; time in which it waits does not count. None is as long as the fuel lasts."""

    def __post_init__(self) -> None:
        if type(self.fuel) is not int or not 0 <= self.fuel <= MAX_FUEL:
            raise ValueError(f"fuel is a number of units from 0 to {MAX_FUEL}, not {self.fuel!r}")
        if self.seconds is not None and not 0 <= self.seconds <= _MAX_SECONDS:
            raise ValueError(f"seconds are a number from 0 to {_MAX_SECONDS:,}, not {self.seconds!r}")


_MAX_SECONDS = 1_000_000_000
UNLESS_SAID = Limits()


@dataclass(frozen=True, slots=True)
class Request:
    """An effect that an execution asks for. Only the Host performs it."""

    id: int
    path: str
    """The step, in loops with the iteration (`charge[2]`), of a called node under the calling step (`pay/charge`)."""
    effect: str
    effect_class: str
    fixed: Mapping[str, str]
    arguments: Mapping[str, Value]
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """What came of a request: a value in its Python form, or the code of a failure."""

    id: int
    result: object = None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Blocked:
    """The execution waits for these requests."""

    requests: tuple[Request, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """The execution has ended."""

    outcome: Outcome
    marks: Marks
    requests: tuple[Request, ...] = ()
    """What was asked for on the way, where whoever ran the execution noted it."""
    is_observed: bool = True
    """False where the engine was not asked for marks: that there are none then says nothing."""
    way: tuple[bytes, int] | None = None
    """The path and the fingerprint, where they were asked for."""


class Execution(Protocol):
    """One run of a program, advanced from outside."""

    def advance(self, completions: Sequence[Completion]) -> Blocked | Done: ...


class Program(Protocol):
    """One node, loaded by one engine. Immutable; safe to use from several threads."""

    @property
    def semantic_hash(self) -> str: ...

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        """Run a pure program to the end; nothing is observed. `now` is the start, for nodes that may ask for it."""

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> Execution:
        """Begin an execution. One that is not traced has no marks, and nobody to tell of them."""


Unwrap: TypeAlias = Callable[[Outcome, Mapping[str, Any]], dict[str, Any]]
"""Returns the outputs of an outcome; raises the exception of an outcome without outputs."""


class FastEntry(ABC):
    """A `Program` with entries that bypass `call`.

    Every entry runs without limits of its own and is None where the node needs `call`.
    """

    @abstractmethod
    def fast_entry(self, unwrap: Unwrap, takes_now: bool) -> Callable[..., dict[str, Any]] | None:
        """Return a function from a dict of inputs to a dict of outputs.

        It raises what `unwrap` raises. With `takes_now` it has the keyword `now`, the start of the execution.
        """

    def fast_entry_for_many(self, unwrap: Unwrap) -> Callable[[list[Any]], list[dict[str, Any]]] | None:
        """Return the same function for a list of inputs; an exception has a note of the place."""
        return None

    def json_entry(self) -> Callable[..., bytes] | None:
        """Return a function from JSON text, and `now` where the node takes it, to the outcome as canonical JSON."""
        return None


class ModalProgram(ABC):
    """A `Program` that selects the engine of each request by the mode of the node."""

    @property
    @abstractmethod
    def mode(self) -> str:
        """The mode that this process applies."""

    @abstractmethod
    def rerun(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        """Return the outcome of a request that was served, without counting a second request."""


class Unobserved:
    """Marks a `Program` whose executions have no marks: it only repeats what an observed program runs."""


class Engine(Protocol):
    @property
    def name(self) -> str: ...

    def load(self, compiled: Compiled) -> Program: ...


class EngineUnavailable(Exception):
    """The engine cannot work in this process; the message says why and what to do."""


class PureExecution:
    """The execution of a program without effects: one `advance` runs it to the end."""

    def __init__(self, run: Callable[[], Done]) -> None:
        self._run: Callable[[], Done] | None = run

    def advance(self, completions: Sequence[Completion]) -> Done:
        if self._run is None:
            raise ValueError("this execution has ended")
        if completions:
            raise ValueError("a pure program asked for nothing that could be completed")
        run, self._run = self._run, None
        return run()


class NowMissing(ValueError):
    """The node may ask for the start of its execution, and nobody said when that is."""

    def __init__(self, node_id: str) -> None:
        super().__init__(f"{node_id} is no function: say when the execution starts (`now`)")


def run_observed(
    program: Program, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None
) -> Done:
    """The outcome and the marks of one execution of a pure program."""
    step = program.start(inputs, now, limits).advance(())
    if isinstance(step, Blocked):
        raise ValueError(f"the program asks for {step.requests[0].effect} and there is no host to perform it")
    return step
