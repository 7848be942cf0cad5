"""Admission of requests to shadow runs: a random draw under budgets of processor time and memory.

The draw precedes the execution and must not depend on the request, so that admitted requests are a fair sample: the
chance is the same for each, and follows from the recent cost of shadow runs. An admitted request without a verdict
counts as *unknown*.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

_MIN_CHANCE = 0.001
"""Minimum chance of admission. Without any evidence a node would never rise."""
_WINDOW_SECONDS = 1.0
_MAX_BUSY_SHARE = 0.5
"""Share of the time for which the shadow queue may be busy, unless the share of the processor is larger. Its runs wait
for the GIL of busy callers, which costs no processor time, and a queue that grows loses executions."""


class _WorkerTime(threading.local):
    """Processor time that workers spent for this thread, which no clock of this process measures."""

    seconds = 0.0


_WORKER_TIME = _WorkerTime()


def add_worker_seconds(seconds: float) -> None:
    _WORKER_TIME.seconds += seconds


def take_worker_seconds() -> float:
    """Return and reset the seconds that workers spent for this thread."""
    found, _WORKER_TIME.seconds = _WORKER_TIME.seconds, 0.0
    return found


class Admission:
    def __init__(self, cpu_share: float, most_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._share = cpu_share
        self.most_bytes = most_bytes
        """Maximum bytes of queued executions."""
        self._lock = threading.Lock()
        self._waiting = 0
        self._asked = 0
        self._spent = 0.0
        self._elapsed = 0.0
        self._followed = 0
        self._mean: float | None = None
        """Mean cost of a shadow run in seconds, when some were last measured."""
        self._mean_elapsed = 0.0
        """Mean time of a shadow run in the queue's thread."""
        self._clock = clock
        self._since = clock()
        self._draw = random.Random().random  # one per process, seeded by the system
        self.chance = 1.0
        self.listeners: list[Callable[[float], None]] = []
        """Called with the chance whenever it is set."""

    def admits(self) -> bool:
        """Draw for one request."""
        self._asked += 1  # a count that threads race for does not change the chance noticeably
        return self.chance >= 1.0 or self._draw() < self.chance

    def has_room(self, size: int) -> bool:
        """Reserve room in the queue; False where there is none."""
        with self._lock:
            if self._waiting + size > self.most_bytes:
                return False
            self._waiting += size
            return True

    def add_run(self, seconds: float, size: int = 0, elapsed: float = 0.0) -> None:
        """Record the cost and time of one shadow run, and free its room."""
        with self._lock:
            self._waiting -= size
            self._followed += 1
            self._spent += seconds
            self._elapsed += elapsed

    def add_native_runs(self, asked: int, followed: int, seconds: float) -> None:
        """Record the requests and the cost of shadow runs in the extension."""
        with self._lock:
            self._asked += asked
            self._followed += followed
            self._spent += seconds

    def adjust(self) -> None:
        """Set the chance from the cost since the last call. Called periodically."""
        with self._lock:
            now = self._clock()
            passed = now - self._since
            if passed < _WINDOW_SECONDS:
                return
            if self._followed:
                self._mean = self._spent / self._followed
                self._mean_elapsed = self._elapsed / self._followed
            # Without requests the chance stays: the runs after a pause cost as much as those before.
            if self._asked and self._mean is not None:
                busy_share = max(_MAX_BUSY_SHARE, self._share)
                wanted = self._asked / passed * max(self._mean / self._share, self._mean_elapsed / busy_share)
                chance = 1.0 if wanted <= 1.0 else 1.0 / wanted
                # Half of the way, to damp bursts.
                self.chance = max(_MIN_CHANCE, min(1.0, (self.chance + chance) / 2 if chance < 1.0 else 1.0))
            self._asked, self._followed, self._spent, self._elapsed, self._since = 0, 0, 0.0, 0.0, now
        for tell in self.listeners:
            tell(self.chance)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._waiting = 0
        self._draw = random.Random().random
