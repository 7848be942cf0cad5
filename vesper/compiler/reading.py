"""Reading of a node's file: its bytes, its text and its stamp.

The stamp recognises an unchanged file without reading it.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from pathlib import Path

from vesper.compiler.load_cache import collection_folder
from vesper.storage.file_access import open_regular

MAX_BYTES = 1024 * 1024
# A file written this shortly before it is read can change again without a change of its time.
_UNSETTLED_NS = 2_000_000_000

Stamp = tuple[int, int, int]
"""Size, time of change in nanoseconds, inode."""


_NODE_FIELD = re.compile(r"""(?:^|[\n{,])[ \t]*["']?(node_id|library_id|type|intent|inputs|outputs|flow)["']?[ \t]*:""")


class NotText(Exception):
    """The bytes are no valid text of a node; the message has the reason."""


class NotANode(NotText):
    """The text is not about a node, so messages must not show its lines."""


def text_of(data: bytes) -> str:
    """Return the text of a node's file."""
    if len(data) > MAX_BYTES:
        raise NotText("it is larger than 1 MiB")
    if data.startswith(b"\xef\xbb\xbf"):
        raise NotText("it starts with a byte order mark")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotText(f"byte {error.start} is not UTF-8") from None
    fields = set(_NODE_FIELD.findall(text))
    if text.strip() and not fields & {"node_id", "library_id"} and len(fields) < 2:
        raise NotANode("it is not a node: it has no field `node_id`")
    return text


def shown_path(path: str) -> str:
    """Return a path for messages and JSON. Bytes of a name that are not UTF-8 become escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _refuse_odd_name(path: Path) -> None:
    """Refuse a name that is not UTF-8. No tool could print it, and it is the id of no node."""
    shown = path.as_posix()
    if shown_path(shown) != shown:
        raise OSError(errno.EILSEQ, "its name is not UTF-8", shown)


def _refuse_link_out(path: Path) -> None:
    """Refuse a link that leads out of the collection. Its target was not meant to be read, let alone shown."""
    if not path.is_symlink():
        return
    folder = Path(collection_folder(str(path)))
    if not path.resolve().is_relative_to(folder.resolve()):
        raise OSError(errno.ELOOP, f"it is a link to a file outside of `{folder.name}`", str(path))


def open_node(path: Path) -> int:
    """Return a descriptor of the file of a node. Raises `OSError` for a link out of its collection, and for no file."""
    _refuse_odd_name(path)
    _refuse_link_out(path)
    return open_regular(path)


def read_bytes(path: Path) -> bytes:
    """Return the content of a file; of one that is too large, enough to detect that."""
    with os.fdopen(open_node(path), "rb") as file:
        return file.read(MAX_BYTES + 1)


def read_stamped(path: Path) -> tuple[bytes, Stamp | None]:
    """Return the content and its stamp; no stamp for a file that changed just now."""
    with os.fdopen(open_node(path), "rb") as file:
        before = _stamp(os.fstat(file.fileno()))
        data = file.read(MAX_BYTES + 1)
        after = _stamp(os.fstat(file.fileno()))
    settled = before is not None and before[1] < time.time_ns() - _UNSETTLED_NS
    return data, before if settled and before == after else None


def stamp_of(shown: str) -> Stamp | None:
    """Return the current stamp of a file; None unless it is a plain file."""
    return _stamp(os.stat(shown))  # noqa: PTH116  # `Path` is measurably slower for a thousand files


def _stamp(status: os.stat_result) -> Stamp | None:
    if not stat.S_ISREG(status.st_mode):
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino
