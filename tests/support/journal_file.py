"""The SQLite file of a journal, read and changed in a process of its own.

The process of a test may have the journal open in another SQLite library. Two libraries in one process break the locks
of a file: closing it in one releases those of the other.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_SECONDS = 60
_PROGRAM = """
import ast, sqlite3, sys
path, statements = ast.literal_eval(sys.stdin.read())
connection = sqlite3.connect(path, timeout=30)
found = []
with connection:
    for sql, values in statements:
        found.append(connection.execute(sql, values).fetchall())
connection.close()
print(repr(found))
"""


def run_statements(path: Path, *statements: tuple[str, Sequence[object]]) -> list[list[tuple[object, ...]]]:
    """Run statements in one transaction and return the rows of each. Values are numbers, texts, bytes and None."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        input=repr((str(path), [(sql, tuple(values)) for sql, values in statements])),
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    found: list[list[tuple[object, ...]]] = ast.literal_eval(done.stdout)
    return found


def run_statement(path: Path, sql: str, values: Sequence[object] = ()) -> list[tuple[object, ...]]:
    """Run one statement and return its rows."""
    return run_statements(path, (sql, values))[0]


def stored_bytes(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return every row of the journal's tables, but for names of processes and times of migrations."""
    names = [str(name) for (name,) in run_statement(path, "SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {}
    for table in sorted(set(names) - {"vesper_migrations", "sqlite_sequence"}):
        columns = [str(each[1]) for each in run_statement(path, f"PRAGMA table_info({table})")]
        wanted = ", ".join(each for each in columns if each != "owner")
        found[table] = run_statement(path, f"SELECT {wanted} FROM {table} ORDER BY 1, 2")  # noqa: S608
    return found
