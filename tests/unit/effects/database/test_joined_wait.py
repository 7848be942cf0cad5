"""A run that is joined to a caller's transaction cannot wait, and is refused before it begins."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import vesper
from vesper.effects.database.performer import WrongConnection

NODE = """node_id: late_note_v1
type: http_handler
intent: Test
inputs: {text: string}
outputs:
  success: {rows: integer}
  error: {error_code: "enum[cancelled]", message: string}
flow:
  - {operation: sleep, duration: 1h}
  - {step: rows, operation: database_write, table: notes, data: {text: text}}
  - {operation: return, success: [rows]}
security: {capabilities_required: [clock.sleep.system, database.write.notes]}
"""
SETTINGS = """
[[grants]]
nodes = ["*"]
allow = ["*"]

[databases.main]
dsn = "sqlite:notes.db"

[journal]
dsn = "sqlite:journal.db"
"""


def test_a_joined_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "late_note_v1.vsp").write_text(NODE, encoding="utf-8")
    (tmp_path / "vesper.toml").write_text(SETTINGS, encoding="utf-8")
    with closing(sqlite3.connect(tmp_path / "notes.db")) as connection:
        connection.execute("CREATE TABLE notes (text text)")
        connection.commit()
        connection.execute("INSERT INTO notes VALUES ('mine')")
        with vesper.Host.from_file(tmp_path / "vesper.toml") as host:
            node = vesper.load(tmp_path / "late_note_v1.vsp", engine="python", host=host)
            with vesper.joined("main", connection), pytest.raises(WrongConnection, match="cannot wait"):
                node(text="x")
            assert host.journal.unfinished(1) == []
