"""State that a forked process must not share with its parent: connections, locks, threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar

_State = TypeVar("_State")


class PerProcess(Generic[_State]):
    """One state for each process, created at its first use.

    A fork copies locks as they are, including held ones, and copies sockets from which two processes then read. So a
    child never uses the state of its parent: it creates its own.
    """

    def __init__(self, make: Callable[[], _State]) -> None:
        self._make = make
        self._by_process: dict[int, _State] = {}

    def get(self) -> _State:
        process = os.getpid()
        found = self._by_process.get(process)
        if found is None:
            # Two threads may both make one; `setdefault` is atomic, so both use the same.
            found = self._by_process.setdefault(process, self._make())
        return found

    def drop(self) -> _State | None:
        """Remove the state of this process, and return it to be closed."""
        return self._by_process.pop(os.getpid(), None)
