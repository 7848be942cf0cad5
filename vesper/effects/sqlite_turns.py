"""Whose turn it is to write to an SQLite file, among the threads of this process.

SQLite tells nobody that a file is free: who waits sleeps, and looks again. Here one who is done writing wakes the one
who has waited longest, and whoever comes newly lets that one go first (docs/adr/0037).

Nobody owns anything. A turn is a moment that passes by itself, and a place in the queue is passed over where nobody
stands in it: a thread that is interrupted or gone, or that a fork left behind, makes others wait for milliseconds. Who
is woken by nobody, because another process writes, looks again by itself.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_NAPS: Final = (0.002, 0.005, 0.010, 0.020)
"""So long one sleeps whom nobody wakes; the last of them again and again."""
_TURN: Final = 0.001
"""So long one may go on writing before another is woken: to pass the file on takes longer than to write a little."""
_KEPT: Final = 0.005
"""So long the file is kept for the one who was woken: it may have to wait for Python's lock."""


class Turns:
    def __init__(self) -> None:
        self._queue: deque[threading.Lock] = deque()
        """Who waits, each at a lock that is taken until it is woken; the first has waited longest."""
        self._kept_until = 0.0
        self._passed_on = 0.0

    def take(self, begin: Callable[[], bool], left: Callable[[], float]) -> bool:
        """Has `begin` try, which says whether it could, until it could; False when nothing is `left` of the time."""
        if not self._is_kept() and begin():
            return True
        place = self._joined(is_first=False)
        naps = iter(_NAPS)
        try:
            while (seconds := left()) > 0:
                is_woken = place.acquire(timeout=min(next(naps, _NAPS[-1]), seconds))
                if not is_woken and self._is_kept():
                    continue
                if begin():
                    self._kept_until = 0.0
                    return True
                if is_woken:  # somebody else was faster, and nobody knows of this place any more
                    place = self._joined(is_first=True)
            return False
        finally:
            self._leave(place)

    def passed_on(self) -> None:
        """Somebody is done writing."""
        now = time.monotonic()
        if not self._queue or now - self._passed_on < _TURN:
            return
        try:
            first = self._queue.popleft()
        except IndexError:  # it has left just now
            return
        self._passed_on = now
        self._kept_until = now + _KEPT
        first.release()

    def _is_kept(self) -> bool:
        return time.monotonic() < self._kept_until

    def _joined(self, is_first: bool) -> threading.Lock:
        place = threading.Lock()
        place.acquire()
        if is_first:
            self._queue.appendleft(place)
        else:
            self._queue.append(place)
        return place

    def _leave(self, place: threading.Lock) -> None:
        with suppress(ValueError):  # one who was woken stands there no more
            self._queue.remove(place)
