"""What a process must not forget until its store has it: divergences and faults, in a file, synced, at once.

A divergence is written here by whoever found it, before anything else is done about it. It is taken out when the store
has it. A process that was killed in between leaves its file behind; the next one that looks gives it to the store, as
the batch that it was: what the store knows already changes nothing.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from vesper.journal.owner import is_dead
from vesper.migration.divergence import Divergence
from vesper.migration.state import Diverged, EngineFaulted, Enumerated, Event, Noisy, RunLost
from vesper.migration.store import Batch, Happened, NodeKey

_log = logging.getLogger("vesper.migration")
_ENDING = ".spool"
_LARGEST = 64 << 20
_EVENTS: dict[str, type[Event]] = {
    each.__name__: each for each in (Diverged, EngineFaulted, Enumerated, Noisy, RunLost)
}


class Spool:
    """The file of one process. Any thread may write."""

    def __init__(self, folder: Path, process: str) -> None:
        """`process` begins with the owner (`vesper.journal.owner`), by which others tell whether it lives."""
        self._folder = folder
        self._path = folder / f"{process}{_ENDING}"
        self._lock = threading.Lock()
        self._file: int | None = None
        self.written = 0
        """How often anything was written."""

    def write(self, key: NodeKey, batch: Batch) -> None:
        """Durable when it returns. Raises `OSError` where the disk takes nothing."""
        line = _line(key, batch)
        with self._lock:
            if self._file is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.write(self._file, line)
            os.fsync(self._file)
            self.written += 1

    def clear(self, written: int) -> None:
        """The store has all that was written until then. What came since keeps the rest with it."""
        with self._lock:
            if self._file is not None and self.written == written:
                os.ftruncate(self._file, 0)

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None
                with suppress(OSError):
                    if self._path.stat().st_size == 0:
                        self._path.unlink()

    def left_by_others(self) -> Iterator[tuple[Path, list[tuple[NodeKey, Batch]]]]:
        """What processes that are gone left behind, file by file. Whoever gave a file to the store calls `forget`."""
        for path in sorted(self._folder.glob(f"*{_ENDING}")):
            owner = path.name.removesuffix(_ENDING).rpartition("+")[0]
            if path != self._path and is_dead(owner):
                yield path, _read(path)

    @staticmethod
    def forget(path: Path) -> None:
        path.unlink(missing_ok=True)  # another process may have been as quick: the store took it once


def _line(key: NodeKey, batch: Batch) -> bytes:
    document = {
        "node": key.node,
        "epoch": key.epoch,
        "process": batch.process,
        "number": batch.number,
        "happened": [_happened(each) for each in batch.happened],
        "paths": dict(batch.paths),
    }
    text = json.dumps(document, ensure_ascii=False).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _happened(happened: Happened) -> dict[str, Any]:
    event = happened.event
    values = {name: getattr(event, name) for name in event.__slots__}
    kept = happened.divergence
    return {
        "event": type(event).__name__,
        "values": values,
        "divergence": None if kept is None else kept.to_text(),
        "input": happened.input,
    }


def _read(path: Path) -> list[tuple[NodeKey, Batch]]:
    """The whole lines of a file; the last one may have been cut off by what ended its process."""
    if path.stat().st_size > _LARGEST:
        _log.error("%s is larger than %s bytes and is not read: what is in it is lost", path, _LARGEST)
        return []
    found = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if not line:
            continue
        checksum, _, text = line.partition(b" ")
        try:
            if int(checksum, 16) != zlib.crc32(text):
                raise ValueError("it is not what was written")
            found.append(_batch(json.loads(text)))
        except (ValueError, KeyError, TypeError) as error:
            _log.warning("%s, line %s cannot be read: %s", path, number, error)
    return found


def _batch(document: dict[str, Any]) -> tuple[NodeKey, Batch]:
    happened = []
    for each in document["happened"]:
        kept = each["divergence"]
        event = _EVENTS[each["event"]](**each["values"])
        happened.append(Happened(event, None if kept is None else Divergence.from_text(kept), each["input"]))
    batch = Batch(document["process"], document["number"], tuple(happened), paths=document["paths"])
    return NodeKey(document["node"], document["epoch"]), batch
