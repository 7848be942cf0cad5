"""Files of nodes written: a reader sees the old text or the new one, all of it, whatever happens between."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def replace_text(path: Path, text: str) -> None:
    """Put the text in the place of a file that is there. A link stays a link, line ends are part of the text."""
    target = path.resolve()
    mode = target.stat().st_mode
    if not os.access(target, os.W_OK):
        raise PermissionError(13, "it is read-only")
    temporary = _written(target, text, mode & 0o7777)
    try:
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def create_text(path: Path, text: str) -> None:
    """Write a new file; one that is there is a `FileExistsError` and stays as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        try:
            file.write(text.encode("utf-8"))
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def _written(target: Path, text: str, mode: int) -> Path:
    """A file beside the target that holds the text."""
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
