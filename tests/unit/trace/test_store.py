"""The trace store: bounded, sealed for sensitive nodes, append-only; invalid files are reported."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.nodes import PAYMENT_DECISION, compiled
from vesper.config.traces import TraceSettings
from vesper.journal.execution_id import trace_id
from vesper.journal.journal import KeyRing
from vesper.trace.model import Trace, TraceError
from vesper.trace.programs import program_of
from vesper.trace.recorder import record_trace
from vesper.trace.store import TraceStore

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
INPUTS = {"amount": 50, "balance": 100, "currency": "USD", "country": "DE", "user_age_days": 400}


def a_trace(at_us: int | None = None, is_sensitive: bool = False) -> Trace:
    node = compiled(PAYMENT_DECISION)
    moment = time.time_ns() // 1000 if at_us is None else at_us
    trace = record_trace(node, program_of(node, "interp"), "interp", trace_id(moment * 1000), INPUTS, NOW)
    return replace(trace, started_us=moment, is_sensitive=is_sensitive)


def test_a_trace_is_kept_as_it_is(tmp_path: Path) -> None:
    store = TraceStore(TraceSettings(tmp_path / "deep" / "traces.db"))
    assert (store.ids(), store.find(), store.node_ids(), store.prune(1 << 62)) == ([], [], [], 0)
    assert not store.exists
    trace = a_trace()
    store.add(trace)
    assert store.read(trace.trace_id).to_bytes() == trace.to_bytes()
    assert store.ids(trace.trace_id[:10]) == [trace.trace_id]
    (listed,) = store.find(node="payment_decision_v1")
    assert (listed.trace_id, listed.outcome, listed.engines) == (trace.trace_id, "returned", ("interp",))
    assert (tmp_path / "deep" / "traces.db").stat().st_mode & 0o077 == 0
    with pytest.raises(TraceError, match="traces are never replaced"):
        store.add(replace(trace, inputs={}))
    assert store.read(trace.trace_id).inputs == trace.inputs
    with pytest.raises(TraceError, match="has no trace"):
        store.read("nobody")


def test_the_oldest_go_first(tmp_path: Path) -> None:
    now = time.time_ns() // 1000
    store = TraceStore(TraceSettings(tmp_path / "traces.db", max_traces=3))
    kept = [a_trace(now + number) for number in range(5)]
    for trace in kept:
        store.add(trace)
    assert [each.trace_id for each in store.find()] == [each.trace_id for each in reversed(kept[2:])]
    size = len(a_trace().to_bytes())
    bounded = TraceStore(TraceSettings(tmp_path / "small.db", max_size=size))
    for trace in kept:
        bounded.add(trace)
    assert 0 < len(bounded.find()) < 5
    assert kept[-1].trace_id in bounded.ids()
    young = TraceStore(TraceSettings(tmp_path / "young.db", retention=60))
    young.add(a_trace(now - 61_000_000))
    assert young.ids() == []


def test_pruning_deletes_what_is_old(tmp_path: Path) -> None:
    now = time.time_ns() // 1000
    store = TraceStore(TraceSettings(tmp_path / "traces.db"))
    old, new = a_trace(now - 10_000_000), a_trace(now)
    store.add(old)
    store.add(new)
    assert store.prunable(now - 1) == 1
    assert store.prune(now - 1, "another_v1") == 0
    assert store.prune(now - 1) == 1
    assert store.ids() == [new.trace_id]


def test_a_sensitive_trace_is_sealed(tmp_path: Path) -> None:
    path = tmp_path / "traces.db"
    store = TraceStore(TraceSettings(path), KeyRing(b"k" * 32))
    trace = a_trace(is_sensitive=True)
    store.add(trace)
    assert store.read(trace.trace_id).to_bytes() == trace.to_bytes()
    with pytest.raises(TraceError, match="which is not configured"):
        TraceStore(TraceSettings(path)).read(trace.trace_id)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM trace_keys")
    with pytest.raises(TraceError, match="its key was deleted"):
        store.read(trace.trace_id)


def test_changes_of_the_store_file_are_detected(tmp_path: Path) -> None:
    path = tmp_path / "traces.db"
    store = TraceStore(TraceSettings(path))
    one, other = a_trace(), a_trace()
    store.add(one)
    store.add(other)
    with closing(sqlite3.connect(path)) as connection, connection:
        swap = "UPDATE traces SET data = (SELECT data FROM traces WHERE trace_id = ?) WHERE trace_id = ?"
        connection.execute(swap, (other.trace_id, one.trace_id))
    with pytest.raises(TraceError, match="was changed: its content has the id"):
        store.read(one.trace_id)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE traces SET data = x'ffff' WHERE trace_id = ?", (one.trace_id,))
        connection.execute("PRAGMA user_version = 9")
    with pytest.raises(TraceError, match="use the newer Vesper that wrote it"):
        store.read(one.trace_id)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA user_version = 1")
    with pytest.raises(TraceError, match="cannot be decompressed"):
        store.read(one.trace_id)
    path.write_bytes(b"this is no database, and it is long enough to be told from one" * 20)
    with pytest.raises(TraceError, match="cannot be used"):
        store.add(one)
