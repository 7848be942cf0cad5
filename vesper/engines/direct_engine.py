"""The direct engine: loads canonical IR into the Rust extension. The only module that imports `vesper._direct`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from vesper import _direct
from vesper.engines.engine import (
    DEFAULT_LIMITS,
    Blocked,
    Completion,
    Done,
    FastEntry,
    Limits,
    Observer,
    Raises,
    Request,
    Unwrap,
)
from vesper.engines.outcome import (
    ContractBroken,
    DeclaredError,
    Denied,
    EngineFault,
    Failed,
    LimitHit,
    Outcome,
    Returned,
)
from vesper.engines.path import Pathed, Point
from vesper.engines.tiering import INTERPRETED, Tiering, tiering
from vesper.kernels import raised
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import Problem, ProblemKind

if TYPE_CHECKING:
    from vesper._direct import _RawCompletion, _RawMarks, _RawOutcome, _RawRequest
    from vesper.cache.proofs import ProvenChecks
    from vesper.compiler import Compiled  # a process that only runs nodes imports no compiler


Flight = _direct.Flight
"""Two counters in memory that outlives the process (`vesper/migration/workers/inflight_counters.py`)."""
Route = _direct.Route
"""The entry of a node that is being moved over (`vesper/migration/router/fast_entry.py`)."""


NotCompiled = _direct.NotCompiled
"""There is no machine code of a node; the message has the reason."""
Batches = _direct.Batches
"""The rows of a table, run on demand (`vesper/batch/table.py`)."""
Explain = Callable[["_RawOutcome", Any], tuple[str, str, str | None, str]]
"""Returns kind, code, place and message of a row without outputs.

Receives the raw outcome, and for refused inputs the given value: a dict, or a JSON text.
"""


class Plan(IntEnum):
    """The decision of a `Route` about a request that it leaves to Python."""

    OPEN = 0
    """Undecided."""
    DIRECT = 1
    """The direct engine, where the path is trusted."""
    FOLLOWED = 2
    """Python leads, and is followed."""
    PYTHON = 3
    """Python alone; counted already."""


class DirectEngine:
    """The interpreter of the direct engine; with another tiering, with machine code too."""

    name = "interp"

    def __init__(self, tiering: Tiering = INTERPRETED) -> None:
        self._tiering = tiering

    def load(self, compiled: Compiled) -> DirectProgram:
        callees = all_callees(compiled)
        proven: Sequence[ProvenChecks] = ()
        if self._tiering.proofs != "off":
            from vesper.engines.proven_checks import proven_checks

            proven = proven_checks([compiled, *callees], self._tiering.proofs)
        return load_documents(compiled.ir, [each.ir for each in callees], self._tiering, proven)


class TieredEngine:
    """The direct engine as users run it: interpreted first, machine code where a node is hot."""

    name = "jit"

    def __init__(self, configured: Tiering | None = None) -> None:
        """`configured` is the `[engine]` table of `vesper.toml`."""
        self._configured = configured

    def load(self, compiled: Compiled) -> DirectProgram:
        """Load a node. Raises `EngineUnavailable` where the environment has an invalid setting."""
        return DirectEngine(tiering(self._configured)).load(compiled)


def load_documents(
    ir: bytes, callees: Sequence[bytes], tiering: Tiering = INTERPRETED, proven: Sequence[ProvenChecks] = ()
) -> DirectProgram:
    """Load a node from its document and those of its callees, without a `Compiled`.

    Callees are at any depth. The plain form leaves out the proven checks.
    """
    given: dict[str, Any] = {"proven": proven} if proven else {}
    program = _direct.Program.load(
        ir,
        callees,
        tiering.is_optimised,
        jit=tiering.jit,
        jit_calls=tiering.calls,
        jit_operations=tiering.operations,
        max_code_bytes=tiering.max_code_mb << 20,
        jit_fail_guard=tiering.fail_guard,
        **given,
    )
    return DirectProgram(program)


def confine(readable: Sequence[str]) -> list[str]:
    """Confine this process for good, and return the missing features of the kernel.

    See docs/spec/sandbox.md. Raises `OSError`.
    """
    return _direct.confine(readable)


def all_callees(compiled: Compiled) -> list[Compiled]:
    """Return the nodes that a node calls, at any depth, each once."""
    found: dict[str, Compiled] = {}
    waiting = list(compiled.callees)
    while waiting:
        callee = waiting.pop()
        if callee.semantic_hash not in found:
            found[callee.semantic_hash] = callee
            waiting += callee.callees
    return list(found.values())


@dataclass(frozen=True, slots=True)
class FormTier:
    """The machine code of one form of a node."""

    stage: Literal["off", "cold", "queued", "installed", "resting", "refused"]
    """`resting`: the machine code was slower than the interpreter, and is tried again later."""
    reason: str | None
    """Why it is refused."""
    bytes: int
    """Size of the machine code."""
    guards: int
    """Count of the places where it may return to the interpreter."""
    entered: int
    """How often machine code was entered."""
    exits: int
    """How often a guard failed, so that the interpreter continued."""
    expressed: int
    """How many of those calls ran without a frame."""
    rests: int


@dataclass(frozen=True, slots=True)
class ProgramTier:
    plain: Mapping[str, FormTier]
    """The form that calls run, of the node and of its callees, by id."""
    pathed: FormTier | None
    """The form that records the path; None until a path is requested."""


@dataclass(frozen=True, slots=True)
class TierCounters:
    """Machine code of this process; freed programs count too, except in `bytes`."""

    compiled: int
    refused: int
    nanoseconds: int
    """Time spent compiling."""
    bytes: int
    """Size of the machine code in use."""


def tier_counters() -> TierCounters:
    return TierCounters(**_direct.tier_counters())


class DirectProgram(FastEntry):
    """A node on the direct engine. `entry` and `run_json` are methods of the extension, with no Python between."""

    def __init__(self, program: _direct.Program) -> None:
        self._program = program
        entry = self._entry()
        self._outcome = entry.outcome
        self._pathed = entry.pathed
        self.entry = entry.outputs
        """Returns the outputs of a node without effects.

        Raises other outcomes: the exceptions of `vesper.kernels.raised`, and `RuntimeError` for a limit or an engine
        fault.
        """
        self.run_json = entry.json
        """JSON text to the outcome as canonical JSON (docs/spec/values.md), without Python objects."""

    @property
    def semantic_hash(self) -> str:
        return self._program.semantic_hash

    @property
    def asks(self) -> bool:
        """True where an execution may make requests."""
        return self._program.asks

    @property
    def native(self) -> _direct.Program | None:
        return None if self._program.asks else self._program

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        if limits is None:
            return self._outcome(inputs, now)  # type: ignore[arg-type]  # it refuses what is no dict
        fuel, seconds, memory = limits.fuel, limits.seconds, limits.memory
        return outcome_from_raw(self._program.call(inputs, now, fuel, seconds, memory))  # type: ignore[arg-type]  # as above

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> DirectExecution:
        given = limits or DEFAULT_LIMITS
        begun = self._program.start(inputs, now, is_traced, given.fuel, given.seconds, given.memory)  # type: ignore[arg-type]  # as above
        return DirectExecution(begun, observe)

    def _entry(self, explain_json: Callable[[bytes, bytes], bytes] | None = None) -> _direct.Entry:
        return _direct.Entry(self._program, Returned, outcome_from_raw, _refuse, explain_json)

    def tier(self) -> ProgramTier:
        """Return the machine code of the node and of its callees."""
        found = self._program.tier()
        pathed = found["pathed"]
        plain = {node: FormTier(**form) for node, form in found["plain"].items()}
        return ProgramTier(plain, None if pathed is None else FormTier(**pathed))

    def look(self, what: str) -> str:
        """Return a readable form of the node.

        `ir-optimized`, `bytecode`, or machine code in the notation of Cranelift (`clif`) or of an assembler (`asm`).
        Raises `NotCompiled` where there is none.
        """
        return self._program.look(what)

    def batches(
        self,
        table: object,
        explain: Explain,
        *,
        form: str,
        decimals: str | Sequence[tuple[str, int]] | None,
        keep: Sequence[str],
        error_column: str,
        threads: int,
        now: datetime | None,
        limits: Limits | None,
    ) -> _direct.Batches:
        """Return the rows of an Arrow table as batches. Raises `ValueError` for a table that does not fit the node."""
        given = limits or DEFAULT_LIMITS
        return _direct.Batches(
            self._program,
            table,
            explain,
            form=form,
            decimals=decimals,
            keep=keep,
            error_column=error_column,
            threads=threads,
            now=now,
            fuel=given.fuel,
            seconds=given.seconds,
            memory=given.memory,
        )

    def points(self) -> tuple[Point, ...]:
        """Return the points that an execution may pass, by their number in a path."""
        return tuple(Point(*each) for each in self._program.points())

    def call_pathed(
        self,
        inputs: Mapping[str, object],
        key: bytes,
        now: datetime | None = None,
        limits: Limits | None = None,
    ) -> Pathed:
        """Run as `call`, with the path and the fingerprint under this key of 16 bytes."""
        if limits is None:
            return Pathed(*self._pathed(inputs, key, now))  # type: ignore[arg-type]  # as above
        raw, path, fingerprint = self._program.call_pathed(
            inputs,  # type: ignore[arg-type]  # as above
            key,
            now,
            limits.fuel,
            limits.seconds,
            limits.memory,
        )
        return Pathed(outcome_from_raw(raw), path, fingerprint)

    def fast_entry(
        self, unwrap: Unwrap, takes_now: bool, raises: Raises | None = None
    ) -> Callable[..., dict[str, Any]] | None:
        """Return an entry of the extension, with no Python between; None for a node with effects or a start time."""
        entry = None if takes_now else self._fast_entries(unwrap, raises)
        return None if entry is None else entry.call

    def fast_entry_for_many(
        self, unwrap: Unwrap, raises: Raises | None = None
    ) -> Callable[[list[Any]], list[dict[str, Any]]] | None:
        """Return an entry like `fast_entry` that takes a list of inputs in one call."""
        entry = self._fast_entries(unwrap, raises)
        return None if entry is None else entry.map

    def json_entry(self, explain: Callable[[bytes, bytes], bytes] | None = None) -> Callable[..., bytes]:
        """Return `run_json`, or the same function with explained outcomes."""
        return self.run_json if explain is None else self._entry(explain).json

    def _fast_entries(self, unwrap: Unwrap, raises: Raises | None) -> _direct.Way | None:
        if self._program.asks or self._program.uses_now:
            return None
        return _direct.Way(self._program, lambda raw, inputs: unwrap(outcome_from_raw(raw), inputs), raises)

    def route(
        self,
        reference: Callable[..., Any],
        slow: Callable[[int, dict[str, Any]], dict[str, Any]],
        hand_over: Callable[[Mapping[str, Any], Mapping[str, Any] | None, int | None, bool, str | None], None],
        hurry: Callable[[], None],
        flights: tuple[_direct.Flight, _direct.Flight],
        *,
        is_bare: bool,
        deadline: float,
        most_bytes: int,
        keeps: bool,
    ) -> _direct.Route:
        """Return an entry that starts in Python alone and changes with the mode."""
        return _direct.Route(
            self._program,
            reference,
            slow,
            hand_over,
            hurry,
            flights,
            is_bare=is_bare,
            deadline=deadline,
            most_bytes=most_bytes,
            keeps=keeps,
        )

    def start_pathed(
        self,
        inputs: Mapping[str, object],
        key: bytes,
        now: datetime | None = None,
        limits: Limits | None = None,
    ) -> DirectExecution:
        """Begin as `start`, with a path and a fingerprint, and without marks.

        `key`, of 16 bytes, is the key of the fingerprint.
        """
        given = limits or DEFAULT_LIMITS
        begun = self._program.start_pathed(inputs, key, now, given.fuel, given.seconds, given.memory)  # type: ignore[arg-type]  # as above
        return DirectExecution(begun)


class DirectExecution:
    """One run on the direct engine. The extension holds its state; this class converts requests and outcomes."""

    def __init__(self, execution: _direct.Execution, observe: Observer | None = None) -> None:
        self._execution = execution
        self._observe = observe
        self._observed = 0
        """How many marks the observer received."""
        self._has_begun = False

    @property
    def native(self) -> _direct.Execution | None:
        """The execution of the extension, for the run loop of a Host; None where an observer receives marks."""
        return self._execution if self._observe is None else None

    def advance(self, completions: Sequence[Completion]) -> Blocked | Done:
        if completions and not self._has_begun:
            raise ValueError("nothing was asked for that could be completed")
        step = self._execution.advance(*(_completion(each) for each in completions))
        self._has_begun = True
        if step[0] == "blocked":
            if self._observe is not None:
                self._report_marks(self._observe, self._execution.marks_from(self._observed))
            return Blocked(tuple([_request(each) for each in step[1]]))
        if self._observe is not None:
            self._report_marks(self._observe, step[2][self._observed :])
        return Done(outcome_from_raw(step[1]), tuple(step[2]))

    def path(self) -> bytes:
        """Return the points passed so far. Raises `ValueError` unless `start_pathed` began the execution."""
        return self._execution.path()

    def fingerprint(self) -> int:
        """Return the fingerprint of all values read so far. Raises as `path` does."""
        return self._execution.fingerprint()

    def _report_marks(self, observe: Observer, marks: _RawMarks) -> None:
        for index, value in marks:
            observe(index, value)
        self._observed += len(marks)


def _completion(completion: Completion) -> _RawCompletion:
    if completion.failure is not None:
        return completion.id, "failed", completion.failure
    return completion.id, "value", completion.result


def _request(raw: _RawRequest) -> Request:
    return Request(raw["id"], raw["path"], raw["effect"], raw["class"], raw["fixed"], raw["arguments"], raw["key"])


def outcome_from_raw(raw: _RawOutcome) -> Outcome:
    match raw:
        case ("returned", value):
            return Returned(value)
        case ("declared_error", value):
            return DeclaredError(value)
        case ("failed", code, at, problems):
            found = tuple(Problem(path, ProblemKind(kind)) for path, kind in problems)
            return Failed(ErrorCode(code) if code in _CODES else code, at, found)
        case ("contract_broken", phase, index, values):
            return ContractBroken(phase, index, values)
        case ("denied", capability):
            return Denied(capability)
        case ("limit_hit", limit):
            return LimitHit(limit)
        case ("engine_fault", message):
            return EngineFault(message)


def outcome_of_raw(raw: _RawOutcome) -> Outcome:
    """Return the outcome of a raw outcome, for callbacks from the extension."""
    return outcome_from_raw(raw)


def _refuse(raw: _RawOutcome) -> NoReturn:
    """Raise the exception of an outcome without outputs."""
    # A function of its own makes the exception: a local name for it would form a cycle with its traceback, which
    # stays in memory until the next collection.
    raise _exception(outcome_from_raw(raw))


def _exception(outcome: Outcome) -> Exception:
    match outcome:
        case DeclaredError(value):
            return raised.DeclaredError(value)
        case ContractBroken(phase, index, values):
            return raised.ContractBroken(phase, index, values)
        case Failed(code, _, problems):
            failure = raised.Raised(code)
            for problem in problems:
                failure.add_note(f"{problem.path}: {problem.kind}")
            return failure
        case Denied(capability):
            return RuntimeError(f"the capability {capability} is needed and not granted")
        case LimitHit(limit):
            return RuntimeError(f"the limit on {limit} was hit")
        case EngineFault(message):
            return RuntimeError(f"engine fault: {message}")
        case Returned():
            return AssertionError("outputs are given back, not refused")


_CODES = frozenset(code.value for code in ErrorCode)


def decimal_access() -> str:
    """Return how decimals cross the boundary on this Python: `layout`, or `text: ` and the reason."""
    return _direct.decimal_access()


def dict_access() -> str:
    """Return how dict entries are read on this Python: `layout`, or `api: ` and the reason."""
    return _direct.dict_access()


def code_stats() -> dict[str, Any] | None:
    """Return the counters of machine code of this process; None for a build without machine code."""
    counters: Callable[[], dict[str, Any]] | None = getattr(_direct, "tier_counters", None)
    return None if counters is None else dict(counters())


@lru_cache(maxsize=1)
def build() -> str:
    """Return the hash of the extension: two builds of one version may differ."""
    import hashlib
    from pathlib import Path

    return hashlib.sha256(Path(_direct.__file__).read_bytes()).hexdigest()
