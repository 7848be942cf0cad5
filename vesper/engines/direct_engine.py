"""The direct engine: hands canonical IR to the Rust interpreter. The only module that imports `vesper._direct`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from vesper import _direct
from vesper.engines.engine import UNLESS_SAID, Blocked, Completion, Done, FastEntry, Limits, Observer, Request, Unwrap
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
    from vesper.compiler import Compiled  # a process that only runs nodes loads no compiler


Flight = _direct.Flight
"""Two counters in memory that outlives the process (`vesper/migration/workers/inflight_counters.py`)."""
Route = _direct.Route
"""The way into a node that is being moved over (`vesper/migration/router/fast_entry.py`)."""


NotCompiled = _direct.NotCompiled
"""There is no machine code of a node; the message says why."""
Batches = _direct.Batches
"""The rows of a table, run when somebody asks for them (`vesper/batch/table.py`)."""
Explain = Callable[["_RawOutcome", Any], tuple[str, str, str | None, str]]
"""What is said of a row without outputs: kind, code, place and message. It is given the outcome as the engine has it,
and where the inputs do not fit what was given for them: a dict, or a JSON text."""


class Plan(IntEnum):
    """What a `Route` has decided of a request that it leaves to Python."""

    OPEN = 0
    """Nothing."""
    DIRECT = 1
    """The direct engine, as far as it is trusted."""
    FOLLOWED = 2
    """Python leads, and is followed."""
    PYTHON = 3
    """Python alone. It is counted already."""


class DirectEngine:
    """The interpreter of the direct path; with another tiering, the same with machine code."""

    name = "interp"

    def __init__(self, tiering: Tiering = INTERPRETED) -> None:
        self._tiering = tiering

    def load(self, compiled: Compiled) -> DirectProgram:
        return load_documents(compiled.ir, [each.ir for each in all_callees(compiled)], self._tiering)


class TieredEngine:
    """The direct path as it is meant to be used: interpreted first, machine code where a node is hot."""

    name = "jit"

    def __init__(self, configured: Tiering | None = None) -> None:
        """`configured` is what `vesper.toml` says."""
        self._configured = configured

    def load(self, compiled: Compiled) -> DirectProgram:
        """Raises `EngineUnavailable` where the environment says what cannot be."""
        return DirectEngine(tiering(self._configured)).load(compiled)


def load_documents(ir: bytes, callees: Sequence[bytes], tiering: Tiering = INTERPRETED) -> DirectProgram:
    """A node from its document and those of all nodes that it calls: for a process that has nothing else of it."""
    program = _direct.Program.load(
        ir,
        callees,
        tiering.is_optimised,
        jit=tiering.jit,
        jit_calls=tiering.calls,
        jit_operations=tiering.operations,
        max_code_bytes=tiering.max_code_mb << 20,
        jit_fail_guard=tiering.fail_guard,
    )
    return DirectProgram(program)


def all_callees(compiled: Compiled) -> list[Compiled]:
    """The nodes that a node calls, at any depth, each once."""
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
    """What is made of one form of a node."""

    stage: Literal["off", "cold", "queued", "installed", "resting", "refused"]
    """`resting`: the machine code was slower than the interpreter, and is tried again later."""
    reason: str | None
    """Why it is refused."""
    bytes: int
    """Of machine code."""
    guards: int
    """How many places it has where it may go back to the interpreter."""
    entered: int
    """How often machine code was entered,"""
    exits: int
    """and how often a guard failed, so that the interpreter went on from there."""
    expressed: int
    """How many of those calls were run without a frame."""
    rests: int


@dataclass(frozen=True, slots=True)
class ProgramTier:
    plain: Mapping[str, FormTier]
    """The form that calls run, of the node and of those it calls, by their ids."""
    pathed: FormTier | None
    """The form that says which way a run went; None where nobody has asked for that."""


@dataclass(frozen=True, slots=True)
class TierCounters:
    """What this process has made; programs that are gone count too, except in `bytes`."""

    compiled: int
    refused: int
    nanoseconds: int
    """Of compiling."""
    bytes: int
    """Of machine code that is held now."""


def tier_counters() -> TierCounters:
    return TierCounters(**_direct.tier_counters())


class DirectProgram(FastEntry):
    """A node on the Rust engine. `entry` and `run_json` are its own methods: nothing of Python stands between."""

    def __init__(self, program: _direct.Program) -> None:
        self._program = program
        entry = _direct.Entry(program, Returned, _outcome, _refuse)
        self._outcome = entry.outcome
        self._pathed = entry.pathed
        self.entry = entry.outputs
        """The outputs of a node without effects. Other outcomes are raised: the exceptions of `vesper.kernels.raised`,
        and `RuntimeError` for a limit or a fault of the engine."""
        self.run_json = entry.json
        """Inputs as JSON text to the outcome as canonical JSON (docs/spec/values.md), without objects of Python."""

    @property
    def semantic_hash(self) -> str:
        return self._program.semantic_hash

    @property
    def asks(self) -> bool:
        """True where an execution may ask for effects."""
        return self._program.asks

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        if limits is None:
            return self._outcome(inputs, now)  # type: ignore[arg-type]  # it refuses what is no dict
        return _outcome(self._program.call(inputs, now, limits.fuel, limits.seconds))  # type: ignore[arg-type]  # as above

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> DirectExecution:
        fuel, seconds = (limits or UNLESS_SAID).fuel, (limits or UNLESS_SAID).seconds
        begun = self._program.start(inputs, now, is_traced, fuel, seconds)  # type: ignore[arg-type]  # as above
        return DirectExecution(begun, observe)

    def tier(self) -> ProgramTier:
        """What is made of the node, and of those it calls."""
        found = self._program.tier()
        pathed = found["pathed"]
        plain = {node: FormTier(**form) for node, form in found["plain"].items()}
        return ProgramTier(plain, None if pathed is None else FormTier(**pathed))

    def look(self, what: str) -> str:
        """What is made of the node, for people to read: `ir-optimized`, `bytecode`, as calls run it, or machine code in
        the notation of Cranelift (`clif`) or of an assembler (`asm`). Raises `NotCompiled` where there is none."""
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
        """The answer to each row of a table that speaks Arrow. Raises `ValueError` for one that does not go with it."""
        fuel, seconds = (limits or UNLESS_SAID).fuel, (limits or UNLESS_SAID).seconds
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
            fuel=fuel,
            seconds=seconds,
        )

    def points(self) -> tuple[Point, ...]:
        """What an execution may pass, by its number in a path."""
        return tuple(Point(*each) for each in self._program.points())

    def call_pathed(
        self,
        inputs: Mapping[str, object],
        key: bytes,
        now: datetime | None = None,
        limits: Limits | None = None,
    ) -> Pathed:
        """As `call`, with the path and the fingerprint under this key of 16 bytes."""
        if limits is None:
            return Pathed(*self._pathed(inputs, key, now))  # type: ignore[arg-type]  # as above
        fuel, seconds = limits.fuel, limits.seconds
        raw, path, fingerprint = self._program.call_pathed(inputs, key, now, fuel, seconds)  # type: ignore[arg-type]  # as above
        return Pathed(_outcome(raw), path, fingerprint)

    def fast_entry(self, unwrap: Unwrap, takes_now: bool) -> Callable[..., dict[str, Any]] | None:
        """Return an entry of the extension, with no Python between; None for a node with effects or a start time."""
        entry = None if takes_now else self._unwrapped(unwrap)
        return None if entry is None else entry.call

    def fast_entry_for_many(self, unwrap: Unwrap) -> Callable[[list[Any]], list[dict[str, Any]]] | None:
        """Return the same entry for a list of inputs in one call."""
        entry = self._unwrapped(unwrap)
        return None if entry is None else entry.map

    def json_entry(self) -> Callable[..., bytes]:
        """Return `run_json`."""
        return self.run_json

    def _unwrapped(self, unwrap: Unwrap) -> _direct.Way | None:
        if self._program.asks or self._program.uses_now:
            return None
        return _direct.Way(self._program, lambda raw, inputs: unwrap(_outcome(raw), inputs))

    def route(
        self,
        reference: Callable[..., Any],
        slow: Callable[[int, dict[str, Any]], dict[str, Any]],
        hand_over: Callable[[Mapping[str, Any], Mapping[str, Any] | None, int | None, bool, str | None], None],
        flights: tuple[_direct.Flight, _direct.Flight],
        *,
        is_bare: bool,
        deadline: float,
        most_bytes: int,
        keeps: bool,
    ) -> _direct.Route:
        """A way into the node that begins in Python alone."""
        return _direct.Route(
            self._program,
            reference,
            slow,
            hand_over,
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
        """As `start`, with a path and a fingerprint under this key of 16 bytes, and without marks."""
        fuel, seconds = (limits or UNLESS_SAID).fuel, (limits or UNLESS_SAID).seconds
        return DirectExecution(self._program.start_pathed(inputs, key, now, fuel, seconds))  # type: ignore[arg-type]  # as above


class DirectExecution:
    """One run on the Rust engine, which holds its state; only the forms of the protocol are put together here."""

    def __init__(self, execution: _direct.Execution, observe: Observer | None = None) -> None:
        self._execution = execution
        self._observe = observe
        self._observed = 0
        """How many marks the observer was told of."""
        self._has_begun = False

    def advance(self, completions: Sequence[Completion]) -> Blocked | Done:
        if len(completions) > 1 or (completions and not self._has_begun):
            raise ValueError("an execution is advanced with the completion of the one request that it waits for")
        step = self._execution.advance(*(_completion(each) for each in completions))
        self._has_begun = True
        if step[0] == "blocked":
            if self._observe is not None:
                self._tell(self._observe, self._execution.marks_from(self._observed))
            return Blocked((_request(step[1]),))
        if self._observe is not None:
            self._tell(self._observe, step[2][self._observed :])
        return Done(_outcome(step[1]), tuple(step[2]))

    def path(self) -> bytes:
        """The points that were passed so far. Raises `ValueError` for one that `start_pathed` did not begin."""
        return self._execution.path()

    def fingerprint(self) -> int:
        """Of what was read so far, and of what came back. Raises as `path` does."""
        return self._execution.fingerprint()

    def _tell(self, observe: Observer, marks: _RawMarks) -> None:
        for index, value in marks:
            observe(index, value)
        self._observed += len(marks)


def _completion(completion: Completion) -> _RawCompletion:
    if completion.failure is not None:
        return completion.id, "failed", completion.failure
    return completion.id, "value", completion.result


def _request(raw: _RawRequest) -> Request:
    return Request(raw["id"], raw["path"], raw["effect"], raw["class"], raw["fixed"], raw["arguments"], raw["key"])


def _outcome(raw: _RawOutcome) -> Outcome:
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
    """An outcome as the engine has it, for what is called by the engine itself."""
    return _outcome(raw)


def _refuse(raw: _RawOutcome) -> NoReturn:
    """Raises what an outcome without outputs is, to whoever asked for the outputs alone."""
    # Made elsewhere: an exception that has a name where it is raised holds, by its traceback, the frame that holds it,
    # and such a ring stays in memory until Python looks for rings, which may be millions of calls later.
    raise _exception(_outcome(raw))


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
    """How decimals go over the boundary on this Python: `layout`, or `text: ` and why."""
    return _direct.decimal_access()


def dict_access() -> str:
    """How the entries of dicts are found on this Python: `layout`, or `api: ` and why."""
    return _direct.dict_access()


def code_stats() -> dict[str, Any] | None:
    """What this process has made of machine code, and the bytes of it that are held; None for a build that makes
    none. It belongs to its programs, and goes with them."""
    counters: Callable[[], dict[str, Any]] | None = getattr(_direct, "tier_counters", None)
    return None if counters is None else dict(counters())


@lru_cache(maxsize=1)
def build() -> str:
    """Which build of the engine this is: two builds of one version may differ."""
    import hashlib
    from pathlib import Path

    return hashlib.sha256(Path(_direct.__file__).read_bytes()).hexdigest()
