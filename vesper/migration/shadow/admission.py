"""Which requests are followed: a coin, drawn before anything runs, under budgets of processor time and memory.

What is not admitted is not sampled, so the coin must know nothing of the request: the chance is the same for each, and
follows from what following has cost lately. What is admitted and then comes to nothing is *unknown*, and is counted.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

_LEAST = 0.001
"""However busy it is, one in a thousand is followed: a node that nothing is known of never moves."""
_WINDOW = 1.0


class _WorkerTime(threading.local):
    """Processor time that worker processes spent for this thread, which no clock of this process measures."""

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
        """For what waits to be followed."""
        self._lock = threading.Lock()
        self._waiting = 0
        self._asked = 0
        self._spent = 0.0
        self._followed = 0
        self._mean: float | None = None
        """What one cost when some were last followed."""
        self._clock = clock
        self._since = clock()
        self._draw = random.Random().random  # one for each process, and salted by the system
        self.chance = 1.0
        self.listeners: list[Callable[[float], None]] = []
        """Told of the chance whenever it was set."""

    def admits(self) -> bool:
        """Draws the coin for one request."""
        self._asked += 1  # a count that is lost between threads moves the chance by nothing
        return self.chance >= 1.0 or self._draw() < self.chance

    def has_room(self, size: int) -> bool:
        """Takes room for what waits to be followed; False where there is none."""
        with self._lock:
            if self._waiting + size > self.most_bytes:
                return False
            self._waiting += size
            return True

    def followed(self, seconds: float, size: int = 0) -> None:
        """One was followed: what it cost, and the room that it leaves."""
        with self._lock:
            self._waiting -= size
            self._followed += 1
            self._spent += seconds

    def fed(self, asked: int, followed: int, seconds: float) -> None:
        """The same of many that somebody else drew for."""
        with self._lock:
            self._asked += asked
            self._followed += followed
            self._spent += seconds

    def adjust(self) -> None:
        """Sets the chance from what following cost since the last time. Called now and then."""
        with self._lock:
            now = self._clock()
            passed = now - self._since
            if passed < _WINDOW:
                return
            if self._followed:
                self._mean = self._spent / self._followed
            # While nothing is asked it stays: what comes after a pause is no cheaper than what came before.
            if self._asked and self._mean is not None:
                wanted = self._asked / passed * self._mean
                chance = 1.0 if wanted <= self._share else self._share / wanted
                # Half of the way: a burst must not swing it.
                self.chance = max(_LEAST, min(1.0, (self.chance + chance) / 2 if chance < 1.0 else 1.0))
            self._asked, self._followed, self._spent, self._since = 0, 0, 0.0, now
        for tell in self.listeners:
            tell(self.chance)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._waiting = 0
        self._draw = random.Random().random
