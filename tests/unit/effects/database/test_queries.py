"""How many rows come, what happens to too many, and to columns that nobody asked for."""

# ruff: noqa: S608  # SQL of tests is made by tests

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from tests.unit.effects.database.databases import Database, fails, perform, query, write
from vesper.values.types import DECIMAL, DURATION, INTEGER, STRING, TIMESTAMP, ArrayOf, OptionalOf, Record

ROW = Record((("id", INTEGER), ("name", STRING)))


@pytest.fixture
def filled(database: Database) -> Database:
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
    database.run("INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three')")
    return database


def test_all(filled: Database) -> None:
    rows = filled.ask(query("SELECT id, name FROM t WHERE id < :top ORDER BY id", ArrayOf(ROW), "all", top=3))
    assert rows == [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}]
    assert filled.ask(query("SELECT id, name FROM t WHERE id > :top", ArrayOf(ROW), "all", top=3)) == []


def test_one(filled: Database) -> None:
    assert filled.ask(query("SELECT name, id FROM t WHERE id = :id", ROW, id=1)) == {"id": 1, "name": "one"}
    with fails("not_found", "no row"):
        filled.ask(query("SELECT id, name FROM t WHERE id = :id", ROW, id=9))
    with fails("too_many_rows", "more than one row"):
        filled.ask(query("SELECT id, name FROM t", ROW))


def test_optional(filled: Database) -> None:
    found = OptionalOf(ROW)
    assert filled.ask(query("SELECT id, name FROM t WHERE id = :id", found, "optional", id=1)) == {
        "id": 1,
        "name": "one",
    }
    assert filled.ask(query("SELECT id, name FROM t WHERE id = :id", found, "optional", id=9)) is None
    with fails("too_many_rows"):
        filled.ask(query("SELECT id, name FROM t", found, "optional"))


def test_a_second_row_is_too_many_whatever_it_holds(filled: Database) -> None:
    filled.run("UPDATE t SET name = NULL WHERE id > 1")
    with fails("too_many_rows"):
        filled.ask(query("SELECT id, name FROM t ORDER BY id", ROW))


def test_the_order_of_the_query_is_kept(filled: Database) -> None:
    assert filled.ask(query("SELECT id FROM t ORDER BY id DESC LIMIT 1", INTEGER)) == 3
    assert filled.ask(query("SELECT id FROM t ORDER BY name", ArrayOf(INTEGER), "all")) == [1, 3, 2]


def test_statements_of_every_shape(filled: Database) -> None:
    assert filled.ask(query("WITH x AS (SELECT id FROM t) SELECT max(id) AS top FROM x", INTEGER)) == 3
    assert filled.ask(query("SELECT id FROM t WHERE id = 1 -- the first\n", INTEGER)) == 1
    assert filled.ask(query("/* hello */ SELECT id FROM t WHERE id = 1;", INTEGER)) == 1
    assert filled.ask(query("SELECT id FROM t WHERE name LIKE '%wo' AND id % 2 = 0", INTEGER)) == 2


def test_columns_that_do_not_fit(filled: Database) -> None:
    with fails("bad_response", "`name`", "no such field"):
        filled.ask(query("SELECT id, name FROM t WHERE id = 1", Record((("id", INTEGER),))))
    with fails("bad_response", "no column `name`"):
        filled.ask(query("SELECT id FROM t WHERE id = 1", ROW))
    with fails("bad_response", "2 columns"):
        filled.ask(query("SELECT id, name FROM t WHERE id = 1", INTEGER))
    with fails("bad_response", "two columns with the name `id`"):
        filled.ask(query("SELECT id, id FROM t", ArrayOf(ROW), "all"))


def test_the_row_is_named(filled: Database) -> None:
    filled.run("UPDATE t SET name = NULL WHERE id = 3")
    with fails("bad_response", "column `name` of row 3", "null", "optional<string>"):
        filled.ask(query("SELECT id, name FROM t ORDER BY id", ArrayOf(ROW), "all"))


def test_max_rows(filled: Database) -> None:
    performer = filled.new_performer(max_rows=2)
    with fails("too_many_rows", "more than 2 rows", "max_rows"):
        perform(performer, query("SELECT id FROM t", ArrayOf(INTEGER), "all"))
    assert len(perform(performer, query("SELECT id FROM t LIMIT 2", ArrayOf(INTEGER), "all"))) == 2
    performer.close()


def _numbers(filled: Database, top: int) -> str:
    if filled.kind == "postgres":
        return f"SELECT n FROM generate_series(1, {top}) AS s(n)"
    return f"WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {top}) SELECT n FROM s"


def test_a_billion_rows_are_not_waited_for(filled: Database) -> None:
    many = _numbers(filled, 1_000_000_000)
    if filled.kind == "postgres":  # whose function makes all its rows before the first one comes out
        many = "SELECT a.n FROM generate_series(1, 100000) AS a(n), generate_series(1, 10000) AS b(n)"
    with fails("too_many_rows", "10,000 rows"):
        filled.ask(query(many, ArrayOf(INTEGER), "all", timeout=60))
    assert filled.ask(query("SELECT count(*) AS n FROM t", INTEGER)) == 3  # the connection is as good as new


def _long(filled: Database, length: int) -> str:
    return f"repeat('x', {length})" if filled.kind == "postgres" else f"replace(hex(zeroblob({length // 2})), '0', 'x')"


def test_a_value_of_20_million_bytes(filled: Database) -> None:
    filled.run(f"UPDATE t SET name = {_long(filled, 20_000_000)} WHERE id = 2")
    for rows, gives in (("one", STRING), ("optional", OptionalOf(STRING)), ("all", ArrayOf(STRING))):
        with fails("bad_response", "column `name` of row 1", "20,000,000 bytes", "max_value"):
            filled.ask(query("SELECT name FROM t WHERE id = 2", gives, rows))
    performer = filled.new_performer(max_value="32 MiB")
    with fails("bad_response", "declares string"):  # over the limit of the language
        perform(performer, query("SELECT name FROM t WHERE id = 2", STRING))
    performer.close()
    assert filled.ask(query("SELECT name FROM t WHERE id = 1", STRING)) == "one"


def test_max_result(filled: Database) -> None:
    performer = filled.new_performer(max_result="64 KiB")
    sql = _numbers(filled, 5_000).replace("SELECT n FROM s", f"SELECT {_long(filled, 1000)} AS x FROM s")
    if filled.kind == "postgres":
        sql = sql.replace("SELECT n FROM g", f"SELECT {_long(filled, 1000)} AS x FROM g")
    with fails("bad_response", "max_result", "66 rows"):
        perform(performer, query(sql, ArrayOf(STRING), "all"))
    performer.close()


def test_a_query_writes_nothing(filled: Database) -> None:
    # A node is checked; this is what a damaged one meets.
    for sql in (
        "DELETE FROM t",
        "DROP TABLE t",
        "/* SELECT */ DELETE FROM t",
        "PRAGMA user_version",
        "(DELETE FROM t)",
    ):
        with fails("unavailable", "its SQL begins with"):
            filled.ask(query(sql, INTEGER))
    with fails("unavailable"):
        filled.ask(query("WITH x AS (SELECT 1) DELETE FROM t", INTEGER))
    if filled.kind == "postgres":
        with fails("unavailable"):
            filled.ask(query("WITH x AS (DELETE FROM t RETURNING id) SELECT id FROM x", ArrayOf(INTEGER), "all"))
        filled.run("CREATE SEQUENCE s")
        with fails("unavailable", "read-only"):
            filled.ask(query("SELECT nextval('s') AS n", INTEGER))
    assert filled.rows("SELECT count(*) FROM t") == [(3,)]


@pytest.mark.parametrize(
    "setting, value",
    [
        ("timezone", "Asia/Kolkata"),
        ("datestyle", "German"),
        ("intervalstyle", "postgres"),
        ("default_transaction_read_only", "off"),
    ],
)
def test_a_query_does_not_change_what_the_next_one_reads(filled: Database, setting: str, value: str) -> None:
    if filled.kind == "sqlite":
        return  # has no sessions
    body = f"SELECT set_config('{setting}', '{value}', false)"
    filled.run(f"CREATE FUNCTION change() RETURNS text LANGUAGE sql AS $$ {body} $$")
    filled.run("CREATE SEQUENCE s")
    filled.ask(query("SELECT change() AS x", STRING))
    row = Record((("m", TIMESTAMP), ("d", DURATION)))
    found = filled.ask(query("SELECT '2026-11-15T02:00:00Z'::timestamptz AS m, '1 day'::interval AS d", row))
    assert found == {"m": datetime(2026, 11, 15, 2, tzinfo=UTC), "d": timedelta(days=1)}
    with fails("unavailable", "read-only"):
        filled.ask(query("SELECT nextval('s') AS n", INTEGER))


def test_several_statements_are_refused(filled: Database) -> None:
    with fails("unavailable", "more than one statement"):
        filled.ask(query("SELECT id FROM t; DELETE FROM t", ArrayOf(INTEGER), "all"))
    with fails("unavailable", "more than one statement"):
        filled.ask(write("DELETE FROM t WHERE id = 1; DELETE FROM t"))
    assert filled.rows("SELECT count(*) FROM t") == [(3,)]


def test_parameters_are_exactly_those_that_are_given(filled: Database) -> None:
    with fails("unavailable", "nothing gives `:id`"):
        filled.ask(query("SELECT id FROM t WHERE id = :id", INTEGER))
    with fails("unavailable", "no parameter `:id`"):
        filled.ask(write("DELETE FROM t /* WHERE id = :id */", id=1))
    # As when two lines have become one: every row would be gone.
    with fails("unavailable", "ends in a comment"):
        filled.ask(write("DELETE FROM t -- the old ones WHERE id < 2"))
    assert filled.rows("SELECT count(*) FROM t") == [(3,)]


def test_sql_that_the_database_does_not_know(filled: Database) -> None:
    with fails("unavailable", "nothing"):
        filled.ask(query("SELECT nothing FROM t", INTEGER))
    with fails("unavailable", "absent"):
        filled.ask(query("SELECT id FROM absent", INTEGER))
    with fails("unavailable", "absent"):
        filled.ask(write("INSERT INTO absent (id) VALUES (1)"))
    with fails("unavailable"):
        filled.ask(query("SELECT FROM WHERE", INTEGER))


def test_a_value_that_the_database_refuses_in_a_query(filled: Database) -> None:
    if filled.kind == "postgres":
        with fails("bad_response", "refuses a value"):
            filled.ask(query("SELECT 1 / :zero AS n", INTEGER, zero=0))
        with fails("bad_response", "`:name`", "NUL"):
            filled.ask(query("SELECT id FROM t WHERE name = :name", INTEGER, name="a\0b"))
    else:
        assert (
            filled.ask(query("SELECT id FROM t WHERE name = :name", OptionalOf(INTEGER), "optional", name="a\0"))
            is None
        )


def test_names_in_capitals(filled: Database) -> None:
    row = Record((("Total", DECIMAL),))
    assert filled.ask(query("SELECT '1.50' AS Total", row)) == {"Total": Decimal("1.50")}


def test_a_file_in_a_folder_with_a_strange_name(tmp_path: Path) -> None:
    folder = tmp_path / "a ?b#c%41"
    folder.mkdir()
    database = Database("sqlite", f"sqlite:{folder}/x?mode=ro.db")
    assert database.ask(query("SELECT 1 AS n", INTEGER)) == 1
    assert (folder / "x?mode=ro.db").exists()
    database.close()
