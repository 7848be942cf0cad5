"""Open files that users name, and make files and folders that only their owner can read."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from vesper.storage.trust import distrust

STATE_FOLDER = ".vesper"
"""The folder of journal, stores, traces and caches beside a configuration."""
PRIVATE_FILE = 0o600
_PRIVATE_FOLDER = 0o700
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def read_regular(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    """Return the content of a regular file of at most `max_bytes`.

    Raises `OSError` at once for a device, a FIFO, a socket or a folder: reading one of them may never end.
    """
    handle = open_regular(path)
    with os.fdopen(handle, "rb") as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {max_bytes:,} bytes", os.fspath(path))
    return content


def open_regular(path: str | os.PathLike[str]) -> int:
    """Return a descriptor of a regular file for reading. Raises `OSError` for anything else, without waiting."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        mode = Path(path).stat().st_mode  # a socket
    else:
        mode = os.fstat(handle).st_mode
        if stat.S_ISREG(mode):
            return handle
        os.close(handle)
    kind = next((name for test, name in _KINDS if test(mode)), "no regular file")
    raise OSError(errno.EINVAL, f"it is {kind}, and a regular file is needed", os.fspath(path))


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents for their owner alone.

    A `.vesper` that an earlier release made readable for others is restricted: it contains inputs of nodes. A symbolic
    link is refused, because a checkout may have it lead anywhere.
    """
    for each in (folder, *folder.parents):
        if each.name == STATE_FOLDER and each.is_symlink():
            raise OSError(errno.ELOOP, f"{each} is a symbolic link, and links are not written through", str(folder))
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=_PRIVATE_FOLDER, exist_ok=True)
    for each in (folder, *folder.parents):
        if each.name == STATE_FOLDER:
            status = each.lstat()
            is_open = stat.S_ISDIR(status.st_mode) and status.st_mode & 0o077 and status.st_uid == os.geteuid()
            if is_open and distrust(each) is None:  # one that others can write stays so, and is refused
                each.chmod(_PRIVATE_FOLDER)


def temporary_beside(path: Path) -> Path:
    """Return a new empty file in the same folder, to be renamed to `path`. Only its owner can read it.

    Its name cannot be guessed, so that another user cannot put a link in its place.
    """
    import tempfile

    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    os.close(handle)
    return Path(name)


def create_private(path: str | os.PathLike[str]) -> int:
    """Return a descriptor of a new file that only its owner can read. Raises `FileExistsError`, also for a link."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
