"""The files whose change reloads a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path


def watched_files(roots: Sequence[str], config: Path | None) -> Callable[[], object]:
    """Return a function whose result changes with the files below the roots or the settings."""

    def look() -> object:
        found = {} if config is None else {config: file_stamp(config)}
        for root in map(Path, roots):
            for path in (root, *root.rglob("*")) if root.is_dir() else (root,):
                found[path] = file_stamp(path)
        return found

    return look


def file_stamp(path: Path) -> tuple[int, int, int] | None:
    """Return a value that changes with a file; None if there is no file."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size, about.st_ino
