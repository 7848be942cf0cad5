"""Runs in doubt and unfinished runs of a large journal, kept between readings.

The journal finds them by a scan of all its runs. A reading that takes long is repeated in the background, for at most a
twentieth of the time; callers meanwhile get the last one, with its moment.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from vesper.journal.journal import Journal, JournalError, Status, Summary

MAX_COUNTED = 1_000
_REST = 20
"""Time between two readings, in durations of a reading."""
_SHORT_SECONDS = 0.05
"""Duration of a reading up to which callers wait for it."""


@dataclass(frozen=True, slots=True)
class OpenRuns:
    """Runs that need attention; at most `MAX_COUNTED` of each kind."""

    in_doubt: tuple[Summary, ...]
    """Newest first."""
    unfinished: tuple[Summary, ...]
    """Oldest first: their owner is gone, or its lease has run out."""
    read_us: int


def open_runs(journal: Journal) -> OpenRuns:
    """Return the open runs of a journal. Raises `JournalError`."""
    with _LOCK:
        reader = _READERS.setdefault(journal, _Reader())
    return reader.read(journal)


class _Reader:
    """The last reading of one journal."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OpenRuns | None = None
        self._ended = 0.0
        self._seconds = 0.0
        self._is_reading = False

    def read(self, journal: Journal) -> OpenRuns:
        with self._lock:  # callers of a first reading wait for it
            kept = self._kept
            if kept is not None and time.monotonic() - self._ended < self._seconds * _REST:
                return kept
            if kept is None or self._seconds <= _SHORT_SECONDS:
                return self._scan(journal)
            if not self._is_reading:
                self._is_reading = True
                threading.Thread(target=self._refresh, args=(journal,), name="vesper-open-runs", daemon=True).start()
            return kept

    def _refresh(self, journal: Journal) -> None:
        try:
            self._scan(journal)
        except JournalError:
            self._kept = None  # the next caller meets the problem itself
        finally:
            self._is_reading = False

    def _scan(self, journal: Journal) -> OpenRuns:
        began = time.monotonic()
        read_us = time.time_ns() // 1000
        doubtful = journal.find(status=Status.IN_DOUBT, limit=MAX_COUNTED)
        found = OpenRuns(tuple(doubtful), tuple(journal.unfinished(MAX_COUNTED)), read_us)
        self._kept, self._ended = found, time.monotonic()
        self._seconds = self._ended - began
        return found


_LOCK = threading.Lock()
_READERS: WeakKeyDictionary[Journal, _Reader] = WeakKeyDictionary()
