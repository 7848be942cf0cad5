"""A cache in the memory of one process. It evicts the least recently used entry first."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from vesper.storage.per_process import PerProcess

_ENTRY_BYTES = 200
"""What Python needs for an entry besides its texts, so that a million empty values are not free."""


@dataclass(slots=True)
class _Store:
    lock: threading.Lock = field(default_factory=threading.Lock)
    entries: OrderedDict[str, tuple[str, float, int]] = field(default_factory=OrderedDict)
    """Text, when it ends, its bytes; the one that was used last comes last."""
    size: int = 0

    def remove(self, key: str) -> bool:
        found = self.entries.pop(key, None)
        if found is not None:
            self.size -= found[2]
        return found is not None


class MemoryCache:
    """A cache with a bounded number of entries and bytes. A forked process begins with an empty one."""

    def __init__(self, max_entries: int, max_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._clock = clock
        self._store = PerProcess(_Store)

    def get(self, key: str, limit: int, timeout: float | None) -> str | None:  # nothing waits here
        store = self._store.get()
        with store.lock:
            found = store.entries.get(key)
            if found is None:
                return None
            if found[1] <= self._clock():
                store.remove(key)
                return None
            store.entries.move_to_end(key)
            return found[0]

    def put(self, key: str, text: str, ttl_us: int, timeout: float | None) -> None:
        size = len(key.encode()) + len(text.encode()) + _ENTRY_BYTES
        store = self._store.get()
        with store.lock:
            store.remove(key)
            store.entries[key] = (text, self._clock() + ttl_us / 1e6, size)
            store.size += size
            while len(store.entries) > self._max_entries or store.size > self._max_bytes:
                store.remove(next(iter(store.entries)))

    def delete(self, key: str, timeout: float | None) -> bool:
        store = self._store.get()
        with store.lock:
            found = store.entries.get(key)
            is_there = found is not None and found[1] > self._clock()
            store.remove(key)
            return is_there

    def close(self) -> None:
        self._store.drop()
