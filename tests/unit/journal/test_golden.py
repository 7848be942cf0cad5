"""What an earlier Vesper left on somebody's disk is read for ever, and what is written now is written as it was."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.unit.journal.golden import make, written
from tests.unit.journal.golden.render import AUDIT, MASTER, VERSION, rendered, sql_path, text_path
from tests.unit.journal.helpers import Raw, end
from vesper.journal.entry import FORMAT
from vesper.journal.journal import KeyRing, open_journal
from vesper.journal.typed_json import encode


def loaded(version: int, folder: Path) -> Path:
    path = folder / "journal.db"
    connection = sqlite3.connect(path)
    connection.executescript(sql_path(version).read_text(encoding="utf-8"))
    connection.close()
    return path


@pytest.mark.parametrize("version", range(1, VERSION + 1))
def test_a_journal_of_an_earlier_version_is_read(version: int, tmp_path: Path) -> None:
    assert rendered(loaded(version, tmp_path)) == text_path(version).read_text(encoding="utf-8")


@pytest.mark.parametrize("version", range(1, VERSION + 1))
def test_a_journal_of_an_earlier_version_goes_on(version: int, tmp_path: Path) -> None:
    path = loaded(version, tmp_path)
    Raw(f"sqlite:{path}").run("UPDATE vesper_executions SET lease_until_us = 1")  # whatever this machine's clock says
    journal = open_journal(f"sqlite:{path}", keys=KeyRing(MASTER, audit=AUDIT))
    assert [found.execution for found in journal.unfinished()] == ["waiting"]
    end(journal.take_over("waiting", "python"))
    journal.resolve("doubtful", "charge", "done", None, "ada", "looked")
    assert journal.prune(1 << 60) == (4 if version == 1 else 5)
    journal.close()


def test_the_golden_is_of_the_newest_format() -> None:
    """Whoever changes the format or the tables gives them a new number, and adds a golden."""
    assert (FORMAT, VERSION) == (1, 4)
    assert sorted(path.name for path in sql_path(1).parent.glob("v*")) == [
        "v1.sqlite.sql", "v1.txt", "v1.written.txt", "v2.sqlite.sql", "v2.txt", "v3.sqlite.sql", "v3.txt",
        "v4.sqlite.sql", "v4.txt",
    ]  # fmt: skip


def test_the_tables_are_those_of_the_golden(tmp_path: Path) -> None:
    """Also where a journal of an earlier version was migrated."""
    sql = "SELECT name, sql FROM sqlite_master WHERE name LIKE 'vesper%' ORDER BY name"
    found = [_migrated(version, tmp_path / str(version)).run(sql) for version in range(1, VERSION + 1)]
    assert all(each == found[-1] for each in found)
    assert any("run_key" in str(row) for row in found[0])


def _migrated(version: int, folder: Path) -> Raw:
    folder.mkdir()
    path = loaded(version, folder)
    open_journal(f"sqlite:{path}").find()
    return Raw(f"sqlite:{path}")


def test_entries_are_written_as_they_were(tmp_path: Path) -> None:
    """Lines of the run that is not encrypted, but for START and END with their moments, are the golden's bytes."""
    path = tmp_path / "journal.db"
    make.make(path)
    written = (
        Raw(f"sqlite:{path}").run("SELECT lines FROM vesper_commits ORDER BY place LIMIT 1")[0][0].split(b"\n")[1:]
    )
    golden = text_path(VERSION).read_text(encoding="utf-8").split("== stored lines\n")[1].encode().split(b"\n")[2:]
    assert len(written) == 11
    assert written == golden[: len(written)]


@pytest.mark.parametrize("scenario", written.SCENARIOS, ids=lambda each: each.name)
def test_random_runs_are_stored_as_they_were(scenario: written.Scenario, tmp_path: Path) -> None:
    """With equal sources every cell of every table is the golden's; blobs are compared decompressed."""
    golden = written.GOLDEN.read_text(encoding="utf-8").splitlines()
    tables = tuple(f"{scenario.name}: {table}, " for table in ("migrations", "schema"))  # those of format 1
    expected = [line for line in golden if line.startswith(f"{scenario.name}: ") and not line.startswith(tables)]
    found = list(written.stored(scenario, tmp_path / "journal.db"))
    assert [line for line in found if line not in expected][:5] == []
    assert found == expected


def test_the_goldens_are_never_rewritten() -> None:
    before = text_path(VERSION).read_bytes(), written.GOLDEN.read_bytes()
    assert make.main() == 1
    assert written.main() == 1
    assert (text_path(VERSION).read_bytes(), written.GOLDEN.read_bytes()) == before


def test_the_golden_holds_every_kind_of_value() -> None:
    assert encode(make.BODY).decode() in text_path(VERSION).read_text(encoding="utf-8")
