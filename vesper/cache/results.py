"""Cached results of functions (L3), bounded in bytes and time, optionally in a shared store.

A miss computes the result; others that need the same result wait: threads of this process for each other, other
processes for a lock with an end. A result may be uncacheable, and then each caller computes it. A store that fails is
skipped for a while, with one warning.

This module knows no results: `Kept` is a cached value with its bytes, `Shared` writes and reads bytes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol

from vesper.cache.counters import Counters

_log = logging.getLogger("vesper.cache")
_OVERHEAD = 200
"""Bytes of an entry besides its text: the key, the objects of the dict."""
_RETRY_SECONDS = 5.0
"""Seconds for which a store that failed is skipped."""


class SharedAway(Exception):
    """The shared store is unavailable; the message has the reason."""


class Shared(Protocol):
    """A store that processes share. Every method raises `SharedAway` where it is unavailable."""

    def find(self, key: str) -> bytes | None: ...
    def put(self, key: str, data: bytes, ttl: float) -> None: ...
    def lock(self, key: str, seconds: float) -> str | None:
        """Return a token where this process should compute the result; None where another does."""
        ...

    def unlock(self, key: str, token: str) -> None: ...


class Kept:
    """A result with its bytes, and whether it may be cached and shared."""

    __slots__ = ("data", "is_kept", "is_shared", "value")

    def __init__(self, value: Any, data: bytes = b"", is_kept: bool = True, is_shared: bool = True) -> None:
        self.value = value
        self.data = data
        self.is_kept = is_kept
        self.is_shared = is_kept and is_shared


class ResultCounters(Counters):
    def __init__(self) -> None:
        super().__init__()
        self.waits = self.shared_hits = self.shared_failures = 0

    def all(self) -> dict[str, int]:
        more = {"waits": self.waits, "shared_hits": self.shared_hits, "shared_failures": self.shared_failures}
        return super().all() | more


class Results:
    """The results of one configuration. Thread-safe."""

    def __init__(
        self,
        max_bytes: int,
        ttl: float,
        shared: Shared | None = None,
        wait: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.max_bytes = max_bytes
        self.ttl = ttl
        self.counters = ResultCounters()
        self._shared = shared
        self._wait = wait
        self._clock = clock
        self._entries: OrderedDict[str, tuple[float, int, Any]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()
        self._working: dict[str, threading.Event] = {}
        self._away_until = 0.0
        self._has_warned = False

    # -- asking -----------------------------------------------------------------------------------

    def find_or_make(self, key: str, make: Callable[[], Kept], read: Callable[[bytes], Any]) -> tuple[Any, bool]:
        """Return the result of this key, and whether it was cached.

        `read` decodes bytes; None where they are invalid.
        """
        while True:
            with self._lock:
                found = self._find(key)
                if found is not None:
                    self.counters.hits += 1
                    return found, True
                others = self._working.get(key)
                if others is None:
                    mine = self._working[key] = threading.Event()
                    break
                self.counters.waits += 1
            if not others.wait(self._wait):
                return self._compute(key, make).value, False  # the other computation takes longer than a caller waits
            with self._lock:
                found = self._find(key)
                if found is not None:
                    self.counters.hits += 1
                    return found, True
                self.counters.misses += 1
            # The other computation was uncacheable: waiting again would serialize the callers.
            return self._compute(key, make).value, False
        try:
            return self._find_or_compute(key, make, read)
        finally:
            with self._lock:
                self._working.pop(key, None)
            mine.set()

    def _find(self, key: str) -> Any:
        entry = self._entries.get(key)
        if entry is None:
            return None
        ends, size, value = entry
        if self._clock() >= ends:
            del self._entries[key]
            self._size -= size
            return None
        self._entries.move_to_end(key)
        return value

    def _find_or_compute(self, key: str, make: Callable[[], Kept], read: Callable[[bytes], Any]) -> tuple[Any, bool]:
        known, token = self._find_shared(key, read)
        if known is not None:
            return known, True
        self.counters.misses += 1
        try:
            kept = self._compute(key, make)
            if kept.is_shared:
                self._update_shared(lambda shared: shared.put(key, kept.data, self.ttl))
            return kept.value, False
        finally:
            if token is not None:
                self._update_shared(lambda shared: shared.unlock(key, token))

    def _compute(self, key: str, make: Callable[[], Kept]) -> Kept:
        kept = make()
        if kept.is_kept:
            self._put(key, kept.value, len(kept.data))
        return kept

    # -- in memory --------------------------------------------------------------------------------

    def _put(self, key: str, value: Any, length: int) -> None:
        size = length + len(key) + _OVERHEAD
        if size > self.max_bytes:
            return
        with self._lock:
            old = self._entries.pop(key, None)
            self._size += size - (0 if old is None else old[1])
            self._entries[key] = (self._clock() + self.ttl, size, value)
            self.counters.writes += 1
            while self._size > self.max_bytes:
                _, (_, gone, _) = self._entries.popitem(last=False)
                self._size -= gone
                self.counters.evictions += 1

    def size(self) -> tuple[int, int]:
        """Return the number of results in memory, and their bytes."""
        with self._lock:
            return len(self._entries), self._size

    def clear(self) -> int:
        with self._lock:
            count = len(self._entries)
            self._entries.clear()
            self._size = 0
            return count

    def after_fork(self) -> None:
        """Discard the computations of the parent: their threads do not exist here."""
        self._lock = threading.Lock()
        self._working = {}

    # -- with others ------------------------------------------------------------------------------

    def _find_shared(self, key: str, read: Callable[[bytes], Any]) -> tuple[Any, str | None]:
        """Return the result of another process, or the token of a lock taken here.

        Both are None where the store is unavailable or the wait is over.
        """
        shared = self._shared
        if shared is None or self._clock() < self._away_until:
            return None, None
        try:
            pause, ends = 0.005, self._clock() + self._wait
            while True:
                data = shared.find(key)
                value = None if data is None else read(data)
                if value is not None:
                    assert data is not None
                    self._put(key, value, len(data))
                    self.counters.shared_hits += 1
                    return value, None
                if data is not None:
                    self.counters.refused += 1  # no result of this node: it is overwritten
                token = shared.lock(key, self._wait)
                if token is not None:
                    return None, token
                if self._clock() >= ends:
                    return None, None
                self.counters.waits += 1
                time.sleep(pause)
                pause = min(0.1, pause * 2)
        except SharedAway as why:
            self._note_failure(why)
            return None, None

    def _update_shared(self, tell: Callable[[Shared], None]) -> None:
        if self._shared is None or self._clock() < self._away_until:
            return
        try:
            tell(self._shared)
        except SharedAway as why:
            self._note_failure(why)

    def _note_failure(self, why: SharedAway) -> None:
        self.counters.shared_failures += 1
        self._away_until = self._clock() + _RETRY_SECONDS
        if not self._has_warned:
            self._has_warned = True
            _log.warning("results are worked out without the shared cache: %s; this is said once", why)
