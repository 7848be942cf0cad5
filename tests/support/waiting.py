"""Waiting for what another thread or process does: until it is so, never for a fixed time. And work that must end soon:
its processor time counts, so that a busy machine fails no test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def eventually(is_so: Callable[[], bool], within: float = 60.0) -> None:
    """Comes back once it is so; fails where it is not so in time."""
    until = time.monotonic() + within
    while not is_so():
        assert time.monotonic() < until, "it did not come to that in time"
        time.sleep(0.005)


@contextmanager
def processor_seconds(at_most: float) -> Iterator[None]:
    """Fails where what is done here takes more of a processor, by this thread alone."""
    begun = time.thread_time()
    yield
    took = time.thread_time() - begun
    assert took < at_most, f"it took {took:.2f} s of a processor, and may take {at_most:g} s"
