"""The bytes of a node's file, the text in them, and the stamp by which a file is recognised without reading it."""

from __future__ import annotations

import errno
import os
import stat
import time
from pathlib import Path

MAX_BYTES = 1024 * 1024
# A file that was written this shortly before it is read can be written again without its time showing it.
_UNSETTLED_NS = 2_000_000_000

Stamp = tuple[int, int, int]
"""Size, time of change in nanoseconds, inode."""


class NotText(Exception):
    """The bytes are no text that a node may be; the message says why."""


def text_of(data: bytes) -> str:
    """The text of a node's file."""
    if len(data) > MAX_BYTES:
        raise NotText("it is larger than 1 MiB")
    if data.startswith(b"\xef\xbb\xbf"):
        raise NotText("it starts with a byte order mark")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotText(f"byte {error.start} is not UTF-8") from None


def shown_path(path: str) -> str:
    """A path as messages and JSON can hold it: bytes of a name that are not UTF-8 as escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _refuse_odd_name(path: Path) -> None:
    """A name that is no text could be printed by no tool and be the id of no node."""
    shown = path.as_posix()
    if shown_path(shown) != shown:
        raise OSError(errno.EILSEQ, "its name is not UTF-8", shown)


def read_bytes(path: Path) -> bytes:
    """What the file holds; of one that is too large, enough to see that it is: it may be without end."""
    _refuse_odd_name(path)
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def read_stamped(path: Path) -> tuple[bytes, Stamp | None]:
    """The same, with the stamp by which just these bytes will be known, if there is one."""
    _refuse_odd_name(path)
    with path.open("rb") as file:
        before = _stamp(os.fstat(file.fileno()))
        data = file.read(MAX_BYTES + 1)
        after = _stamp(os.fstat(file.fileno()))
    settled = before is not None and before[1] < time.time_ns() - _UNSETTLED_NS
    return data, before if settled and before == after else None


def stamp_of(shown: str) -> Stamp | None:
    """The stamp of a file as it is now; None for what is no plain file."""
    return _stamp(os.stat(shown))  # noqa: PTH116  # for a thousand files the detour over `Path` shows


def _stamp(status: os.stat_result) -> Stamp | None:
    if not stat.S_ISREG(status.st_mode):
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino
