"""Folders below which nodes read and write files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vesper.effects.settings import ConfigError, Table


@dataclass(frozen=True, slots=True)
class FileSettings:
    """`[files.ROOT]`."""

    name: str
    path: Path
    read_only: bool
    max_bytes: int
    """The longest file that is read or written, and that appending makes."""
    sync: bool
    """True: a file that was written is on the disk, and its folder too, when the effect completes."""
    hard_links: bool
    """True: files that have another name, perhaps elsewhere, may be used."""
    read: tuple[str, ...] | None = None
    """Patterns of paths that may be read; None is every path."""
    write: tuple[str, ...] | None = None
    """Patterns of paths that may be written; None is every path."""

    @classmethod
    def from_table(cls, name: str, table: Table, base: Path | None = None) -> FileSettings:
        """Read the settings. A relative `path` is below `base`, the folder of the configuration; without `base` it is
        refused.
        """
        path = Path(table.text("path"))
        if not path.is_absolute():
            if base is None:
                raise table.error("path", f"an absolute path is expected, not `{path}`")
            path = base / path
        found = cls(
            name,
            path,
            table.boolean("read_only", False),
            table.size("max_bytes", 10_000_000),
            table.boolean("sync", True),
            table.boolean("hard_links", False),
            _patterns(table, "read"),
            _patterns(table, "write"),
        )
        table.done()
        if path == Path(path.anchor):
            raise table.error("path", "the root of the file system cannot be a root for nodes")
        if not path.is_dir():
            raise ConfigError(f"{table.where}.path", f"there is no folder `{path}`: make it, or correct the path")
        return found


def _patterns(table: Table, name: str) -> tuple[str, ...] | None:
    found = table.texts(name) if name in table else None
    for pattern in found or ():
        if not pattern or any(part in ("", ".", "..") for part in pattern.split("/")):
            raise table.error(name, f"`{pattern}` matches no path: paths are below the root, as `docs/**/*.md`")
    return found
