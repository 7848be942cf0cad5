"""An application writes the same SQLite file with Python's sqlite3: no row is lost, and the file stays sound."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

from tests.unit.effects.database.databases import query, sqlite_at, write
from vesper.values.types import INTEGER

_RUNS = 64
_WRITES = 8


def test_the_application_and_64_runs_write_one_file(tmp_path: Path) -> None:
    database = sqlite_at(tmp_path, busy_timeout="120s", timeout="120s", pool_size=16)
    database.run("CREATE TABLE t (writer TEXT, n INTEGER)")
    by_application = 0

    def run(number: int) -> None:
        for turn in range(_WRITES):
            sql = "INSERT INTO t (writer, n) VALUES ('run', :n)"
            assert database.ask(write(sql, execution=f"run-{number}", path=f"add[{turn}]", n=turn)) == 1
            database.ask(query("SELECT count(*) AS n FROM t", INTEGER))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(_RUNS)]
    for each in threads:
        each.start()
    while any(each.is_alive() for each in threads):
        # A new connection each time: closing one drops the locks of any other library in this process.
        with closing(sqlite3.connect(tmp_path / "test.db", timeout=120)) as connection, connection:
            connection.execute("INSERT INTO t VALUES ('application', ?)", (by_application,))
        by_application += 1
    counts = dict(database.rows("SELECT writer, count(*) FROM t GROUP BY writer"))
    assert counts == {"run": _RUNS * _WRITES, "application": by_application}
    assert len(database.receipts()) == _RUNS * _WRITES
    assert database.rows("PRAGMA integrity_check") == [("ok",)]
    database.close()
