"""Processes: states, the transitions of the table in docs/spec/kernel.md, and the queue of those that are ready."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tests.proofs.machines.messages import ROOT, process_pb2
from tests.proofs.machines.reference.refusals import NOT_FOUND, PRECONDITION, demand, refuse

NEW = process_pb2.PROCESS_STATE_NEW
READY = process_pb2.PROCESS_STATE_READY
RUNNING = process_pb2.PROCESS_STATE_RUNNING
WAITING = process_pb2.PROCESS_STATE_WAITING
BLOCKED = process_pb2.PROCESS_STATE_BLOCKED
TERMINATED = process_pb2.PROCESS_STATE_TERMINATED
ZOMBIE = process_pb2.PROCESS_STATE_ZOMBIE
STATES = (NEW, READY, RUNNING, WAITING, BLOCKED, TERMINATED, ZOMBIE)
NAMES = ("unspecified", "new", "ready", "running", "waiting", "blocked", "terminated", "zombie")
ENDED = (TERMINATED, ZOMBIE)


def _legal() -> frozenset[tuple[int, int]]:
    """Read the table of transitions."""
    places = {f"`{name.upper()}`": place for place, name in enumerate(NAMES)}
    rows = [line.split("|") for line in (ROOT / "docs" / "spec" / "kernel.md").read_text().splitlines()]
    found = {
        (places[row[1].strip()], place)
        for row in rows
        if len(row) == 5 and row[1].strip() in places
        for name, place in places.items()
        if name in row[3]
    }
    return frozenset(found)


LEGAL = _legal()


_PID = re.compile("p[1-9][0-9]*")


def is_pid(text: str) -> bool:
    return _PID.fullmatch(text) is not None


def check_pid(pid: str) -> None:
    """Refuse a name that no process can have."""
    demand(pid != "", "a process has a pid")
    demand(is_pid(pid), f"no process {pid}", NOT_FOUND)


@dataclass
class Process:
    message: process_pb2.Process
    number: int
    turn: int = 0
    """Grows with each process that becomes ready."""

    @property
    def state(self) -> int:
        return self.message.state

    @property
    def has_ended(self) -> bool:
        return self.message.state in ENDED

    @property
    def lease_end(self) -> int | None:
        return self.message.lease_until_us if self.message.HasField("lease_until_us") else None

    def hold(self, worker: str, until_us: int) -> None:
        """Lease a running process to a worker; a lease never becomes shorter."""
        if self.message.state == RUNNING:
            self.message.worker = worker
            self.message.lease_until_us = max(until_us, self.lease_end or until_us)


@dataclass
class Processes:
    all: dict[str, Process] = field(default_factory=dict)
    requests: dict[str, str] = field(default_factory=dict)
    turns: int = 0

    def get(self, pid: str) -> Process:
        demand(pid != "", "a process has a pid")
        if pid not in self.all:
            refuse(NOT_FOUND, f"no process {pid}")
        return self.all[pid]

    def live(self, pid: str) -> Process:
        process = self.get(pid)
        demand(not process.has_ended, "it has ended", PRECONDITION)
        return process

    def add(self, message: process_pb2.Process, number: int) -> Process:
        process = Process(message, number)
        self.all[message.pid] = process
        self.requests[message.request_id] = message.pid
        return process

    def remove(self, pid: str) -> None:
        del self.requests[self.all.pop(pid).message.request_id]

    def change(self, process: Process, state: process_pb2.ProcessState, now_us: int) -> None:
        """Make a legal transition; what belongs to the state before it is over."""
        message = process.message
        demand((message.state, state) in LEGAL, f"{NAMES[message.state]} to {NAMES[state]}", PRECONDITION)
        message.state, message.changed_us = state, now_us
        message.worker = ""
        message.ClearField("lease_until_us")
        if state == READY:
            self.turns += 1
            process.turn = self.turns
        if state == RUNNING and not message.HasField("started_us"):
            message.started_us = now_us

    def ready(self) -> list[Process]:
        """Return those that are ready, in the order in which they became so."""
        found = [process for process in self.all.values() if process.message.state == READY]
        return sorted(found, key=lambda process: process.turn)

    def next_runnable(self) -> Process | None:
        return min(self.ready(), key=lambda process: process.message.priority, default=None)

    def counts(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for process in self.all.values():
            name = NAMES[process.message.state]
            found[name] = found.get(name, 0) + 1
        return found
