"""The interface of stores of migration state, and the batches written to them.

A store holds, for each node in an epoch: its state, the fingerprints that counted as evidence, its divergences, its
paths, and a chained history. `transact` is the only way to change any of it: atomic, and one at a time per node. The
content of transactions is the same for every store (`ledger`).

A process sends its findings in numbered batches. A batch is applied once, however often it is sent, so that a process
that does not know the result of a commit sends it again.
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
    """The store cannot be used: away, locked, corrupt, or of another version.

    The message contains the cause and the remedy.
    """


class StoreAway(StoreError):
    """The store does not respond at present.

    The transaction was not applied, or a repetition of the same batch changes nothing.
    """


@dataclass(frozen=True, slots=True, order=True)
class NodeKey:
    node: str
    epoch: str


@dataclass(frozen=True, slots=True)
class SeenOnPath:
    """Agreements of traffic on one path."""

    fingerprints: frozenset[int]
    compared: int
    attempt: int | None = None
    """Attempt of the path in which they were gathered, as known to the process; by default the one before the batch. If
    the path restarted since then, they count for the node alone."""


@dataclass(frozen=True, slots=True)
class Happened:
    """An event other than an agreement, in order of occurrence."""

    event: Event
    divergence: Divergence | None = None
    """Divergence to store with a `Diverged`, an `EngineFaulted` or a `Noisy`."""
    input: int | None = None
    """Fingerprint of a `Diverged`, which no longer counts as agreement."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The findings of one process about a node since its last batch."""

    process: str
    number: int
    """Number from 1, ascending; a batch that is sent again keeps its number."""
    happened: Sequence[Happened] = ()
    """Events, applied first: a divergence takes effect before the agreements beside it."""
    agreed: Mapping[str, SeenOnPath] = field(default_factory=dict)
    generated: Mapping[str, frozenset[int]] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    """Notes of paths that are new to this process, as `paths.PathNote.to_text`."""
    attempt: int | None = None
    """Attempt of the node in which the agreements were gathered. Agreements of an earlier one do not count, so that
    evidence from before a demotion does not promote the node."""
    served: Mapping[str, int] = field(default_factory=dict)
    """Number of requests by mode and engine of the outcome (`traffic.served_key`)."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a node's history: one decision, chained to the line before."""

    number: int
    text: str
    """Canonical JSON of the record, with `kind`, `node`, `epoch` and `at_us`."""
    hash: str


class Transaction(Protocol):
    """The operations of one transaction on one node. Reads see earlier writes of the same transaction."""

    def state(self) -> str | None:
        """Return the text from `codec.state_text`; None where the store does not know the node in this epoch."""
        ...

    def put_state(self, text: str) -> None:
        """Write the state, and increment the version of the node, which other processes poll."""
        ...

    def applied(self, process: str) -> int:
        """Return the number of the last batch of a process; 0 where there is none."""
        ...

    def put_applied(self, process: str, number: int) -> None: ...

    def known(self, scope: str, fingerprints: Iterable[int]) -> set[int]:
        """Return those of the fingerprints that are in the named set."""
        ...

    def add(self, scope: str, fingerprints: Iterable[int]) -> None: ...
    def remove(self, scope: str, fingerprint: int) -> None: ...
    def size(self, scope: str) -> int: ...
    def drop(self, prefix: str) -> None:
        """Delete every set whose name has this prefix."""
        ...

    def head(self) -> tuple[int, str]:
        """Return the number of lines in the history and the hash of the last; `(0, "")` for none."""
        ...

    def append(self, line: Line) -> None: ...
    def divergence(self, fingerprint: str) -> str | None:
        """Return the text from `Divergence.to_text`; None where there is none."""
        ...

    def put_divergence(self, fingerprint: str, text: str) -> None: ...
    def path(self, path: str) -> str | None: ...
    def put_path(self, path: str, text: str) -> None: ...
    def document(self, name: str) -> str | None:
        """Return a named document beside the state, such as `traffic`; None where there is none."""
        ...

    def put_document(self, name: str, text: str) -> None:
        """Write a named document, without incrementing the version of the node."""
        ...

    def clear(self) -> None:
        """Delete all documents and notes of paths."""
        ...


class Store(Protocol):
    """A store of migration state, for any number of threads and processes. A child reopens it after a fork."""

    @property
    def name(self) -> str:
        """The name for messages, without a password."""
        ...

    def transact(self, key: NodeKey, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction, and repeat it after a conflict; it must have no other effect.

        Raises `StoreError` where nothing was applied, and `StoreAway` where nothing was applied or the result is
        unknown.
        """
        ...

    def versions(self) -> Mapping[NodeKey, int]:
        """Return the version of every node: a cheap call for polling.

        The key `WHOLE` stands for the whole store, and holds the kill switch.
        """
        ...

    def read(self, key: NodeKey) -> str | None:
        """Return the state of a node, without a transaction."""
        ...

    def states(self) -> Mapping[NodeKey, str | None]:
        """Return what `read` returns for every key of `versions`, in one read."""
        ...

    def documents(self, name: str) -> Mapping[NodeKey, str]:
        """Return the document of this name for the keys of `versions` that have one."""
        ...

    def histories(self, kind: str) -> Mapping[NodeKey, Sequence[Line]]:
        """Return the first line and the lines of one kind of each history, by key."""
        ...

    def history(self, key: NodeKey) -> Sequence[Line]: ...
    def divergences(self, key: NodeKey) -> Sequence[str]:
        """Return all stored divergences, the newest first."""
        ...

    def all_divergences(self) -> Mapping[NodeKey, Sequence[str]]:
        """Return the divergences for the keys of `versions` that have any, the newest first."""
        ...

    def paths(self, key: NodeKey) -> Mapping[str, str]: ...
    def document(self, key: NodeKey, name: str) -> str | None:
        """Return a document as `Transaction.put_document` wrote it."""
        ...

    def secret(self) -> bytes:
        """Return 16 random bytes, created once: the key of fingerprints and of routing for all processes."""
        ...

    def warnings(self) -> Sequence[str]:
        """Return the risks of the store's configuration, for the log and `vesper status`. Queries the server."""
        ...

    def close(self) -> None: ...


WHOLE = NodeKey("", "")
"""Key whose state is `{"killed": …}`: see `ledger`."""


def keys_of(store: Store) -> list[NodeKey]:
    """Return the keys of all nodes in the store."""
    return sorted((key for key in store.versions() if key.epoch), key=key_order)


def name_key(name: str) -> NodeKey:
    """Return the key of a name without a version. It holds the candidates of the name and the decisions about them."""
    return NodeKey(name, "")


def names_of(store: Store) -> list[str]:
    """Return the names without a version that have had candidates."""
    return sorted(key.node for key in store.versions() if key.node and not key.epoch)


def key_order(key: NodeKey) -> tuple[str, str]:
    """Return the fields of a key: sorting by them is faster than by the keys themselves."""
    return key.node, key.epoch


def kind_text(kind: str) -> str:
    """Return the text that every line of this kind contains."""
    return f'"kind":"{kind}"'


def open_store(dsn: str) -> Store:
    """Return the store that `sqlite:PATH`, `postgresql://…`, `redis://…` or `unix://…` (Redis) names.

    It connects on first use. Raises `StoreError` for any other DSN.
    """
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
    "StoreError", "Transaction", "key_order", "keys_of", "kind_text", "name_key", "names_of", "open_store",
]  # fmt: skip
