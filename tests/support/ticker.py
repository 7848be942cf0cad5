"""A thread that measures how long other threads keep it from running."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TICK_SECONDS = 0.001


class Ticker:
    """Wakes every millisecond and keeps the longest delay."""

    def __init__(self) -> None:
        self.longest = 0.0
        """Seconds between two ticks, beyond the tick itself."""
        self._is_done = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def _tick(self) -> None:
        last = time.perf_counter()
        while not self._is_done.is_set():
            time.sleep(TICK_SECONDS)
            now = time.perf_counter()
            self.longest = max(self.longest, now - last - TICK_SECONDS)
            last = now

    def start(self) -> None:
        self._thread.start()
        time.sleep(20 * TICK_SECONDS)
        self.longest = 0.0

    def stop(self) -> float:
        self._is_done.set()
        self._thread.join()
        return self.longest


@contextmanager
def quick_switches() -> Iterator[None]:
    """Let a waiting thread have the GIL soon, so that only native code can keep it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def longest_stall(work: Callable[[], object]) -> float:
    """Return the longest delay of another thread, in seconds, while `work` runs."""
    ticker = Ticker()
    with quick_switches():
        ticker.start()
        try:
            work()
        finally:
            longest = ticker.stop()
    return longest


def first_hold(run: Callable[[], object]) -> float:
    """Return for how long `run` keeps the GIL from its start, in seconds of processor time of this thread.

    A thread that waits for the GIL gets it only where native code releases it, and then reads the processor time of
    this thread. The load of the machine therefore hardly counts.
    """
    clock = time.pthread_getcpuclockid(threading.get_ident())
    is_begun, got = threading.Lock(), list[float]()
    is_begun.acquire()

    def wait() -> None:
        is_begun.acquire()
        got.append(time.clock_gettime(clock))

    waiter = threading.Thread(target=wait, daemon=True)
    waiter.start()
    time.sleep(10 * TICK_SECONDS)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        begun = time.clock_gettime(clock)
        is_begun.release()
        run()
        ended = time.clock_gettime(clock)
    finally:
        sys.setswitchinterval(before)
    waiter.join()
    return min(got[0], ended) - begun


def best_hold(run: Callable[[], object], within: float, attempts: int = 20) -> float:
    """Return the shortest of some measurements, the first one within the bound: the waiting thread may wake late."""
    best = float("inf")
    for _ in range(attempts):
        best = min(best, first_hold(run))
        if best <= within:
            break
    return best


def best_stall(work: Callable[[], object], within: float, attempts: int = 6) -> float:
    """Return the shortest of some measurements, the first one within the bound: other processes delay threads too."""
    best = float("inf")
    for _ in range(attempts):
        best = min(best, longest_stall(work))
        if best <= within:
            break
    return best
