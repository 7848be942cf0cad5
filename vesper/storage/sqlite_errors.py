"""Messages for errors of SQLite, with a remedy."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path


def sqlite_message(error: sqlite3.Error, path: Path, what: str, busy_seconds: float) -> str:
    """Return the message of an error: the file, its content, and SQLite's own text at the end."""
    said = f"(SQLite: {error})"
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            text = f"{_holder(path)} has had the {what} locked for more than {busy_seconds:g} s; nothing was written"
        case sqlite3.SQLITE_FULL:
            text = f"the disk is full, or the {what} has reached its largest size; nothing was written. Make room"
        case sqlite3.SQLITE_NOTADB:
            text = f"this is no {what}: the file is not a SQLite database. Name another file, or move this one away"
        case sqlite3.SQLITE_CORRUPT:
            text = (
                f"the {what} is damaged. Nothing more is written to it. Keep the file and the two beside it "
                "(-wal, -shm), and take the last backup, or what `sqlite3 FILE .recover` finds"
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            text = f"the {what} cannot be written: the file or its folder is read-only for this user"
        case sqlite3.SQLITE_CANTOPEN:
            text = f"the {what} cannot be opened: the file or its folder is missing, or not for this user"
        case sqlite3.SQLITE_IOERR:
            text = f"the disk failed while the {what} was read or written; what was not reported as written may be lost"
        case _:
            text = f"the {what} cannot be used"
    return f"{path}: {text} {said}"


def _holder(path: Path) -> str:
    """Return the process that holds a lock on the files of a journal, where the system lists it."""
    pids = set()
    inodes = set()
    for name in (path, Path(f"{path}-shm")):
        try:
            inodes.add(str(name.stat().st_ino))
        except OSError:
            continue  # no such file, so no lock on it
    try:
        locks = Path("/proc/locks").read_text(encoding="ascii", errors="replace")
    except OSError:
        return "another process"
    for line in locks.splitlines():
        fields = line.split()
        if len(fields) >= 6 and "WRITE" in fields and fields[-3].rpartition(":")[2] in inodes:
            pids.add(fields[-4])
    pids.discard(str(os.getpid()))
    return f"process {', '.join(sorted(pids))}" if pids else "another process"
