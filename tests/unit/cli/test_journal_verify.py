"""`vesper journal verify`: every table that executions rely on is compared with what their hash chains prove."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.journal_file import run_statement
from tests.support.journalled import Place, a_place, invoke, node_text


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.chdir(tmp_path)
    with a_place(tmp_path, "sqlite:journal.db") as found:
        yield found


TAMPERING = {
    "UPDATE vesper_executions SET node_id = 'other_v1' WHERE id = 1": "says node_id 'other_v1'",
    "UPDATE vesper_executions SET semantic_hash = 'ff' WHERE id = 1": "says semantic_hash 'ff'",
    "UPDATE vesper_executions SET status = 'running', outcome = NULL WHERE id = 1": "says has ended False",
    "UPDATE vesper_executions SET outcome = 'failed' WHERE id = 1": "says outcome 'failed', and its entries 'returned'",
    "UPDATE vesper_executions SET started_us = started_us - 1 WHERE id = 1": "says started_us",
    "UPDATE vesper_executions SET engine = 'interp' WHERE id = 1": "says engine 'interp'",
    "UPDATE vesper_executions SET fence = 7 WHERE id = 1": "says fence 7, and its entries 1",
    "UPDATE vesper_executions SET status = 'running' WHERE id = 2": "says is in doubt False",
    "UPDATE vesper_executions SET is_sensitive = 0 WHERE id = 3": "says that it is not sensitive",
    "UPDATE vesper_executions SET execution = 'x' WHERE id = 1": "is broken at entry 1",
    "DELETE FROM vesper_executions WHERE id = 1": "rows of executions that vesper_executions does not have",
    "DELETE FROM vesper_definitions": "of an execution is missing",
    "UPDATE vesper_definitions SET ir = CAST(replace(CAST(ir AS TEXT), '10', '99') AS BLOB)": "another semantic hash",
    "UPDATE vesper_definitions SET ir = x'00'": "another semantic hash",
    "UPDATE vesper_definitions SET source = source || ' '": "its text is not the one that was compiled",
    "UPDATE vesper_definitions SET node_id = 'other_v1'": "of other_v1 was changed: its IR is that of charge_v1",
    "UPDATE vesper_definitions SET callees = '[\"aa\"]'": "it calls other nodes",
    "UPDATE vesper_definitions SET callees = '{'": "cannot be read",
    "INSERT INTO vesper_blob_uses (run, name) VALUES (1, 'aa')": "uses the blob aa, and no entry does",
    "INSERT INTO vesper_blob_uses (run, name) VALUES (99, 'aa')": "vesper_blob_uses has 1 rows of executions",
    "INSERT INTO vesper_keys (run, master, wrapped) VALUES (99, 'a', 'b')": "vesper_keys has 1 rows of executions",
    "DELETE FROM vesper_blob_uses": "uses the blob",
    "DELETE FROM vesper_blobs": "is broken at entry",
}


@pytest.mark.parametrize("sql", TAMPERING)
def test_every_table_that_executions_rely_on_is_verified(place: Place, sql: str) -> None:
    place.run(node_text(), customer="x" * 100_000 if "blob" in sql else "ann")
    place.in_doubt(node_text())
    place.in_doubt(node_text(sensitive=True))
    assert invoke("journal", "verify").exit_code == 0
    assert run_statement(place.folder / "journal.db", f"{sql} RETURNING 1")
    done = invoke("journal", "verify")
    assert done.exit_code == 1
    assert TAMPERING[sql] in done.stderr
