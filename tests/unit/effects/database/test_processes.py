"""Several processes: forks of one that has used its databases, and two that do the same thing at once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.unit.effects.database.databases import Database, fails, query, sqlite_at, write
from vesper.values.types import INTEGER


@pytest.fixture
def table(database: Database) -> Database:
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
    database.run("INSERT INTO t VALUES (1, 0)")
    return database


def _child(table: Database, number: int) -> int:
    """Forks, and writes in the child; the id of the child."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        for turn in range(5):
            table.ask(write("UPDATE t SET n = n + 1", execution=f"child-{number}", path=f"a[{turn}]"))
        code = 0
    finally:
        os._exit(code)


def test_a_forked_process_has_connections_of_its_own(table: Database) -> None:
    table.ask(write("UPDATE t SET n = n + 1", path="parent"))
    children = [_child(table, number) for number in range(2)]
    for turn in range(5):
        table.ask(write("UPDATE t SET n = n + 1", path=f"parent[{turn}]"))
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0]
    assert table.ask(query("SELECT n FROM t", INTEGER)) == 16
    table.ask(write("UPDATE t SET n = 0", path="after"))  # the child's end has not ended the parent's connection
    assert table.rows("SELECT n FROM t") == [(0,)]


def test_a_fork_while_other_threads_are_in_the_middle(table: Database) -> None:
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            table.ask(query("SELECT n FROM t", INTEGER))

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for each in threads:
        each.start()
    try:
        pid = _child(table, 1)
        assert os.waitpid(pid, 0)[1] == 0
    finally:
        stop.set()
        for each in threads:
            each.join()
    assert table.rows("SELECT n FROM t") == [(5,)]


def test_a_fork_under_a_statement_of_sqlite_is_refused_the_file(tmp_path: Path) -> None:
    database = sqlite_at(tmp_path)
    ask = query("SELECT 1 AS n", INTEGER)

    def hold() -> None:
        with fails("timeout"):
            database.ask(query(database.slow_query(), INTEGER, timeout=6))

    thread = threading.Thread(target=hold)
    thread.start()
    time.sleep(0.4)
    pid = os.fork()  # waits for two seconds
    if not pid:
        code = 1
        try:
            with fails("unavailable", "forked while `main` was in use", "spawn"):
                database.ask(ask)
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    assert database.ask(ask) == 1
    thread.join()
    database.close()


RACE = """
import sys
from tests.unit.effects.database.databases import Database, write
kind, dsn = sys.argv[1:]
database = Database(kind, dsn)
sys.stdin.readline()
for turn in range(20):
    asks = [
        write("UPDATE t SET n = n + 1 WHERE id = 1", execution="shared", path=f"bump[{turn}]"),
        write("UPDATE t SET n = n + 1 WHERE id = 1", effect_class="keyed", key=f"k{turn}", execution=f"of {id(kind)}"),
    ]
    for ask in asks:
        assert database.ask(ask) == 1
database.close()
"""


def race(program: str, table: Database) -> list[str]:
    """Runs a program twice at once; what both have printed."""
    root = Path(__file__).parents[4]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", program, table.kind, table.dsn]
    both = [
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=root,
            env=environment,
        )
        for _ in range(2)
    ]
    for each in both:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    outputs = [each.communicate(timeout=120) for each in both]
    assert [each.returncode for each in both] == [0, 0], outputs
    return [out for out, _ in outputs]


def test_two_processes_that_ask_for_the_same_things(table: Database) -> None:
    race(RACE, table)
    assert table.rows("SELECT n FROM t") == [(40,)]
    assert len(table.receipts()) == 40
