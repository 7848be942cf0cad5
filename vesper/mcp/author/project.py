"""The files that an author may read and write: `.vsp` files below one folder, and nothing else."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final, Self

from vesper.compiler.reading import NotText, read_bytes, text_of
from vesper.repository.locate import SUFFIX, NodeNotFound, locate, node_files
from vesper.storage.write_file import create_text, replace_text
from vesper.values.model import printable
from vesper.values.vesper_error import VesperError

MAX_CHARACTERS: Final = 1 << 18
"""Characters of a file that an author may write."""


class AuthorError(VesperError):
    """A request of an author that is refused or cannot be done."""


class Project:
    """A folder of nodes, and the settings that its runs have."""

    def __init__(self, root: Path, config: Path | None = None, has_grants: bool = False) -> None:
        """`config` is the file of settings. Without `has_grants` runs have empty settings, which grant nothing.

        Raises `AuthorError` for a folder that does not exist, and for grants without a file.
        """
        if not root.is_dir():
            raise AuthorError(f"there is no folder `{root}`: create it, or name another with --nodes")
        if has_grants and config is None:
            raise AuthorError("there is no vesper.toml from here upwards, so nothing is granted: omit --grants")
        self.root = root.resolve()
        self.config = None if config is None else config.resolve()
        self.has_grants = has_grants
        self._scratch = tempfile.TemporaryDirectory(prefix="vesper-author-")
        empty = Path(self._scratch.name, "vesper.toml")
        empty.write_text("", encoding="utf-8")
        self.run_config = self.config if has_grants and self.config is not None else empty
        """The settings of runs."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._scratch.cleanup()

    def files(self) -> list[str]:
        """Return the files of nodes and libraries, relative to the folder."""
        found = (each.resolve() for each in node_files([self.root]))
        return [each.relative_to(self.root).as_posix() for each in found if each.is_relative_to(self.root)]

    def existing(self, name: str) -> Path:
        """Return the file of a node: a path below the folder, an id, or a name without its version."""
        if name.endswith(SUFFIX) or "/" in name:
            path = self._inside(name)
            if not path.is_file():
                raise AuthorError(f"there is no file `{printable(name)}`; `list_nodes` shows those there are")
            return path
        try:
            return self._inside(str(locate(name, self.root).relative_to(self.root)))
        except NodeNotFound as problem:
            raise AuthorError(printable(str(problem))) from None

    def read(self, name: str) -> str:
        try:
            return text_of(read_bytes(self.existing(name)))
        except (OSError, NotText) as problem:
            raise AuthorError(f"`{printable(name)}` cannot be read: {problem}") from None

    def write(self, name: str, text: str) -> Path:
        """Write a file whole, new or not."""
        path = self._inside(name)
        if len(text) > MAX_CHARACTERS:
            raise AuthorError(f"a node of {len(text):,} characters is too long; {MAX_CHARACTERS:,} are allowed")
        try:
            if path.exists():
                replace_text(path, text)
            else:
                create_text(path, text)
        except (OSError, UnicodeEncodeError) as problem:
            raise AuthorError(f"`{printable(name)}` cannot be written: {problem}") from None
        return path

    def _inside(self, name: str) -> Path:
        """Return a path below the folder. Raises `AuthorError` for any other, also behind a symbolic link."""
        relative = Path(name)
        if "\0" in name or relative.is_absolute() or ".." in relative.parts:
            raise AuthorError(f"`{printable(name)}` is refused: a path is relative to the folder of nodes")
        path = self.root / relative
        if path.suffix != SUFFIX:
            raise AuthorError(f"`{printable(name)}` is refused: only `{SUFFIX}` files are read and written")
        try:
            found = path.resolve()
        except (OSError, RuntimeError) as problem:
            raise AuthorError(f"`{printable(name)}` is refused: {problem}") from None
        if not found.is_relative_to(self.root) or path.is_symlink():
            raise AuthorError(f"`{printable(name)}` is refused: it leads out of the folder of nodes")
        return path
