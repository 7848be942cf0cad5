"""How often, and how soon, a process that died is started again: later each time, and not for ever."""

from __future__ import annotations

import time
from collections import deque

_FIRST = 0.1
_LONGEST = 30.0
_WINDOW = 600.0


class Restarts:
    """Counts deaths. After too many of them within ten minutes nothing is started any more: whatever is wrong, starting
    again does not make it right."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._deaths: deque[float] = deque()
        self._next = 0.0
        self.is_given_up = False

    def died(self) -> None:
        now = time.monotonic()
        self._deaths.append(now)
        while self._deaths[0] < now - _WINDOW:
            self._deaths.popleft()
        self._next = now + min(_LONGEST, _FIRST * 2 ** (len(self._deaths) - 1))
        self.is_given_up = self.is_given_up or len(self._deaths) > self._most

    def wait(self) -> float | None:
        """Seconds until one may be started; None where none may."""
        return None if self.is_given_up else max(0.0, self._next - time.monotonic())
