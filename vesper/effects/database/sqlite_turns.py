"""Whose turn it is to write to an SQLite file, among the threads of this process.

SQLite tells nobody that a file is free: who waits sleeps, and looks again. Here one who is done writing wakes the one
who has waited longest, and whoever comes newly lets that one go first (docs/adr/0035).

Nobody owns anything. A turn is a moment that passes by itself, and a place in the queue is passed over where nobody
stands in it: a thread that is interrupted or gone, or that a fork left behind, makes others wait for milliseconds. The
first in the queue looks by itself as well, for another process may have written; and where threads have passed the file
on to one another for long, they leave it alone for a moment, in which another process comes to write.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_NAP_OF_THE_FIRST: Final = 0.002
_NAP_OF_OTHERS: Final = 0.020
"""So long one sleeps whom nobody wakes. The others are woken, or become the first."""
_KEPT: Final = 0.005
"""So long the file is kept for the one who was woken: it may have to wait for Python's lock."""
_CHAIN: Final = 0.1
"""So long threads may pass the file on to one another before they leave it alone."""
_LEFT_ALONE: Final = 0.004
"""So long they do: longer than the first in the queue of another process sleeps between two looks."""


class Turns:
    def __init__(self) -> None:
        self._queue: deque[threading.Lock] = deque()
        """Who waits, each at a lock that is taken until it is woken; the first has waited longest."""
        self._kept_until = 0.0
        self._left_alone_until = 0.0

    def take(self, begin: Callable[[], bool], left: Callable[[], float]) -> bool:
        """Has `begin` try, which says whether it could, until it could; False when nothing is `left` of the time."""
        if not self._is_kept() and begin():
            return True
        place = self._joined(is_first=False)
        try:
            while (seconds := left()) > 0:
                is_woken = place.acquire(timeout=min(self._nap(place), seconds))
                if is_woken:
                    if (alone := self._left_alone_until - time.monotonic()) > 0:
                        time.sleep(alone)
                elif self._is_kept():
                    continue
                has_begun = begin()
                if has_begun or is_woken:
                    self._kept_until = 0.0
                if has_begun:
                    return True
                if is_woken:  # somebody else was faster, and nobody knows of this place any more
                    place = self._joined(is_first=True)
            return False
        finally:
            self._leave(place)

    def _nap(self, place: threading.Lock) -> float:
        try:
            return _NAP_OF_THE_FIRST if self._queue[0] is place else _NAP_OF_OTHERS
        except IndexError:  # it has just been woken
            return _NAP_OF_OTHERS

    def passed_on(self) -> None:
        """One who has written is done."""
        now = time.monotonic()
        if not self._queue:
            self._left_alone_until = now
            return
        if now - self._left_alone_until > _CHAIN:
            self._left_alone_until = now + _LEFT_ALONE
        self._kept_until = max(now, self._left_alone_until) + _KEPT
        try:
            self._queue.popleft().release()
        except IndexError:  # who stood there has left just now
            self._kept_until = 0.0

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
