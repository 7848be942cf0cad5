"""What the tests of databases use: one database of either kind, and requests to it."""

# ruff: noqa: S608  # SQL of tests is made by tests

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from vesper.effects.database.performer import DatabasePerformer, DatabaseSettings
from vesper.effects.performer import Ask, EffectFailed, no_secret
from vesper.effects.settings import Table
from vesper.values.json_value import Json
from vesper.values.model import Value, plain
from vesper.values.types import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    INTEGER,
    JSON,
    STRING,
    TIMESTAMP,
    ArrayOf,
    MapOf,
    OptionalOf,
    Record,
    SetOf,
    Type,
)

KINDS = ("sqlite", "postgres")
_ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 100000000000)"


def query(sql: str, gives: Type, rows: str = "one", *, timeout: float | None = None, **bind: Value) -> Ask:
    fixed = {"database": "main", "sql": sql, "rows": rows}
    arguments: dict[str, Value] = {"bind": dict(bind)} if bind else {}
    return Ask("run-1", "find", "database_query", "read", fixed, arguments, gives, timeout=timeout)


def write(
    sql: str,
    *,
    execution: str = "run-1",
    path: str = "save",
    effect_class: str = "txn",
    key: str | None = None,
    timeout: float | None = None,
    **bind: Value,
) -> Ask:
    fixed = {"database": "main", "sql": sql}
    arguments: dict[str, Value] = {"bind": dict(bind)} if bind else {}
    return Ask(execution, path, "database_write", effect_class, fixed, arguments, INTEGER, key=key, timeout=timeout)


@contextmanager
def fails(code: str, *words: str, may_have_happened: bool = False) -> Iterator[None]:
    """The block fails with this code, and its message has these words in it."""
    with pytest.raises(EffectFailed) as caught:
        yield
    error = caught.value
    assert error.code == code, error
    assert error.may_have_happened is may_have_happened, error
    for word in words:
        assert word in error.message, error.message


class Database:
    """A database without tables, and a performer that has it as `main`."""

    def __init__(self, kind: str, dsn: str, **settings: object) -> None:
        self.kind = kind
        self.dsn = dsn
        self.performer = self.new_performer(**settings)

    def new_performer(self, **settings: object) -> DatabasePerformer:
        values = {
            "dsn": self.dsn,
            **({"create": True, "busy_timeout": "25s"} if self.kind == "sqlite" else {}),
            **settings,
        }
        read = DatabaseSettings.from_table("main", Table("databases.main", values))
        return DatabasePerformer({"main": read}, no_secret)

    def connect(self) -> Any:
        """A connection of the application's own, with no transaction open."""
        if self.kind == "sqlite":
            return sqlite3.connect(self.dsn.removeprefix("sqlite:"), timeout=20)
        return psycopg.connect(self.dsn)

    def run(self, sql: str) -> None:
        with closing(self.connect()) as connection:
            connection.execute(sql)
            connection.commit()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(self.connect()) as connection:
            found: list[tuple[Any, ...]] = connection.execute(sql).fetchall()
            return found

    def receipts(self) -> list[tuple[Any, ...]]:
        return self.rows("SELECT receipt, value FROM vesper_receipts ORDER BY receipt")

    def ask(self, ask: Ask) -> Any:
        return perform(self.performer, ask)

    def slow_query(self) -> str:
        """A SELECT of one integer `n` that takes minutes."""
        if self.kind == "postgres":
            return "SELECT 1 AS n FROM pg_sleep(300)"
        return f"{_ENDLESS} SELECT count(*) AS n FROM c"

    def slow_insert(self) -> str:
        """An INSERT into t (id) that takes minutes."""
        if self.kind == "postgres":
            return "INSERT INTO t (id) SELECT 1 FROM pg_sleep(300)"
        return f"INSERT INTO t (id) {_ENDLESS} SELECT count(*) FROM c"

    def close(self) -> None:
        self.performer.close()


def perform(performer: DatabasePerformer, ask: Ask) -> Any:
    """Perform a request with the types of its parameters, which a node would declare."""
    bind = ask.arguments.get("bind", {})
    assert isinstance(bind, dict)
    types = {str(name): _type_of(value) for name, value in bind.items()}
    values: dict[str, Value] = {str(name): plain(value) for name, value in bind.items()}
    return performer.perform(replace(ask, arguments={"bind": values} if bind else {}), types)


_SCALARS: dict[type, Type] = {
    bool: BOOLEAN,
    int: INTEGER,
    Decimal: DECIMAL,
    float: FLOAT,
    str: STRING,
    bytes: BYTES,
    datetime: TIMESTAMP,
    date: DATE,
    timedelta: DURATION,
    Json: JSON,
    type(None): OptionalOf(STRING),
}


def _type_of(value: object) -> Type:
    if type(value) in _SCALARS:
        return _SCALARS[type(value)]
    if isinstance(value, list):
        return ArrayOf(_type_of(value[0]) if value else STRING)
    if isinstance(value, frozenset):
        return SetOf(_type_of(next(iter(value))) if value else STRING)
    assert isinstance(value, dict), value
    if value and all(isinstance(key, str) for key in value):
        return Record(tuple((str(key), _type_of(item)) for key, item in value.items()))
    key, item = next(iter(value.items()), ("", ""))
    return MapOf(_type_of(key), _type_of(item))


def sqlite_at(folder: Path, **settings: object) -> Database:
    return Database("sqlite", f"sqlite:{folder / 'test.db'}", **settings)
