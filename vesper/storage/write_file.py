"""Atomic writes of text files: a reader sees the old text or the new text, never a part."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import tempfile
import threading
from pathlib import Path

from vesper.storage.file_access import create_private, open_regular

_REPLACING = threading.Lock()


def replace_text(path: Path, text: str) -> None:
    """Replace the text of an existing file. Keeps its mode and line ends; refuses a symbolic link."""
    _replace(path, text.encode("utf-8"))


def replace_same(path: Path, text: str, sha256: str) -> bool:
    """Replace the text of a file that still has this hash; return whether it had. One thread does so at a time."""
    with _REPLACING:
        with os.fdopen(open_regular(path), "rb") as file:
            if hashlib.sha256(file.read()).hexdigest() != sha256:
                return False
        replace_text(path, text)
    return True


def create_text(path: Path, text: str, is_private: bool = False) -> None:
    """Write a new file. Raises `FileExistsError` and changes nothing where the file or a link exists.

    A file with inputs of nodes is private: only its owner can read it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _create(path, text.encode("utf-8"), is_private)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, new or not, in an existing folder. Refuses a symbolic link and a device."""
    if path.exists() or path.is_symlink():
        _replace(path, content)
    else:
        _create(path, content, is_private=False)


def _create(path: Path, content: bytes, is_private: bool) -> None:
    with os.fdopen(create_private(path), "wb") if is_private else path.open("xb") as file:
        try:
            file.write(content)
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def _replace(path: Path, content: bytes) -> None:
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a symbolic link, and links are not written through; name its target")
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise OSError(
            errno.EINVAL, "it is a device, a FIFO, a socket or a folder, and a regular file is needed", str(path)
        )
    if not os.access(path, os.W_OK):
        raise PermissionError(13, "it is read-only")
    temporary = _write_beside(path, content, mode & 0o7777)
    try:
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _write_beside(target: Path, content: bytes, mode: int) -> Path:
    """Write the content to a temporary file in the folder of the target."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary
