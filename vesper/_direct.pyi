"""The Python interface of the direct engine. The engine, the Host, its effects and the journal import it."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, Protocol, Self, TypeAlias, TypedDict, final

from typing_extensions import disjoint_base

from vesper.effects.database.settings import DatabaseSettings as _DatabaseSettings
from vesper.effects.files.settings import FileSettings as _FileSettings
from vesper.effects.http.settings import HttpSettings as _HttpSettings
from vesper.effects.models.settings import ModelSettings as _ModelSettings
from vesper.effects.performer import Ask as _Ask
from vesper.effects.secrets.settings import SecretSettings as _SecretSettings
from vesper.engines.outcome import Outcome as _Outcome
from vesper.engines.outcome import Returned as _Returned
from vesper.journal.due import Due as _Due
from vesper.journal.due import QueueDepth as _QueueDepth
from vesper.journal.due import SignalSent as _SignalSent
from vesper.journal.entry import AuditEvent as _AuditEvent
from vesper.journal.entry import Definition as _Definition
from vesper.journal.entry import Entry as _Entry
from vesper.journal.journal import Beginning as _Beginning
from vesper.journal.journal import Recorded as _Recorded
from vesper.journal.journal import Status as _Status
from vesper.journal.journal import Summary as _Summary
from vesper.storage.sources import Sources as _Sources
from vesper.values.types import Type as _Type

_Problem: TypeAlias = tuple[str, str]
_Documents: TypeAlias = tuple[bytes, list[bytes]]
_Side: TypeAlias = tuple[_Documents, list[tuple[str, str]]] | None
_Measure: TypeAlias = tuple[_Side, _Side]
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

_RawAdvanced: TypeAlias = (
    tuple[Literal["blocked"], tuple[_RawRequest, ...]] | tuple[Literal["done"], _RawOutcome, _RawMarks]
)

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
    "CountedCall",
    "Databases",
    "Ending",
    "Entry",
    "Exchange",
    "ExchangeCall",
    "Execution",
    "Flight",
    "HttpCall",
    "HttpPerformer",
    "HttpServer",
    "HttpStream",
    "IrRejected",
    "Journal",
    "JournalBacktest",
    "KeyRing",
    "LimitToken",
    "ModelCatalog",
    "ModelPerformer",
    "NativePerformer",
    "NotCompiled",
    "PolicyGate",
    "PreparedNode",
    "Program",
    "RetryMachine",
    "Route",
    "Run",
    "RunKey",
    "RunWorkers",
    "Running",
    "SecretStore",
    "SharedBudgets",
    "SharedLimits",
    "StateMachines",
    "Way",
    "ambient_performer",
    "check_http_endpoint",
    "check_http_header",
    "check_http_value",
    "confine",
    "count_metric",
    "decimal_access",
    "dict_access",
    "file_performer",
    "forget_journals",
    "forget_runtime",
    "hold_journals",
    "hold_runtime",
    "is_dead",
    "journal_text",
    "metric_bounds",
    "observe_metric",
    "operation_names",
    "read_http_origin",
    "read_http_url",
    "release_journals",
    "release_runtime",
    "render_metrics",
    "secret_forms",
    "set_metric",
    "sign_aws_request",
    "size_of",
    "snapshot_metrics",
    "this_owner",
    "tier_counters",
    "typed_json_of",
    "use_metrics_directory",
    "value_of_typed_json",
    "verify_webhook",
]

IR_VERSION: Final[int]
DEFAULT_FUEL: Final[int]

class IrRejected(ValueError):
    """Malformed IR document; the message names the defect and its place."""

class NotCompiled(ValueError):
    """No machine code for the node; the message gives the reason."""

@final
class Execution:
    """One execution of a node, suspended at each wave of requests. Only one thread may advance it at a time."""

    def advance(self, *completions: _RawCompletion) -> _RawAdvanced:
        """Run until the next wave or the end, with the completions of the last wave after the first call.

        With the first completions alone, the execution waits for the others. Raises `ValueError` for any other
        completion, and leaves the execution unchanged.
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
        proven: Sequence[tuple[str, Sequence[int], Sequence[int]]] = ...,
    ) -> Program:
        """Read, verify and compile a document.

        `dependencies` are the documents of all nodes that it calls, at any depth; unneeded ones are ignored. `rules`
        names the optimizer rules to apply: all by default, none without `optimise`. `vesper.engines.tiering.Tiering`
        describes the other arguments; an unknown `jit` raises `ValueError`. `proven` has semantic hashes with proven
        clauses and calls, by expression, which the plain form leaves out.
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

@final
class CountedCall:
    """A Python function whose calls are counted."""

    def __new__(cls, function: Callable[..., Any], node: str, path: str, /) -> Self: ...
    @property
    def call(self) -> Callable[..., Any]:
        """The function that calls and counts."""

def count_metric(metric: int, labels: Sequence[str], by: int, /) -> None:
    """Add to a counter."""

def observe_metric(metric: int, labels: Sequence[str], seconds: float, trace_id: str | None, /) -> None:
    """Add a duration to a histogram, with the id of its trace in hexadecimal."""

def set_metric(metric: int, labels: Sequence[str], value: float, /) -> None:
    """Set a gauge."""

def render_metrics(accept: str, /) -> tuple[str, bytes]:
    """Return the content type and the text of all metrics, for an `Accept` header."""

def snapshot_metrics(
    is_own: bool, /
) -> list[tuple[int, list[str], int | float | tuple[list[int], float, tuple[str, float, int] | None]]]:
    """Return (metric, labels, value) of every series; a histogram has (counts of buckets, sum in ms, exemplar)."""

def metric_bounds() -> list[float]:
    """Return the upper bounds of the buckets of histograms, in milliseconds."""

def use_metrics_directory(directory: str | Path, /) -> None:
    """Move the counts of this process to a directory."""

def operation_names() -> list[str]:
    """Return the names of all operations of this build, sorted."""

def tier_counters() -> _RawCounters:
    """Return the compilation counters of this process. Dropped programs count, except in `bytes`."""

def journal_text(value: object, other: Callable[[Any], str], /) -> str | None:
    """Return the text of a journal value, or None if `vesper.journal.typed_json` has to write it.

    `other` writes parts of uncommon kinds.
    """

@final
class RunKey:
    """The key of one run or trace: AES-256-GCM, each use bound to its place."""

    @staticmethod
    def new(execution: str, /) -> RunKey:
        """Return a random key, bound to an execution."""

    def seal(self, data: bytes, seq: int, /) -> bytes:
        """Return data encrypted for the entry `seq`."""

    def open(self, data: bytes, seq: int, /) -> bytes:
        """Return data of the entry `seq`. Raises `JournalError` where it was changed or moved."""

@final
class KeyRing:
    """The keys of a journal. `master` wraps the keys of runs; those that an `earlier` one wrapped stay readable.

    With `audit`, hashes of the audit log can only be computed by its owner. Raises `JournalError` for keys of another
    length.
    """

    def __new__(
        cls, master: bytes | None = None, *, earlier: Sequence[bytes] = ..., audit: bytes | None = None
    ) -> KeyRing: ...
    @property
    def has_master(self) -> bool: ...
    @property
    def audit(self) -> bytes | None:
        """The key of the audit log, where one is configured."""

    def wrap(self, key: RunKey, execution: str, /) -> tuple[str, bytes]:
        """Return the stored form of a key: the name of its master key, or `""`, and its bytes."""

    def unwrap(self, master: str, data: bytes, execution: str, /) -> RunKey:
        """Return a key from its stored form. Raises `JournalError` where its master key is not configured."""

@final
class Run:
    """A run of the journal; see `vesper.journal.journal.Run`."""

    @property
    def execution(self) -> str: ...
    @property
    def fence(self) -> int: ...
    @property
    def recorded(self) -> tuple[_Entry, ...]: ...
    def digest(
        self, effect: str, effect_class: str, fixed: Mapping[str, str], arguments: Mapping[str, object], key: str | None
    ) -> str: ...
    def append(self, entry: _Entry) -> None: ...
    def intend(self, entry: _Entry) -> str: ...
    def audit(self, event: _AuditEvent) -> None: ...
    def commit(self, status: _Status | None = None, outcome: str | None = None) -> None: ...
    def renew(self) -> None: ...

@final
class JournalBacktest:
    """A backtest of two versions on the runs of a journal (`vesper/changes/backtest/native.py`).

    A version is its IR and that of all nodes that it calls. A measure has a function for each version, with the kind
    and the name of what each of its inputs is.
    """

    def __new__(
        cls,
        journal: Journal,
        before: _Documents,
        after: _Documents,
        semantic_hash: str,
        *,
        outputs: list[tuple[str, str]],
        errors: list[str],
        hides_codes: bool,
        by: list[_Measure],
        sums: list[_Measure],
        selection: _Measure | None,
        nodes: list[str],
        since_us: int | None,
        until_us: int | None,
        limit: int | None,
        threads: int,
    ) -> Self: ...
    def total(self) -> int:
        """How many runs are selected."""

    def step(self) -> bool:
        """Counts one page of runs; False where there is none left. Python's lock is released."""

    def progress(self) -> tuple[int, int]:
        """Runs seen, and those that change."""

    def tally(self) -> dict[str, Any]:
        """The counts so far."""

@disjoint_base
class Journal:
    """A journal; see `vesper.journal.journal.Journal` and its subclass `StoreJournal`.

    `path` is that of a file; where it is None, `dsn` names a database. `prepare` makes the file, and raises where it is
    not to be used. `sources` replaces time and randomness. Nothing is opened before it is used.
    """

    def __new__(
        cls,
        path: Path | None,
        dsn: str,
        owner: str | None,
        keys: KeyRing,
        lease_seconds: float,
        max_inline: int,
        max_body: int,
        busy_seconds: float,
        prepare: Callable[[Path], None],
        sources: _Sources | None,
        /,
    ) -> Self: ...
    @property
    def path(self) -> Path | None: ...
    @property
    def name(self) -> str:
        """The store, for messages; it holds no password."""

    @property
    def owner(self) -> str: ...
    @property
    def keys_lie_beside_data(self) -> bool: ...
    @property
    def audit_key(self) -> bytes | None: ...
    def begin(self, beginning: _Beginning) -> Run: ...
    def keyed(self, node_id: str, context: Mapping[str, str], /) -> tuple[_Summary, bool] | None: ...
    def take_over(self, execution: str, engine: str) -> Run: ...
    def unfinished(self, limit: int = 100, is_released: bool = False) -> list[_Summary]: ...
    def summary(self, execution: str) -> _Summary: ...
    def find(
        self,
        *,
        status: _Status | None = None,
        node: str | None = None,
        since_us: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[_Summary]: ...
    def begin_queued(
        self,
        beginning: _Beginning,
        queue: str,
        lane: str,
        priority: int,
        due_us: int | None,
        body: str,
        attempts: int = 0,
    ) -> str: ...
    def now_us(self) -> int: ...
    def claim(
        self,
        kinds: list[str],
        limit: int,
        lease_us: int,
        queue: str | None = None,
        *,
        queue_limit: int | None = None,
        lane_limit: int | None = None,
    ) -> list[_Due]: ...
    def claim_queued(
        self,
        queue: str,
        limit: int,
        lease_us: int,
        engine: str | None = None,
        *,
        queue_limit: int | None = None,
        lane_limit: int | None = None,
        queue_rate: tuple[int, int] | None = None,
        lane_rate: tuple[int, int] | None = None,
        ahead_us: int = 0,
        after_lane: str | None = None,
    ) -> list[tuple[_Due, Run | None]]: ...
    def renew_due(self, due: _Due | Sequence[_Due], lease_us: int | None = None) -> int: ...
    def release(self, due: _Due, due_us: int | None, attempts: int, queue: str | None = None) -> bool: ...
    def remove(self, due: _Due | Sequence[_Due]) -> bool: ...
    def next_due(self, kinds: list[str]) -> int | None: ...
    def due(
        self,
        kind: str | None = None,
        name: str | None = None,
        queue: str | None = None,
        node: str | None = None,
        limit: int = 100,
        after: int | None = None,
        *,
        lane: str | None = None,
        execution: str | None = None,
    ) -> list[_Due]: ...
    def queue_depths(self, queue: str | None = None, limit: int = 1000) -> list[_QueueDepth]: ...
    def put_due(
        self,
        kind: str,
        name: str,
        due_us: int | None,
        body: str,
        expected_due_us: int | None,
        queue: str = "",
        lane: str = "",
    ) -> bool: ...
    def wake(
        self, execution: str, path: str, value_text: str | None, code: str | None, message: str, actor: str | None
    ) -> bool: ...
    def wake_due(self, limit: int = 100) -> list[_Due]: ...
    def signal(
        self,
        execution: str | None,
        name: str,
        lane: str,
        value_text: str,
        key: str | None,
        actor: str | None,
        checked: list[tuple[str, str]] | None = None,
    ) -> _SignalSent: ...
    def cancel(self, execution: str, reason: str, actor: str | None) -> _Status: ...
    def read(self, execution: str) -> _Recorded: ...
    def verify(self, execution: str) -> list[str]: ...
    def verify_shared(self) -> list[str]: ...
    def definition(self, semantic_hash: str) -> _Definition: ...
    def executions_page(self, prefix: str, after: str | None, /) -> list[str]:
        """Return ids that start with a prefix and come after another: some of them, none at the end."""

    def node_ids(self) -> list[str]: ...
    def resolve(
        self, execution: str, path: str, result: object, failure: str | None, by: str, why: str, not_done: bool = False
    ) -> None: ...
    def erase(self, execution: str) -> bool: ...
    def prune(self, before_us: int, node: str | None = None) -> int: ...
    def prunable(self, before_us: int, node: str | None = None) -> int: ...
    def check_writable(self) -> None: ...
    def audit_head(self) -> tuple[int, str]: ...
    def audit_page(self, after: int | None, /) -> list[tuple[int, bytes, bytes]]:
        """Return lines of the audit log after a number: some of them, none at the end."""

    def audit(self, events: Sequence[_AuditEvent]) -> None: ...
    def close(self) -> None: ...

def hold_journals() -> None:
    """Close the files of all journals before a fork, and keep other threads out."""

def release_journals() -> None:
    """Let the parent use its journals again."""

def forget_journals() -> None:
    """Forget in a child what its parent held."""

def this_owner() -> str:
    """Return the name of this process as an owner of runs; another one after a fork."""

def is_dead(owner: str, /) -> bool:
    """Return whether the owner is known to be gone; False where it lives or that cannot be known."""

@final
class LimitToken:
    """The claim of an attempt on limits that it shares with others."""

    @property
    def admitted_us(self) -> int:
        """Return the moment at which the store let the attempt out, by its own clock."""

@final
class SharedLimits:
    """Breakers, rate limits and limits of concurrency, by name."""

    def __new__(
        cls,
        url: str,
        prefix: str,
        is_local: bool,
        /,
        *,
        max_names: int = ...,
        timeout: timedelta = ...,
        pause: timedelta = ...,
        clock: Callable[[], int] | None = None,
    ) -> Self:
        """Open the limits of `memory:` or of an address of Redis.

        `is_local` keeps them in each process in an outage. Tests replace the rest: the number of names in memory, the
        times of Redis, and its clock.
        """
    def acquire(
        self,
        name: str,
        policy: Mapping[str, object],
        now_us: int,
        deadline_us: int | None = None,
        waiting: LimitToken | None = None,
        /,
        *,
        tokens: int = 0,
        patience_us: int | None = None,
    ) -> tuple[tuple[str, str, int, int], LimitToken | None]:
        """Decide whether an attempt may go out: kind, policy, moment and wait, and the token unless rejected.

        It uses at most `tokens`, and waits at most `patience_us`.
        """
    def release(self, token: LimitToken, failure_code: str | None, now_us: int, /, *, tokens: int | None = None) -> str:
        """Report the end of an attempt, and the tokens that it used; return the change of the breaker."""
    def abandon(self, token: LimitToken, now_us: int, /) -> None:
        """Give back the token of an attempt that was not made."""
    def pressure_us(self, models: ModelCatalog, model: str, now_us: int | None = None, /) -> int:
        """Return the time that a request of a model with backpressure would wait; 0 for other models."""
    def close(self) -> None:
        """Close connections. The limits stay usable."""

_EffectRow: TypeAlias = tuple[str, str, str, int, int, int, int, str | None, tuple[str, int, int, str] | None]
_BudgetRow: TypeAlias = tuple[str, str, str | None, int | None, int | None, int | None, str, int | None, int | None]
_Amounts: TypeAlias = tuple[str, int, int, int]
_Notice: TypeAlias = tuple[int, str, str]

@final
class SharedBudgets:
    """Budgets by key."""

    def __new__(
        cls,
        url: str,
        prefix: str,
        journal: Journal | None = None,
        /,
        *,
        timeout: timedelta = ...,
        clock: Callable[[], int] | None = None,
    ) -> Self:
        """Open the budgets of `memory:`, of an address of Redis, or of a journal. Tests replace the clock."""

    def reserve(
        self, budgets: Sequence[_BudgetRow], asker: str, worst: tuple[str, int, int, int | None], lease_us: int, /
    ) -> tuple[_Notice | None, int | None, list[_Notice]]:
        """Set a worst case aside in all budgets, or in none; return the refusal, the time granted, and notices."""

    def settle(self, budgets: Sequence[_BudgetRow], asker: str, actual: _Amounts, /) -> list[_Notice]:
        """Replace what was set aside by what the request took; return notices."""

    def release(self, budgets: Sequence[_BudgetRow], asker: str, /) -> list[_Notice]:
        """Give back what was set aside; return notices."""

    def read(self, keys: Sequence[str], /) -> list[tuple[_Amounts, _Amounts]]:
        """Return of each key what is used and what is set aside."""

    def forget(self, keys: Sequence[str], /) -> None:
        """Delete the counts of these keys."""

    def prune(self) -> None:
        """Delete counts whose time is over, where the store does not on its own."""

    def performer(self) -> NativePerformer:
        """Return the performer of `budget_read`."""

    def close(self) -> None:
        """Close connections. The budgets stay usable."""

@final
class PolicyGate:
    """One gate, stepped by a caller: for tests and proofs. Decisions are records in typed JSON."""

    def __new__(cls) -> Self: ...
    def ask(
        self,
        policy: Mapping[str, object],
        asker: str,
        lease_us: int,
        before_us: int,
        now_us: int,
        tokens: int = 0,
        /,
    ) -> str:
        """Ask for an attempt that uses at most `tokens`."""
    def leave(
        self,
        policy: Mapping[str, object],
        asker: str,
        admitted_us: int,
        is_failure: bool | None,
        now_us: int,
        tokens: int | None = None,
        /,
    ) -> str:
        """End an attempt that used `tokens`, or abandon it where `is_failure` is None."""
    def is_idle(self, now_us: int, /) -> bool: ...

@final
class RetryMachine:
    """The attempts at one effect, stepped by a caller: for tests and proofs."""

    def __new__(
        cls,
        policy: Mapping[str, object],
        effect_class: str,
        deadline_us: int | None = None,
        /,
    ) -> Self: ...
    def failed(self, code: str, draw: int, retry_after_us: int | None, now_us: int, /) -> str:
        """Decide after a failed attempt; return the record of the decision."""

def typed_json_of(program: Program, name: str, value: object, /) -> str:
    """Return the typed JSON of an object that an input accepts; raise `ValueError` for others."""

def value_of_typed_json(program: Program, name: str, text: str, /) -> object:
    """Return the value of an input from its typed JSON; raise `ValueError` for texts that it does not have."""

class NativePerformer:
    """A performer of the native Host. Python calls its methods where no run does."""

    def perform(self, ask: _Ask, /) -> object:
        """Perform the effect and return its value. Raises `EffectFailed`."""

    def probe(self, ask: _Ask, /) -> object:
        """Return the value of an effect that happened before, or `NOT_DONE`. Raises `EffectFailed`."""

    def close(self) -> None:
        """Close connections. The performer stays usable."""

def ambient_performer(sources: _Sources | None, /) -> NativePerformer:
    """Return the performer of clock, random numbers and unique names."""

def file_performer(settings: list[_FileSettings], sources: _Sources | None, /) -> NativePerformer:
    """Return the performer of files below these roots."""

@final
class SecretStore:
    """The secrets of a Host."""

    def __new__(
        cls, settings: _SecretSettings, function: Callable[[str], str] | None, sources: _Sources | None, /
    ) -> SecretStore: ...
    def text(self, name: str, /) -> str:
        """Return the text of a secret. Raises `EffectFailed`."""

    def redact(self, text: str, /) -> str:
        """Return the text with `secret:NAME` in place of each secret that was given out."""

    def performer(self, sources: _Sources | None, /) -> NativePerformer:
        """Return the performer of `secret_read`."""

def secret_forms(secret: str, /) -> list[str]:
    """Return the forms in which a secret may occur in a text after a program encoded it."""

@final
class Databases:
    """The configured databases."""

    def __new__(
        cls,
        settings: list[_DatabaseSettings],
        read_sql: Callable[..., object],
        pure_names: tuple[Sequence[str], Sequence[str]],
        did_you_mean: Callable[..., str | None],
        join: Callable[..., object],
        secret: Callable[[str], str],
        sqlite: tuple[str | None, str],
        /,
    ) -> Databases: ...
    def perform(self, ask: _Ask, types: Mapping[str, _Type] | None, /) -> object:
        """Perform one request; `types` has the types of its parameters. Raises `EffectFailed`."""

    def probe(self, ask: _Ask, types: Mapping[str, _Type] | None, /) -> object:
        """Return the result of an earlier request, or `NOT_DONE`. Raises `EffectFailed`."""

    def try_out(self, name: str, sql: str, then: str | None, timeout: float, /) -> list[list[str]]: ...
    def role_risks(self, name: str) -> list[str]:
        """Return the rights of a database's role that no node needs."""

    def performer(self, is_joined: bool) -> NativePerformer:
        """Return the performer of queries and writes."""

    def states(self, database: str) -> StateMachines:
        """Return the state machines that a database holds."""

    def close(self) -> None: ...
    def before_fork(self) -> None: ...
    def after_fork_in_parent(self) -> None: ...
    def after_fork_in_child(self) -> None: ...

@final
class StateMachines:
    """The state machines of one database."""

    def know(self, machine: str, initial: str) -> None:
        """Set the initial state of a machine."""

    def perform(self, ask: _Ask, /) -> object:
        """Perform one request. Raises `EffectFailed`."""

    def probe(self, ask: _Ask, /) -> object:
        """Return the result of an earlier request, or `NOT_DONE`. Raises `EffectFailed`."""

    def performer(self, is_joined: bool) -> NativePerformer:
        """Return the performer of moves and reads."""

@final
class HttpPerformer(NativePerformer):
    """The performer of `http_request`."""

    on_answer: Callable[[str, int], object] | None
    """Called with the path and the status of each answer to a request."""

    def __new__(
        cls,
        providers: dict[str, _HttpSettings],
        secret: SecretStore | Callable[[str], str],
        authorities: str,
        resolve: Callable[[str, int], list[str]] | None = None,
        /,
    ) -> Self:
        """Create a performer; `authorities` is a file of certificates, `resolve` stands in for the system's resolver.

        Raises `ValueError` with a setting and its problem.
        """

@final
class ModelCatalog:
    """The configured models: their limits and prices."""

    def __new__(cls, models: dict[str, _ModelSettings], /) -> Self:
        """Read the settings."""

    def bound(self, ask: _Ask, /) -> tuple[int, int, str]:
        """Return the most that an attempt can use: tokens of input and answer, and dollars.

        Raises `ValueError` for a request that cannot be sent.
        """

@final
class ModelPerformer(NativePerformer):
    """The performer of `model_call`."""

    def __new__(
        cls,
        models: ModelCatalog,
        secret: SecretStore | Callable[[str], str],
        authorities: str,
        custom: Callable[[str, str, str, str, bool, float | None], str],
        resolve: Callable[[str, int], list[str]] | None = None,
        /,
    ) -> Self:
        """Create a performer; `custom` returns the answer of a model of the application as JSON text.

        Raises `ValueError` with a setting and its problem.
        """

def read_http_url(text: str, /) -> tuple[tuple[bool, str, int], str, str]:
    """Return origin, path and query of an absolute URL; raise `ValueError` for other texts."""

def read_http_origin(is_secure: bool, text: str, /) -> tuple[bool, str, int]:
    """Return the origin of `host` or `host:port`; raise `ValueError` for other texts."""

def check_http_endpoint(base: tuple[bool, str, int], path: str, endpoint: str, /) -> None:
    """Raise `ValueError` for an endpoint that leaves its base or is no part of a URL."""

def check_http_header(name: str, /) -> None:
    """Raise `ValueError` for a name that a configuration cannot set."""

def check_http_value(name: str, value: str, /) -> None:
    """Raise `ValueError` for a value that is not one line of visible ASCII."""

def sign_aws_request(
    method: str,
    url: str,
    headers: Sequence[tuple[str, str]],
    body: bytes,
    region: str,
    service: str,
    access_key_id: str,
    secret_access_key: str,
    session_token: str | None,
    now_us: int,
    /,
) -> list[tuple[str, str]]:
    """Return the headers that sign a request to AWS (Signature Version 4); raise `ValueError` for a strange URL."""

def verify_webhook(scheme: bytes, headers: Sequence[tuple[str, str]], body: bytes, now: float, /) -> None:
    """Check the signature of a webhook by its scheme, as JSON; raise `ValueError` with the reason of a refusal."""

def confine(readable: Sequence[str], /) -> list[str]:
    """Confine this process for good: read below these folders, no network, few system calls.

    Returns what the kernel lacks. Raises `OSError` where there is no seccomp.
    """

@final
class PreparedNode:
    """A node with everything that its runs need."""

    def __new__(
        cls,
        ir: bytes,
        callees: Sequence[bytes],
        requests: Mapping[str, Any],
        policy: Mapping[str, Any],
        granted: Sequence[str],
        refused: Sequence[tuple[str, str]],
        performers: object,
        secret: Callable[[str], str],
        limits: SharedLimits,
        budgets: SharedBudgets,
        pace: str,
        sources: object | None,
        is_joined: bool,
        /,
    ) -> Self:
        """Prepare a node from its documents, its plans, its policy, and the capabilities that it has and has not."""

    def begin(
        self,
        run: object,
        inputs: Mapping[str, object],
        auditing: object | None,
        is_detailed: bool,
        replay: object | None,
        thread: int,
        /,
    ) -> Running:
        """Begin a run. `auditing` writes its audit, `replay` has known answers; each may be None."""

@final
class Running:
    """One run of a node."""

    @property
    def execution(self) -> str:
        """The id under which the journal has it."""

    @property
    def thread(self) -> int:
        """The thread that drives it."""

    @property
    def has_committed(self) -> bool:
        """True where the journal has the run."""

    def cancel(self) -> None:
        """End the run unless it has changed something: a request that only reads is dropped."""

    def stop(self) -> None:
        """End the run now: a request that only reads is dropped, and no further one is performed."""

    def limit(self, seconds: float, /) -> None:
        """End the time of the run when that of its caller ends, `seconds` from now."""

    def set_budgets(self, budgets: Sequence[tuple[_BudgetRow, bool]], tenant: str | None, /) -> None:
        """Give the run the budgets around it, each with whether the session completes its key, and its tenant."""

    def renew(self) -> None:
        """Prolong the lease of a run that the journal has."""

    def go(self, execution: object, input_size: int, /) -> _Outcome:
        """Run to the end, write the outcome and return it. An exception of an engine is raised, and `end` is due."""

    def set_trace(self, traceparent: str, tracestate: str | None, is_recorded: bool, /) -> None:
        """Give the run a trace context before it is driven; its effects have spans where it is recorded."""

    def take_spans(self) -> list[_EffectRow]:
        """Return the spans of effects: path, effect, class, id, start and end (Unix ns), attempts, failure, usage."""

    def end(self, outcome: _Outcome, /) -> _Outcome:
        """Write an outcome that the Host gives the run."""

@final
class RunWorkers:
    """The limit of runs that are advanced at the same time."""

    def __new__(cls, workers: int, /) -> Self: ...
    def spawn(self, context: object, begin: Callable[[], object], finish: Callable[[Any, Any], None], /) -> None:
        """Advance a run in a copied context, without a thread of its own.

        `begin` returns the run, its execution and the size of its inputs, or None where there is nothing to run;
        `finish` receives the outcome or the exception.
        """

def size_of(value: object, /) -> int:
    """Return about how many bytes a value takes: 32 for each value, and one for each byte or character in it."""

def hold_runtime() -> None:
    """Wait until no other thread advances a run, and let none begin until the fork is over."""

def release_runtime() -> None:
    """Let runs of the parent advance again."""

def forget_runtime() -> None:
    """Let a child make its own runtime."""

_HttpAnswer: TypeAlias = tuple[int, list[tuple[bytes, bytes]], bytes]
"""Status, headers and body."""

@final
class Exchange:
    """The routes and settings of one epoch of a server (docs/spec/serving.md)."""

    def __new__(cls, table: bytes, /) -> Exchange:
        """Read a table. Raises `ValueError`."""

    def route(
        self, method: str, target: str, headers: list[tuple[bytes, bytes]], subject: str | None = None, /
    ) -> ExchangeCall | _HttpAnswer:
        """Decide on a request by its head."""

@final
class ExchangeCall:
    """A request for a node, or for a page of the server."""

    endpoint: Final[int]
    builtin: Final[str | None]
    actor: Final[str | None]
    via: Final[str | None]
    tenant: Final[str | None]
    scopes: Final[list[str]]
    key: Final[str | None]
    accept: Final[str | None]
    timeout: Final[float | None]
    traceparent: Final[str | None]
    trace_id: Final[str]
    tracestate: Final[str | None]
    def inputs(self, body: bytes, /) -> bytes | _HttpAnswer: ...
    def answer(self, outcome: bytes, execution: str | None = None, /) -> _HttpAnswer: ...
    def refuse(
        self,
        refusal: str,
        detail: str | None = None,
        retry_after: float | None = None,
        execution: str | None = None,
        /,
    ) -> _HttpAnswer: ...
    def send(self, status: int, headers: list[tuple[str, str]], body: bytes, /) -> _HttpAnswer: ...

@final
class HttpServer:
    """Serves nodes by HTTP on threads of its own, and passes the calls that need Python to `next`."""

    def __new__(cls, listener: int, settings: bytes, /) -> HttpServer:
        """Make a server that owns the descriptor of a listening socket (`socket.detach`). The first `load` starts it.

        `settings` is a JSON object (docs/spec/serving.md). Raises `ValueError` for settings or certificates that
        cannot be used.
        """

    def load(self, table: bytes, programs: Sequence[object | None], /) -> None:
        """Serve later requests by a table, and read the certificates again. Requests under way end as they began.

        `programs` has for each endpoint a `Program` or a `Route`, or None for a node that only Python runs. Raises
        `ValueError`, and then the last table stays.
        """

    def next(self, seconds: float, /, builtins: bool = False) -> HttpCall | None:
        """Wait for the next call; with `builtins` only for pages of the server, which otherwise come first.

        Returns None after `seconds`, or when the server is drained or closed.
        """

    def stop_accepting(self) -> None:
        """Accept the connections that the kernel has established, then close the listener."""

    def drain(self, seconds: float, /) -> bool:
        """Finish the requests of all connections; return False if some are left after `seconds`."""

    def close(self) -> None:
        """End all connections and threads."""

    def take_spans(self) -> list[tuple[str, int, int, int, int, int, str]]:
        """Take the sampled native requests since the last call.

        Each is node, trace id, span id, parent span id (0 for none), start and end in Unix nanoseconds, and the kind
        of the outcome.
        """

    def take_access(self) -> list[tuple[str, str | None, str | None, int, int, int, str | None]]:
        """Take the requests for the access log since the last call.

        Each is method, path template, node, status, start in Unix nanoseconds, duration in nanoseconds and trace id.
        """

    def take_logs(self) -> list[str]:
        """Take messages about faults of the server itself."""

    def facts(self) -> dict[str, int]:
        """Return numbers: connections, queued, native_runs, buffered_bytes, requests, native_requests, epoch."""

@final
class HttpCall:
    """A request for Python. Dropped without an answer, it is answered as an internal error."""

    @property
    def endpoint(self) -> int:
        """The index of the endpoint; -1 for a page of the server."""
    @property
    def builtin(self) -> str | None:
        """The path of a page of the server."""
    @property
    def node(self) -> str | None: ...
    @property
    def inputs(self) -> bytes:
        """The JSON object of the inputs."""
    @property
    def epoch(self) -> int:
        """The number of the `load` that the request belongs to, from 1."""
    @property
    def actor(self) -> str | None: ...
    @property
    def tenant(self) -> str | None: ...
    @property
    def via(self) -> str | None:
        """How the caller was authenticated: `key`, `jwt` or `mtls`."""
    @property
    def scopes(self) -> list[str]: ...
    @property
    def key(self) -> str | None: ...
    @property
    def seconds_left(self) -> float | None:
        """The time until the deadline that the client set."""
    @property
    def traceparent(self) -> str | None:
        """The trace context of the client."""
    @property
    def tracestate(self) -> str | None: ...
    @property
    def trace_id(self) -> str:
        """The trace id of the answer."""
    @property
    def accept(self) -> str | None:
        """The `Accept` header of a request for a page of the server, or for an event stream."""
    @property
    def is_abandoned(self) -> bool:
        """True if the client has closed the connection."""

    def answer(self, outcome: bytes, execution: str | None = None, /) -> None:
        """Answer with an outcome, the bytes of `run_json`. Raises `RuntimeError` for a second answer."""

    def refuse(
        self,
        refusal: str,
        detail: str | None = None,
        retry_after: float | None = None,
        execution: str | None = None,
        /,
    ) -> None:
        """Refuse the call by the name of a refusal, such as `key_reused`. Raises as `answer`."""

    def send(self, status: int, headers: list[tuple[str, str]], body: bytes, /) -> None:
        """Answer with a page of the server. Raises as `answer`."""

    def stream(self, status: int, headers: list[tuple[str, str]], /) -> HttpStream:
        """Answer with a head, and return the body, which is written part by part. Raises as `answer`."""

@final
class HttpStream:
    """The body of an answer that is written part by part; the end of the connection ends it."""

    def send(self, part: bytes, /) -> bool:
        """Send a part; return False if the stream has ended, or its client is gone or does not read."""

    def close(self) -> None: ...
