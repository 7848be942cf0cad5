"""The Engine protocol, through which all other components use an engine.

A program is `call`ed for its outcome, and `start`ed to be observed: an execution is advanced with the completions of
its requests until it is done. An engine never performs an effect; it makes requests. Executions of pure programs never
block and end at the first `advance`.

Every execution has limits (docs/spec/limits.md). An observer receives each mark: `observe(index, value)`. The python
engine calls it when the expression has its value, or in a strand when its statement ends; the direct engine when
`advance` returns; both in the order of docs/spec/ir.md, each mark once, and all of them before `Done`. An exception of
the observer propagates from `advance`, and the execution must not be advanced again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from vesper.engines.outcome import Outcome
from vesper.values.limits import DEFAULT_FUEL, DEFAULT_MEMORY, MAX_FUEL, MAX_MEMORY
from vesper.values.model import Value

if TYPE_CHECKING:
    from vesper.compiler import Compiled  # a process that only runs nodes imports no compiler

Marks: TypeAlias = tuple[tuple[int, Value], ...]
"""`(index, value)` of every observed expression, in the order of evaluation."""


Observer: TypeAlias = Callable[[int, Value], None]
"""Receives each mark."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one execution, with the nodes that it calls."""

    fuel: int = DEFAULT_FUEL
    """Units, counted alike on every engine."""
    seconds: float | None = None
    """Time that it may compute, without the time it waits. None is unlimited."""
    memory: int = DEFAULT_MEMORY
    """Bytes of its values, counted alike on every engine."""

    def __post_init__(self) -> None:
        if type(self.fuel) is not int or not 0 <= self.fuel <= MAX_FUEL:
            raise ValueError(f"fuel is a number of units from 0 to {MAX_FUEL}, not {self.fuel!r}")
        if type(self.memory) is not int or not 0 <= self.memory <= MAX_MEMORY:
            raise ValueError(f"memory is a number of bytes from 0 to {MAX_MEMORY}, not {self.memory!r}")
        if self.seconds is not None and not 0 <= self.seconds <= _MAX_SECONDS:
            raise ValueError(f"seconds are a number from 0 to {_MAX_SECONDS:,}, not {self.seconds!r}")


_MAX_SECONDS = 1_000_000_000
DEFAULT_LIMITS = Limits()
MEBIBYTE = 1 << 20


LIMIT_NAMES = ("total_timeout_us", "memory_limit_mb")
"""Limits of one execution among the policies of a node."""


def limits_of_node(limits: Limits | None, policy: Mapping[str, object]) -> Limits | None:
    """Return the limits of a caller, lowered to those that the node declares; None where neither has any."""
    seconds, memory = policy.get("total_timeout_us"), policy.get("memory_limit_mb")
    if isinstance(seconds, int):
        own = seconds / 1_000_000
        given = limits or DEFAULT_LIMITS
        limits = replace(given, seconds=own if given.seconds is None else min(own, given.seconds))
    if isinstance(memory, int):
        given = limits or DEFAULT_LIMITS
        limits = replace(given, memory=min(memory * MEBIBYTE, given.memory))
    return limits


@dataclass(frozen=True, slots=True)
class Request:
    """A request for an effect. Only the Host performs it."""

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
    """The result of a request in its Python form, or a failure code."""

    id: int
    result: object = None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Blocked:
    """The execution waits for these requests, one wave in written order.

    A driver hands in the completions of all, or of the first ones: then the execution waits for the others.
    """

    requests: tuple[Request, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """The execution has ended."""

    outcome: Outcome
    marks: Marks
    requests: tuple[Request, ...] = ()
    """The requests of the execution, where its driver noted them."""
    is_observed: bool = True
    """False where marks were not requested: their absence then means nothing."""
    way: tuple[bytes, int] | None = None
    """The path and the fingerprint, where they were requested."""
    failed: tuple[tuple[str, str], ...] = ()
    """Path and code of each request that failed, where its driver noted them."""


class Execution(Protocol):
    """One run of a program, advanced by its driver."""

    def advance(self, completions: Sequence[Completion]) -> Blocked | Done: ...


class Program(Protocol):
    """One node, loaded by one engine. Immutable and thread-safe."""

    @property
    def semantic_hash(self) -> str: ...

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        """Run a pure program to the end, unobserved. `now` is the start, for nodes that may read it."""

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> Execution:
        """Begin an execution. An untraced one has no marks."""


Unwrap: TypeAlias = Callable[[Outcome, Mapping[str, Any]], dict[str, Any]]
"""Returns the outputs of an outcome; raises the exception of an outcome without outputs."""


@dataclass(frozen=True, slots=True)
class Raises:
    """The exceptions of ends without outputs. The direct engine raises them itself; each takes an ending."""

    bad_input: type[Exception]
    contract_broken: type[Exception]
    declared_error: type[Exception]
    failed: type[Exception]
    stopped: type[Exception]
    explain: Callable[[Any, Mapping[str, Any]], object]
    """Explains a raw outcome of the extension and the refused inputs."""


PYTHON = "python"
DIRECT = "direct"
"""Paths of an execution in metrics and spans."""


class FastEntry(ABC):
    """A `Program` with entries that bypass `call`.

    Every entry runs without limits of its own and is None where the node needs `call`.
    """

    execution_path: ClassVar[str] = DIRECT
    """The label `path` of its metrics."""

    @abstractmethod
    def fast_entry(
        self, unwrap: Unwrap, takes_now: bool, raises: Raises | None = None
    ) -> Callable[..., dict[str, Any]] | None:
        """Return a function from a dict of inputs to a dict of outputs.

        It raises what `unwrap` raises, or where it can `raises` without calling Python. With `takes_now` it has the
        keyword `now`, the start of the execution.
        """

    def fast_entry_for_many(
        self, unwrap: Unwrap, raises: Raises | None = None
    ) -> Callable[[list[Any]], list[dict[str, Any]]] | None:
        """Return an entry like `fast_entry` that takes a list of inputs.

        An exception has a note with the position of its input.
        """
        return None

    def json_entry(self, explain: Callable[[bytes, bytes], bytes] | None = None) -> Callable[..., bytes] | None:
        """Return a function from JSON text to the outcome as canonical JSON.

        It also takes `now` where the node takes it. `explain` adds texts to an outcome without outputs, from it and the
        JSON text.
        """
        return None

    @property
    def native(self) -> object | None:
        """Return the object of the extension that an HTTP server runs without Python, or None."""
        return None


class Repeatable(ABC):
    """A `Program` that counts its requests, and can repeat one uncounted."""

    @abstractmethod
    def rerun(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        """Return the outcome of a request that was served, without counting a second request."""


class ModalProgram(Repeatable):
    """A `Program` that selects the engine of each request by the mode of the node."""

    @property
    @abstractmethod
    def mode(self) -> str:
        """The mode that this process applies."""


class Unobserved:
    """Marker of a `Program` whose executions have no marks. It only repeats executions of an observed program."""


class Engine(Protocol):
    @property
    def name(self) -> str: ...

    def load(self, compiled: Compiled) -> Program: ...


class EngineUnavailable(Exception):
    """The engine cannot work in this process; the message has the reason and the remedy."""


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
    """The node may read the start of its execution, and the caller gave none."""

    def __init__(self, node_id: str) -> None:
        super().__init__(f"{node_id} is no function: say when the execution starts (`now`)")


def run_observed(
    program: Program, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None
) -> Done:
    """Return the outcome and the marks of one execution of a pure program."""
    step = program.start(inputs, now, limits).advance(())
    if isinstance(step, Blocked):
        raise ValueError(f"the program asks for {step.requests[0].effect} and there is no host to perform it")
    return step
