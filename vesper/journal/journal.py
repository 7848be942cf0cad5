"""The journal as the Host and the commands know it. `open_journal` gives the one that a DSN names.

`Run.append` only remembers; `Run.commit` makes all that was appended durable, in one transaction that also checks that
the run is still ours. Two runs that commit at the same time share a transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from vesper._direct import KeyRing, RunKey
from vesper.journal.due import Due, QueueDepth, SignalSent
from vesper.journal.entry import AuditEvent, Definition, Entry, Stored
from vesper.journal.errors import Fenced, JournalError, KeyTaken, NotTaken, UnknownExecution
from vesper.storage.sources import SYSTEM_SOURCES, Sources

__all__ = [
    "Beginning", "Due", "Fenced", "Journal", "JournalError", "KeyRing", "KeyTaken", "NotTaken", "Recorded", "Run",
    "RunKey", "SignalSent", "Status", "Summary", "UnknownExecution", "open_journal",
]  # fmt: skip


class Status(StrEnum):
    RUNNING = "running"
    IN_DOUBT = "in_doubt"
    ENDED = "ended"
    WAITING = "waiting"
    """A wait is committed: the run is nowhere but in the journal until it is woken."""
    QUEUED = "queued"
    """The run has not begun: a worker takes it over."""

    @property
    def is_under_way(self) -> bool:
        """Return True where the run can still end without a person."""
        return self in (Status.RUNNING, Status.WAITING, Status.QUEUED)


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a run starts with."""

    execution: str
    definition: Definition
    inputs: Mapping[str, object]
    now: datetime
    engine: str
    is_sensitive: bool = False
    """True: every body of this run is encrypted under a key of its own."""
    writes: bool = True
    """True: commits are synced to the disk (FULL); False: a loss of power may take the last ones (NORMAL)."""
    is_joined: bool = False
    """True where effects are part of the caller's transaction: nobody else can finish the run."""
    context: Mapping[str, str] | None = None
    """Texts that describe the caller; the first commit raises `KeyTaken` where a run has its `key`."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A run in a list."""

    execution: str
    node_id: str
    semantic_hash: str
    status: Status
    outcome: str | None
    """The kind of the outcome, of a run that has ended."""
    started_us: int
    updated_us: int
    owner: str
    fence: int
    engine: str
    is_joined: bool
    is_sensitive: bool


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run with all its entries, in order; the first is START."""

    summary: Summary
    entries: Sequence[Stored]


class Run(Protocol):
    """A run that this process owns. One thread at a time may use it."""

    @property
    def execution(self) -> str: ...
    @property
    def fence(self) -> int: ...
    @property
    def recorded(self) -> Sequence[Entry]:
        """What stood in the journal when the run was taken over; nothing for a new one."""
        ...

    def digest(
        self, effect: str, effect_class: str, fixed: Mapping[str, str], arguments: Mapping[str, object], key: str | None
    ) -> str:
        """Of a request: `typed_json.digest_of`, and for a sensitive run one that only its key can compute, so that
        nobody finds out by trying what was asked for."""
        ...

    def append(self, entry: Entry) -> None:
        """Raises `JournalError` for a body that is too large or holds what is no value; nothing is remembered then."""
        ...

    def intend(self, entry: Entry) -> str:
        """Appends the INTENT of a request with its digest, which it gives back. The body is what the request fixes and
        its arguments. Raises as `append` and `digest` do."""
        ...

    def audit(self, event: AuditEvent) -> None:
        """Written with the next commit, or not at all."""
        ...

    def commit(self, status: Status = Status.RUNNING, outcome: str | None = None) -> None:
        """Everything appended is durable when this returns. Raises `Fenced` where the run is no longer ours."""
        ...

    def renew(self) -> None:
        """Prolongs the lease; commits do as well. Raises `Fenced`."""
        ...


class Journal(Protocol):
    """Any number of threads may use it, and a process that was forked from the one that opened it."""

    @property
    def owner(self) -> str:
        """The name under which this process owns runs."""
        ...

    @property
    def name(self) -> str:
        """The name of the store, for messages; it has no password."""
        ...

    @property
    def keys_lie_beside_data(self) -> bool:
        """True where no master key is configured: whoever can read the journal can then read sensitive runs."""
        ...

    @property
    def volatile_reason(self) -> str | None:
        """Why the store may vanish with a restart (`is_volatile`); None where nothing says so."""
        ...

    @property
    def audit_key(self) -> bytes | None:
        """The secret that the hashes of the audit log are made with, where there is one."""
        ...

    def begin(self, beginning: Beginning) -> Run:
        """A new run with its START appended; nothing is written before the first commit."""
        ...

    def keyed(self, node_id: str, context: Mapping[str, str], /) -> tuple[Summary, bool] | None:
        """Return the run of a node with the key of a context, and whether it has an owner that may still end it."""
        ...

    def take_over(self, execution: str, engine: str) -> Run:
        """Makes a run ours whose lease has run out (or that is ours, or that was resolved): a compare-and-swap on the
        fence, and a HANDOFF, committed. Raises `NotTaken`, `UnknownExecution`."""
        ...

    def unfinished(self, limit: int = 100, is_released: bool = False) -> list[Summary]:
        """Runs that may be taken over: running, not joined, their lease run out. Oldest first. Those in a queue
        belong to its workers. `is_released`: only those that no process had last, woken ones and resolved ones."""
        ...

    def summary(self, execution: str) -> Summary:
        """The row of a run, without its entries. Raises `UnknownExecution`."""
        ...

    def find(
        self,
        *,
        status: Status | None = None,
        node: str | None = None,
        since_us: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Summary]:
        """Runs, newest first."""
        ...

    def read(self, execution: str) -> Recorded:
        """A prefix of the id is enough where it is unique. Checks the hash chain; raises `JournalError` where it is
        broken, and names the entry."""
        ...

    def verify(self, execution: str) -> list[str]:
        """Reads a run as `read` does, and returns where its row and its uses of blobs contradict its entries."""
        ...

    def verify_shared(self) -> list[str]:
        """Returns definitions that are not those of their hash, and rows that belong to no run."""
        ...

    def definition(self, semantic_hash: str) -> Definition: ...

    def executions(self, prefix: str = "", after: str | None = None) -> Iterator[str]:
        """The ids of all runs that start so and come after another, in their order; read in parts, so that any number
        of them fits."""
        ...

    def node_ids(self) -> list[str]:
        """The nodes that a run is pinned to, those that are only called among them."""
        ...

    def resolve(
        self, execution: str, path: str, result: object, failure: str | None, by: str, why: str, not_done: bool = False
    ) -> None:
        """Writes RESOLVED for a request that is in doubt; the run may be taken over then. `not_done`: it certainly did
        not happen, and whoever takes the run over performs it."""
        ...

    def begin_queued(
        self,
        beginning: Beginning,
        queue: str,
        lane: str,
        priority: int,
        due_us: int | None,
        body: str,
        attempts: int = 0,
    ) -> str:
        """Commit START with a place in a queue, and return the execution. Raises `KeyTaken`.

        `due_us` None is at once. The queue `""` is that of started runs: a takeover removes its row.
        """
        ...

    def now_us(self) -> int:
        """Return the time of the store's clock: that of the server in PostgreSQL, that of the machine in a file."""
        ...

    def claim(
        self,
        kinds: list[str],
        limit: int,
        lease_us: int,
        queue: str | None = None,
        *,
        queue_limit: int | None = None,
        lane_limit: int | None = None,
    ) -> list[Due]:
        """Claim rows that are due and that no living process has, by priority, then by time. One process has each.

        The limits are rows of the queue, and of each lane of it, that processes may have at the same time.
        """
        ...

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
    ) -> Sequence[tuple[Due, Run | None]]:
        """Claim queued runs and take them over in one transaction; None for a run that has ended or is another's.

        Lanes take turns, from the one behind `after_lane`. Limits count rows that living processes have. A rate is a
        number of starts and the microseconds for them; a row is claimed at most `ahead_us` before its start, `due_us`.
        """
        ...

    def renew_due(self, due: Due | Sequence[Due], lease_us: int | None = None) -> int:
        """Prolong claims, by default for the lease of a run; return how many are still this process's."""
        ...

    def release(self, due: Due, due_us: int | None, attempts: int, queue: str | None = None) -> bool:
        """Give a claimed row back, due at another time (None: never), in its queue or another one."""
        ...

    def remove(self, due: Due | Sequence[Due]) -> bool:
        """Delete rows, each unless it was changed since it was read; return whether all were deleted."""
        ...

    def next_due(self, kinds: list[str]) -> int | None:
        """Return the time at which the next row is due that no process has."""
        ...

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
    ) -> list[Due]:
        """Return rows in the order of their ids; `after` is the id of the last row of the page before."""
        ...

    def queue_depths(self, queue: str | None = None, limit: int = 1000) -> list[QueueDepth]:
        """Return the depth of each queue, or of each lane of one queue, the longest first."""
        ...

    def put_due(
        self,
        kind: str,
        name: str,
        due_us: int | None,
        body: str,
        expected_due_us: int | None,
        queue: str = "",
        lane: str = "",
    ) -> bool:
        """Put a row without a run: a new one, or in place of the one that is due at `expected_due_us`.

        Returns False where there is one already, or another one, or a process has it.
        """
        ...

    def put_schedule(self, name: str, due_us: int, body: str, expected_due_us: int | None) -> bool:
        """Put the row of a schedule, as `put_due` does."""
        ...

    def wake(
        self, execution: str, path: str, value_text: str | None, code: str | None, message: str, actor: str | None
    ) -> bool:
        """Wake a run that waits at a path, with a value in typed JSON or a failure; False where it no longer does."""
        ...

    def wake_due(self, limit: int = 100) -> list[Due]:
        """Wake waits whose time is over, in one transaction; return their rows.

        A sleep returns its time, `wait_for` fails with `timeout`, an interrupt with `expired`.
        """
        ...

    def signal(
        self,
        execution: str | None,
        name: str,
        lane: str,
        value_text: str,
        key: str | None,
        actor: str | None,
        checked: list[tuple[str, str]] | None = None,
    ) -> SignalSent:
        """Send a signal to a run, or to all runs that wait with a lane; it is kept where none waits.

        `checked` has executions and paths of the waits whose type the value has. Raises `Unchecked` where a run waits
        elsewhere, and `NotTaken` where 1,000 signals are kept for the run, or for the name and lane, already.
        """
        ...

    def cancel(self, execution: str, reason: str, actor: str | None) -> Status:
        """End a queued run, or fail the wait of one that waits with `cancelled`; return its status then."""
        ...

    def erase(self, execution: str) -> bool:
        """Deletes the key of a run's bodies; whether there was one."""
        ...

    def prune(self, before_us: int, node: str | None = None) -> int:
        """Deletes runs that ended before, with their keys, and blobs and definitions that nobody needs any more; how
        many runs."""
        ...

    def prunable(self, before_us: int, node: str | None = None) -> int:
        """How many runs `prune` would delete."""
        ...

    def check_writable(self) -> None:
        """Raise `JournalError` where the journal cannot be written; changes no row."""
        ...

    def audit_head(self) -> tuple[int, str]:
        """How many lines the audit log has had, and the hash of the last one."""
        ...

    def audit_rows(self) -> Iterator[tuple[int, bytes, bytes]]:
        """The audit log as it is stored, for `verify_audit`: number, line, hash."""
        ...

    def newest_audit_rows(self, before: int | None = None) -> Iterator[tuple[int, bytes, bytes]]:
        """The audit log as `audit_rows` has it, newest first; `before` leaves out that line and all newer ones."""
        ...

    def audit_events(self) -> Iterator[Mapping[str, object]]:
        """The audit log in order, each line with `seq`, `hash` and `previous`."""
        ...

    def audit(self, events: Sequence[AuditEvent]) -> None:
        """Writes lines that belong to no run of this journal; durable when it returns."""
        ...

    def close(self) -> None: ...


def open_journal(
    dsn: str,
    *,
    owner: str | None = None,
    lease_seconds: float = 30,
    keys: KeyRing | None = None,
    max_inline: int = 16 << 10,
    max_body: int = 4 << 20,
    busy_seconds: float = 5.0,
    sources: Sources = SYSTEM_SOURCES,
) -> Journal:
    """The journal that `sqlite:PATH`, `sqlite:///PATH` or `postgresql://...` names. Nothing is opened before it is
    used, so that this is cheap and cannot fail for a store that is away; a DSN that names none is a `JournalError`.

    `owner` names this process in leases; by default it is made so that a process of the same machine can tell whether
    it still lives. `max_inline` and `max_body` are sizes of one body, in bytes. `busy_seconds` is the time for
    which another process may hold a file before it counts as locked. `sources` replaces time and randomness, for tests.
    """
    from vesper.journal.store_journal import StoreJournal, make_journal_file, path_of

    scheme, colon, rest = dsn.partition(":")
    if scheme == "sqlite" and colon:
        path: Path | None = path_of(rest)
    elif scheme in ("postgresql", "postgres") and rest.startswith("//"):
        path = None
    else:
        raise JournalError(
            f"`{scheme[:40]}{colon}` names no journal: `sqlite:PATH` is a file, `postgresql://HOST/DATABASE` a database"
        )
    return StoreJournal(
        path,
        dsn,
        owner,
        keys or KeyRing(),
        lease_seconds,
        max_inline,
        max_body,
        busy_seconds,
        make_journal_file,
        None if sources is SYSTEM_SOURCES else sources,
    )
