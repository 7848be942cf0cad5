"""Executions of each path, kept for repetition under a later definition.

Up to 256 are kept per path, and up to 2,000 per node; with many paths, fewer of each. Those with the smallest
fingerprints stay: a keyed hash, so that they are a fair sample of distinct inputs, the same in every process, and
writes soon become rare. Nothing is kept of a sensitive node.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vesper.journal.errors import JournalError
from vesper.migration.compare.transcript import Transcript
from vesper.migration.stores.store import NodeKey, Store, Transaction

_log = logging.getLogger("vesper.migration")
MAX_PER_PATH = 256
MAX_PER_NODE = 2_000
MAX_TEXT = 8 << 10
"""Maximum characters of a kept execution; larger ones are left out."""
_MAX_WAITING = 500
_INDEX = "transcripts"
_FORMAT = 1

Kept = dict[int, str]
"""Transcripts as texts, by fingerprint."""


class Reservoir:
    """Executions that one process offers for one node. Most offers cost one comparison of integers."""

    def __init__(self, key: NodeKey, is_sensitive: bool, redact: Callable[[str], str] | None = None) -> None:
        """`redact` removes secrets from a text that may contain a response."""
        self._key = key
        self._is_sensitive = is_sensitive
        self._redact = redact
        self._begin()
        self._wanted: dict[str, int] = {}
        """Per full path, the fingerprint below which another would be kept."""

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, Kept] = {}
        self._count = 0

    def after_fork(self) -> None:
        """Discard the queue: the parent stores it. The lock is replaced, as another thread may have held it."""
        self._begin()

    def offer(self, path: str, fingerprint: int, transcript: Transcript) -> bool:
        """Queue an execution on which both engines agreed. Returns False where it would not be kept."""
        if self._is_sensitive or fingerprint >= self._wanted.get(path, 1 << 64) or self._count >= _MAX_WAITING:
            return False
        try:
            text = transcript.to_text()
            text.encode()
        except (JournalError, UnicodeEncodeError):
            return False  # an input that is no value, which a later definition cannot read either
        if len(text) > MAX_TEXT:
            return False
        text = text if self._redact is None else self._redact(text)
        with self._lock:
            waiting = self._waiting.setdefault(path, {})
            if fingerprint in waiting:
                return False
            waiting[fingerprint] = text
            self._count += 1
        return True

    def flush(self, store: Store, now_us: int) -> int:
        """Store the queued executions, and return their number. Raises `StoreError`, and then they stay queued."""
        with self._lock:
            offered, count = {path: dict(each) for path, each in self._waiting.items()}, self._count
        if not offered:
            return 0
        wanted = store.transact(self._key, lambda transaction: keep(transaction, offered, now_us))
        with self._lock:
            self._wanted.update(wanted)
            for path, each in offered.items():
                waiting = self._waiting[path]
                for fingerprint in each:
                    del waiting[fingerprint]
                if not waiting:
                    del self._waiting[path]
            self._count -= count
        return count


def keep(transaction: Transaction, offered: Mapping[str, Kept], now_us: int) -> dict[str, int]:
    """Merge the offered executions with the kept ones.

    Returns, per full path, the fingerprint below which another would be kept.
    """
    index = _read_index(transaction.document(_INDEX))
    counts = dict(index.counts)
    changed: dict[str, Kept] = {}
    for path, new in offered.items():
        if path not in counts and len(counts) >= MAX_PER_NODE:
            continue
        merged = _smallest({**_read_kept(transaction.document(_name(path))), **new}, MAX_PER_PATH)
        changed[path], counts[path] = merged, len(merged)
    quota = _quota(counts)
    for path, count in counts.items():
        if count > quota:
            found = changed.get(path) or _read_kept(transaction.document(_name(path)))
            changed[path] = _smallest(found, quota)
            counts[path] = len(changed[path])
    for path, kept in changed.items():
        transaction.put_document(_name(path), _text({f"{each:016x}": text for each, text in kept.items()}))
    if changed:
        transaction.put_document(_INDEX, _text({"format": _FORMAT, "at_us": now_us, "counts": counts}))
    is_full = sum(counts.values()) >= MAX_PER_NODE
    limits = {path: max(changed[path]) for path in changed if is_full or len(changed[path]) >= MAX_PER_PATH}
    return limits | {path: 0 for path in offered if path not in counts}


def transcripts(store: Store, key: NodeKey) -> dict[str, Kept]:
    """Return all kept executions of a node in an epoch, by path."""
    counts = _read_index(store.document(key, _INDEX)).counts
    return {path: transcripts_of(store, key, path) for path in sorted(counts)}


def transcripts_of(store: Store, key: NodeKey, path: str) -> Kept:
    """Return the kept executions of one path."""
    return _read_kept(store.document(key, _name(path)))


def last_kept_us(store: Store, key: NodeKey) -> int:
    """Return the time of the last kept execution in microseconds; 0 where there is none."""
    return _read_index(store.document(key, _INDEX)).at_us


@dataclass(frozen=True, slots=True)
class _Index:
    at_us: int
    counts: Mapping[str, int]


def _read_index(text: str | None) -> _Index:
    if text is None:
        return _Index(0, {})
    try:
        found = json.loads(text)
        if found["format"] == _FORMAT:
            return _Index(int(found["at_us"]), {str(path): int(count) for path, count in found["counts"].items()})
        why = f"it has the format {found['format']!r}"
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        why = f"{type(error).__name__}: {error}"
    _log.warning("the executions that were kept of a node cannot be read (%s): they are gathered anew", why)
    return _Index(0, {})


def _read_kept(text: str | None) -> Kept:
    try:
        return {} if text is None else {int(each, 16): str(kept) for each, kept in json.loads(text).items()}
    except (ValueError, AttributeError) as error:
        _log.warning("executions that were kept of a path cannot be read (%s): they are gathered anew", error)
        return {}


def _smallest(kept: Kept, max_count: int) -> Kept:
    return {each: kept[each] for each in sorted(kept)[:max_count]}


def _quota(counts: Mapping[str, int]) -> int:
    """Return the number of executions per path with which all together stay within the maximum."""
    quota = MAX_PER_PATH
    while quota > 1 and sum(min(count, quota) for count in counts.values()) > MAX_PER_NODE:
        quota -= 1
    return quota


def _name(path: str) -> str:
    return f"{_INDEX}:{path}"


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
