"""The spool: a synced file of findings that the store does not have yet.

A divergence or fault is written here as soon as it is found, and removed when the store has it. A process that is
killed in between leaves its file; the next process sends it to the store as the same batch, which changes nothing where
the store has it already.

A process holds a lock on its file throughout its life. Where the name does not tell whether the process lives (another
container, or another boot), the lock does.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import secrets
import shutil
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from vesper.journal.owner import is_dead
from vesper.migration.compare.divergence import Divergence
from vesper.migration.control.state import Diverged, EngineFaulted, Enumerated, Event, Noisy, RunLost
from vesper.migration.stores.store import Batch, Happened, NodeKey
from vesper.storage.file_access import STATE_FOLDER, make_private_folder

_log = logging.getLogger("vesper.migration")
_ENDING = ".spool"
_ASIDE = "aside"
_MAX_BYTES = 64 << 20
_EVENTS: dict[str, type[Event]] = {
    each.__name__: each for each in (Diverged, EngineFaulted, Enumerated, Noisy, RunLost)
}


class Spool:
    """The spool file of one process. Threads may share it."""

    def __init__(self, folder: Path, process: str) -> None:
        """`process` begins with the owner (`vesper.journal.owner`), by which others tell whether it lives."""
        self._folder = folder
        self._process = process
        self._path = folder / f"{process}{_ENDING}"
        self._lock = threading.Lock()
        self._file: int | None = None
        self.written = 0
        """Number of batches written."""

    def write(self, key: NodeKey, batch: Batch, is_synced: bool = True) -> None:
        """Write a batch, which then survives the process, and with `is_synced` also the machine.

        Raises `OSError` where the disk is full.
        """
        line = _line(key, batch)
        with self._lock:
            if self._file is None:
                self._file = self._open()
            whole = os.fstat(self._file).st_size
            try:
                if os.write(self._file, line) != len(line):
                    raise OSError(errno.ENOSPC, "the disk took a part of it")
                if is_synced:
                    os.fsync(self._file)
            except OSError:
                # A partial line would corrupt the next one.
                os.ftruncate(self._file, whole)
                raise
            self.written += 1

    def _open(self) -> int:
        make_private_folder(self._folder)
        while self._path.exists():  # it was closed with content, which other processes now handle
            self._path = self._folder / f"{self._process}-{secrets.token_hex(4)}{_ENDING}"
        making = self._path.with_suffix(".making")
        file = os.open(making, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            with suppress(OSError):  # without file locks, no process is taken for dead
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            making.rename(self._path)  # visible only once it is locked
            _sync_folder(self._folder)
        except OSError:
            os.close(file)
            raise
        return file

    def clear(self, written: int) -> None:
        """Truncate the file if the store has all `written` batches; after further writes, keep it."""
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

    def forked(self) -> None:
        """Close the file in the child of a fork: file and lock are the parent's."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def read_leftovers(self) -> Iterator[tuple[Path, list[tuple[NodeKey, Batch]]]]:
        """Yield the batches of dead processes, file by file. Call `forget` once the store has a file."""
        for path in leftover_files(self._folder):
            if path == self._path:
                continue
            try:
                yield path, _read(path)
            except FileNotFoundError:
                continue  # another process was faster
            except OSError as error:
                _log.error("%s was left by a process that is gone, and cannot be read: %s", path, error)

    @staticmethod
    def forget(path: Path) -> None:
        path.unlink(missing_ok=True)  # another process may have been faster; the store applied it once


def leftover_files(folder: Path) -> Iterator[Path]:
    """Yield the files of dead processes."""
    for path in sorted(folder.glob(f"*{_ENDING}")):
        owner = path.name.removesuffix(_ENDING).rpartition("+")[0]
        if is_dead(owner) or _is_unlocked(path):
            yield path


def spool_folder(project: Path) -> Path:
    """Return the folder of the spool of a project."""
    return project / STATE_FOLDER / "migration"


def describe_unsent(folder: Path) -> list[str]:
    """Return texts about findings of dead processes that are in no store yet. Changes nothing."""
    waiting = [path for path in leftover_files(folder) if _size(path)]
    said = []
    if waiting:
        said.append(
            f"{folder}: what was found by processes that are gone ({len(waiting):,}) is not in the store yet: the next "
            "process that routes a node here tells it, and `vesper run NODE --engine auto` is one"
        )
    if (folder / _ASIDE).is_dir() and any((folder / _ASIDE).iterdir()):
        said.append(f"{folder / _ASIDE}: what processes had found and nobody can read is kept here: look at it")
    return said


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # another process has sent it meanwhile
        return 0


def _is_unlocked(path: Path) -> bool:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(file)
    return True


def _sync_folder(folder: Path) -> None:
    """Sync the folder, so that the name of a new file survives the machine too."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _line(key: NodeKey, batch: Batch) -> bytes:
    document = {
        "node": key.node,
        "epoch": key.epoch,
        "process": batch.process,
        "number": batch.number,
        "happened": [_happened(each) for each in batch.happened],
        "paths": dict(batch.paths),
    }
    text = json.dumps(document).encode()
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
    """Read the complete lines of a file; the process may have died in the last one.

    A file with an unreadable line is copied aside, for a person to inspect.
    """
    if path.stat().st_size > _MAX_BYTES:
        _set_aside(path, f"it is larger than {_MAX_BYTES:,} bytes")
        return []
    found = []
    *lines, last = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        checksum, _, text = line.partition(b" ")
        try:
            if int(checksum, 16) != zlib.crc32(text):
                raise ValueError("it is not what was written")
            found.append(_batch(json.loads(text)))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            _set_aside(path, f"line {number} cannot be read: {error}")
    if last:
        _log.warning("%s, line %s was cut off by what ended its process", path, len(lines) + 1)
    return found


def _set_aside(path: Path, why: str) -> None:
    aside = path.parent / _ASIDE
    aside.mkdir(exist_ok=True, mode=0o700)
    kept = aside / path.name
    _log.error("%s: %s; what is in it is kept in %s", path, why, kept)
    if not kept.exists():
        shutil.copyfile(path, kept)


def _batch(document: dict[str, Any]) -> tuple[NodeKey, Batch]:
    happened = []
    for each in document["happened"]:
        kept = each["divergence"]
        event = _EVENTS[each["event"]](**each["values"])
        happened.append(Happened(event, None if kept is None else Divergence.from_text(kept), each["input"]))
    batch = Batch(document["process"], document["number"], tuple(happened), paths=document["paths"])
    return NodeKey(document["node"], document["epoch"]), batch
