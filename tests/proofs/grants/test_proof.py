"""A sample of the proof of grants, what it would say if something leaked, and the lists against the servers."""

from __future__ import annotations

import sqlite3
import warnings
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.proofs.grants.campaign import (
    IN_FILE,
    IN_TABLE,
    NAME,
    SCHEMA,
    Runner,
    attacks,
    campaign,
    is_accepted,
    is_right,
    performer_of,
    source_hash,
    touched,
)
from tests.proofs.grants.texts import Text, postgres_texts, sqlite_texts
from tests.proofs.robustness.proof import PROOFS, read_json
from tests.support.servers import Postgres
from vesper.compiler import compile_file
from vesper.effects.database.settings import DatabaseSettings
from vesper.values.generated.sql_functions import (
    FUNCTIONS,
    OPERATORS,
    SYNTAX_FUNCTIONS,
    TYPES,
    VALUE_WORDS,
    WORDS_BEFORE_PARENTHESIS,
)

NODE = """\
node_id: find_user_v1
type: data_transform
intent: Look up users
inputs:
  ids: array<string>
outputs:
  success:
    count: integer
flow:
  - step: names
    operation: {operation}
    query: |
      {sql}
{returns}  - operation: return
    success:
      count: length(ids)
security:
  capabilities_required: [database.read.users, database.write.users]
"""
LATER = frozenset(("concat", "concat_ws", "json_pretty", "octet_length", "string_agg", "timediff", "unhex"))
"""Functions of SQLite that came after 3.40."""
TABLE_FUNCTIONS = frozenset(("json_each", "json_tree"))


def test_sample_leaks_nothing(postgres: Postgres) -> None:
    found = campaign(postgres, every=97)
    assert is_right(found), found
    assert found["postgres"]["texts"] > 500
    assert found["sqlite"]["texts"] > 150


def test_every_function_is_tried_in_every_place(postgres: Postgres) -> None:
    with psycopg.connect(postgres.new_database()) as connection:
        texts = list(postgres_texts(connection, "/x"))
        (count,) = connection.execute("SELECT count(DISTINCT proname) FROM pg_proc").fetchone() or (0,)
    places = {text.place for text in texts if text.name == "query_to_xml"}
    assert {"select", "where", "order", "cte", "subquery", "insert", "update", "from"} <= places
    assert len({text.name for text in texts}) >= count
    assert len(texts) > 20_000
    with sqlite3.connect(":memory:") as lite:
        names = {text.name for text in sqlite_texts(lite, "/x")}
        assert {name for (name,) in lite.execute("SELECT name FROM pragma_function_list")} - names == {"->", "->>"}
    lite.close()


def test_leak_is_noticed(postgres: Postgres, tmp_path: Path) -> None:
    dsn = postgres.new_database()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(SCHEMA.encode())
    performer = performer_of(DatabaseSettings("main", dsn))
    runner = Runner(performer)
    bait = "SELECT query_to_xml('select pw from secrets', true, true, '')::text AS x FROM users"
    runner.run(Text("query_to_xml", "select", bait))
    runner.run(Text("attack", "update", "UPDATE users SET name = pw FROM secrets"))
    performer.close()
    assert len(runner.leaks) == 2
    assert IN_TABLE != IN_FILE
    lite = sqlite3.connect(":memory:")
    lite.executescript(SCHEMA)
    assert set(touched(lite, "SELECT id FROM users WHERE name IN secrets")) == {"users", "secrets"}
    lite.close()


@pytest.mark.parametrize(
    "place, name, value",
    [
        ("postgres", "leaks", ["x"]),
        ("sqlite", "leaks", ["x"]),
        ("sqlite", "tables_touched_outside", ["secrets"]),
        ("postgres", "transaction_ids_given_to_queries", 1),
        ("postgres", "is_unchanged", False),
        ("sqlite", "is_unchanged", False),
        ("sqlite", "executed", 0),
    ],
)
def test_wrong_number_is_no_proof(place: str, name: str, value: object) -> None:
    right: dict[str, Any] = {
        each: {
            "leaks": [],
            "executed": 1,
            "is_unchanged": True,
            "transaction_ids_given_to_queries": 0,
            "tables_touched_outside": [],
        }
        for each in ("postgres", "sqlite")
    }
    assert is_right(right)
    right[place][name] = value
    assert not is_right(right)


def test_handwritten_attacks_are_refused_or_harmless(tmp_path: Path) -> None:
    accepted = [text.sql for text in attacks(tmp_path / "x") if is_accepted(text.sql)]
    assert accepted == ["SELECT name AS x /* */ FROM users -- */ , secrets"]


@pytest.mark.parametrize("number", range(0, 104, 4))
def test_check_of_a_node_refuses_what_the_proof_refuses(number: int, tmp_path: Path) -> None:
    text = attacks(tmp_path / "x")[number]
    path = tmp_path / "find_user_v1.vsp"
    operation = "database_update" if text.writes else "database_query"
    returns = "" if text.writes else "    returns: array<string>\n"
    path.write_text(NODE.format(operation=operation, sql=text.sql, returns=returns), encoding="utf-8")
    compiled, _ = compile_file(path)
    assert compiled is None or is_accepted(text.sql)


def test_listed_names_of_postgres_are_pure(postgres: Postgres) -> None:
    listed = FUNCTIONS["postgres"] | TYPES["postgres"]
    with psycopg.connect(postgres.new_database()) as connection:
        rows = connection.execute(
            """SELECT proname, provolatile::text, format_type(t, NULL) FROM pg_proc, unnest(proargtypes || prorettype) t
            WHERE pronamespace = 'pg_catalog'::regnamespace"""
        ).fetchall()
        operators = {name for (name,) in connection.execute("SELECT oprname FROM pg_operator")}
        types = {name for (name,) in connection.execute("SELECT typname FROM pg_type WHERE typtype <> 'c'")}
    shipped = {name for name, _, _ in rows}
    assert FUNCTIONS["postgres"] - shipped == {"trim"}, "the syntax of btrim"
    assert operators <= OPERATORS["postgres"]
    assert OPERATORS["postgres"] - operators == {"!="}, "the syntax of <>"
    synonyms = {
        "bigint",
        "boolean",
        "character",
        "dec",
        "decimal",
        "double",
        "float",
        "int",
        "integer",
        "nchar",
        "real",
    }
    assert TYPES["postgres"] - types == synonyms | {"smallint"}
    assert not {name for name, kind, _ in rows if name in listed and kind == "v"}
    unsafe = {"internal", "cstring", "refcursor", "xml", "aclitem"} | {name for name in types if name.startswith("reg")}
    assert {name for name, _, type_ in rows if name in listed and type_ in unsafe} == {"text"}, "text(xml) prints it"
    impure = shipped - listed
    assert not impure & SYNTAX_FUNCTIONS
    assert impure & WORDS_BEFORE_PARENTHESIS <= {"like"}, "immutable, and syntax in both"
    assert impure & FUNCTIONS["sqlite"] <= {"like"}, "immutable"
    assert not VALUE_WORDS & listed


def test_listed_names_of_sqlite_are_shipped() -> None:
    connection = sqlite3.connect(":memory:")
    shipped = {name for (name,) in connection.execute("SELECT name FROM pragma_function_list")}
    connection.close()
    assert FUNCTIONS["sqlite"] - shipped <= LATER | TABLE_FUNCTIONS
    assert not (shipped - FUNCTIONS["sqlite"]) & (FUNCTIONS["postgres"] | TYPES["postgres"])
    random = {"random", "randomblob", "load_extension", "changes", "last_insert_rowid", "total_changes", "sqlite_log"}
    assert not random & FUNCTIONS["sqlite"]


def test_summary_is_of_these_sources() -> None:
    found = read_json(PROOFS / f"{NAME}.json")
    assert found is not None, "run `make proof-grants`"
    assert found["is_right"]
    assert found["postgres"]["texts"] + found["sqlite"]["texts"] > 20_000
    if found["source_hash"] != source_hash():
        warnings.warn("the sources of the proof of grants have changed: run `make proof-grants`", stacklevel=1)
