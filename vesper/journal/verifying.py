"""What a journal says outside of the hash chains, compared with what the chains prove.

The chain of an execution covers its entries. This module derives the other tables from them: the row of the execution
from its first and last entries, a definition from the semantic hash that START has, and the uses of blobs from the
lines. `updated_us`, the lease and the path of a definition are not derivable, and nothing but messages and pruning
relies on them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from vesper.journal.cells import data, integer, text
from vesper.journal.entry import Kind, Stored
from vesper.journal.errors import JournalError
from vesper.journal.journal import Status
from vesper.journal.lines import BlobRef, read_line
from vesper.journal.reading import ExecutionRow, places_of
from vesper.journal.schema import PLACES
from vesper.storage.transaction import Transaction

_SOURCE = b',"source":'
"""What follows the hashed part of IR (docs/spec/ir.md)."""


# -- the row of an execution ----------------------------------------------------------------------


def row_problems(row: ExecutionRow, entries: Sequence[Stored]) -> Iterator[str]:
    """Yield what the row says and the entries contradict."""
    summary = row.summary
    for name, said, proven in _derived(row, entries):
        if said != proven:
            yield f"the row of execution {row.execution} says {name} {said!r}, and its entries {proven!r}"
    if any(each.is_erased for each in entries) and not summary.is_sensitive:
        yield f"the row of execution {row.execution} says that it is not sensitive, and its entries are encrypted"


def _derived(row: ExecutionRow, entries: Sequence[Stored]) -> Iterator[tuple[str, object, object]]:
    summary = row.summary
    if not entries or entries[0].entry.kind is not Kind.START:
        yield "first entry", "START", str(entries[0].entry.kind) if entries else None
        return
    start, end = entries[0], entries[-1]
    yield "started_us", summary.started_us, start.entry.at_us
    yield "has ended", summary.status is Status.ENDED, end.entry.kind is Kind.END
    yield "is in doubt", summary.status is Status.IN_DOUBT, bool(_open_doubts(entries))
    moved = [each for each in entries if each.entry.kind in (Kind.HANDOFF, Kind.RESOLVED)]
    yield "fence", summary.fence, 1 + len(moved)
    if not start.is_erased:
        body = start.entry.body
        yield "node_id", summary.node_id, body.get("node_id")
        yield "semantic_hash", summary.semantic_hash, body.get("semantic_hash")
    handoffs = [each for each in moved if each.entry.kind is Kind.HANDOFF]
    decisive = handoffs[-1] if handoffs else start
    if not decisive.is_erased:
        yield "engine", summary.engine, decisive.entry.body.get("engine")
    if moved and not moved[-1].is_erased:
        yield "owner", summary.owner, moved[-1].entry.body.get("to", "")
    if end.entry.kind is not Kind.END:
        yield "outcome", summary.outcome, None
    elif not end.is_erased:
        yield "outcome", summary.outcome, end.entry.body.get("outcome")


def _open_doubts(entries: Sequence[Stored]) -> set[str]:
    found: set[str] = set()
    for each in entries:
        if each.entry.kind is Kind.IN_DOUBT:
            found.add(each.entry.path)
        elif each.entry.kind is Kind.RESOLVED:
            found.discard(each.entry.path)
    return found


# -- blobs and keys -------------------------------------------------------------------------------


def use_problems(transaction: Transaction, row: ExecutionRow) -> Iterator[str]:
    """Yield blobs of an execution that pruning would delete, because no use is noted, and uses without a line."""
    needed = set()
    for (lines,) in transaction.rows(
        "SELECT lines FROM vesper_commits WHERE place >= ? AND place < ?", places_of(row.id)
    ):
        bodies = [read_line(line).body for line in data(lines).split(b"\n")]
        needed |= {body.name for body in bodies if isinstance(body, BlobRef)}
    noted = {text(name) for (name,) in transaction.rows("SELECT name FROM vesper_blob_uses WHERE run = ?", (row.id,))}
    for name in sorted(needed - noted):
        yield f"execution {row.execution} uses the blob {name[:12]}, and the journal does not note it"
    for name in sorted(noted - needed):
        yield f"the journal notes that execution {row.execution} uses the blob {name[:12]}, and no entry does"


def stray_problems(transaction: Transaction) -> Iterator[str]:
    """Yield rows of executions that the journal does not have: their row was deleted by hand."""
    without = "NOT EXISTS (SELECT 1 FROM vesper_executions WHERE id = {})"
    for table, run in (("commits", f"place / {PLACES}"), ("blob_uses", "run"), ("keys", "run")):
        rows = transaction.rows(f"SELECT COUNT(*) FROM vesper_{table} WHERE {without.format(run)}")  # noqa: S608
        if count := integer(rows[0][0]):
            yield f"vesper_{table} has {count:,} rows of executions that vesper_executions does not have"


# -- definitions ----------------------------------------------------------------------------------


def definition_problems(transaction: Transaction) -> Iterator[str]:
    """Yield definitions that are not those of their semantic hash, and executions without a definition."""
    known: set[str] = set()
    called: dict[str, str] = {}
    for (name,) in transaction.rows("SELECT semantic_hash FROM vesper_definitions ORDER BY semantic_hash"):
        semantic_hash = text(name)
        known.add(semantic_hash)
        rows = transaction.rows(
            "SELECT node_id, source, ir, callees FROM vesper_definitions WHERE semantic_hash = ?", (semantic_hash,)
        )
        try:
            node_id, source, ir, callees = text(rows[0][0]), text(rows[0][1]), data(rows[0][2]), text(rows[0][3])
            for problem in _changes(semantic_hash, node_id, source, ir, callees):
                yield f"the definition {semantic_hash[:12]} of {node_id} was changed: {problem}"
            called |= dict.fromkeys(json.loads(callees), node_id)
        except (JournalError, ValueError, TypeError, KeyError, RecursionError):
            yield f"the definition {semantic_hash[:12]} was changed: it cannot be read"
    for name, caller in called.items():
        if name not in known:
            yield f"the definition {str(name)[:12]}, which {caller} calls, is missing"
    for (name,) in transaction.rows("SELECT DISTINCT semantic_hash FROM vesper_executions"):
        if text(name) not in known:
            yield f"the definition {text(name)[:12]} of an execution is missing"


def _changes(semantic_hash: str, node_id: str, source: str, ir: bytes, callees: str) -> Iterator[str]:
    if not _has_hash(ir, semantic_hash):
        yield "its IR has another semantic hash"
        return
    document: dict[str, Any] = json.loads(ir)
    if document["semantics"]["node_id"] != node_id:
        yield f"its IR is that of {str(document['semantics']['node_id'])[:80]}"
    if document["source"]["sha256"] != sha256(source.encode("utf-8", "surrogatepass")).hexdigest():
        yield "its text is not the one that was compiled"
    if [each["hash"] for each in document["semantics"]["calls"]] != json.loads(callees):
        yield "it calls other nodes"


def _has_hash(ir: bytes, semantic_hash: str) -> bool:
    """Return whether IR has this hash, which covers the document up to its source."""
    at = ir.find(_SOURCE)
    while at >= 0:
        if sha256(ir[:at] + b"}").hexdigest() == semantic_hash:
            return True
        at = ir.find(_SOURCE, at + 1)
    return False
