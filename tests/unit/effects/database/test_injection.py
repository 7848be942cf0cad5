"""No bound value, of any type, is ever read as SQL."""

from __future__ import annotations

import pytest

from tests.unit.effects.database.databases import Database, query, write
from vesper.effects.database.state_machines import StatePerformer
from vesper.effects.performer import Ask, EffectFailed
from vesper.values.json_value import json_of
from vesper.values.types import JSON, STRING, ArrayOf, Enum, MapOf, OptionalOf

HOSTILE = [
    "' OR '1'='1",
    "'; DROP TABLE t; --",
    '"; DROP TABLE t; --',
    "') ; DELETE FROM t ; --",
    "1; DELETE FROM t",
    "\\'; DELETE FROM t; --",
    "\\\\'; DELETE FROM t; --",
    "' UNION SELECT secret FROM vault --",
    "'/**/OR/**/1=1/**/--",
    "$$; DELETE FROM t; $$",
    "$1",
    "%s",
    "%(name)s",
    "%%",
    ":name",
    "::text",
    "?",
    "@name",
    "x' || (SELECT secret FROM vault) || '",
    "'; SELECT pg_sleep(60); --",
    "'; ATTACH DATABASE '/tmp/x' AS x; --",
    "'; COMMIT; DELETE FROM t; BEGIN; --",
    "ʼ; DROP TABLE t; --",
    "＇; DROP TABLE t; --",
    "\r\n'; DROP TABLE t --\r\n",
    "E'\\x27'; DELETE FROM t; --",
    "{}'; DELETE FROM t; --",
]


@pytest.fixture
def table(database: Database) -> Database:
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
    database.run("CREATE TABLE vault (secret TEXT)")
    database.run("INSERT INTO t VALUES (1, 'innocent')")
    database.run("INSERT INTO vault VALUES ('geheim')")
    return database


def _is_untouched(table: Database) -> bool:
    return table.rows("SELECT id, name FROM t WHERE id = 1") == [(1, "innocent")] and table.rows(
        "SELECT secret FROM vault"
    ) == [("geheim",)]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text(table: Database, text: str) -> None:
    found = "SELECT name FROM t WHERE name = :name"
    assert table.ask(query(found, OptionalOf(STRING), "optional", name=text)) is None
    assert table.ask(write("INSERT INTO t (id, name) VALUES (2, :name)", path="add", name=text)) == 1
    assert table.ask(query(found, STRING, name=text)) == text
    assert (
        table.ask(write("UPDATE t SET name = :set_name WHERE name = :name", path="set", set_name=text, name=text)) == 1
    )
    assert table.ask(query("SELECT name FROM t WHERE name LIKE :name", ArrayOf(STRING), "all", name="inno")) == []
    assert table.ask(write("DELETE FROM t WHERE name = :name", path="delete", name=text)) == 1
    assert _is_untouched(table)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_inside_other_values(table: Database, text: str) -> None:
    for number, (type_, value) in enumerate(
        [(JSON, json_of({text: [text]})), (ArrayOf(STRING), [text]), (MapOf(STRING, STRING), {text: text})]
    ):
        sql = "INSERT INTO t (id, name) VALUES (:id, :name)"
        assert table.ask(write(sql, path=f"add[{number}]", id=number + 2, name=value)) == 1  # type: ignore[arg-type]
        found = table.ask(query("SELECT name FROM t WHERE id = :id", type_, id=number + 2))  # type: ignore[arg-type]
        assert found == ({text: [text]} if type_ == JSON else value)
    table.ask(write("INSERT INTO t (id, name) VALUES (9, :name)", path="bytes", name="x"))
    assert _is_untouched(table)


@pytest.mark.parametrize("text", HOSTILE)
def test_keys_executions_paths_machines_and_entities(table: Database, text: str) -> None:
    keyed = write("UPDATE t SET name = name WHERE id = 1", effect_class="keyed", key=text)
    assert [table.ask(keyed), table.ask(keyed)] == [1, 1]
    placed = write("UPDATE t SET name = name WHERE id = 1", execution=text, path=text)
    assert [table.ask(placed), table.ask(placed)] == [1, 1]
    states = StatePerformer(table.performer, "main")
    states.know(text, text)
    gives = Enum((text, "b"))
    move = Ask(
        "e",
        "move",
        "state_transition",
        "txn",
        {"machine": text, "from": text.replace(",", ""), "to": "b"},
        {"entity": text},
        gives,
    )
    read = Ask("e", "read", "state_read", "read", {"machine": text}, {"entity": text}, gives)
    assert states.perform(read) == text
    if text.strip() == text:  # the names of states have no space around them
        assert states.perform(move) == text
        assert states.perform(read) == "b"
    assert _is_untouched(table)


def test_names_of_parameters_are_not_looked_into(table: Database) -> None:
    for name in ("a)s; DELETE FROM t; --", "name'"):
        hostile = {name: "x"}
        with pytest.raises(EffectFailed, match="no parameter"):
            table.ask(query("SELECT name FROM t WHERE id = 1", STRING, **hostile))  # type: ignore[arg-type]
    assert _is_untouched(table)
