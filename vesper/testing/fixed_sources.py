"""Sources for tests that compare what two runs write."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from vesper.storage.sources import Sources

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def fixed_sources(moment: datetime, seed: int = 0) -> Sources:
    """Return sources whose clocks stand at `moment` and whose random bytes follow from `seed`.

    The bytes are one stream: the SHA-256 of `vesper sources SEED BLOCK` for the blocks 0, 1, 2, and so on.
    """
    now_ns = (moment - _EPOCH) // timedelta(microseconds=1) * 1000
    return Sources(lambda: now_ns, lambda: now_ns, _Stream(seed).take)


class _Stream:
    """Random bytes that repeat. Any number of threads may take some."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._block = 0
        self._left = b""
        self._lock = threading.Lock()

    def take(self, size: int) -> bytes:
        with self._lock:
            while len(self._left) < size:
                self._left += sha256(f"vesper sources {self._seed} {self._block}".encode()).digest()
                self._block += 1
            taken, self._left = self._left[:size], self._left[size:]
            return taken
