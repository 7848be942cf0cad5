"""What a store of migration state gives, and what goes into it.

A store keeps, for each node in an epoch: its state, the fingerprints that counted as evidence, its divergences, its
paths, and a chained history. `transact` is the only way to change any of it: all of a transaction or nothing, one at a
time for a node. What is done in it is written once for every store (`ledger`).

A process tells the store what it saw in numbered batches. A batch is applied once, however often it is sent: who does
not know whether a commit came through sends it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from vesper.migration.compare.divergence import Divergence
from vesper.migration.control.state import Event, Settings
from vesper.values.vesper_error import VesperError

T = TypeVar("T")


class StoreError(VesperError):
    """The store cannot be used: away, locked, corrupt, or of another version. The message says which and what to do."""


class StoreAway(StoreError):
    """The store does not answer now; it may later. Nothing of the transaction was done, or a repeat of the same batch
    changes nothing."""


@dataclass(frozen=True, slots=True, order=True)
class NodeKey:
    node: str
    epoch: str


@dataclass(frozen=True, slots=True)
class SeenOnPath:
    """Comparisons of traffic on one path that came out equal."""

    fingerprints: frozenset[int]
    compared: int
    attempt: int | None = None
    """The attempt of the path that they were gathered in, as far as the process knew when it began to; the one before
    the batch, unless said. Where the path has begun afresh since then, they count for the node alone."""


@dataclass(frozen=True, slots=True)
class Happened:
    """Something that is not an agreement, in the order in which it came."""

    event: Event
    divergence: Divergence | None = None
    """Of a `Diverged`, an `EngineFaulted` or a `Noisy`: what is kept of it."""
    input: int | None = None
    """Of a `Diverged`: the fingerprint of what was read, which counts as agreement no more."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What one process saw of a node since it last told the store."""

    process: str
    number: int
    """From 1, one more each time; a batch that is sent again keeps its number."""
    happened: Sequence[Happened] = ()
    """Applied first: a divergence is known before anything rises on the agreements beside it."""
    agreed: Mapping[str, SeenOnPath] = field(default_factory=dict)
    generated: Mapping[str, frozenset[int]] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    """Paths that this process saw for the first time: what each is, as `paths.PathNote.to_text`."""
    attempt: int | None = None
    """The attempt of the node that the agreements were gathered in. Those of one before it count no more: what was seen
    before a node fell does not bring it back."""
    served: Mapping[str, int] = field(default_factory=dict)
    """Requests that were answered, by mode and engine that answered (`traffic.served_key`)."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the history of a node: a decision, chained to the one before."""

    number: int
    text: str
    """Canonical JSON of the record, with `kind`, `node`, `epoch` and `at_us`."""
    hash: str


class Transaction(Protocol):
    """What is done to one node in one transaction. Reads see what was written before in the same one."""

    def state(self) -> str | None:
        """As `codec.state_text` wrote it; None where the node is not known in this epoch."""
        ...

    def put_state(self, text: str) -> None:
        """Also raises the version of the node by one, which is what other processes look at."""
        ...

    def applied(self, process: str) -> int:
        """The number of the last batch of a process; 0 where there is none."""
        ...

    def put_applied(self, process: str, number: int) -> None: ...

    def known(self, scope: str, fingerprints: Iterable[int]) -> set[int]:
        """Which of these fingerprints are in the set of this name."""
        ...

    def add(self, scope: str, fingerprints: Iterable[int]) -> None: ...
    def remove(self, scope: str, fingerprint: int) -> None: ...
    def size(self, scope: str) -> int: ...
    def drop(self, prefix: str) -> None:
        """Deletes every set whose name starts so."""
        ...

    def head(self) -> tuple[int, str]:
        """How many lines the history of the node has, and the hash of the last; `(0, "")` for none."""
        ...

    def append(self, line: Line) -> None: ...
    def divergence(self, fingerprint: str) -> str | None:
        """As `Divergence.to_text` wrote it."""
        ...

    def put_divergence(self, fingerprint: str, text: str) -> None: ...
    def path(self, path: str) -> str | None: ...
    def put_path(self, path: str, text: str) -> None: ...
    def document(self, name: str) -> str | None:
        """What is kept of the node under this name besides (`traffic`); no part of the state."""
        ...

    def put_document(self, name: str, text: str) -> None:
        """Does not raise the version of the node."""
        ...

    def clear(self) -> None:
        """Deletes every document, and what every path is."""
        ...


class Store(Protocol):
    """Any number of threads and processes may use it; after a fork the child opens it anew."""

    @property
    def name(self) -> str:
        """For messages; holds no password."""
        ...

    def transact(self, key: NodeKey, work: Callable[[Transaction], T]) -> T:
        """Runs `work` in a transaction, again where another process was in the way: it must do nothing else. Raises
        `StoreAway` or `StoreError`; then nothing was done, or it is not known (`StoreAway`)."""
        ...

    def versions(self) -> Mapping[NodeKey, int]:
        """The version of every node: cheap, asked for several times a second. One key with the empty node and epoch is
        the whole store, and holds the kill switch for all nodes."""
        ...

    def read(self, key: NodeKey) -> str | None:
        """The state of a node, without a transaction."""
        ...

    def history(self, key: NodeKey) -> Sequence[Line]: ...
    def divergences(self, key: NodeKey) -> Sequence[str]:
        """All that are kept, newest first."""
        ...

    def paths(self, key: NodeKey) -> Mapping[str, str]: ...
    def document(self, key: NodeKey, name: str) -> str | None:
        """As `Transaction.put_document` left it."""
        ...

    def secret(self) -> bytes:
        """16 random bytes that all who share the store share: the key of fingerprints and of routing. Made once."""
        ...

    def warnings(self) -> Sequence[str]:
        """What may go wrong with the store as it is set up, for the log and for `vesper status`; it is asked for that.
        Empty where nothing may."""
        ...

    def close(self) -> None: ...


WHOLE = NodeKey("", "")
"""Of this key the state is `{"killed": …}`: see `ledger`."""


def keys_of(store: Store) -> list[NodeKey]:
    """Every node that the store knows."""
    return sorted(key for key in store.versions() if key != WHOLE)


def open_store(dsn: str) -> Store:
    """The store that `sqlite:PATH`, `postgresql://…`, `redis://…` or `unix://…` (Redis) names. Nothing is opened before
    it is used. A DSN that names none is a `StoreError`."""
    scheme, colon, rest = dsn.partition(":")
    if scheme == "sqlite" and colon:
        from vesper.migration.stores.sqlite_store import SqliteMigrationStore

        return SqliteMigrationStore(rest)
    if scheme in ("postgresql", "postgres") and rest.startswith("//"):
        from vesper.migration.stores.postgres_store import PostgresMigrationStore

        return PostgresMigrationStore(dsn)
    if scheme in ("redis", "rediss", "unix") and rest.startswith("//"):
        from vesper.migration.stores.redis_store import RedisMigrationStore

        return RedisMigrationStore(dsn)
    raise StoreError(
        f"`{scheme[:40]}{colon}` names no store: `sqlite:PATH` is a file, `postgresql://HOST/DATABASE` a database, "
        "`redis://HOST` a Redis"
    )


__all__ = [
    "WHOLE", "Batch", "Happened", "Line", "NodeKey", "SeenOnPath", "Settings", "Store", "StoreAway",
    "StoreError", "Transaction", "keys_of", "open_store",
]  # fmt: skip
