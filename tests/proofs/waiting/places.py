"""Journals, clocks and worker processes of the proofs of waiting runs."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from vesper.compiler import Compiled, compile_file
from vesper.config.settings import Config, config_from
from vesper.engines.engine import Program
from vesper.engines.registry import ENGINES
from vesper.host.host import Host
from vesper.host.prepared import Prepared
from vesper.journal.journal import Journal, open_journal
from vesper.storage.sources import Sources

HERE = Path(__file__).parent
LEASE_SECONDS = 30.0


def compiled_node(name: str) -> Compiled:
    compiled, bag = compile_file(HERE / f"{name}.vsp")
    assert compiled is not None, bag.sorted()
    return compiled


@dataclass(frozen=True)
class Place:
    """A journal, and the offset of the clock of the processes that use it."""

    kind: str
    dsn: str
    folder: Path
    offset_us: int = 0

    @property
    def sources(self) -> Sources:
        offset_ns = self.offset_us * 1000
        return Sources(now_ns=lambda: time.time_ns() + offset_ns)

    def config(self, threads: int, is_keeping: bool) -> Config:
        return config_from(
            {
                "grants": [{"nodes": ["*"], "allow": ["clock.*", "interrupts.*", "signals.*"]}],
                "journal": {"dsn": self.dsn, "lease": f"{LEASE_SECONDS:g}s"},
                "recovery": {"enabled": is_keeping, "every": "1s"},
                "keeper": {"threads": threads},
            },
            self.folder,
        )

    def journal(self) -> Journal:
        return open_journal(self.dsn, lease_seconds=LEASE_SECONDS, sources=self.sources)

    def host(self, threads: int = 4, is_keeping: bool = True) -> Host:
        return Host(self.config(threads, is_keeping), journal=self.journal(), sources=self.sources)


def fork(work: Callable[[], None]) -> int:
    """Run `work` in a child of this process, which has no threads, and return its id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        work()
        code = 0
    except BaseException:  # noqa: BLE001  # shown, and the exit code says it
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def join(pid: int) -> bool:
    """Wait for a child; True where it succeeded."""
    return os.waitpid(pid, 0)[1] == 0


@cache
def program(name: str, engine: str) -> tuple[Compiled, Program]:
    """Return a loaded node; one that the campaign's process has loaded costs its children nothing."""
    compiled = compiled_node(name)
    return compiled, ENGINES[engine].load(compiled)


def prepare(host: Host, name: str, engine: str) -> Prepared:
    return host.prepare(*program(name, engine), engine)


def keep_until_killed(place: Place, threads: int, name: str, engine: str, ready: int) -> None:
    """Wake and resume runs until this process is killed; write a byte to `ready` when that has begun."""
    host = place.host(threads)
    prepare(host, name, engine)
    host.journal.unfinished(1)
    host.start()
    os.write(ready, b".")
    while True:
        time.sleep(60)


class Workers:
    """Processes that keep waiting runs, killed and replaced at random."""

    def __init__(self, place: Place, count: int, name: str, engine: str, threads: int = 4) -> None:
        reading, writing = os.pipe()
        self._work = partial(keep_until_killed, place, threads, name, engine, writing)
        program(name, engine)
        self.pids = [self._start() for _ in range(count)]
        self.kills = 0
        for _ in range(count):
            os.read(reading, 1)

    def _start(self) -> int:
        return fork(self._work)

    def kill_one(self, number: int) -> None:
        self._kill(number)
        self.kills += 1
        self.pids[number] = self._start()

    def stop(self) -> None:
        for number in range(len(self.pids)):
            self._kill(number)

    def _kill(self, number: int) -> None:
        os.kill(self.pids[number], signal.SIGKILL)
        os.waitpid(self.pids[number], 0)


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
