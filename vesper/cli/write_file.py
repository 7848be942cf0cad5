"""Atomic writes of text files: a reader sees the old text or the new text, never a part."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def replace_text(path: Path, text: str) -> None:
    """Replace the text of an existing file. Keeps its mode, symbolic links and line ends."""
    target = path.resolve()
    mode = target.stat().st_mode
    if not os.access(target, os.W_OK):
        raise PermissionError(13, "it is read-only")
    temporary = _write_beside(target, text, mode & 0o7777)
    try:
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def create_text(path: Path, text: str) -> None:
    """Write a new file. Raises `FileExistsError` and changes nothing where the file exists."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        try:
            file.write(text.encode("utf-8"))
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def _write_beside(target: Path, text: str, mode: int) -> Path:
    """Write the text to a temporary file in the folder of the target."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary
