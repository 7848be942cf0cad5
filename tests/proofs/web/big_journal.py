"""Make a journal of many small runs, as quickly as SQLite takes rows.

    python -m tests.proofs.web.big_journal FOLDER --runs 1000000
    python -m tests.proofs.web.big_journal FOLDER --measure

The Host makes runs of five nodes that ended, one in doubt and one left by a dead process. The others are copies with an
id, times and a hash chain of their own, so that each can be read and verified. One in 100,000 is in doubt, one left.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import re
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

PLACES = 1 << 31
"""Places of the rows of one run (docs/spec/journal.md)."""
_NODES = 5
_RARE = 100_000
_STEP_US = 250_000
"""Time between the starts of two runs."""
_AUDIT_SHARE = 10
"""One in so many runs has a line in the audit log."""
_EXECUTIONS = (
    "id, execution, node_id, semantic_hash, status, outcome, owner, fence, lease_until_us, started_us, updated_us, "
    "engine, is_joined, is_sensitive, is_synced, head_seq, head_hash"
)
_INDEXES = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name LIKE 'vesper_%'"
_ORDER = "ORDER BY started_us DESC, id DESC LIMIT 50"
_RUNS = "SELECT * FROM vesper_executions WHERE"
_LEFT = "status = 'running' AND is_joined = 0 AND id > 0 ORDER BY id LIMIT 1000"
_STATEMENTS: tuple[tuple[str, str, tuple[object, ...]], ...] = (
    ("newest", f"{_RUNS} 1 = 1 {_ORDER}", ()),
    ("in doubt, as sent", f"{_RUNS} 1 = 1 AND status = ? {_ORDER}", ("in_doubt",)),
    ("in doubt, with the index", f"{_RUNS} status <> 'ended' AND status = ? {_ORDER}", ("in_doubt",)),
    ("unfinished, as sent", f"{_RUNS} {_LEFT}", ()),
    ("unfinished, with the index", f"{_RUNS} status <> 'ended' AND {_LEFT}", ()),
    ("one node, as sent", f"{_RUNS} 1 = 1 AND node_id = ? {_ORDER}", ("charge_v1",)),
    ("ids", "SELECT execution FROM vesper_executions WHERE execution >= ? ORDER BY execution LIMIT 1000", ("0",)),
    ("audit", "SELECT seq, line, hash FROM vesper_audit WHERE seq > ? ORDER BY seq LIMIT 1000", (1_000,)),
)
"""Statements of `vesper-host/src/journal/overview.rs`, and two with the condition of the partial index."""
_PAGES = (
    *("/journal", "/alerts", "/audit", "/audit?text=nowhere", "/audit?node=charge_v1", "/executions"),
    *("/executions?node=charge_v1", "/executions?result=failed", "/executions?result=in+doubt", "/"),
)
_AT = re.compile(rb"\b1[0-9]{15}\b")


@dataclass(frozen=True, slots=True)
class Template:
    """A run that the Host made: its row, and the lines of its commits."""

    row: dict[str, object]
    commits: list[tuple[int, bytes]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--measure", action="store_true", help="Read the pages of a journal that was made before.")
    options = parser.parse_args()
    if options.measure:
        measure(options.folder.resolve())
        return
    began = time.perf_counter()
    path = make_big_journal(options.folder, options.runs)
    size = path.stat().st_size / 1e6
    print(f"{options.runs:,} runs in {path}: {size:,.0f} MB, {time.perf_counter() - began:.1f} s")


def measure(folder: Path) -> None:
    """Print the plans of the journal's statements, then the processor time of each page."""
    statements = "import sys; from tests.proofs.web.big_journal import print_plans; print_plans(sys.argv[1])"
    subprocess.run([sys.executable, "-c", statements, str(folder / "journal.db")], check=True)
    from tests.support.dashboard import client_of
    from vesper.config.settings import read_config

    with client_of(read_config(folder / "vesper.toml")) as client:
        for path in _PAGES:
            took = []
            for _ in range(4):
                began = time.process_time()
                assert client.get(path).status_code == 200, path
                took.append((time.process_time() - began) * 1000)
            print(f"{path:<32} first {took[0]:8.1f} ms of processor, then {min(took[1:]):6.1f}")


def print_plans(path: str) -> None:
    """Print how SQLite answers each statement, and its processor time."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        for name, sql, values in _STATEMENTS:
            plan = "; ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values))
            began = time.process_time()
            rows = len(connection.execute(sql, values).fetchall())
            print(f"{name:<28} {(time.process_time() - began) * 1000:7.1f} ms {rows:5} rows  {plan}")


def make_big_journal(folder: Path, runs: int) -> Path:
    """Make `vesper.toml` and `journal.db` in the folder; return the path of the journal."""
    folder.mkdir(parents=True, exist_ok=True)
    # A process of its own: two SQLite libraries in one process break the locks of a file.
    process = multiprocessing.get_context("spawn").Process(target=_make_templates, args=(folder.resolve(),))
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"the first runs could not be made: exit code {process.exitcode}")
    path = folder / "journal.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        _fill(connection, runs)
    return path


def _make_templates(folder: Path) -> None:
    from tests.support.journalled import a_place, node_text

    with a_place(folder, "sqlite:journal.db") as place:
        for number in range(1, 1 + _NODES):
            place.run(node_text(f"charge_v{number}", audit="basic"))
        place.in_doubt(node_text())
        place.left(node_text())


def _fill(connection: sqlite3.Connection, runs: int) -> None:
    for pragma in ("journal_mode = DELETE", "synchronous = OFF", "cache_size = -400000"):
        connection.execute(f"PRAGMA {pragma}")
    *ended, doubtful, left = _templates(connection)
    first = int(connection.execute("SELECT MAX(id) FROM vesper_executions").fetchone()[0]) + 1
    now_us = time.time_ns() // 1000
    indexes = connection.execute(_INDEXES).fetchall()
    connection.execute("BEGIN")
    for name, _ in indexes:
        connection.execute(f"DROP INDEX {name}")
    for start in range(0, runs, 10_000):
        rows, commits = [], []
        for number in range(start, min(start + 10_000, runs)):
            rest = number % _RARE
            is_rare = rest in (_RARE // 2, _RARE // 4)
            template = (doubtful if rest == _RARE // 2 else left) if is_rare else ended[number % _NODES]
            started_us = now_us - (runs - number) * _STEP_US
            row, lines = _copy(template, first + number, started_us)
            rows.append(row)
            commits += lines
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO vesper_executions ({_EXECUTIONS}) VALUES ({marks})", rows)  # noqa: S608  # names of this file
        connection.executemany("INSERT INTO vesper_commits (place, lines, hashes) VALUES (?, ?, ?)", commits)
    _fill_audit(connection, runs // _AUDIT_SHARE)
    for _, sql in indexes:
        connection.execute(sql)
    connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode = WAL")


def _templates(connection: sqlite3.Connection) -> Iterator[Template]:
    names = [each.strip() for each in _EXECUTIONS.split(",")]
    for values in connection.execute(f"SELECT {_EXECUTIONS} FROM vesper_executions ORDER BY id").fetchall():  # noqa: S608  # names of this file
        row = dict(zip(names, values, strict=True))
        places = row["id"] * PLACES, (row["id"] + 1) * PLACES
        sql = "SELECT place, lines FROM vesper_commits WHERE place >= ? AND place < ? ORDER BY place"
        commits = [(place - places[0], bytes(lines)) for place, lines in connection.execute(sql, places)]
        yield Template(row, commits)


def _copy(template: Template, number: int, started_us: int) -> tuple[list[object], list[tuple[int, bytes, bytes]]]:
    old = template.row
    assert isinstance(old["started_us"], int)
    shift = started_us - old["started_us"]
    execution = str(uuid.UUID(int=(started_us // 1000) << 80 | 0x7000_8000 << 48 | number))
    last = hashlib.sha256(b"vesper journal 1\n" + execution.encode()).digest()
    commits = []
    for place, lines in template.commits:
        moved = _AT.sub(lambda found: b"%d" % (int(found[0]) + shift), lines)
        hashes = b""
        for line in moved.split(b"\n"):
            last = hashlib.sha256(last + line).digest()
            hashes += last
        commits.append((number * PLACES + place, moved, hashes))
    times = {name: int(str(old[name])) + shift for name in ("started_us", "updated_us")}
    row = {**old, **times, "id": number, "execution": execution, "head_hash": last}
    return list(row.values()), commits


def _fill_audit(connection: sqlite3.Connection, lines: int) -> None:
    count, last = connection.execute("SELECT count, hash FROM vesper_audit_head").fetchone()
    template = bytes(connection.execute("SELECT line FROM vesper_audit WHERE seq = ?", (count,)).fetchone()[0])
    rows = []
    for seq in range(count + 1, count + 1 + lines):
        line = template.replace(b'"seq":%d' % count, b'"seq":%d' % seq)
        last = hashlib.sha256(last + line).digest()
        rows.append((seq, line, last))
    connection.executemany("INSERT INTO vesper_audit (seq, line, hash) VALUES (?, ?, ?)", rows)
    connection.execute("UPDATE vesper_audit_head SET count = ?, hash = ?", (count + lines, last))


if __name__ == "__main__":
    main()
