"""Effects in the caller's own transaction: they stand and fall with it, and nothing else of it is touched."""

# ruff: noqa: S608  # SQL of tests is made by tests

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.unit.effects.database.databases import Database, fails, perform, query, sqlite_at, write
from vesper.effects.database.performer import WrongConnection, is_joined, joined
from vesper.values.types import DURATION, INTEGER, STRING, TIMESTAMP, ArrayOf, Record

ADD = "INSERT INTO t (id, n) VALUES (:id, :n)"


@pytest.fixture
def table(database: Database) -> Database:
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
    database.run("CREATE TABLE own (id INTEGER)")
    return database


def test_commit_and_rollback_are_the_callers(table: Database) -> None:
    with closing(table.connect()) as connection:
        connection.execute("INSERT INTO own VALUES (1)")
        with joined("main", connection):
            assert table.ask(write(ADD, id=1, n=1)) == 1
            assert table.ask(query("SELECT n FROM t", INTEGER)) == 1
        assert table.rows("SELECT * FROM t") == []
        connection.rollback()
        assert table.rows("SELECT * FROM t") == []
        assert table.rows("SELECT * FROM own") == []

        with joined("main", connection):
            assert table.ask(write(ADD, id=1, n=1)) == 1  # with the write its receipt was undone
        connection.commit()
    assert table.rows("SELECT id, n FROM t") == [(1, 1)]
    assert table.receipts() == [("run:run-1/save", "1")]
    assert table.ask(write(ADD, id=1, n=1)) == 1  # once, joined or not


def test_a_failure_undoes_only_itself(table: Database) -> None:
    with closing(table.connect()) as connection:
        connection.execute("INSERT INTO own VALUES (1)")
        with joined("main", connection):
            table.ask(write(ADD, path="a", id=1, n=1))
            with fails("conflict"):
                table.ask(write("INSERT INTO t (id, n) VALUES (2, 2), (1, 1)", path="b"))
            with fails("not_found"):
                table.ask(query("SELECT n FROM t WHERE id = 9", INTEGER))
            with fails("unavailable"):
                table.ask(query("SELECT absent FROM t", INTEGER))
            table.ask(write(ADD, path="c", id=3, n=3))
        connection.commit()
    assert table.rows("SELECT id FROM t ORDER BY id") == [(1,), (3,)]
    assert table.rows("SELECT * FROM own") == [(1,)]
    assert [name for name, _ in table.receipts()] == ["run:run-1/a", "run:run-1/c"]


def test_is_joined_in_this_context_alone(table: Database) -> None:
    seen: list[bool] = []
    assert not is_joined()
    with closing(table.connect()) as connection, joined("main", connection):
        assert is_joined()
        thread = threading.Thread(target=lambda: seen.append(is_joined()))
        thread.start()
        thread.join()
    assert not is_joined()
    assert seen == [False]


def test_another_database_is_not_joined(table: Database) -> None:
    with closing(table.connect()) as connection:
        with joined("other", connection):
            table.ask(write(ADD, id=1, n=1))
        connection.rollback()
    assert table.rows("SELECT id FROM t") == [(1,)]


def test_a_query_of_a_joined_connection_writes_nothing(table: Database) -> None:
    if table.kind == "postgres":
        table.run("CREATE SEQUENCE s")
    with closing(table.connect()) as connection:
        connection.execute("INSERT INTO t VALUES (1, 1)")
        with joined("main", connection):
            with fails("unavailable"):
                table.ask(query("WITH x AS (SELECT 1) DELETE FROM t", INTEGER))
            if table.kind == "postgres":
                with fails("unavailable", "read-only"):
                    table.ask(query("SELECT nextval('s') AS n", INTEGER))
        connection.execute("UPDATE t SET n = 5")  # the caller may still write
        connection.commit()
    assert table.rows("SELECT n FROM t") == [(5,)]


def test_settings_of_the_callers_connection_are_its_own(table: Database) -> None:
    with closing(table.connect()) as connection:
        if table.kind == "postgres":
            connection.execute(
                "SET timezone = 'Asia/Kolkata'; SET intervalstyle = 'sql_standard'; SET statement_timeout = 4321"
            )
            connection.execute("SET datestyle = 'German'")
            connection.adapters.register_loader("numeric", psycopg.types.numeric.FloatLoader)
            row = Record((("m", TIMESTAMP), ("d", DURATION)))
            sql = "SELECT '2026-01-01T00:00:00Z'::timestamptz AS m, '1 day -2 hours'::interval AS d"
        else:
            connection.row_factory = sqlite3.Row
            connection.text_factory = bytes
            row = Record((("m", TIMESTAMP), ("d", STRING)))
            sql = "SELECT '2026-01-01T00:00:00Z' AS m, 'x' AS d"
        connection.execute("INSERT INTO own VALUES (1)")
        with joined("main", connection):
            assert len(table.ask(query(sql, ArrayOf(row), "all"))) == 1
            table.ask(write(ADD, id=1, n=1, timeout=50))
        if table.kind == "postgres":
            shown = [
                connection.execute(f"SHOW {name}").fetchone()[0]
                for name in ("timezone", "intervalstyle", "datestyle", "statement_timeout")
            ]
            assert shown == ["Asia/Kolkata", "sql_standard", "German, DMY", "4321ms"]
            connection.execute("SELECT 1")
        else:
            assert connection.text_factory is bytes
            assert isinstance(connection.execute("SELECT 1").fetchone(), sqlite3.Row)
            assert connection.execute("PRAGMA query_only").fetchone()[0] == 0
        connection.rollback()


@pytest.mark.parametrize("thing", [None, "sqlite:x", object()])
def test_what_is_no_connection(thing: Any) -> None:
    with pytest.raises(WrongConnection, match=r"sqlite3\.Connection or a psycopg\.Connection"), joined("main", thing):
        pass


def test_the_other_kind_of_connection(database: Database, tmp_path: Path, emptied_dsn: str) -> None:
    other = sqlite3.connect(tmp_path / "x.db") if database.kind == "postgres" else psycopg.connect(emptied_dsn)
    with closing(other), joined("main", other), pytest.raises(WrongConnection, match="the joined connection is a"):
        database.ask(query("SELECT 1 AS n", INTEGER))


def test_a_connection_without_a_transaction(table: Database) -> None:
    with closing(table.connect()) as connection:
        if table.kind == "sqlite":
            connection.isolation_level = None
        else:
            connection.autocommit = True
        with joined("main", connection), pytest.raises(WrongConnection, match="no open transaction"):
            table.ask(write(ADD, id=1, n=1))
        connection.execute("BEGIN")
        with joined("main", connection):
            table.ask(write(ADD, id=1, n=1))
        connection.execute("ROLLBACK")
    assert table.rows("SELECT * FROM t") == []


def test_a_transaction_that_has_failed_before(table: Database) -> None:
    if table.kind == "sqlite":
        return  # its transactions go on after an error
    with closing(table.connect()) as connection:
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT absent")
        with joined("main", connection), fails("unavailable", "roll it back"):
            table.ask(query("SELECT 1 AS n", INTEGER))


def test_a_joined_query_that_takes_too_long(table: Database) -> None:
    with closing(table.connect()) as connection:
        connection.execute("INSERT INTO own VALUES (1)")
        with joined("main", connection):
            with fails("timeout", "longer than 0.2 s"):
                table.ask(query(table.slow_query(), INTEGER, timeout=0.2))
            assert table.ask(query("SELECT count(*) AS n FROM own", INTEGER)) == 1
        connection.commit()
    assert table.rows("SELECT * FROM own") == [(1,)]


def test_a_joined_write_that_takes_too_long(table: Database) -> None:
    with closing(table.connect()) as connection:
        connection.execute("INSERT INTO own VALUES (1)")
        with joined("main", connection):
            if table.kind == "postgres":
                with fails("timeout"):
                    table.ask(write(table.slow_insert(), timeout=0.2))
                table.ask(write(ADD, path="b", id=2, n=2))
            else:
                # SQLite ends the caller's transaction: what came after it would be in another one.
                with fails("timeout", "rolled back the caller's whole transaction"):
                    table.ask(write(table.slow_insert(), timeout=0.2))
                with fails("unavailable", "gone since an earlier failure"):
                    table.ask(write(ADD, path="b", id=2, n=2))
        connection.commit()
    assert table.rows("SELECT * FROM own") == ([(1,)] if table.kind == "postgres" else [])
    assert table.rows("SELECT id FROM t") == ([(2,)] if table.kind == "postgres" else [])


def test_a_connection_of_another_thread(tmp_path: Path) -> None:
    database = sqlite_at(tmp_path)
    found: list[sqlite3.Connection] = []
    thread = threading.Thread(target=lambda: found.append(sqlite3.connect(tmp_path / "test.db")))
    thread.start()
    thread.join()
    with joined("main", found[0]), pytest.raises(WrongConnection, match="cannot be used"):
        database.ask(query("SELECT 1 AS n", INTEGER))


def test_too_many_rows_of_a_joined_query(table: Database) -> None:
    performer = table.new_performer(max_result="4 KiB")
    sql = f"SELECT '{'a' * 90}' AS x FROM t, t AS b"
    values = ", ".join(f"({number})" for number in range(90))
    table.run(f"INSERT INTO t (id) VALUES {values}")
    with closing(table.connect()) as connection:
        connection.execute("INSERT INTO own VALUES (1)")
        with joined("main", connection):
            with fails("bad_response", "max_result"):
                perform(performer, query(sql, ArrayOf(STRING), "all"))
            assert perform(performer, query("SELECT count(*) AS n FROM own", INTEGER)) == 1
        connection.commit()
    assert table.rows("SELECT * FROM own") == [(1,)]
    performer.close()
