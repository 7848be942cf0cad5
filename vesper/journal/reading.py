"""Reading a run back: its row, its key, its entries, and whether the chain holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vesper.journal.cells import data, integer, text
from vesper.journal.entry import Stored
from vesper.journal.errors import JournalError
from vesper.journal.journal import Status, Summary
from vesper.journal.lines import (
    Blob,
    BlobRef,
    Line,
    Sealed,
    body_of,
    first_hash,
    next_hash,
    read_blob,
    read_line,
    sealed_body_of,
)
from vesper.journal.schema import PLACES
from vesper.journal.sealing import KeyRing, RunKey
from vesper.storage.transaction import Row, Transaction

SUMMARY = (
    "id, execution, node_id, semantic_hash, status, outcome, started_us, updated_us, owner, fence, engine, is_joined, "
    "is_sensitive, lease_until_us, is_synced, head_seq, head_hash"
)
_HASH = 32
_STATUSES = {status.value for status in Status}


@dataclass(frozen=True, slots=True)
class ExecutionRow:
    """A row of `vesper_executions`."""

    id: int
    summary: Summary
    lease_until_us: int
    is_synced: bool
    head_seq: int
    head_hash: bytes

    @property
    def execution(self) -> str:
        return self.summary.execution


def execution_row(values: Row) -> ExecutionRow:
    """Of the columns of `SUMMARY`."""
    status = text(values[4])
    if status not in _STATUSES:
        raise JournalError(f"execution {text(values[1])[:200]} has the status {status[:40]!r}, which nobody knows")
    summary = Summary(
        execution=text(values[1]),
        node_id=text(values[2]),
        semantic_hash=text(values[3]),
        status=Status(status),
        outcome=None if values[5] is None else text(values[5]),
        started_us=integer(values[6]),
        updated_us=integer(values[7]),
        owner=text(values[8]),
        fence=integer(values[9]),
        engine=text(values[10]),
        is_joined=integer(values[11]) != 0,
        is_sensitive=integer(values[12]) != 0,
    )
    head = integer(values[15]), data(values[16])
    return ExecutionRow(integer(values[0]), summary, integer(values[13]), integer(values[14]) != 0, *head)


def run_key(transaction: Transaction, row: ExecutionRow, keys: KeyRing) -> RunKey | None:
    """The key of a sensitive run; None where there is none, or none any more."""
    if not row.summary.is_sensitive:
        return None
    found = transaction.rows("SELECT master, wrapped FROM vesper_keys WHERE run = ?", (row.id,))
    return keys.unwrap(text(found[0][0]), data(found[0][1]), row.execution) if found else None


def read_entries(
    transaction: Transaction, row: ExecutionRow, key: RunKey | None, store: str
) -> tuple[Sequence[Stored], bytes]:
    """The entries of a run and the hash of the last one. Raises `JournalError` where the chain is broken."""

    def broken(seq: int, why: str) -> JournalError:
        return JournalError(f"{store}: the journal of execution {row.execution} is broken at entry {seq}: {why}")

    entries: list[Stored] = []
    last = first_hash(row.execution)
    seq = 0
    for place, joined, joined_hashes in transaction.rows(
        "SELECT place, lines, hashes FROM vesper_commits WHERE place >= ? AND place < ? ORDER BY place",
        places_of(row.id),
    ):
        first = integer(place) - row.id * PLACES
        if first != seq + 1:
            raise broken(seq + 1, "it is missing" if first > seq + 1 else "it is there twice")
        lines, hashes = data(joined).split(b"\n"), data(joined_hashes)
        if len(hashes) != _HASH * len(lines):
            raise broken(first, f"{len(lines)} lines have {len(hashes)} bytes of hashes")
        for index, bytes_ in enumerate(lines):
            seq += 1
            last = next_hash(last, bytes_)
            if last != hashes[_HASH * index : _HASH * (index + 1)]:
                raise broken(seq, "what it says is not what was written: its hash does not follow from the one before")
            try:
                line = read_line(bytes_)
                if line.seq != seq:
                    raise JournalError(f"it says that it is entry {line.seq}")
                entries.append(_stored(transaction, line, key, last))
            except JournalError as error:
                raise broken(seq, str(error)) from None
            if seq == row.head_seq and last != row.head_hash:
                raise broken(seq, "the row of the execution has another hash for it")
    if seq < row.head_seq or (seq > row.head_seq and row.summary.status is not Status.RUNNING):
        raise broken(seq + 1, f"the row of the execution says that there are {row.head_seq}, and there are {seq}")
    return entries, last


def places_of(run: int) -> tuple[int, int]:
    """Where the rows of a run are: from, and up to but without."""
    return run * PLACES, (run + 1) * PLACES


def last_hash(transaction: Transaction, run: int) -> bytes:
    """The hash of the last entry that is stored of a run; nothing where there is none."""
    found = transaction.rows(
        "SELECT hashes FROM vesper_commits WHERE place >= ? AND place < ? ORDER BY place DESC LIMIT 1", places_of(run)
    )
    return data(found[0][0])[-_HASH:] if found else b""


def _stored(transaction: Transaction, line: Line, key: RunKey | None, hash_: bytes) -> Stored:
    entry = line.entry
    is_erased = False
    match line.body:
        case BlobRef() as ref:
            if ref.is_sealed and key is None:
                is_erased = True
            else:
                content = read_blob(ref, _blob(transaction, ref.name), key, line.seq)
                if ref.is_sealed:
                    name, body = sealed_body_of(content)
                    entry = replace(entry, key=name, body=body)
                else:
                    entry = replace(entry, body=body_of(content))
        case Sealed(content):
            if key is None:
                is_erased = True
            else:
                name, body = sealed_body_of(key.open(content, line.seq))
                entry = replace(entry, key=name, body=body)
        case body:
            entry = replace(entry, body=body)
    return Stored(entry, line.seq, line.branch, hash_.hex(), is_erased)


def _blob(transaction: Transaction, name: str) -> Blob | None:
    found = transaction.rows("SELECT size, is_compressed, data FROM vesper_blobs WHERE name = ?", (name,))
    return Blob(name, integer(found[0][0]), integer(found[0][1]) != 0, data(found[0][2])) if found else None
