"""Clocks and random bytes of a Host and its journal. A test replaces them to repeat a run byte for byte."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Sources:
    """Source of time and of random bytes."""

    now_ns: Callable[[], int] = time.time_ns
    """Returns nanoseconds since 1970."""
    monotonic_ns: Callable[[], int] = time.monotonic_ns
    """Returns nanoseconds of a clock that never goes back; durations come from it."""
    random_bytes: Callable[[int], bytes] = os.urandom
    """Returns as many random bytes as it is given. Ids, keys, nonces and retry delays come from them."""
    wait_scale: float = 1.0
    """Factor of the waits between attempts; 0 skips them."""
    timeout_scale: float = 1.0
    """Factor of the timeouts of attempts."""

    def now_us(self) -> int:
        """Return microseconds since 1970."""
        return self.now_ns() // 1000


SYSTEM_SOURCES: Final = Sources()
"""The clocks and the random bytes of the operating system."""
