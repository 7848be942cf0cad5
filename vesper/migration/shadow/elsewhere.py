"""Processor time that other processes took for this thread, which no clock of this process shows."""

from __future__ import annotations

import threading


class _Tally(threading.local):
    seconds = 0.0


_TALLY = _Tally()


def spend(seconds: float) -> None:
    """So much more, for this thread."""
    _TALLY.seconds += seconds


def spent() -> float:
    """What this thread has spent since it was last asked."""
    found, _TALLY.seconds = _TALLY.seconds, 0.0
    return found
