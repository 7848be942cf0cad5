"""Processes with four scheduled jobs on one journal, a clock that the campaign sets, and kills at chosen points."""

from __future__ import annotations

import logging
import mmap
import os
import signal
import sqlite3
import struct
import sys
import time
import traceback
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import vesper
from tests.proofs.schedules.cron_oracle import Oracle
from vesper.config.settings import Config, config_from
from vesper.host.host import Host
from vesper.host.run_context import RunContext
from vesper.journal.errors import JournalError
from vesper.language.work_bindings import ScheduleField
from vesper.schedules import schedules as module
from vesper.schedules.schedules import Schedules
from vesper.schedules.timetable import ScheduleRow
from vesper.storage.sources import Sources

POINTS = ("decide.before", "decide.after", "begin.before", "begin.after", "settle.before", "settle.after")
TABLE = "CREATE TABLE ledger (job TEXT NOT NULL, due TEXT NOT NULL)"
_JOB = """\
node_id: {name}_v1
type: scheduled_job
intent: Write down each due time

inputs:
  scheduled_at: timestamp

outputs:
  success: {{written: integer}}

schedule: {{cron: "{cron}", zone: {zone}{jitter}, overlap: {overlap}, missed: {missed}}}

flow:
  - step: write
    operation: database_write
    table: ledger
    data: {{job: "'{name}'", due: text(scheduled_at)}}
    effect: txn
  - return: {{written: 1}}

security:
  capabilities_required: [database.write.ledger]
"""


@dataclass(frozen=True)
class Job:
    """A job, and the values of its cron text for the oracle."""

    name: str
    cron: str
    minutes: frozenset[int]
    hours: frozenset[int]
    overlap: str
    missed: str
    jitter_seconds: int = 0

    def text(self, zone: str) -> str:
        return _JOB.format(
            name=self.name,
            cron=self.cron,
            zone=zone,
            jitter=f", jitter: {self.jitter_seconds}s" if self.jitter_seconds else "",
            overlap=self.overlap,
            missed=self.missed,
        )

    def oracle(self, zone: str) -> Oracle:
        days, months, weekdays = set(range(1, 32)), set(range(1, 13)), set(range(7))
        return Oracle([set(self.minutes), set(self.hours), days, months, weekdays], zone)


@dataclass
class Place:
    """A journal and a database of one store."""

    kind: str
    database: str
    journal: str
    folder: Path

    def config(self) -> Config:
        return config_from(
            {
                "grants": [{"nodes": ["*"], "allow": ["database.*"]}],
                "databases": {"main": {"dsn": self.database}},
                "journal": {"dsn": self.journal, "lease": "10s"},
                "recovery": {"every": "300ms"},
            },
            self.folder,
        )

    def written(self) -> list[tuple[str, str]]:
        """Return the job and the due time of every row, with repeats."""
        sql = "SELECT job, due FROM ledger"
        if self.kind == "sqlite":
            with closing(sqlite3.connect(self.database.removeprefix("sqlite:"), timeout=30)) as connection:
                return [(job, due) for job, due in connection.execute(sql)]
        import psycopg

        with psycopg.connect(self.database) as postgres:
            return [(job, due) for job, due in postgres.execute(sql)]


def sqlite_place(folder: Path) -> Place:
    with closing(sqlite3.connect(folder / "ledger.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(TABLE)
    return Place("sqlite", f"sqlite:{folder / 'ledger.db'}", f"sqlite:{folder / 'journal.db'}", folder)


def postgres_place(dsn: str, folder: Path) -> Place:
    import psycopg

    with psycopg.connect(dsn) as postgres:
        postgres.execute(TABLE.encode())
    return Place("postgres", dsn, dsn, folder)


class Shared:
    """The clock of all processes, and the point of the next kill, in memory that forks share."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 16)

    @property
    def now_ns(self) -> int:
        return int(struct.unpack_from("q", self._memory, 0)[0])

    @now_ns.setter
    def now_ns(self, value: int) -> None:
        struct.pack_into("q", self._memory, 0, value)

    def arm(self, name: str | None) -> None:
        """Let the process that comes to this point first die there; None lets all live."""
        struct.pack_into("q", self._memory, 8, 0 if name is None else POINTS.index(name) + 1)

    def passes(self, name: str) -> None:
        """Die here, where that was asked for."""
        if struct.unpack_from("q", self._memory, 8)[0] == POINTS.index(name) + 1:
            self.arm(None)
            os.kill(os.getpid(), signal.SIGKILL)

    def sources(self) -> Sources:
        return Sources(now_ns=lambda: self.now_ns)


def load_jobs(host: Host, folder: Path) -> list[list[Any]]:
    """Return the jobs of a folder on each engine, loaded before processes are forked."""
    paths = sorted(folder.glob("*.vsp"))
    jobs = [[vesper.load(path, host=host, engine=engine) for path in paths] for engine in ("python", "interp")]
    for each in (*jobs[0], *jobs[1]):
        each._prepare(host)
    return jobs


def start(host: Host, shared: Shared, jobs: list[Any], has_keys: bool) -> int:
    """Fork a process that serves jobs; return its id."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        _serve(host, shared, jobs, has_keys, parent)
    except BaseException:  # noqa: BLE001  # the parent sees the code
        traceback.print_exc(file=sys.stderr)
    os._exit(1)


def _serve(host: Host, shared: Shared, jobs: list[Any], has_keys: bool, parent: int) -> None:
    put, begin = module._Job._put, module.begin_run

    def dying_put(job: Any, row: ScheduleRow, due_us: int, expected_us: int | None) -> int | None:
        name = "decide" if row.pending else "settle"
        shared.passes(f"{name}.before")
        found = put(job, row, due_us, expected_us)
        shared.passes(f"{name}.after")
        return found

    def dying_begin(host: Host, node: Any, field: ScheduleField, time_us: int, context: RunContext) -> str:
        shared.passes("begin.before")
        execution = begin(host, node, field, time_us, context if has_keys else RunContext(key=os.urandom(8).hex()))
        shared.passes("begin.after")
        return execution

    module._Job._put = dying_put  # type: ignore[assignment, method-assign]  # it dies there
    module.begin_run = dying_begin
    module.store_now_us = lambda host: shared.now_ns // 1_000  # noqa: ARG005  # a server has a clock of its own
    logging.disable(logging.WARNING)  # leases end when the clock jumps
    schedules = Schedules(host, jobs)
    host.start()
    while os.getppid() == parent:
        with suppress(JournalError):  # a stopped process holds the lock
            schedules.step()
        time.sleep(0.02)
    os._exit(0)
