"""Every value comes back as it went in, from both databases; what is no such value is refused by column and row."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.unit.effects.database.databases import Database, fails, query, sqlite_at, write
from vesper.values.json_value import parse_json
from vesper.values.model import plain, same
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
    Enum,
    MapOf,
    OptionalOf,
    Record,
    SetOf,
    Type,
)

LINE = Record((("sku", STRING), ("price", DECIMAL), ("tags", SetOf(STRING)), ("by_day", MapOf(INTEGER, STRING))))

CASES: list[tuple[Type, str, str, object]] = [
    (BOOLEAN, "INTEGER", "boolean", True),
    (BOOLEAN, "BOOLEAN", "boolean", False),
    (INTEGER, "INTEGER", "bigint", 0),
    (INTEGER, "INTEGER", "bigint", 2**63 - 1),
    (INTEGER, "INTEGER", "bigint", -(2**63)),
    (INTEGER, "INTEGER", "smallint", -7),
    (DECIMAL, "TEXT", "numeric", Decimal("0.10")),
    (DECIMAL, "TEXT", "numeric", Decimal("-12345678901234567890.12345678901234567890")),
    (DECIMAL, "TEXT", "numeric", Decimal("1" + "0" * 300)),
    (DECIMAL, "", "numeric(10, 2)", Decimal("5.00")),
    (DECIMAL, "TEXT", "text", Decimal("0.10")),
    (DECIMAL, "NUMERIC", "numeric", Decimal(5)),
    (FLOAT, "REAL", "double precision", 0.1),
    (FLOAT, "REAL", "double precision", 5e-324),
    (FLOAT, "REAL", "double precision", 3.0),
    (FLOAT, "REAL", "double precision", math.inf),
    (FLOAT, "REAL", "double precision", math.nan),
    (STRING, "TEXT", "text", ""),
    (STRING, "TEXT", "text", 'it\'s "quoted" \\ %s :a $1 ü 漢 🎉\r\n\t'),
    (STRING, "TEXT", "varchar(20)", "007"),
    (STRING, "TEXT", "text", "null"),
    (BYTES, "BLOB", "bytea", b""),
    (BYTES, "BLOB", "bytea", bytes(range(256))),
    (TIMESTAMP, "TEXT", "timestamptz", datetime(2026, 11, 15, 2, 21, 30, tzinfo=UTC)),
    (TIMESTAMP, "TIMESTAMP", "timestamptz", datetime(2026, 11, 15, 2, 21, 30, 500000, tzinfo=UTC)),
    (TIMESTAMP, "TEXT", "timestamptz", datetime(1, 1, 1, tzinfo=UTC)),
    (TIMESTAMP, "TEXT", "timestamptz", datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
    (DATE, "DATE", "date", date(2026, 2, 28)),
    (DATE, "TEXT", "date", date(1, 1, 1)),
    (DURATION, "TEXT", "interval", timedelta(days=3, hours=5, microseconds=7)),
    (DURATION, "TEXT", "interval", timedelta(days=-3, seconds=1)),
    (DURATION, "TEXT", "interval", -timedelta(microseconds=1)),
    (DURATION, "TEXT", "text", timedelta(days=3_652_059)),
    (Enum(("open", "paid")), "TEXT", "text", "paid"),
    (JSON, "TEXT", "jsonb", parse_json('{"a": [1, 1.50, null, true, "x"], "b": {}}')),
    (JSON, "TEXT", "json", parse_json("[0.10]")),
    (JSON, "TEXT", "text", parse_json('"x"')),
    (ArrayOf(DECIMAL), "TEXT", "jsonb", [Decimal("0.10"), Decimal(1)]),
    (ArrayOf(INTEGER), "TEXT", "json", []),
    (SetOf(INTEGER), "TEXT", "jsonb", frozenset((3, 1, 2))),
    (MapOf(STRING, DECIMAL), "TEXT", "jsonb", {"a": Decimal("1.5"), "b": Decimal(2)}),
    (MapOf(DATE, INTEGER), "TEXT", "jsonb", {date(2026, 1, 1): 1}),
    (MapOf(INTEGER, STRING), "TEXT", "jsonb", {}),
    (
        ArrayOf(LINE),
        "TEXT",
        "jsonb",
        [{"sku": "a", "price": Decimal("9.90"), "tags": frozenset(("x",)), "by_day": {}}],
    ),
]


def _table(database: Database, sqlite: str, postgres: str) -> None:
    database.run(f"CREATE TABLE t (id INTEGER PRIMARY KEY, v {sqlite if database.kind == 'sqlite' else postgres})")


@pytest.mark.parametrize("type_, in_sqlite, in_postgres, value", CASES, ids=lambda each: str(each)[:24])
def test_round_trip(database: Database, type_: Type, in_sqlite: str, in_postgres: str, value: Any) -> None:
    _table(database, in_sqlite, in_postgres)
    assert database.ask(write("INSERT INTO t (id, v) VALUES (1, :v)", v=value)) == 1
    assert same(database.ask(query("SELECT v FROM t", type_)), plain(value))
    one = Record((("id", INTEGER), ("v", OptionalOf(type_))))
    found = database.ask(query("SELECT id, v FROM t", OptionalOf(one), "optional"))
    assert same(found, {"id": 1, "v": plain(value)})
    database.ask(write("UPDATE t SET v = :v", path="clear", v=None))
    assert database.ask(query("SELECT id, v FROM t", ArrayOf(one), "all")) == [{"id": 1, "v": None}]


@pytest.mark.parametrize("column", ["NUMERIC", "DECIMAL(10, 2)", "REAL", "DOUBLE", "INTEGER", "STRING"])
@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t (id, v) VALUES (1, :v)",
        "INSERT INTO t VALUES (1, :v)",
        "INSERT INTO t (v, id) SELECT :v, 1",
        "INSERT INTO t (id, v) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET v = :v",
        "UPDATE t SET V = :v WHERE id = 7",
    ],
)
def test_sqlite_refuses_a_column_that_would_change_a_decimal(tmp_path: Path, sql: str, column: str) -> None:
    database = sqlite_at(tmp_path)
    database.run(f"CREATE TABLE t (id INTEGER PRIMARY KEY, v {column})")
    with fails("conflict", "column `v` of `t`", column, "declare the column TEXT"):
        database.ask(write(sql, v=Decimal("0.10")))
    with fails("conflict", "a text that looks like a number"):
        database.ask(write(sql, v="007"))
    assert database.rows("SELECT * FROM t") == []
    database.close()


def test_sqlite_takes_a_whole_decimal_in_a_numeric_column_but_not_its_places(tmp_path: Path) -> None:
    database = sqlite_at(tmp_path)
    database.run("CREATE TABLE t (v NUMERIC)")
    assert database.ask(write("INSERT INTO t (v) VALUES (:v)", v=Decimal(-12))) == 1
    assert database.ask(query("SELECT v FROM t", DECIMAL)) == Decimal(-12)
    for text in ("5.00", "9223372036854775808", "-0.5"):
        with fails("conflict", "TEXT"):
            database.ask(write("INSERT INTO t (v) VALUES (:v)", path=text, v=Decimal(text)))
    database.close()


BAD: list[tuple[Type, str, str, str]] = [
    # the type that the step declares, the SQL of a value in SQLite and in PostgreSQL, what the message calls it
    (DECIMAL, "0.1", "0.1::float8", "a float"),
    (DECIMAL, "'0,1'", "'0,1'::text", "a text in another form"),
    (DECIMAL, "x'00'", "'NaN'::numeric", ""),
    (INTEGER, "1.0", "1.0::numeric", ""),
    (INTEGER, "'1'", "'1'::text", "a text"),
    (INTEGER, "NULL", "NULL::int", "null"),
    (INTEGER, "1.5", "10000000000000000000::numeric", ""),
    (BOOLEAN, "2", "1", "an integer"),
    (BOOLEAN, "'true'", "'true'::text", "a text"),
    (STRING, "1", "1", "an integer"),
    (STRING, "x'61'", "'a'::bytea", "bytes"),
    (STRING, "CAST(x'ff' AS TEXT)", "'{}'::jsonb", ""),
    (BYTES, "'YQ=='", "'YQ=='::text", "a text"),
    (TIMESTAMP, "'2026-11-15 02:21:30'", "'2026-11-15 02:21:30'::timestamp", "timestamp"),
    (TIMESTAMP, "1700000000", "'infinity'::timestamptz", ""),
    (TIMESTAMP, "'x'", "'0044-03-15 BC'::timestamptz", ""),
    (TIMESTAMP, "'10000-01-01T00:00:00Z'", "'10000-01-01'::timestamptz", ""),
    (DATE, "'2026-02-30'", "'infinity'::date", ""),
    (DATE, "'2026-02-03T00:00:00Z'", "'2026-02-03'::timestamptz", ""),
    (DURATION, "'P1M'", "'1 month'::interval", ""),
    (DURATION, "3600", "3600", "an integer"),
    (Enum(("a", "b")), "'c'", "'c'::text", "none of its members"),
    (FLOAT, "'1.5'", "1.5::numeric", ""),
    (FLOAT, "9007199254740993", "9007199254740993", "out of range"),
    (JSON, "'{'", "'{'::text", "in another form"),
    (JSON, "1", "1", "an integer"),
    (ArrayOf(INTEGER), "'{}'", "'{}'::jsonb", ""),
    (ArrayOf(INTEGER), "'[1,\"2\"]'", "ARRAY[1, 2]", ""),
    (SetOf(INTEGER), "'[1,1]'", "'[1,1]'::jsonb", "twice"),
]


@pytest.mark.parametrize("type_, in_sqlite, in_postgres, called", BAD)
def test_a_column_that_is_not_of_the_type(
    database: Database, type_: Type, in_sqlite: str, in_postgres: str, called: str
) -> None:
    value = in_sqlite if database.kind == "sqlite" else in_postgres
    row = Record((("id", INTEGER), ("v", type_)))
    with fails("bad_response", "column `v` of row 1", called, f"declares {type_}"):
        database.ask(query(f"SELECT 7 AS id, {value} AS v", ArrayOf(row), "all"))


def test_the_message_of_a_bad_column_does_not_repeat_it(database: Database) -> None:
    with pytest.raises(Exception, match="column") as caught:
        database.ask(query("SELECT 'geheim' AS v", INTEGER))
    assert "geheim" not in str(caught.value)


def test_integers_of_postgres_do_not_overflow_as_small_ones(database: Database) -> None:
    assert database.ask(query("SELECT :a * :b AS n", INTEGER, a=20_000, b=20_000)) == 400_000_000


def test_moments_of_sqlite_are_in_order_as_texts(database: Database) -> None:
    _table(database, "TEXT", "timestamptz")
    moments = [datetime(2026, 1, 1, 0, 0, second, micro, tzinfo=UTC) for second in (0, 1) for micro in (0, 1, 500000)]
    for number, moment in enumerate(reversed(moments)):
        database.ask(write("INSERT INTO t (id, v) VALUES (:id, :v)", path=f"add[{number}]", id=number, v=moment))
    assert database.ask(query("SELECT v FROM t ORDER BY v", ArrayOf(TIMESTAMP), "all")) == moments
    found = database.ask(query("SELECT v FROM t WHERE v > :v ORDER BY v", ArrayOf(TIMESTAMP), "all", v=moments[3]))
    assert found == moments[4:]


def test_sums_and_counts(database: Database) -> None:
    _table(database, "INTEGER", "bigint")
    database.ask(write("INSERT INTO t (id, v) VALUES (1, 5), (2, 6)"))
    row = Record((("total", INTEGER), ("n", INTEGER)))
    assert database.ask(query("SELECT sum(v) AS total, count(*) AS n FROM t", row)) == {"total": 11, "n": 2}
