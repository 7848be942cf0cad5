"""Gauges of the queues: depth and age of the oldest run, set every few seconds by one worker of a process."""

from __future__ import annotations

import threading
from time import monotonic

from vesper.host.host import Host
from vesper.observe.metrics import set_gauge
from vesper.queues.rules import DEAD_SUFFIX
from vesper.values.generated.metrics import QUEUES_AGE, QUEUES_DEAD, QUEUES_DEPTH

_EVERY_SECONDS = 5.0
_MAX_QUEUES = 1_000


class QueueWatch:
    """Sets the gauges of all queues of a journal."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._lock = threading.Lock()
        self._next = 0.0
        self._names: set[str] = set()
        """Queues that had a row: an empty one is 0."""

    def look(self) -> None:
        """Set the gauges where that is due. Raises `JournalError`."""
        with self._lock:
            if monotonic() < self._next:
                return
            self._next = monotonic() + _EVERY_SECONDS
        now_us = self._host.journal.now_us()
        depths = {each.queue: each for each in self._host.journal.queue_depths(None, _MAX_QUEUES)}
        self._names |= {name.removesuffix(DEAD_SUFFIX) for name in depths}
        for name in self._names:
            own, dead = depths.get(name), depths.get(name + DEAD_SUFFIX)
            oldest_us = None if own is None else own.oldest_us
            set_gauge(QUEUES_DEPTH, (name,), 0 if own is None else own.waiting + own.delayed)
            set_gauge(QUEUES_AGE, (name,), 0 if oldest_us is None else max(0, now_us - oldest_us) / 1000)
            set_gauge(QUEUES_DEAD, (name,), 0 if dead is None else dead.count)
