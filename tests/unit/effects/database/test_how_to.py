"""docs/how-to/configure-databases.md has every setting, and the tables as they are made."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from vesper.effects.database.performer import DatabasePerformer, DatabaseSettings
from vesper.effects.database.receipts import RECEIPTS
from vesper.effects.database.state_machines import HISTORY, STATES, StatePerformer
from vesper.effects.performer import Performer, no_secret

PAGE = (Path(__file__).parents[4] / "docs/how-to/configure-databases.md").read_text(encoding="utf-8")


def test_every_setting_has_a_line() -> None:
    found = {line.split("`")[1] for line in PAGE.splitlines() if line.startswith("| `") and line.count("|") == 4}
    settings = {field.name for field in dataclasses.fields(DatabaseSettings)} - {"name", "path"}
    assert settings <= found


def test_the_tables_are_those_that_are_made() -> None:
    page = " ".join(PAGE.split())
    for table in (RECEIPTS, STATES, HISTORY):
        assert " ".join(table["postgres"].split()) + ";" in page


def test_both_are_performers() -> None:
    databases = DatabasePerformer({}, no_secret)
    performers: list[Performer] = [databases, StatePerformer(databases, "main", str)]
    for each in performers:
        each.close()
