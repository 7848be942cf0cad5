"""Counters of the caches: of this process, and of all processes together.

A process that ends appends its counts to a file, as one line in one write, so that processes do not disturb each other.
Readers sum the file, and rewrite it when it has grown.
"""

from __future__ import annotations

import atexit
import os

from vesper.cache.folder import ignore_os_errors

NAMES = ("hits", "misses", "evictions", "refused", "writes")
"""`refused` are entries that were present and not trusted: damaged, truncated, or of another user."""
_MAX_FILE_BYTES = 64 * 1024


class Counters:
    """Counters of one cache, without a lock. A race of threads may lose a count; nothing depends on it."""

    def __init__(self) -> None:
        self.hits = self.misses = self.evictions = self.refused = self.writes = 0

    def all(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in NAMES}

    def take(self) -> list[int]:
        """Return the counts since the last call, and reset them."""
        taken = [getattr(self, name) for name in NAMES]
        for name in NAMES:
            setattr(self, name, 0)
        return taken


class SavedCounters:
    """Counters that outlive the process, in a file of their own."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.counters = Counters()
        self._process = os.getpid()
        atexit.register(self.save)

    def save(self) -> None:
        """Append the counts of this process. A forked child has the counts of its parent, and appends nothing."""
        if os.getpid() != self._process:
            return
        taken = self.counters.take()
        if not any(taken):
            return
        line = (" ".join(map(str, taken)) + "\n").encode("ascii")
        with ignore_os_errors:
            handle = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                os.write(handle, line)
            finally:
                os.close(handle)

    def total(self) -> dict[str, int]:
        """Return the sums over all processes that have ended, and this one. Malformed lines are ignored."""
        sums = [getattr(self.counters, name) for name in NAMES]
        data = b""
        with ignore_os_errors, open(self.file, "rb") as file:
            data = file.read(16 * _MAX_FILE_BYTES)
        for line in data.split(b"\n"):
            numbers = line.split(b" ")
            if len(numbers) == len(NAMES) and all(each.isdigit() and len(each) < 19 for each in numbers):
                sums = [a + int(b) for a, b in zip(sums, numbers, strict=True)]
        if len(data) > _MAX_FILE_BYTES:
            self._shorten(sums)
        return dict(zip(NAMES, sums, strict=True))

    def _shorten(self, sums: list[int]) -> None:
        """Replace many lines by one. A line that a process appends meanwhile may be lost."""
        own = [getattr(self.counters, name) for name in NAMES]
        line = " ".join(str(a - b) for a, b in zip(sums, own, strict=True)) + "\n"
        with ignore_os_errors:
            other = f"{self.file}.{os.getpid()}"
            with open(other, "w", encoding="ascii") as file:
                file.write(line)
            os.replace(other, self.file)

    def clear(self) -> None:
        self.counters.take()
        with ignore_os_errors:
            os.unlink(self.file)
