"""Calls with a time limit: each runs in a thread for which its caller waits.

Python cannot end a thread. A call that exceeds its time continues in its thread, and occupies one of the threads until
it ends; when all are occupied the next call is refused, not queued. The threads are daemons: a call that never ends
does not keep the process from ending.
"""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from vesper.storage.per_process import PerProcess

_Result = TypeVar("_Result")
MAX_THREADS: Final = 64
IDLE_SECONDS: Final = 60.0


class StillRunning(Exception):
    """The time is up. The call continues, and its result is dropped."""


class NoThread(Exception):
    """The call was not made: calls under way, or over their time, occupy all threads."""


class _Job:
    def __init__(self, call: Callable[[], object]) -> None:
        self.call = call
        self.is_over = threading.Event()
        self.result: object = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self.call()
        except BaseException as error:  # noqa: BLE001  # the caller's thread raises it
            self.error = error
        finally:
            self.is_over.set()


class _Threads:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._free = 0
        """Threads that wait for a job, less the jobs that wait for a thread."""
        self._count = 0

    def submit(self, job: _Job) -> None:
        with self._lock:
            if self._free == 0:
                if self._count == self._limit:
                    raise NoThread
                threading.Thread(target=self._work, name="vesper-effect", daemon=True).start()
                self._count += 1
                self._free += 1
            self._free -= 1
        self._jobs.put(job)

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if self._free > 0:  # or else a job is on its way to this thread
                        self._free -= 1
                        self._count -= 1
                        return
                continue
            job.run()
            del job  # an idle thread keeps nothing alive
            with self._lock:
                self._free += 1


class WorkerThreads:
    """Runs calls with a time limit. Safe in threads and after a fork."""

    def __init__(self, limit: int = MAX_THREADS) -> None:
        self._threads = PerProcess(lambda: _Threads(limit))

    def run(self, call: Callable[[], _Result], seconds: float) -> _Result:
        """Return or raise the outcome of the call. Raises `StillRunning` or `NoThread`.

        The call sees the caller's context variables.
        """
        context = contextvars.copy_context()
        job = _Job(lambda: context.run(call))
        self._threads.get().submit(job)
        if not job.is_over.wait(max(0.0, seconds)):
            raise StillRunning
        if job.error is not None:
            raise job.error
        result: _Result = job.result  # type: ignore[assignment]  # what `call` gave
        return result
