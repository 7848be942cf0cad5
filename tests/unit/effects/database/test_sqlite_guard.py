"""SQLite itself holds a node's statement to the tables and functions of its text."""

from __future__ import annotations

import dataclasses
import sqlite3
from pathlib import Path

import pytest

from tests.unit.effects.database.databases import Database, query, sqlite_at, write
from vesper.effects.database.statements import Facts, facts_of
from vesper.effects.performer import EffectFailed
from vesper.values.types import INTEGER, STRING, ArrayOf, Type

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


def lying(sql: str, kind: str) -> Facts:
    """Read any text as a statement on the table `users` alone."""
    verb = "SELECT" if sql.startswith(("SELECT", "WITH")) else "DELETE"
    limits = ({"users"}, {"users"}, set[str](), {"t"})
    try:
        found = facts_of(sql, kind)
    except EffectFailed:
        found = facts_of("SELECT 1", kind)
    return dataclasses.replace(found, pieces=[(False, sql)], verb=verb, limits=limits, target=None)


@pytest.fixture
def database(tmp_path: Path) -> Database:
    with sqlite3.connect(tmp_path / "test.db") as connection:
        connection.executescript(SCHEMA)
    connection.close()
    return sqlite_at(tmp_path)


@pytest.fixture
def deceived(database: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    """The same database, whose checker reads every statement wrongly."""
    monkeypatch.setattr("vesper.effects.database.performer.facts_of", lying)
    return Database("sqlite", database.dsn)


def rows(database: Database, sql: str, gives: Type = INTEGER) -> list[object]:
    found: list[object] = database.ask(query(sql, ArrayOf(gives), "all"))
    return found


def change(database: Database, sql: str) -> int:
    found: int = database.ask(write(sql, path=sql))
    return found


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
def test_statement_that_was_read_wrongly_is_denied(deceived: Database, sql: str) -> None:
    with pytest.raises(EffectFailed, match=r"prohibited|not authorized"):
        rows(deceived, sql)


def test_write_elsewhere_is_denied(deceived: Database, database: Database) -> None:
    for sql in ("DELETE FROM secrets", "INSERT INTO users (name) SELECT pw FROM secrets", "ATTACH 'x.db' AS y"):
        with pytest.raises(EffectFailed, match=r"prohibited|not authorized"):
            change(deceived, sql)
    assert rows(database, "SELECT pw FROM secrets", STRING) == ["canary"]
    assert rows(database, "SELECT count(*) AS n FROM users") == [1]


def test_database_keeps_views_triggers_keys_and_defaults(database: Database) -> None:
    assert rows(database, "SELECT name FROM outer_names", STRING) == ["canary"]
    assert rows(database, "SELECT count(*) AS n FROM outer_names") == [1]
    assert rows(database, "SELECT count(*) AS n FROM (SELECT name FROM names) s") == [1]
    counted = "WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 9) SELECT count(*) AS n FROM t"
    assert rows(database, counted) == [9]
    assert change(database, "INSERT INTO users (id) VALUES (2)") == 1
    assert change(database, "INSERT INTO orders (user_id) VALUES (2)") == 1
    assert change(database, "UPDATE users SET name = 'x' WHERE id = 2") == 1
    assert change(database, "DELETE FROM users WHERE id = 2") == 1
    assert rows(database, "SELECT user_id FROM orders") == []
    assert rows(database, "SELECT x FROM noted", STRING) == ["canary"]
    assert change(database, "INSERT INTO docs (body) VALUES ('hello world')") == 1
    assert rows(database, "SELECT count(*) AS n FROM docs") == [2]
    found = "WITH t AS (SELECT name FROM users) SELECT value FROM t, json_each('[1]') WHERE name LIKE 'a%'"
    assert rows(database, found) == [1]


def test_function_of_the_other_dialect_is_refused(database: Database) -> None:
    with pytest.raises(EffectFailed, match="`to_char` is a function of PostgreSQL"):
        rows(database, "SELECT to_char(at, 'x') AS x FROM users", STRING)
