"""What a store gives to the journal, and what every store does alike.

SQL is written once, with `?` for parameters; a store whose driver wants something else translates it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol

from vesper.journal import schema
from vesper.journal.audit import chained
from vesper.journal.batch import Batch, Birth
from vesper.journal.cells import data, integer
from vesper.journal.entry import Definition
from vesper.journal.errors import Fenced, JournalError
from vesper.journal.lines import Blob
from vesper.journal.schema import PLACES
from vesper.storage.transaction import Transaction


class Store(Protocol):
    """Where a journal stands. Any number of threads may use it; after a fork the child opens it anew."""

    @property
    def name(self) -> str:
        """For messages; holds no password."""
        ...

    @property
    def volatile_reason(self) -> str | None: ...

    audit_key: bytes | None

    def submit(self, batch: Batch) -> None:
        """Writes a batch, perhaps together with those of others; durable when it returns. Raises what was refused."""
        ...

    def reading(self) -> AbstractContextManager[Transaction]:
        """One state of the store, whatever is written meanwhile."""
        ...

    def writing(self) -> AbstractContextManager[Transaction]:
        """A transaction that is synced; rolled back where the block raises."""
        ...

    def scrub(self) -> None:
        """Removes what was deleted from where the store still keeps it, as far as it can."""
        ...

    def lock_for_prune(self, transaction: Transaction) -> None:
        """Nobody else adds blobs or definitions until the transaction ends."""
        ...

    def close(self) -> None: ...


_COLUMNS = (
    "execution, node_id, semantic_hash, status, outcome, owner, fence, lease_until_us, started_us, updated_us, engine, "
    "is_joined, is_sensitive, is_synced, head_seq, head_hash"
)
_BEGIN = (
    f"INSERT INTO vesper_executions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "  # noqa: S608
    "ON CONFLICT (execution) DO NOTHING RETURNING id"
)
_IS_OURS = "SELECT 1 FROM vesper_executions WHERE id = ? AND fence = ?"
_PROLONG = "UPDATE vesper_executions SET lease_until_us = ?, updated_us = ? WHERE id = ? AND fence = ?"
_ADVANCE = (
    "UPDATE vesper_executions SET lease_until_us = ?, updated_us = ?, head_seq = ?, head_hash = ? "
    "WHERE id = ? AND fence = ?"
)
_CHANGE = (
    "UPDATE vesper_executions SET lease_until_us = ?, updated_us = ?, head_seq = ?, head_hash = ?, status = ?, "
    "outcome = ? WHERE id = ? AND fence = ?"
)
_LINES = "INSERT INTO vesper_commits (place, lines, hashes) VALUES (?, ?, ?)"
_BLOB = "INSERT INTO vesper_blobs (name, size, is_compressed, data) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO NOTHING"
_BLOB_USE = "INSERT INTO vesper_blob_uses (run, name) VALUES (?, ?) ON CONFLICT (run, name) DO NOTHING"
_DEFINITION = (
    "INSERT INTO vesper_definitions (semantic_hash, node_id, path, source, ir, callees) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (semantic_hash) DO NOTHING"
)


class Ending:
    """Leaves a context manager that Ctrl-C interrupted while it was entered or left.

    `contextmanager` enters and leaves in Python. An interrupt there would leave its lock held until the traceback is
    collected, perhaps by a thread that does not own the lock. So a writer uses

        with Ending(file.writing()) as writing, writing as transaction:

    What was interrupted is left once more, in the frame that entered it; what was left before is not left again.
    """

    __slots__ = ("_entered",)

    def __init__(self, entered: AbstractContextManager[Transaction]) -> None:
        self._entered = entered

    def __enter__(self) -> AbstractContextManager[Transaction]:
        return self._entered

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._entered.__exit__(kind, error, trace)


def write_batch(transaction: Transaction, batch: Batch) -> None:
    """Writes a batch but for its lines of the audit log. One that is refused gets its `error`, and nothing of it is
    written: the refusal comes with the first statement."""
    if not batch.is_of_run:
        return
    now = transaction.now_us()
    if batch.birth is not None:
        _begin(transaction, batch, batch.birth, now)
    elif not batch.is_prolonged:
        if not transaction.rows(_IS_OURS, (batch.run, batch.fence)):
            batch.error = fenced(batch.execution)
    elif not batch.rows and batch.status is None:
        if not transaction.run(_PROLONG, (now + batch.lease_us, now, batch.run, batch.fence)):
            batch.error = fenced(batch.execution)
    else:
        lease = now + batch.lease_us
        head = (batch.head_seq, batch.head_hash)
        if batch.status is None:
            written = transaction.run(_ADVANCE, (lease, now, *head, batch.run, batch.fence))
        else:
            # A run that has ended, or that waits for somebody's word, is nobody's.
            lease = lease if batch.status == "running" else 0
            values = (lease, now, *head, batch.status.value, batch.outcome, batch.run, batch.fence)
            written = transaction.run(_CHANGE, values)
        if not written:
            batch.error = fenced(batch.execution)
    if batch.error is None:
        write_rows(transaction, batch.run, batch.rows, batch.blobs)


def write_rows(
    transaction: Transaction, run: int, rows: Sequence[tuple[int, bytes, bytes]], blobs: Sequence[Blob]
) -> None:
    for first, lines, hashes in rows:
        transaction.run(_LINES, (run * PLACES + first, lines, hashes))
    for blob in blobs:
        transaction.run(_BLOB, (blob.name, blob.size, int(blob.is_compressed), blob.data))
        transaction.run(_BLOB_USE, (run, blob.name))


def _begin(transaction: Transaction, batch: Batch, birth: Birth, now: int) -> None:
    summary = birth.summary
    status = summary.status if batch.status is None else batch.status
    lease = now + batch.lease_us if status == "running" else 0
    found = transaction.rows(
        _BEGIN,
        (
            summary.execution, summary.node_id, summary.semantic_hash, status.value, batch.outcome, summary.owner,
            batch.fence, lease, summary.started_us, now, summary.engine, int(summary.is_joined),
            int(summary.is_sensitive), int(birth.is_synced), batch.head_seq, batch.head_hash,
        ),
    )  # fmt: skip
    if not found:
        batch.error = JournalError(f"the journal has an execution {summary.execution} already: its id must be new")
        return
    batch.run = integer(found[0][0])
    write_definition(transaction, birth.definition)
    if birth.key is not None:
        values = (batch.run, *birth.key)
        transaction.run("INSERT INTO vesper_keys (run, master, wrapped) VALUES (?, ?, ?)", values)


def fenced(execution: str) -> Fenced:
    return Fenced(
        f"execution {execution} is no longer this process's: another one has taken it over, or it was resolved or "
        "pruned; nothing was written"
    )


def write_definition(transaction: Transaction, definition: Definition) -> None:
    """Stores a definition and those that it calls, unless they are there: the first one stored stays."""
    known = "SELECT 1 FROM vesper_definitions WHERE semantic_hash = ?"
    if transaction.rows(known, (definition.semantic_hash,)):
        return
    waiting = [definition]
    seen: set[str] = set()
    while waiting:
        each = waiting.pop()
        if each.semantic_hash in seen:
            continue
        seen.add(each.semantic_hash)
        callees = json.dumps([callee.semantic_hash for callee in each.callees])
        values = (each.semantic_hash, each.node_id, each.path, each.source, each.ir, callees)
        transaction.run(_DEFINITION, values)
        waiting.extend(each.callees)


def write_audit(transaction: Transaction, batches: Iterable[Batch], key: bytes | None) -> None:
    """Adds the audit events of batches that were not refused to the one chain of the store."""
    events = [event for batch in batches if batch.error is None for event in batch.audit]
    if not events:
        return
    found = transaction.rows(f"SELECT count, hash FROM vesper_audit_head WHERE one = 1{transaction.locking}")  # noqa: S608
    if not found:
        raise JournalError("the audit log has lost its head: somebody changed the journal")
    count, last = integer(found[0][0]), data(found[0][1])
    for seq, line, hash_ in chained(events, count, last, key):
        transaction.run("INSERT INTO vesper_audit (seq, line, hash) VALUES (?, ?, ?)", (seq, line, hash_))
        count, last = seq, hash_
    transaction.run("UPDATE vesper_audit_head SET count = ?, hash = ? WHERE one = 1", (count, last))


def migrate(transaction: Transaction, name: str, words: dict[str, str]) -> None:
    """Brings the tables of a store up to date; refuses those of a newer Vesper."""
    transaction.run(schema.MIGRATIONS_TABLE.format_map(words))
    version = integer(transaction.rows("SELECT COALESCE(MAX(version), 0) FROM vesper_migrations")[0][0])
    check_version(version, name)
    for number, statements in schema.statements(words, version):
        for statement in statements:
            transaction.run(statement)
        now = transaction.now_us()
        transaction.run("INSERT INTO vesper_migrations (version, applied_us) VALUES (?, ?)", (number, now))


def check_version(version: int, name: str) -> None:
    if version > schema.VERSION:
        raise JournalError(
            f"{name}: the journal has the format {version}, and this Vesper knows {schema.VERSION}: a newer one made "
            "it; use that one, or another journal"
        )
