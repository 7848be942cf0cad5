"""Threads of a process take turns in writing to an SQLite file (the order is tested in Rust)."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from pathlib import Path

from tests.unit.effects.database.databases import fails, perform, sqlite_at, write

ADD = "INSERT INTO t (id) VALUES (:id)"


def test_a_failed_writer_holds_up_nobody(tmp_path: Path) -> None:
    database = sqlite_at(tmp_path, busy_timeout="20ms", pool_size=1)
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    with closing(database.connect()) as blocker:
        blocker.execute("INSERT INTO t VALUES (1)")
        with fails("unavailable", "did not end in time"):
            database.ask(write(ADD, id=2))
    start = time.monotonic()
    assert database.ask(write(ADD, id=2)) == 1
    assert time.monotonic() - start < 5
    database.close()


def test_every_thread_of_many_writes_all_it_has_to(tmp_path: Path) -> None:
    database = sqlite_at(tmp_path, busy_timeout="60s", pool_size=8)
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    done: list[object] = []

    def run(first: int) -> None:
        for number in range(first, first + 50):
            done.append(perform(database.performer, write(ADD, path=f"add[{number}]", id=number)))

    threads = [threading.Thread(target=run, args=(first,)) for first in range(0, 600, 50)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert done == [1] * 600
    assert database.rows("SELECT count(*) FROM t") == [(600,)]
    database.close()
