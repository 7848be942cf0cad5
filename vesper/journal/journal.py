"""The interface of a journal, for the Host and the commands. `open_journal` opens the one that a DSN names.

`Run.append` only collects entries; `Run.commit` makes them durable, in one transaction that also checks that this
process still owns the run. Runs that commit at the same time may share a transaction.
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
        """Return whether the run can still end without a person."""
        return self in (Status.RUNNING, Status.WAITING, Status.QUEUED)


@dataclass(frozen=True, slots=True)
class Beginning:
    """The facts with which a run starts."""

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
    """True where effects are part of the caller's transaction: no other process can finish the run."""
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
        """Return the entries that the journal had when the run was taken over. None for a new run."""
        ...

    def digest(
        self, effect: str, effect_class: str, fixed: Mapping[str, str], arguments: Mapping[str, object], key: str | None
    ) -> str:
        """Return the digest of a request: `typed_json.digest_of`, and for a sensitive run one that needs its key.

        Without the key, trying arguments does not reveal the request.
        """
        ...

    def append(self, entry: Entry) -> None:
        """Append an entry; it is durable after the next commit.

        Raises `JournalError` for a body that is too large or contains an object that is no value; nothing is appended
        then.
        """
        ...

    def intend(self, entry: Entry) -> str:
        """Append the INTENT of a request and return the digest in it.

        Its body has the fixed fields and the arguments of the request. Raises as `append` and `digest` do.
        """
        ...

    def audit(self, event: AuditEvent) -> None:
        """Append a line to the audit log. It is written with the next commit, or never."""
        ...

    def commit(self, status: Status = Status.RUNNING, outcome: str | None = None) -> None:
        """Make all appended entries durable. Raises `Fenced` if another process has taken the run over."""
        ...

    def renew(self) -> None:
        """Prolong the lease; commits do so, too. Raises `Fenced`."""
        ...


class Journal(Protocol):
    """A store of runs. Safe in threads and after a fork."""

    @property
    def owner(self) -> str:
        """Return the name under which this process owns runs."""
        ...

    @property
    def name(self) -> str:
        """Return the name of the store, for messages. It contains no password."""
        ...

    @property
    def keys_lie_beside_data(self) -> bool:
        """Return whether no master key is configured: access to the journal then suffices to read sensitive runs."""
        ...

    @property
    def volatile_reason(self) -> str | None:
        """Return why the store may vanish with a restart (`is_volatile`); None if nothing suggests it."""
        ...

    @property
    def audit_key(self) -> bytes | None:
        """Return the secret in the hashes of the audit log; None without one."""
        ...

    def begin(self, beginning: Beginning) -> Run:
        """Return a new run with its START appended. Nothing is written before its first commit."""
        ...

    def keyed(self, node_id: str, context: Mapping[str, str], /) -> tuple[Summary, bool] | None:
        """Return the run of a node with the key of a context. The flag is true if its owner may still end it."""
        ...

    def take_over(self, execution: str, engine: str) -> Run:
        """Take over a run whose lease has run out, that was resolved, or that this process owns.

        It is a compare-and-swap on the fence and a HANDOFF, both committed. Raises `NotTaken`, `UnknownExecution`.
        """
        ...

    def unfinished(self, limit: int = 100, is_released: bool = False) -> list[Summary]:
        """Return runs that may be taken over, oldest first: running, not joined, and with an expired lease.

        Runs in a queue are left to its workers. `is_released` returns only runs without a last process: woken and
        resolved ones.
        """
        ...

    def summary(self, execution: str) -> Summary:
        """Return the row of a run, without its entries. Raises `UnknownExecution`."""
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
        """Return runs, newest first."""
        ...

    def read(self, execution: str) -> Recorded:
        """Return a run with its entries, by its id or a unique prefix of it.

        Checks the hash chain. Raises `JournalError` with the first broken entry.
        """
        ...

    def verify(self, execution: str) -> list[str]:
        """Return the contradictions between a run's entries and its row or its uses of blobs.

        Reads it as `read` does.
        """
        ...

    def verify_shared(self) -> list[str]:
        """Return definitions that do not have their hash, and rows that belong to no run."""
        ...

    def definition(self, semantic_hash: str) -> Definition: ...

    def executions(self, prefix: str = "", after: str | None = None) -> Iterator[str]:
        """Yield the ids of all runs with a prefix, in order, after another id.

        They are read in pages, so that their number is unlimited.
        """
        ...

    def node_ids(self) -> list[str]:
        """Return the nodes to which runs are pinned, including those that are only called."""
        ...

    def resolve(
        self, execution: str, path: str, result: object, failure: str | None, by: str, why: str, not_done: bool = False
    ) -> None:
        """Write RESOLVED for a request that is in doubt. The run may be taken over then.

        With `not_done` it certainly did not happen, and the process that takes the run over performs it.
        """
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

        A `due_us` of None is the current time. The queue `""` is that of started runs: a takeover removes its row.
        """
        ...

    def now_us(self) -> int:
        """Return the time of the store's clock. It is that of a PostgreSQL server, or of the machine for a file."""
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
        """Claim rows that are due and that no living process has, by priority, then by time.

        Each row has at most one process. The limits bound the rows of the queue, and of each lane, that processes have
        at one time.
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
        """Claim queued runs and take them over in one transaction. None for a run that has ended or has another owner.

        Lanes are served in rotation, from the one behind `after_lane`. Limits bound the rows that living processes
        have. A rate is a number of starts and their period in microseconds; a row is claimed at most `ahead_us` before
        its start, `due_us`.
        """
        ...

    def renew_due(self, due: Due | Sequence[Due], lease_us: int | None = None) -> int:
        """Prolong claims, by default for the lease of a run. Returns how many this process still has."""
        ...

    def release(self, due: Due, due_us: int | None, attempts: int, queue: str | None = None) -> bool:
        """Release a claimed row to its queue or another one, due at another time (None: never)."""
        ...

    def remove(self, due: Due | Sequence[Due]) -> bool:
        """Delete rows that are unchanged since they were read; return whether all were deleted."""
        ...

    def next_due(self, kinds: list[str]) -> int | None:
        """Return the earliest due time of a row that no process has."""
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
        """Return rows in the order of their ids. `after` is the id of the last row of the previous page."""
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
        """Put a new row without a run, or replace the one that is due at `expected_due_us`.

        Returns False if there is already a row, or a different one, or a process has it.
        """
        ...

    def put_schedule(self, name: str, due_us: int, body: str, expected_due_us: int | None) -> bool:
        """Put the row of a schedule, as `put_due` does."""
        ...

    def wake(
        self, execution: str, path: str, value_text: str | None, code: str | None, message: str, actor: str | None
    ) -> bool:
        """Wake a run that waits at a path, with a value in typed JSON or a failure.

        False if it no longer waits there.
        """
        ...

    def wake_due(self, limit: int = 100) -> list[Due]:
        """Wake waits whose time is over, in one transaction; return their rows.

        A `sleep` completes with its time, `wait_for` fails with `timeout`, an interrupt with `expired`.
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
        """Send a signal to a run, or to all runs that wait with a lane. The journal keeps it if none waits.

        `checked` has executions and paths of the waits whose type the value has. Raises `Unchecked` if a run waits
        elsewhere, and `NotTaken` if 1,000 signals are already kept for the run, or for the name and lane.
        """
        ...

    def cancel(self, execution: str, reason: str, actor: str | None) -> Status:
        """End a queued run, or fail the wait of a waiting one with `cancelled`. Returns its new status."""
        ...

    def erase(self, execution: str) -> bool:
        """Delete the key of a run's encrypted bodies; return whether there was one."""
        ...

    def prune(self, before_us: int, node: str | None = None) -> int:
        """Delete runs that ended before a time, with their keys; return how many.

        Blobs and definitions that no run uses any more are deleted, too.
        """
        ...

    def prunable(self, before_us: int, node: str | None = None) -> int:
        """Return how many runs `prune` would delete."""
        ...

    def check_writable(self) -> None:
        """Raise `JournalError` where the journal cannot be written; changes no row."""
        ...

    def audit_head(self) -> tuple[int, str]:
        """Return the number of lines ever written to the audit log, and the hash of the last one."""
        ...

    def audit_rows(self) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield the audit log as it is stored, for `verify_audit`: number, line, hash."""
        ...

    def newest_audit_rows(self, before: int | None = None) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield the rows of `audit_rows`, newest first. `before` leaves out that line and all newer ones."""
        ...

    def audit_events(self) -> Iterator[Mapping[str, object]]:
        """Yield the audit log in order, each line with `seq`, `hash` and `previous`."""
        ...

    def audit(self, events: Sequence[AuditEvent]) -> None:
        """Write lines that belong to no run of this journal. They are durable on return."""
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
    """Open the journal that `sqlite:PATH`, `sqlite:///PATH` or `postgresql://...` names.

    The store is opened at its first use, so this is cheap and does not fail for an unavailable store. Raises
    `JournalError` for a DSN that names none.

    `owner` names this process in leases; by default another process of the machine can tell from it whether this one
    lives. `max_inline` and `max_body` are sizes of one body, in bytes. `busy_seconds` is the time for which another
    process may hold a file before it is reported as locked. `sources` replaces time and randomness, for tests.
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
