"""Delays between attempts to finish a run, which keep it from delaying others.

A run whose definition cannot be loaded, or whose journal refuses an entry, fails on each takeover. It is tried again at
growing intervals: the obstacle may have been removed.
"""

from __future__ import annotations

import threading
import time

_FIRST = 30.0
_LONGEST = 3600.0
_MOST = 10_000
"""So many are remembered; others are simply tried."""


class Deferred:
    """The runs that could not be finished, and the time of each one's next attempt."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waits: dict[str, tuple[float, float]] = {}

    def __len__(self) -> int:
        return len(self._waits)

    def is_due(self, execution: str) -> bool:
        """Return whether the run may be tried now."""
        until, _ = self._waits.get(execution, (0.0, 0.0))
        return until <= time.monotonic()

    def failed(self, execution: str) -> None:
        """Defer the next attempt of a run, for twice as long as the last time."""
        with self._lock:
            _, last = self._waits.pop(execution, (0.0, 0.0))
            wait = min(_LONGEST, 2 * last) if last else _FIRST
            if len(self._waits) >= _MOST:
                del self._waits[next(iter(self._waits))]
            self._waits[execution] = (time.monotonic() + wait, wait)

    def done(self, execution: str) -> None:
        with self._lock:
            self._waits.pop(execution, None)
