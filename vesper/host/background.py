"""Threads of the Host. Each repeats one task until it is stopped."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

_log = logging.getLogger("vesper.host")


class Repeating:
    """Calls `work` every `every` seconds in its own thread, from `start` to `stop`."""

    def __init__(self, name: str, every: float, work: Callable[[], None]) -> None:
        self._name = name
        self._every = every
        self._work = work
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread. Callers ensure that no two of them run this at once."""
        if self._thread is None:
            thread = threading.Thread(target=self._repeat, name=self._name, daemon=True)
            thread.start()
            self._thread = thread  # and not before: one that could not be started is not waited for

    def stop(self) -> None:
        """Stop the thread and wait for its end."""
        self._stopping.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _repeat(self) -> None:
        while not self._stopping.wait(self._every):
            try:
                self._work()
            except Exception:  # noqa: BLE001  # said, and tried again: this thread must not end
                _log.exception("%s broke; it is tried again", self._name)
