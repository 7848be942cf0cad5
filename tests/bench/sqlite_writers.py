"""Latency of writers that share one SQLite file: `python -m tests.bench.sqlite_writers FOLDER`.

Eight threads in each of two processes write rows through the performer of `database_write`. Each load runs for some
seconds: `busy` threads write without a pause, `paced` threads compute for a millisecond and pause, as requests of a
service do, and `lone` is one paced thread beside eight busy ones of another process.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.unit.effects.database.databases import Database, sqlite_at, write

SECONDS = 5.0
LOADS = {"busy": ("busy8", "busy8"), "paced": ("paced8", "paced8"), "lone": ("paced1", "busy8")}
_ADD = "INSERT INTO t (id) VALUES (:id)"


def _write(database: Database, number: int) -> None:
    database.ask(write(_ADD, execution=f"run-{number}", path="add", id=number))


def _run_thread(started: threading.Barrier, database: Database, first: int, is_paced: bool, took: list[float]) -> None:
    number = first
    _write(database, number)  # opens a connection
    started.wait()
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if is_paced:
            time.sleep(random.uniform(0.0, 0.1))
            until = time.monotonic() + 0.001
            while time.monotonic() < until:
                pass
        number += 1
        began = time.monotonic()
        _write(database, number)
        took.append(time.monotonic() - began)


def run_process(folder: Path, load: str, place: int) -> None:
    """Print the latencies in microseconds of all threads."""
    database = sqlite_at(folder, busy_timeout="25s", pool_size=8)
    kind, threads = load[:-1], int(load[-1])
    took: list[list[float]] = [[] for _ in range(threads)]
    started = threading.Barrier(threads)
    running = [
        threading.Thread(
            target=_run_thread, args=(started, database, (place * 10 + each) * 10**9, kind == "paced", took[each])
        )
        for each in range(threads)
    ]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    database.close()
    print(*(round(each * 1e6) for of_thread in took for each in of_thread))


def measure(folder: Path, name: str) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as made:
        database = sqlite_at(Path(made))
        database.run("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        database.close()
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.bench.sqlite_writers", made, load, str(place)],
                stdout=subprocess.PIPE,
                text=True,
            )
            for place, load in enumerate(LOADS[name])
        ]
        for load, process in zip(LOADS[name], processes, strict=True):
            text, _ = process.communicate()
            took = sorted(map(int, text.split()))
            p50, p99 = took[len(took) // 2] / 1000, took[len(took) * 99 // 100] / 1000
            rate = len(took) / SECONDS
            print(f"{name:6} {load}: p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {took[-1] / 1000:.0f} ms, {rate:.0f}/s")


if __name__ == "__main__":
    if len(sys.argv) == 4:
        run_process(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    else:
        for each in LOADS:
            measure(Path(sys.argv[1]), each)
