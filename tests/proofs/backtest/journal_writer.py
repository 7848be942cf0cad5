"""Writes a journal of payments with the bytes that the Host writes, without running a node a million times.

The tables are those of the journal; lines, hashes and places follow docs/spec/journal.md. The campaign reads a sample
back through the journal, which checks every chain. A journal that was begun is continued.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.proofs.backtest.payments import KINDS, Payment, node_text, outcome, payment
from vesper.compiler import Compiled, compile_source
from vesper.host.prepared import definition_of
from vesper.journal.journal import Beginning, Status, open_journal
from vesper.journal.typed_json import encode_text
from vesper.language.diagnostics.source import SourceFile

_PLACES = 1 << 31
_BEGAN = datetime(2026, 11, 1, tzinfo=UTC)
_BATCH = 20_000
_EXECUTIONS = (
    "INSERT INTO vesper_executions (id, execution, node_id, semantic_hash, status, outcome, owner, fence, "
    "lease_until_us, started_us, updated_us, engine, is_joined, is_sensitive, is_synced, head_seq, head_hash) "
    "VALUES (?, ?, ?, ?, 'ended', ?, 'proof:1:1:1', 1, ?, ?, ?, 'interp', 0, 0, 0, ?, ?)"
)


def compiled_node(kind: str, version: int) -> Compiled:
    found, bag = compile_source(SourceFile(f"{kind}_v{version}.vsp", node_text(kind, version)))
    assert found is not None, [each.headline for each in bag.sorted()]
    return found


def write_journal(path: Path, kind: str, runs: int) -> None:
    """Write or continue the journal until it has so many runs of the first version."""
    node = compiled_node(kind, 1)
    if not path.exists():
        _begin(path, node)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous = OFF")
    (last,) = connection.execute("SELECT MAX(id) FROM vesper_executions").fetchone()
    for first in range(last or 0, runs, _BATCH):
        with connection:
            rows = [_run(kind, node, number) for number in range(first + 1, min(first + _BATCH, runs) + 1)]
            connection.executemany(_EXECUTIONS, [row for row, _ in rows])
            connection.executemany("INSERT INTO vesper_commits VALUES (?, ?, ?)", [row for _, row in rows])
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def _begin(path: Path, node: Compiled) -> None:
    """Make the tables and the definition by a run, which is no payment and is deleted."""
    journal = open_journal(f"sqlite:{path}")
    run = journal.begin(Beginning(execution_name(0), definition_of(node), {}, _BEGAN, "interp", writes=False))
    run.commit(Status.RUNNING)
    journal.close()
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM vesper_executions")
        connection.execute("DELETE FROM vesper_commits")


def execution_name(number: int) -> str:
    """Return the id of a run: it grows with the number, as ids of real runs grow with time."""
    return f"019a0000-{number >> 16:04x}-7000-8000-{number:012x}"


def _run(kind: str, node: Compiled, number: int) -> tuple[tuple[object, ...], tuple[object, ...]]:
    of = payment(number)
    execution = execution_name(number)
    started = _BEGAN + timedelta(milliseconds=number)
    started_us = (started - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    lines = [
        f'[1,"main",{seq},"{entry}","{step}","{effect}","{effect_class}",null,"",{started_us + seq},"plain",{body}]'
        for seq, (entry, step, effect, effect_class, body) in enumerate(_entries(kind, node, of, started), start=1)
    ]
    last = hashlib.sha256(b"vesper journal 1\n" + execution.encode()).digest()
    hashes = []
    for line in lines:
        last = hashlib.sha256(last + line.encode()).digest()
        hashes.append(last)
    ended = "declared_error" if outcome(kind, 1, of)[1] is None else "returned"
    row = (
        number, execution, node.node.node_id, node.semantic_hash, ended, started_us, started_us + 1,
        started_us + len(lines), len(lines), last,
    )  # fmt: skip
    return row, (number * _PLACES + 1, "\n".join(lines).encode(), b"".join(hashes))


def _entries(kind: str, node: Compiled, of: Payment, started: datetime) -> Iterator[tuple[str, str, str, str, str]]:
    inputs = {"payment_id": of.payment_id, "amount": of.amount, "country": of.country, "vip": of.vip}
    start = {
        "engine": "interp", "inputs": inputs, "node_id": node.node.node_id, "now": started,
        "semantic_hash": node.semantic_hash,
    }  # fmt: skip
    yield "START", "", "", "", encode_text(start)
    if kind == KINDS[0]:
        asked = {
            "arguments": {"endpoint": f"/scores/{of.payment_id}"}, "fixed": {"method": "GET", "provider": "scoring"},
        }  # fmt: skip
        is_failed = of.score is None
        answer = {"code": "http_404", "message": "gone"} if is_failed else {"value": {"score": of.score}}
        step = "FAILED" if is_failed else "RESULT"
        yield step, "scored", "http_request", "read", encode_text({**asked, **answer})
    decision, fee = outcome(kind, 1, of)
    end: dict[str, object] = {"duration_us": 900, "outcome": "returned", "value": {"decision": decision, "fee": fee}}
    if fee is None:
        end |= {"outcome": "declared_error", "value": {"error_code": decision, "message": "there is no score"}}
    yield "END", "", "", "", encode_text(end)
