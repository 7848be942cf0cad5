"""Detection of folders whose files do not survive a restart."""

from __future__ import annotations

import os
from pathlib import Path

_IN_MEMORY = {"tmpfs", "ramfs", "devtmpfs"}
_OF_CONTAINER = {"overlay", "aufs"}


def is_volatile(path: str | Path) -> str | None:
    """Return why a file at `path` may vanish with a restart. None if nothing suggests it.

    Many systems empty the folder for temporary files; a file system in memory ends with the machine, and the upper
    layer of a container with the container.
    """
    place = Path(os.path.realpath(path))
    for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run"):  # compared as names, not used
        if place.is_relative_to(folder):
            return f"{folder} is a folder for temporary files"
    kind, mounted = _file_system(place)
    if kind in _IN_MEMORY:
        return f"{mounted} is kept in memory ({kind})"
    if kind in _OF_CONTAINER:
        return f"{mounted} belongs to a container and ends with it ({kind})"
    return None


def _file_system(place: Path) -> tuple[str, str]:
    """Return type and folder of the innermost mount of `place`. Empty texts if the system lists no mounts."""
    try:
        table = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "", ""
    best = ("", "")
    for line in table.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        # Blanks and other characters are octal escapes.
        folder = fields[4].encode("latin-1", "replace").decode("unicode_escape")
        # Of two mounts on one folder the later one is visible.
        if place.is_relative_to(folder) and len(folder) >= len(best[1]):
            best = (after.split(" ")[0], folder)
    return best
