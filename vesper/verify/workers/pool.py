"""A pool of workers: hands out tasks, watches the workers, replaces those that died."""

from __future__ import annotations

from multiprocessing.connection import Connection, wait
from typing import Protocol

from vesper.verify.workers.crashes import Crash
from vesper.verify.workers.process import WorkerLimits, WorkerProcess
from vesper.verify.workers.tasks import Finished, Message, Raised, Task, Workload
from vesper.verify.workers.watch import Watch
from vesper.verify.workers.worker import Worker

_POLL_SECONDS = 0.1


class Schedule(Protocol):
    """The order of tasks, and the receiver of their results."""

    def next_task(self, worker: int) -> Task | None:
        """Return the next task of a worker; None if there is none at present."""

    def receive(self, worker: int, task: Task, message: Message) -> None:
        """Take a message about a task that goes on."""

    def finish(self, worker: int, task: Task) -> None:
        """Note that a task has ended."""

    def fail(self, worker: int, task: Task, crash: Crash) -> None:
        """Note that a task ended its worker, or was ended with it."""


class Pool:
    def __init__(self, schedule: Schedule, work: Workload, workers: int, limits: WorkerLimits) -> None:
        self._schedule = schedule
        self._work = work
        self._limits = limits
        self._processes: dict[int, WorkerProcess] = {}
        self._tasks: dict[int, Task] = {}
        self._workers = workers

    def run(self) -> None:
        """Run tasks until there are none; however it ends, no worker remains."""
        try:
            while self._assign():
                links = {self._processes[worker].link: worker for worker in self._tasks}
                for link in wait(list(links), _POLL_SECONDS):
                    assert isinstance(link, Connection)
                    self._receive(links[link])
                for worker in list(self._tasks):
                    ending = self._processes[worker].overrun()
                    if ending is not None:
                        self._fail(worker, self._processes.pop(worker).crash(ending))
        finally:
            for process in self._processes.values():
                process.stop()

    def _assign(self) -> bool:
        """Give every idle worker a task; return whether some worker has one."""
        for worker in range(self._workers):
            if worker in self._tasks:
                continue
            task = self._schedule.next_task(worker)
            if task is not None:
                self._tasks[worker] = task
                self._send(worker, task)
        return bool(self._tasks)

    def _send(self, worker: int, task: Task) -> None:
        process = self._processes.get(worker) or self._start(worker)
        try:
            process.link.send(task)
        except BrokenPipeError:
            # It ended while it had nothing to do, so the task is not to blame.
            self._processes.pop(worker).stop()
            self._start(worker).link.send(task)

    def _start(self, worker: int) -> WorkerProcess:
        def serve(link: Connection, watch: Watch) -> None:
            Worker(self._work, self._limits, link, watch).serve()

        others = [each.link for each in self._processes.values()]
        process = self._processes[worker] = WorkerProcess(serve, self._limits, others)
        return process

    def _receive(self, worker: int) -> None:
        process = self._processes[worker]
        try:
            message: Message = process.link.recv()
        except (EOFError, OSError):
            self._fail(worker, self._processes.pop(worker).crash())
            return
        match message:
            case Finished():
                if process.is_grown():
                    self._processes.pop(worker).stop()
                self._schedule.finish(worker, self._tasks.pop(worker))
            case Raised(ending, errors):
                # What the exception left in the process is unknown.
                self._fail(worker, self._processes.pop(worker).crash(ending, errors))
            case _:
                self._schedule.receive(worker, self._tasks[worker], message)

    def _fail(self, worker: int, crash: Crash) -> None:
        self._schedule.fail(worker, self._tasks.pop(worker), crash)
