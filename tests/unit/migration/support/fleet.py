"""Several processes that route one node over one store, and the time in which all fall back after a fault.

    $ python -m tests.unit.migration.support.fleet --processes 8 --store sqlite

Each process calls the node in a loop. In one of them the direct engine begins to fail. The printed time is from that
call to the moment at which the last process runs on Python alone; the other processes learn of it from the store only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[4]
sys.path.insert(0, str(ROOT))

from tests.support import servers  # noqa: E402
from tests.unit.migration.support.routed import Misbehaving, compiled, payment, put_into, raising  # noqa: E402
from vesper.config.settings import config_from  # noqa: E402
from vesper.migration.compare.paths import PathNote, ending_of  # noqa: E402
from vesper.migration.control.modes import Mode  # noqa: E402
from vesper.migration.router.routes import Routes  # noqa: E402

_WAIT = 60.0


class Broken(Routes):
    """Routes whose direct engine fails on request."""

    def _direct(self, compiled: Any) -> Any:
        self.engine = Misbehaving(compiled)
        return self.engine


def work(store: str, folder: str) -> None:
    """Run one process, which prints each new mode with its time."""
    routes = Broken(config_from({"migration": {"store": store}}, Path(folder)))
    program = routes.program(compiled())
    program.chooser.draw = lambda: 0.5  # never in the sample: it learns of a fault from the store, or by having it

    def listen() -> None:
        for _ in sys.stdin:
            routes.engine.does = raising

    threading.Thread(target=listen, daemon=True).start()
    said: Mode | None = None
    while True:
        mode = program.live.local.mode
        if mode is not said:
            print(json.dumps({"mode": mode.value, "at": time.monotonic()}), flush=True)
            said = mode
        program.call(payment())
        time.sleep(0.001)


class Fleet:
    def __init__(self, size: int, store: str, folder: Path) -> None:
        command = [sys.executable, "-m", "tests.unit.migration.support.fleet", "--work", store, str(folder)]
        self._processes = [
            subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(size)
        ]
        self._said: list[dict[str, float]] = [{} for _ in range(size)]
        self._changed = threading.Condition()
        for number, process in enumerate(self._processes):
            threading.Thread(target=self._listen, args=(number, process), daemon=True).start()

    def _listen(self, number: int, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            found = json.loads(line)
            with self._changed:
                self._said[number] = {found["mode"]: found["at"]}
                self._changed.notify_all()

    def all_in(self, mode: Mode) -> list[float]:
        """Wait until every process is in a mode; return when each entered it."""
        with self._changed:
            is_so = self._changed.wait_for(lambda: all(mode.value in said for said in self._said), _WAIT)
            assert is_so, f"not all came into {mode.value}: {self._said}"
            return [said[mode.value] for said in self._said]

    def break_one(self) -> None:
        process = self._processes[0]
        assert process.stdin is not None
        process.stdin.write("break\n")
        process.stdin.flush()

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def store_dsn(kind: str, folder: Path) -> Iterator[str]:
    """Start a store of this kind."""
    if kind == "sqlite":
        yield f"sqlite:{folder / 'migration.db'}"
        return
    server = servers.Redis() if kind == "redis" else servers.Postgres()
    try:
        yield server.url if isinstance(server, servers.Redis) else server.new_database()
    finally:
        server.stop()
        server.remove()


def fall_back(kind: str, size: int) -> float:
    """Return the seconds from the first process that fell back to the last."""
    with tempfile.TemporaryDirectory(prefix="vesper-fleet-") as name, store_dsn(kind, Path(name)) as dsn:
        folder = Path(name) / "here"
        folder.mkdir()
        routes = Routes(config_from({"migration": {"store": dsn}}, folder))
        program = routes.program(compiled())
        ran = Misbehaving(compiled()).call_pathed(payment(), b"k" * 16)
        fleet = Fleet(size, dsn, folder)
        try:
            put_into(routes, program, Mode.DIRECT_ONLY, PathNote(ran.path, (), ending_of(ran.outcome)))
            fleet.all_in(Mode.DIRECT_ONLY)
            fleet.break_one()
            fell = fleet.all_in(Mode.PYTHON_ONLY)
            return max(fell) - fell[0]
        finally:
            fleet.close()
            routes.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--store", choices=["sqlite", "redis", "postgres"], default="sqlite")
    parser.add_argument("--work", nargs=2, metavar=("STORE", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(*options.work)
        return
    print(f"{options.store}, {options.processes} processes: {fall_back(options.store, options.processes):.3f} s")


if __name__ == "__main__":
    main()
