"""The Rust engine, as Python sees it. Only `vesper.engines.direct_engine` imports this module."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, NoReturn, Protocol, TypeAlias, TypedDict, final

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
"""`failed`: code, index of the expression (None while converting), problems (only for `bad_input`).
`contract_broken`: phase (`constraint`, `precondition`, `validation`, `postcondition`, `invariant`), index of the
clause, values."""

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
"""`id` counts from 0. `node` is the node whose statement `step` is: the one that was started, or one that it calls.
`path` is the name of the step with the rounds of the loops around it, behind those of the calls that led to it:
`pay/send[2][0]`. `arguments` are in the order of their declaration, in the Python forms of docs/spec/values.md."""

_RawCompletion: TypeAlias = (
    tuple[int, Literal["value"], object]
    | tuple[int, Literal["failed"], str]
    | tuple[int, Literal["denied"], str]
    | tuple[int, Literal["limit_hit"], str]
)
"""The id of the request, and what came of it: a value, which fails with `bad_response` where it is not of the type of
the result; the code of a failure; the capability that is not granted; the limit."""

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
    """By the ids of the nodes; `pathed` is of the first, where that form was ever asked for."""

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
    "Entry",
    "Execution",
    "Flight",
    "IrRejected",
    "NotCompiled",
    "Program",
    "Route",
    "Way",
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
    """The bytes are not a well-formed IR document; the message says what and where."""

class NotCompiled(ValueError):
    """There is no machine code of the node; the message says why."""

@final
class Execution:
    """One execution of a node. It may wait as long as it likes; only one thread may advance it at a time."""

    def advance(self, completion: _RawCompletion | None = None, /) -> _RawAdvanced:
        """Go on until the next request or the end: first with nothing, then with what came of the last request.

        Raises `ValueError` where it is advanced otherwise; it is then as it was.
        """

    def marks_from(self, start: int = 0, /) -> _RawMarks:
        """What was observed so far, from this place in the list of all marks on; nothing when it has ended."""

    def path(self) -> bytes:
        """The points that were passed so far; raises `ValueError` where it was not started with a path."""

    def fingerprint(self) -> int:
        """Of what was read so far and what came back; raises as `path` does."""

@final
class Entry:
    """A node without effects, as it is called many times. Safe to call from any thread."""

    def __new__(
        cls,
        program: Program,
        returned: type[_Returned],
        other: Callable[[_RawOutcome], _Outcome],
        refuse: Callable[[_RawOutcome], NoReturn],
        /,
    ) -> Entry:
        """`returned` has one slot, `value`, and is made without its `__init__`; `other` makes the other outcomes, and
        `refuse` raises them."""

    def outcome(self, inputs: dict[str, Any], /, now: datetime | None = None) -> _Outcome: ...
    def pathed(
        self, inputs: dict[str, Any], key: bytes, /, now: datetime | None = None
    ) -> tuple[_Outcome, bytes, int]: ...
    def outputs(self, inputs: dict[str, Any], /, now: datetime | None = None) -> dict[str, Any]: ...
    @property
    def json(self) -> _Json:
        """A function of C; `run_json` answers what is not one text as most callers write it."""

    def run_json(self, inputs: bytes, /, now: datetime | None = None) -> bytes: ...

@final
class Way:
    """The way into a node without effects that needs no time of its start. Safe to call from any thread."""

    def __new__(cls, program: Program, ended: Callable[[_RawOutcome, Mapping[str, Any]], dict[str, Any]], /) -> Way:
        """`ended` gives what a call gives, or raises, for an outcome that is not `returned` and its inputs."""

    @property
    def call(self) -> Callable[[dict[str, Any]], dict[str, Any]]:
        """A function of C with one argument."""

    def map(self, many: list[Any], /) -> list[dict[str, Any]]:
        """What `call` gives for each. An exception gets a note of the place of its inputs."""

@final
class Program:
    """One loaded node: verified, compiled, immutable, safe to call from any thread."""

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
        """`dependencies` are the documents of all nodes that it calls, at any depth; others among them do no harm.
        `rules` names those of the optimizer that are used; all, unless said, and none without `optimise`. The rest is
        `vesper.engines.tiering.Tiering`; another `jit` than its modes raises `ValueError`."""

    @property
    def node_id(self) -> str: ...
    @property
    def semantic_hash(self) -> str: ...
    @property
    def asks(self) -> bool:
        """True when an execution may ask for effects: then it is started, and `call` raises `ValueError`."""

    @property
    def uses_now(self) -> bool:
        """True when an execution needs the time of its start: without it, `ValueError` is raised."""

    def tier(self) -> _RawTiers:
        """What is made of the node and of those it calls."""

    def optimised_listing(self) -> str:
        """What the optimizer makes of the node, as text."""

    def look(self, what: str, /) -> str:
        """What a call runs, as text: `ir-optimized`, `bytecode`, or machine code as `clif` or `asm`; raises
        `NotCompiled` where there is none."""

    def call(
        self,
        inputs: dict[str, Any],
        /,
        now: datetime | None = None,
        fuel: int | None = None,
        seconds: float | None = None,
    ) -> _RawOutcome:
        """Without `fuel` it is `DEFAULT_FUEL`, without `seconds` as long as that lasts."""

    def trace(self, inputs: dict[str, Any], /, now: datetime | None = None) -> tuple[_RawMarks, _RawOutcome]: ...
    def start(
        self,
        inputs: dict[str, Any],
        /,
        now: datetime | None = None,
        is_traced: bool = True,
        fuel: int | None = None,
        seconds: float | None = None,
    ) -> Execution: ...
    def points(self) -> list[tuple[Literal["condition", "loop", "handler"], int, str]]:
        """What a run may pass, by its number in a path: kind, expression (of a handler, its number), outcome."""

    def call_pathed(
        self,
        inputs: dict[str, Any],
        key: bytes,
        /,
        now: datetime | None = None,
        fuel: int | None = None,
        seconds: float | None = None,
    ) -> tuple[_RawOutcome, bytes, int]:
        """As `call`, with the path and the fingerprint under this key of 16 bytes."""

    def start_pathed(
        self,
        inputs: dict[str, Any],
        key: bytes,
        /,
        now: datetime | None = None,
        fuel: int | None = None,
        seconds: float | None = None,
    ) -> Execution: ...

@final
class Batches:
    """The rows of a table, run when somebody asks for them."""

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
    ) -> Batches:
        """`table` speaks Arrow; it is taken over. `form` is `typed`, `spelled` or `json`, `decimals` is `text`, or
        digits after the point by output. Raises `ValueError` where the table does not go with the node: with a message,
        a kind (`no_input`, `no_column`, `nothing_to_keep`, `other`) and names."""

    @property
    def names(self) -> list[str]:
        """The columns of the answer."""

    def look(
        self,
        choose: Callable[[int], Sequence[int]],
        tell: Callable[[list[tuple[int, dict[str, Any]]], int, int, int], None],
        /,
    ) -> None:
        """Before the answer is read: `choose` is asked which of so many rows that have run, counted from 0, are to be
        looked at; `tell` is told of those whose inputs fit, as pairs of the place and the inputs, how many rows there
        were, when they began (nanoseconds since 1970), and how many nanoseconds all of them took. What either raises
        ends the answer."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The answer, read once."""

    def raised(self) -> BaseException | None:
        """What Python raised while rows ran."""

@final
class Flight:
    """Two numbers in a buffer: executions that began, and that ended. Any thread of Python may count."""

    def __new__(cls, counters: memoryview, at: int, /) -> Flight:
        """`counters` holds numbers of 64 bits, and is held."""

    def bind(self, counters: memoryview, at: int, /) -> None:
        """Count elsewhere, and let go of what was held. For the child of a fork."""

    def enter(self) -> None: ...
    def leave(self) -> None: ...

_Handed: TypeAlias = tuple[dict[str, Any], dict[str, Any], int | None, bool, str | None, datetime | None]
"""Inputs, outputs of Python, its nanoseconds where they were measured, whether it agreed and was drawn to be looked at,
how the engine broke, when it began, where that counts."""

_Seen: TypeAlias = tuple[
    list[tuple[bytes, list[int], int]],
    list[tuple[int | None, int | None]],
    list[list[int]],
    int,
    int,
    int,
    int,
    list[_Handed],
]
"""Agreements (path, fingerprints, comparisons); nanoseconds of Python and of the direct engine; requests served, by the
number of the mode and the engine (Python, direct); comparisons that were lost; requests for which a coin was drawn;
about how many were followed, and what that cost in nanoseconds; what Python should see itself."""

@final
class Route:
    """The way into a node that is being moved over: does what is common, and leaves the rest to Python."""

    def __new__(
        cls,
        program: Program,
        reference: Callable[..., Any],
        slow: Callable[[int, dict[str, Any]], dict[str, Any]],
        hand_over: Callable[[Mapping[str, Any], Mapping[str, Any] | None, int | None, bool, str | None], None],
        flights: tuple[Flight, Flight],
        /,
        *,
        is_bare: bool,
        deadline: float,
        most_bytes: int,
        keeps: bool,
    ) -> Route:
        """`slow` does a request that was planned (`direct_engine.Plan`) from the beginning; `hand_over` takes an
        execution that Python should see itself, with what broke where the engine did. Both are given the time of the
        start as one more argument. `flights` are counted in by
        threads of callers, and by the thread that follows. `is_bare`: what `reference`
        raises is what the caller should see. `keeps`: executions of the node may be kept."""

    @property
    def call(self) -> Callable[[dict[str, Any]], dict[str, Any]]:
        """A function of C."""

    def call_at(self, inputs: dict[str, Any], /, *, now: datetime) -> dict[str, Any]:
        """The same of a node that takes the time of its start."""

    def set(self, mode: int, trusted: Sequence[bytes] | None, key: bytes, sample: float, /) -> None:
        """The mode by its number, paths that may be served uncompared (None for all), the key of fingerprints (empty
        where it is not known: then Python runs alone), the share of the sample."""

    def admit(self, chance: float, /) -> None:
        """The chance with which a request is followed."""

    def drain(self) -> _Seen:
        """Take what was seen since the last time."""

    def wait(self, seconds: float, /) -> bool:
        """Until what was put aside is followed; False where that took longer."""

    def close(self) -> None: ...
    def after_fork(self) -> None: ...

def decimal_access() -> str:
    """How decimals are read and made: `layout`, through their layout in memory, or `text: ` and why."""

def dict_access() -> str:
    """How the entries of dicts are found: `layout`, through their layout in memory, or `api: ` and why."""

def operation_names() -> list[str]:
    """Every operation this build implements, sorted."""

def tier_counters() -> _RawCounters:
    """What this process has made of nodes; programs that are gone count too, except in `bytes`."""

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
    """The line of an entry, and its hash after the hash `before`; None where `vesper.journal.lines` has to write it: a
    body of more than `most` bytes among others."""

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
    """The line of an INTENT, its hash, and the digest of its request; None as above."""

def journal_text(value: object, other: Callable[[Any], str], /) -> str | None:
    """The text of a value in the journal; None where `vesper.journal.typed_json` has to write it. `other` writes parts
    of rarer kinds."""
