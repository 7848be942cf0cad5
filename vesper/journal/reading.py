"""Reading a run back: its row, its key, its entries, and whether the chain holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
from vesper.journal.store import Row, Transaction

SUMMARY = (
    "id, execution, node_id, semantic_hash, status, outcome, started_us, updated_us, owner, fence, engine, is_joined, "
    "is_sensitive, lease_until_us, is_synced, head_seq, head_hash"
)
_HASH = 32


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
    if values[4] not in {status.value for status in Status}:
        raise JournalError(f"execution {values[1]} has the status {str(values[4])[:40]!r}, which nobody knows")
    summary = Summary(
        execution=values[1],
        node_id=values[2],
        semantic_hash=values[3],
        status=Status(values[4]),
        outcome=values[5],
        started_us=int(values[6]),
        updated_us=int(values[7]),
        owner=values[8],
        fence=int(values[9]),
        engine=values[10],
        is_joined=bool(values[11]),
        is_sensitive=bool(values[12]),
    )
    return ExecutionRow(int(values[0]), summary, int(values[13]), bool(values[14]), int(values[15]), bytes(values[16]))


def run_key(transaction: Transaction, row: ExecutionRow, keys: KeyRing) -> RunKey | None:
    """The key of a sensitive run; None where there is none, or none any more."""
    if not row.summary.is_sensitive:
        return None
    found = transaction.rows("SELECT master, wrapped FROM vesper_keys WHERE run = ?", (row.id,))
    return keys.unwrap(found[0][0], bytes(found[0][1]), row.execution) if found else None


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
        first = place - row.id * PLACES
        if first != seq + 1:
            raise broken(seq + 1, "it is missing" if first > seq + 1 else "it is there twice")
        lines, hashes = bytes(joined).split(b"\n"), bytes(joined_hashes)
        if len(hashes) != _HASH * len(lines):
            raise broken(first, f"{len(lines)} lines have {len(hashes)} bytes of hashes")
        for index, data in enumerate(lines):
            seq += 1
            last = next_hash(last, data)
            if last != hashes[_HASH * index : _HASH * (index + 1)]:
                raise broken(seq, "what it says is not what was written: its hash does not follow from the one before")
            try:
                line = read_line(data)
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


def _stored(transaction: Transaction, line: Line, key: RunKey | None, hash_: bytes) -> Stored:
    entry = line.entry
    is_erased = False
    match line.body:
        case BlobRef() as ref:
            if ref.is_sealed and key is None:
                is_erased = True
            else:
                data = read_blob(ref, _blob(transaction, ref.name), key, line.seq)
                if ref.is_sealed:
                    name, body = sealed_body_of(data)
                    entry = replace(entry, key=name, body=body)
                else:
                    entry = replace(entry, body=body_of(data))
        case Sealed(data):
            if key is None:
                is_erased = True
            else:
                name, body = sealed_body_of(key.open(data, line.seq))
                entry = replace(entry, key=name, body=body)
        case body:
            entry = replace(entry, body=body)
    return Stored(entry, line.seq, line.branch, hash_.hex(), is_erased)


def _blob(transaction: Transaction, name: str) -> Blob | None:
    found = transaction.rows("SELECT size, is_compressed, data FROM vesper_blobs WHERE name = ?", (name,))
    return Blob(name, int(found[0][0]), bool(found[0][1]), bytes(found[0][2])) if found else None
