"""Patterns of paths below a root: `*` within a name, `**` for any number of folders."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from vesper.effects.files.settings import FileSettings


def path_problem(settings: FileSettings | None, effect: str, path: str) -> str | None:
    """Return the reason why the patterns of a root refuse a path. None if they allow it.

    The performer refuses every path that leaves its root, so patterns compare names only.
    """
    patterns = None if settings is None else settings.read if effect == "file_read" else settings.write
    if settings is None or patterns is None:
        return None
    parts = path.split("/")
    if any(_matches(parts, pattern.split("/")) for pattern in patterns):
        return None
    verb = "read" if effect == "file_read" else "write"
    return f"`[files.{settings.name}] {verb}` allows no such path: {', '.join(patterns) or 'it is empty'}"


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    # Positions in the pattern that the parts so far can have led to.
    reached = _skip_folders({0}, pattern)
    for part in parts:
        after = {
            at if pattern[at] == "**" else at + 1
            for at in reached
            if at < len(pattern) and _fits_name(part, pattern[at])
        }
        reached = _skip_folders(after, pattern)
    return len(pattern) in reached


def _skip_folders(reached: set[int], pattern: Sequence[str]) -> set[int]:
    """Add the positions behind each `**`, which may match no folder."""
    found = set(reached)
    for at in range(len(pattern)):
        if at in found and pattern[at] == "**":
            found.add(at + 1)
    return found


def _fits_name(part: str, pattern: str) -> bool:
    """Return whether a name fits. A hidden name fits only a pattern that begins with the dot."""
    if part.startswith(".") and not pattern.startswith("."):
        return False
    return pattern == "**" or fnmatchcase(part, pattern)
