"""Waiting for other threads and processes by condition, and limits on processor time.

Nothing waits for a fixed time, and processor time is counted so that a busy machine fails no test.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def eventually(is_so: Callable[[], bool], within: float = 60.0) -> None:
    """Return once the condition holds; fail after `within` seconds."""
    until = time.monotonic() + within
    while not is_so():
        assert time.monotonic() < until, "it did not come to that in time"
        time.sleep(0.005)


@contextmanager
def processor_seconds(at_most: float) -> Iterator[None]:
    """Fail if the block takes more processor time of this thread."""
    begun = time.thread_time()
    yield
    took = time.thread_time() - begun
    assert took < at_most, f"it took {took:.2f} s of a processor, and may take {at_most:g} s"
