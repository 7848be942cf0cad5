"""The Python interface of the direct engine. Only `vesper.engines.direct_engine` and the journal import this module."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, NoReturn, Protocol, Self, TypeAlias, TypedDict, final

from vesper.engines.outcome import Outcome as _Outcome
from vesper.engines.outcome import Returned as _Returned

_Problem: TypeAlias = tuple[str, str]
"""A path and a kind of docs/spec/values.md, such as `("amount", "wrong_type")`."""

_RawOutcome: TypeAlias = (
    tuple[Literal["returned"], dict[str, Any]]
    | tuple[Literal["declared_error"], dict[str, Any]]
    | tuple[Literal["failed"], str, int | None, list[_Problem]]
    | tuple[Literal["contract_broken"], str, int, dict[str, Any]]
    | tuple[Literal["denied"], str]
    | tuple[Literal["limit_hit"], str]
    | tuple[Literal["engine_fault"], str]
)
"""An outcome as a tuple that begins with its kind.

`failed` has a code, the index of the expression (None during conversion) and problems (only for `bad_input`).
`contract_broken` has a phase (`constraint`, `precondition`, `validation`, `postcondition`, `invariant`), the index of
the clause and values.
"""

_RawMarks: TypeAlias = list[tuple[int, Any]]

_RawRequest = TypedDict(
    "_RawRequest",
    {
        "id": int,
        "node": str,
        "step": str,
        "path": str,
        "effect": str,
        "class": str,
        "key": str | None,
        "fixed": dict[str, str],
        "arguments": dict[str, Any],
    },
)
"""A request for one effect.

`id` counts from 0. `node` contains the statement `step`: it is the started node, or one that it calls. `path` is the
name of the step with the rounds of the enclosing loops, after those of the calls that led to it: `pay/send[2][0]`.
`arguments` are in declared order, in the Python forms of docs/spec/values.md.
"""

_RawCompletion: TypeAlias = (
    tuple[int, Literal["value"], object]
    | tuple[int, Literal["failed"], str]
    | tuple[int, Literal["denied"], str]
    | tuple[int, Literal["limit_hit"], str]
)
"""The completion of a request by id: a value, the code of a failure, a missing capability, or the limit hit.

A value that is not of the result type fails with `bad_response`.
"""

_RawAdvanced: TypeAlias = tuple[Literal["blocked"], _RawRequest] | tuple[Literal["done"], _RawOutcome, _RawMarks]

class _Json(Protocol):
    def __call__(self, inputs: bytes, /, now: datetime | None = None) -> bytes: ...

class _RawTier(TypedDict):
    stage: Literal["off", "cold", "queued", "installed", "resting", "refused"]
    reason: str | None
    bytes: int
    guards: int
    entered: int
    exits: int
    expressed: int
    rests: int

class _RawTiers(TypedDict):
    """Tier reports by node id; `pathed` is that of the loaded node, if its pathed form is in use."""

    plain: dict[str, _RawTier]
    pathed: _RawTier | None

class _RawCounters(TypedDict):
    compiled: int
    refused: int
    nanoseconds: int
    bytes: int

__all__ = [
    "DEFAULT_FUEL",
    "IR_VERSION",
    "Batches",
    "Ending",
    "Entry",
    "Execution",
    "Flight",
    "IrRejected",
    "NotCompiled",
    "Program",
    "Route",
    "Way",
    "confine",
    "decimal_access",
    "dict_access",
    "journal_intent",
    "journal_line",
    "journal_text",
    "operation_names",
    "tier_counters",
]

IR_VERSION: Final[int]
DEFAULT_FUEL: Final[int]

class IrRejected(ValueError):
    """Malformed IR document; the message names the defect and its place."""

class NotCompiled(ValueError):
    """No machine code for the node; the message gives the reason."""

@final
class Execution:
    """One execution of a node, suspended at each request. Only one thread may advance it at a time."""

    def advance(self, completion: _RawCompletion | None = None, /) -> _RawAdvanced:
        """Run until the next request or the end, with the completion of the last request after the first call.

        Raises `ValueError` for any other completion, and leaves the execution unchanged.
        """

    def marks_from(self, start: int = 0, /) -> _RawMarks:
        """Return the marks from this position on; none after the end."""

    def path(self) -> bytes:
        """Return the points passed so far. Raises `ValueError` unless started with `start_pathed`."""

    def fingerprint(self) -> int:
        """Return the fingerprint of inputs and completions read so far. Raises like `path`."""

@final
class Entry:
    """A node without effects, prepared for repeated calls from any thread."""

    def __new__(
        cls,
        program: Program,
        returned: type[_Returned],
        other: Callable[[_RawOutcome], _Outcome],
        refuse: Callable[[_RawOutcome], NoReturn],
        explain_json: Callable[[bytes, bytes], bytes] | None = None,
        /,
    ) -> Entry:
        """Prepare a program for calls.

        `returned` has one slot, `value`, and is made without its `__init__`; `other` makes the other outcomes, and
        `refuse` raises them. `explain_json` adds texts to the JSON of an outcome without outputs.
        """

    def outcome(self, inputs: dict[str, Any], /, now: datetime | None = None) -> _Outcome:
        """Return the outcome of an execution."""

    def pathed(self, inputs: dict[str, Any], key: bytes, /, now: datetime | None = None) -> tuple[_Outcome, bytes, int]:
        """Return the outcome, the path and the fingerprint under this key of 16 bytes."""

    def outputs(self, inputs: dict[str, Any], /, now: datetime | None = None) -> dict[str, Any]:
        """Return the outputs of an execution; `refuse` raises any other outcome."""

    @property
    def json(self) -> _Json:
        """The C function that runs JSON text; it leaves uncommon arguments to `run_json`."""

    def run_json(self, inputs: bytes, /, now: datetime | None = None) -> bytes:
        """Run JSON text and return the outcome as canonical JSON."""

@final
class Ending:
    """The end of a call without outputs, which is explained on demand."""

    @property
    def kind(self) -> str:
        """The kind of the outcome."""

    @property
    def code(self) -> str:
        """The code of the error."""

    @property
    def is_refusal(self) -> bool:
        """True if the inputs were refused."""

    def explain(self) -> Any:
        """Return the result of `explain` for the outcome."""

@final
class Way:
    """The fast entry of a node that has no effects and does not use its start time. Safe to call from any thread."""

    def __new__(
        cls,
        program: Program,
        ended: Callable[[_RawOutcome, Mapping[str, Any]], dict[str, Any]],
        raises: object = None,
        /,
    ) -> Self:
        """Prepare a program; `ended` returns the result, or raises, for an outcome other than `returned`.

        With `raises`, which has an exception for each kind, the extension raises itself, with an `Ending`.
        """

    @property
    def call(self) -> Callable[[dict[str, Any]], dict[str, Any]]:
        """The C function that returns the outputs for a dict of inputs."""

    def map(self, many: list[Any], /) -> list[dict[str, Any]]:
        """Return the result of `call` for each dict. An exception gets a note with the position of its inputs."""

@final
class Program:
    """A loaded node: verified, compiled, immutable, safe to call from any thread."""

    @staticmethod
    def load(
        ir: bytes,
        dependencies: Sequence[bytes] = ...,
        /,
        optimise: bool = True,
        rules: Sequence[str] | None = None,
        *,
        jit: str = "off",
        jit_calls: int = 100,
        jit_operations: int = 20_000,
        max_code_bytes: int = ...,
        jit_fail_guard: int | None = None,
    ) -> Program:
        """Read, verify and compile a document.

        `dependencies` are the documents of all nodes that it calls, at any depth; unneeded ones are ignored. `rules`
        names the optimizer rules to apply: all by default, none without `optimise`. `vesper.engines.tiering.Tiering`
        describes the other arguments; an unknown `jit` raises `ValueError`.
        """

    @property
    def node_id(self) -> str: ...
    @property
    def semantic_hash(self) -> str: ...
    @property
    def asks(self) -> bool:
        """True if an execution may make requests; it must be started, and `call` raises `ValueError`."""

    @property
    def uses_now(self) -> bool:
        """True if an execution uses its start time; without `now`, a call raises `ValueError`."""

    def tier(self) -> _RawTiers:
        """Return the tier reports of the node and of those it calls."""

    def optimised_listing(self) -> str:
        """Return the optimised form of the node as text."""

    def look(self, what: str, /) -> str:
        """Return the code of the node as text: `ir-optimized`, `bytecode`, `clif` or `asm`.

        Raises `NotCompiled` if there is no machine code.
        """

    def call(
        self,
        inputs: dict[str, Any],
        /,
        now: datetime | None = None,
        fuel: int | None = None,
        seconds: float | None = None,
        memory: int | None = None,
    ) -> _RawOutcome:
        """Return the outcome of an execution. The default of `fuel` is `DEFAULT_FUEL`, that of `seconds` no limit."""

    def trace(self, inputs: dict[str, Any], /, now: datetime | None = None) -> tuple[_RawMarks, _RawOutcome]:
        """Return the marks and the outcome of an execution."""

    def start(
        self,
        inputs: dict[str, Any],
        /,
        now: datetime | None = None,
        is_traced: bool = True,
        fuel: int | None = None,
        seconds: float | None = None,
        memory: int | None = None,
    ) -> Execution:
        """Create an execution, which runs when it is advanced."""

    def points(self) -> list[tuple[Literal["condition", "loop", "handler"], int, str]]:
        """Return the points of the node by number: kind, expression or handler number, outcome."""

    def call_pathed(
        self,
        inputs: dict[str, Any],
        key: bytes,
        /,
        now: datetime | None = None,
        fuel: int | None = None,
        seconds: float | None = None,
        memory: int | None = None,
    ) -> tuple[_RawOutcome, bytes, int]:
        """Return the outcome as `call` does, with the path and the fingerprint under this key of 16 bytes."""

    def start_pathed(
        self,
        inputs: dict[str, Any],
        key: bytes,
        /,
        now: datetime | None = None,
        fuel: int | None = None,
        seconds: float | None = None,
        memory: int | None = None,
    ) -> Execution:
        """Create an execution that records its path and its fingerprint under this key."""

@final
class Batches:
    """The rows of a table, which run when the stream is read."""

    def __new__(
        cls,
        program: Program,
        table: object,
        explain: Callable[[_RawOutcome, Any], tuple[str, str, str | None, str]],
        /,
        *,
        form: str,
        decimals: str | Sequence[tuple[str, int]] | None,
        keep: Sequence[str],
        error_column: str,
        threads: int,
        now: datetime | None,
        fuel: int | None,
        seconds: float | None,
        memory: int | None,
    ) -> Batches:
        """Import an Arrow table.

        `form` is `typed`, `spelled` or `json`; `decimals` is `text`, or digits after the point by output. Raises
        `ValueError` if the table does not fit the node, with a message, a kind (`no_input`, `no_column`,
        `nothing_to_keep`, `other`) and names.
        """

    @property
    def names(self) -> list[str]:
        """The names of the result columns."""

    def look(
        self,
        choose: Callable[[int], Sequence[int]],
        tell: Callable[[list[tuple[int, dict[str, Any]]], int, int, int], None],
        /,
    ) -> None:
        """Register callbacks that inspect rows after they have run, before the result is read.

        `choose` receives a number of rows and returns positions, counted from 0. `tell` receives pairs of position and
        inputs of the rows without problems, the number of rows, their start (nanoseconds since 1970) and their total
        nanoseconds. An exception of either ends the result.
        """

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the result as a stream, which can be read once."""

    def raised(self) -> BaseException | None:
        """Return the exception that Python raised while rows ran, if any."""

@final
class Flight:
    """Two counters in a buffer: executions started and ended. Any thread of Python may count."""

    def __new__(cls, counters: memoryview, at: int, /) -> Flight:
        """Count in the two 64-bit numbers at this position of the buffer."""

    def bind(self, counters: memoryview, at: int, /) -> None:
        """Switch to another buffer and release the old one. Only for the child of a fork."""

    def enter(self) -> None:
        """Count the start of an execution."""

    def leave(self) -> None:
        """Count the end of an execution."""

_Handed: TypeAlias = tuple[dict[str, Any], dict[str, Any], int | None, bool, str | None, datetime | None]
"""An execution that Python has to inspect.

Inputs, outputs of Python, its nanoseconds if measured, whether it is an agreement selected for inspection, the engine
fault if there was one, the start time if the node uses it.
"""

_Seen: TypeAlias = tuple[
    list[tuple[bytes, list[int], int]],
    list[tuple[int | None, int | None]],
    list[list[int]],
    int,
    int,
    int,
    int,
    int,
    list[_Handed],
]
"""The findings of a route.

Agreements (path, fingerprints, comparisons); nanoseconds of Python and of the direct engine; calls served by number of
the mode and engine (Python, direct); lost comparisons; calls for which admission was decided; estimated number of
followed calls, and their nanoseconds; abandoned threads; executions that Python has to inspect.
"""

@final
class Route:
    """The fast path of the router for one node; it leaves uncommon calls to Python."""

    def __new__(
        cls,
        program: Program,
        reference: Callable[..., Any],
        slow: Callable[[int, dict[str, Any]], dict[str, Any]],
        hand_over: Callable[[Mapping[str, Any], Mapping[str, Any] | None, int | None, bool, str | None], None],
        hurry: Callable[[], None],
        flights: tuple[Flight, Flight],
        /,
        *,
        is_bare: bool,
        deadline: float,
        most_bytes: int,
        keeps: bool,
    ) -> Route:
        """Prepare a program and its generated function `reference`.

        `slow` serves a planned call (`direct_engine.Plan`) from its start. `hand_over` receives an execution that
        Python has to inspect, with the engine fault if there was one. Both get the start time as one more argument.
        `hurry` requests a drain; it must not refer to the route.
        `flights` are the counters of the threads of callers, and of the follower thread. With `is_bare`, exceptions of
        `reference` are passed on to the caller. With `keeps`, executions of the node may be kept.
        """

    @property
    def call(self) -> Callable[[dict[str, Any]], dict[str, Any]]:
        """The C function that serves a call."""

    def call_at(self, inputs: dict[str, Any], /, *, now: datetime) -> dict[str, Any]:
        """Serve a call of a node that uses its start time."""

    def set(self, mode: int, trusted: Sequence[bytes] | None, key: bytes, sample: float, /) -> None:
        """Set the mode by number, the trusted paths (None for all), the fingerprint key and the share of the sample.

        With an empty key Python runs alone.
        """

    def admit(self, chance: float, /) -> None:
        """Set the probability with which a call is followed."""

    def drain(self) -> _Seen:
        """Take the findings since the last drain. Abandons a follower thread that hangs."""

    def wait(self, seconds: float, /) -> bool:
        """Wait until queued executions are followed; return False on a timeout."""

    def close(self) -> None:
        """Stop the follower thread; queued executions count as lost."""

    def after_fork(self) -> None:
        """Reset the counters in the child of a fork."""

def decimal_access() -> str:
    """Return how decimals are converted: `layout` for memory layout, or `text: ` and the reason."""

def dict_access() -> str:
    """Return how dicts are read: `layout` for memory layout, or `api: ` and the reason."""

def operation_names() -> list[str]:
    """Return the names of all operations of this build, sorted."""

def tier_counters() -> _RawCounters:
    """Return the compilation counters of this process. Dropped programs count, except in `bytes`."""

def journal_line(
    start: str,
    before: bytes,
    seq: int,
    kind: str,
    path: str,
    effect: str,
    effect_class: str,
    key: str | None,
    digest: str,
    at_us: int,
    body: object,
    other: Callable[[Any], str],
    most: int,
    /,
) -> tuple[bytes, bytes] | None:
    """Return the line of an entry and its hash after the hash `before`.

    Returns None if `vesper.journal.lines` has to write it, for instance because the body has more than `most` bytes.
    """

def journal_intent(
    start: str,
    before: bytes,
    seq: int,
    path: str,
    effect: str,
    effect_class: str,
    key: str | None,
    at_us: int,
    fixed: object,
    arguments: object,
    other: Callable[[Any], str],
    most: int,
    /,
) -> tuple[bytes, bytes, str] | None:
    """Return the line of an INTENT, its hash, and the digest of its request; None like `journal_line`."""

def journal_text(value: object, other: Callable[[Any], str], /) -> str | None:
    """Return the text of a journal value, or None if `vesper.journal.typed_json` has to write it.

    `other` writes parts of uncommon kinds.
    """

def confine(readable: Sequence[str], /) -> list[str]:
    """Confine this process for good: read below these folders, no network, few system calls.

    Returns what the kernel lacks. Raises `OSError` where there is no seccomp.
    """
