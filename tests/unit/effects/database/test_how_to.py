"""docs/how-to/configure-databases.md has every setting, and the tables as they are made."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import psycopg

from tests.unit.effects.database.databases import Database
from vesper.effects.database.performer import DatabasePerformer, DatabaseSettings
from vesper.effects.database.state_machines import StatePerformer
from vesper.effects.performer import Ask, Performer, no_secret
from vesper.values.types import Enum

PAGE = (Path(__file__).parents[4] / "docs/how-to/configure-databases.md").read_text(encoding="utf-8")


def test_every_setting_has_a_line() -> None:
    found = {line.split("`")[1] for line in PAGE.splitlines() if line.startswith("| `") and line.count("|") == 4}
    settings = {field.name for field in dataclasses.fields(DatabaseSettings)} - {"name", "path"}
    assert settings <= found


def test_the_tables_are_those_that_are_made(emptied_dsn: str) -> None:
    """Made by hand as the page has them, or by the first move: they have the same columns and keys."""
    found = []
    for is_by_hand in (True, False):
        with psycopg.connect(emptied_dsn, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            if is_by_hand:
                for table in re.findall(r"^CREATE TABLE IF NOT EXISTS vesper_.*?;$", PAGE, re.DOTALL | re.MULTILINE):
                    connection.execute(table.encode())
        database = Database("postgres", emptied_dsn)
        states = StatePerformer(database.performer, "main")
        states.know("order", "draft")
        fixed = {"machine": "order", "from": "draft", "to": "paid"}
        gives = Enum(("draft", "paid"))
        assert states.perform(Ask("e", "p", "state_transition", "txn", fixed, {"entity": "x"}, gives)) == "draft"
        columns = "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns"
        keys = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"
        found.append((database.rows(f"{columns} WHERE table_schema = 'public' ORDER BY 1, 2"), database.rows(keys)))
        database.close()
    assert found[0] == found[1]
    assert {name for name, *_ in found[0][0]} == {"vesper_receipts", "vesper_states", "vesper_state_history"}


def test_both_are_performers() -> None:
    databases = DatabasePerformer({}, no_secret)
    performers: list[Performer] = [databases, StatePerformer(databases, "main")]
    for each in performers:
        each.close()
