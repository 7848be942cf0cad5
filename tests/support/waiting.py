"""Waiting for what another thread or process does: until it is so, never for a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(is_so: Callable[[], bool], within: float = 10.0) -> None:
    """Comes back once it is so; fails where it is not so in time."""
    until = time.monotonic() + within
    while not is_so():
        assert time.monotonic() < until, "it did not come to that in time"
        time.sleep(0.005)
