"""A run that is part of its caller's transaction: mistakes of the caller are told to the caller."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import vesper
from tests.unit.host.small import host_in, node_from
from vesper.effects.database.performer import WrongConnection
from vesper.host.host import Host

NODE = """
node_id: note_v1
type: event_handler
intent: Write something down
inputs:
  event_id: string
outputs:
  success: {rows: integer}
flow:
  - step: rows
    operation: database_write
    table: notes
    data: {id: event_id}
  - operation: return
    success: {rows: rows}
security:
  capabilities_required: [database.write.notes]
"""


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """In no transaction unless somebody begins one."""
    opened = sqlite3.connect(tmp_path / "main.db", isolation_level=None)
    opened.execute("CREATE TABLE notes (id text)")
    yield opened
    opened.close()


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with host_in(tmp_path, {"databases": {"main": {"dsn": "sqlite:main.db"}}}) as found:
        yield found


@pytest.mark.parametrize("engine", ["python", "interp"])
def test_a_connection_without_a_transaction_is_no_fault_of_an_engine(
    tmp_path: Path, connection: sqlite3.Connection, host: Host, engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    note = node_from(NODE, tmp_path, host, engine)
    with vesper.joined("main", connection), pytest.raises(WrongConnection, match="has no open transaction"):
        note(event_id="e1")
    assert "broke" not in caplog.text
    assert [each.status for each in host.journal.find()] == ["ended"], "nobody else could finish it"
    connection.execute("BEGIN")
    with vesper.joined("main", connection):
        assert note(event_id="e2").ok
    connection.execute("ROLLBACK")
    assert connection.execute("SELECT * FROM notes").fetchall() == []


@pytest.mark.parametrize("engine", ["python", "interp"])
def test_a_run_of_a_coroutine_is_part_of_the_transaction(tmp_path: Path, host: Host, engine: str) -> None:
    note = node_from(NODE, tmp_path, host, engine)
    with closing(sqlite3.connect(tmp_path / "main.db", isolation_level=None, check_same_thread=False)) as connection:
        connection.execute("CREATE TABLE notes (id text)")
        connection.execute("BEGIN")
        with vesper.joined("main", connection):
            assert asyncio.run(note.arun(event_id="e1")).ok
        assert connection.execute("SELECT id FROM notes").fetchall() == [("e1",)]
        connection.execute("ROLLBACK")
        assert connection.execute("SELECT id FROM notes").fetchall() == []


def test_a_name_that_no_database_has_is_told_before_anything_is_done(
    tmp_path: Path, connection: sqlite3.Connection, host: Host
) -> None:
    note = node_from(NODE, tmp_path, host)
    connection.execute("BEGIN")
    said = r"`mian` is joined, and there is no \[databases.mian\] here; did you mean `main`"
    with vesper.joined("mian", connection), pytest.raises(WrongConnection, match=said):
        note(event_id="e1")
    assert host.journal.find() == []
    connection.execute("ROLLBACK")
    assert connection.execute("SELECT * FROM notes").fetchall() == []
