"""SQLite itself holds a node's statement to the tables and functions of its text."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from vesper.effects.database import sqlite_guard
from vesper.effects.database.pool import Deadline
from vesper.effects.database.session import Purpose
from vesper.effects.database.settings import DatabaseSettings
from vesper.effects.database.sqlite import SqliteBackend
from vesper.effects.database.sqlite_guard import Limits
from vesper.effects.performer import EffectFailed

SCHEMA = """
CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT DEFAULT (hex(randomblob(4))), at TEXT DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE secrets (pw TEXT);
CREATE VIEW names AS SELECT pw AS name FROM secrets;
CREATE VIEW outer_names AS SELECT name FROM names;
CREATE TABLE orders (user_id INTEGER REFERENCES users (id) ON DELETE CASCADE);
CREATE TABLE noted (x TEXT);
CREATE TRIGGER note AFTER UPDATE ON users BEGIN INSERT INTO noted SELECT pw FROM secrets; END;
CREATE VIRTUAL TABLE docs USING fts5 (body);
INSERT INTO users VALUES (1, 'ada', 'x');
INSERT INTO secrets VALUES ('canary');
INSERT INTO docs VALUES ('hello');
"""


@pytest.fixture
def backend(tmp_path: Path) -> SqliteBackend:
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(SCHEMA)
    connection.close()
    return SqliteBackend(DatabaseSettings("main", f"sqlite:{path}", path))


def rows(backend: SqliteBackend, sql: str) -> list[tuple[object, ...]]:
    with backend.transaction(Purpose(Deadline(5), False, "bad_response")) as session:
        session.guard(sql)
        return [tuple(row) for row in session.rows(sql, {}, 10)[1]]


def change(backend: SqliteBackend, sql: str) -> int:
    with backend.transaction(Purpose(Deadline(5), True, "conflict")) as session:
        session.guard(sql)
        return session.change(sql, {})


def lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the checker's reading of any text one of the table `users` alone."""
    limits = Limits(frozenset({"users"}), frozenset({"users"}), frozenset(), frozenset({"t"}))
    monkeypatch.setattr(sqlite_guard, "limits_of", lambda _: limits)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT pw FROM secrets",
        "SELECT id FROM users WHERE name IN secrets",
        "SELECT id FROM users WHERE EXISTS (SELECT 1 FROM secrets)",
        "WITH t AS (SELECT pw FROM secrets) SELECT pw FROM t",
        "SELECT name FROM names",
        "SELECT load_extension('x') FROM users",
        "SELECT random() FROM users",
        "SELECT sql FROM sqlite_master",
        "SELECT file FROM pragma_database_list",
    ],
)
def test_statement_that_was_read_wrongly_is_denied(
    backend: SqliteBackend, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    lie(monkeypatch)
    with pytest.raises(EffectFailed, match=r"prohibited|not authorized"):
        rows(backend, sql)


def test_write_elsewhere_is_denied(backend: SqliteBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    lie(monkeypatch)
    for sql in ("DELETE FROM secrets", "INSERT INTO users (name) SELECT pw FROM secrets", "ATTACH 'x.db' AS y"):
        with pytest.raises(EffectFailed, match=r"prohibited|not authorized"):
            change(backend, sql)
    monkeypatch.undo()
    assert rows(backend, "SELECT pw FROM secrets") == [("canary",)]
    assert rows(backend, "SELECT count(*) AS n FROM users") == [(1,)]


def test_database_keeps_views_triggers_keys_and_defaults(backend: SqliteBackend) -> None:
    assert rows(backend, "SELECT name FROM outer_names") == [("canary",)]
    assert rows(backend, "SELECT count(*) AS n FROM outer_names") == [(1,)]
    assert rows(backend, "SELECT count(*) AS n FROM (SELECT name FROM names) s") == [(1,)]
    counted = "WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 9) SELECT count(*) AS n FROM t"
    assert rows(backend, counted) == [(9,)]
    assert change(backend, "INSERT INTO users (id) VALUES (2)") == 1
    assert change(backend, "INSERT INTO orders (user_id) VALUES (2)") == 1
    assert change(backend, "UPDATE users SET name = 'x' WHERE id = 2") == 1
    assert change(backend, "DELETE FROM users WHERE id = 2") == 1
    assert rows(backend, "SELECT user_id FROM orders") == []
    assert rows(backend, "SELECT x FROM noted") == [("canary",)]
    assert change(backend, "INSERT INTO docs (body) VALUES ('hello world')") == 1
    assert rows(backend, "SELECT count(*) AS n FROM docs") == [(2,)]
    found = "WITH t AS (SELECT name FROM users) SELECT value FROM t, json_each('[1]') WHERE name LIKE 'a%'"
    assert rows(backend, found) == [(1,)]


def test_function_of_the_other_dialect_is_refused(backend: SqliteBackend) -> None:
    with pytest.raises(EffectFailed, match="`to_char` is a function of PostgreSQL"):
        rows(backend, "SELECT to_char(at, 'x') AS x FROM users")
