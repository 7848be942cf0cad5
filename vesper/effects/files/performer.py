"""Files below configured folders: `file_read`, `file_write` and `file_append`.

A path is text from a node, and a node may have it from anywhere. It stays below its root by the way it is opened: one
part after the other, each from the folder before it (`dir_fd`), none of them followed if it is a link. There is no
path that is checked first and opened later, so nothing can be swapped in between.

A folder that a write needs is made. A file is replaced whole, by renaming: after a crash it is the old one or the new
one, and perhaps a file `.vesper-….tmp` is left beside it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vesper.effects.performer import Ask, EffectFailed
from vesper.effects.settings import ConfigError, Table
from vesper.values.json_value import parse_json, plain_json
from vesper.values.model import accept
from vesper.values.problem import ValueProblem
from vesper.values.types import BYTES, JSON, STRING, Type

REFUSED: Final = "invalid_argument"
"""The code of a path that may not be used; effects declare none of its own for it."""
_MAX_PATH_BYTES: Final = 4096
_MAX_PART_BYTES: Final = 255
_MAX_PARTS: Final = 64
_OURS: Final = ".vesper-"
"""How the names of half-written files begin; no path of a node may have such a part."""
_CHUNK: Final = 1 << 20
_LOCK_SECONDS: Final = 30.0
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ANY_FILE: Final = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
"""Opening a FIFO must not wait for its other end."""


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

    @classmethod
    def from_table(cls, name: str, table: Table, base: Path | None = None) -> FileSettings:
        """A relative `path` is below `base`, the folder of the configuration; without one it is refused."""
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
        )
        table.done()
        if path == Path(path.anchor):
            raise table.error("path", "the root of the file system cannot be a root for nodes")
        if not path.is_dir():
            raise ConfigError(f"{table.where}.path", f"there is no folder `{path}`: make it, or correct the path")
        return found


class FilePerformer:
    """Performs the effects of all configured roots."""

    def __init__(self, settings: Mapping[str, FileSettings]) -> None:
        self._settings = dict(settings)

    def perform(self, ask: Ask) -> object:
        root = self._settings.get(ask.fixed["root"])
        if root is None:
            name = ask.fixed["root"]
            raise EffectFailed("unavailable", f"no root `{name}` is configured: add [files.{name}] to vesper.toml")
        path = ask.arguments["path"]
        assert isinstance(path, str)
        file = _File(root, path, ask.timeout)
        if ask.effect == "file_read":
            return file.read(ask.gives)
        content = ask.arguments["content"]
        assert isinstance(content, str | bytes)
        match ask.effect:
            case "file_write":
                return file.write(content.encode() if isinstance(content, str) else content)
            case "file_append":
                return file.append(content.encode() if isinstance(content, str) else content)
            case _:
                raise ValueError(f"a root does not perform {ask.effect}")

    def probe(self, ask: Ask) -> object:
        raise EffectFailed("unavailable", f"{ask.effect} is never of class `probe`")

    def close(self) -> None:
        """Nothing is held between two effects."""


def _parts(path: str) -> list[str]:
    """The names that lead to a file, or the reason why this is no path."""
    problem = None
    parts = path.split("/")
    if not path:
        problem = "is empty"
    elif len(path) > _MAX_PATH_BYTES or len(path.encode()) > _MAX_PATH_BYTES or len(parts) > _MAX_PARTS:
        problem = f"is longer than {_MAX_PATH_BYTES:,} bytes or has more than {_MAX_PARTS} parts"
    elif any(ord(each) < 32 or ord(each) == 127 for each in path):
        problem = "has a control character"
    elif "\\" in path:
        problem = "has a backslash; parts are separated by `/`"
    elif path.startswith("/"):
        problem = "is absolute; paths begin at the root of their files"
    elif any(part in ("", ".", "..") for part in parts):
        problem = "has an empty part, `.` or `..`"
    elif any(len(part.encode()) > _MAX_PART_BYTES for part in parts):
        problem = f"has a part of more than {_MAX_PART_BYTES} bytes"
    elif any(part.startswith(_OURS) for part in parts):
        problem = f"has a part that begins with `{_OURS}`: these are files that are being written"
    if problem is not None:
        raise EffectFailed(REFUSED, f"the path {_shown(path)} {problem}")
    return parts


def _shown(path: str) -> str:
    return f"`{path[:80].encode('unicode_escape').decode()}{'…' if len(path) > 80 else ''}`"


class _File:
    """One file of a root, for one effect."""

    def __init__(self, root: FileSettings, path: str, timeout: float | None) -> None:
        *self._folders, self._name = _parts(path)
        self._root = root
        self._what = f"the file {_shown(path)} of `{root.name}`"
        self._is_read = False
        self._seconds = timeout
        self._deadline = None if timeout is None else time.monotonic() + timeout

    def read(self, gives: Type) -> object:
        self._is_read = True
        with self._folder(makes=False) as folder:
            file = self._open(folder, os.O_RDONLY)
            with _closing(file):
                content = self._content(file)
        if gives == BYTES:
            return self._value(gives, content)
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            message = f"{self._what} is no UTF-8: byte {error.start:,}; `returns: bytes` reads it as it is"
            raise EffectFailed("bad_response", message) from None
        if gives == STRING:
            return self._value(gives, text)
        assert gives == JSON, f"a file is never read as {gives}"
        try:
            return plain_json(parse_json(text))
        except ValueProblem as problem:
            raise EffectFailed("bad_response", f"{self._what} is no JSON: {problem.kind}") from None

    def write(self, content: bytes) -> int:
        self._check_writable(len(content))
        with self._folder(makes=True) as folder:
            mode = self._mode_of_old(folder)
            temporary = f"{_OURS}{secrets.token_hex(8)}.tmp"
            is_done = False
            try:
                file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _ANY_FILE, 0o666, dir_fd=folder)
                try:
                    with _closing(file):
                        if mode is not None:
                            os.fchmod(file, mode)
                        self._write_all(file, content)
                        if self._root.sync:
                            os.fsync(file)
                    os.rename(temporary, self._name, src_dir_fd=folder, dst_dir_fd=folder)
                    is_done = True
                    if self._root.sync:
                        os.fsync(folder)
                finally:
                    if not is_done:
                        with contextlib.suppress(OSError):  # what went wrong before is what is reported
                            os.unlink(temporary, dir_fd=folder)
            except OSError as error:
                raise self._failed(error, may_have_happened=is_done) from None
        return len(content)

    def append(self, content: bytes) -> int:
        self._check_writable(len(content))
        with self._folder(makes=True) as folder:
            is_new = self._stat(folder) is None
            file = self._open(folder, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            with _closing(file):
                self._lock(file)
                before = os.fstat(file).st_size
                if before + len(content) > self._root.max_bytes:
                    raise EffectFailed(REFUSED, f"{self._what} would be over {self._root.max_bytes:,} bytes")
                self._add(file, before, content)
                try:
                    if self._root.sync:
                        os.fsync(file)
                        if is_new:
                            os.fsync(folder)
                except OSError as error:
                    raise self._failed(error, may_have_happened=True) from None
        return len(content)

    def _add(self, file: int, before: int, content: bytes) -> None:
        """All of it or, where the disk is full, nothing: we hold the lock, so what is after `before` is our half."""
        try:
            self._write_all(file, content)
        except OSError as error:
            try:
                os.ftruncate(file, before)
            except OSError:
                raise self._failed(error, may_have_happened=True) from None
            raise self._failed(error) from None

    # -- folders ----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _folder(self, makes: bool) -> Iterator[int]:
        """The folder of the file, opened."""
        try:
            folder = os.open(self._root.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            message = f"the folder of `{self._root.name}` cannot be opened: {error.strerror}"
            raise EffectFailed("unavailable", message) from None
        try:
            for part in self._folders:
                inner = self._inner(folder, part, makes)
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)

    def _inner(self, folder: int, part: str, makes: bool) -> int:
        try:
            return os.open(part, _FOLDER, dir_fd=folder)
        except OSError as error:
            if error.errno != errno.ENOENT or not makes:
                raise self._no_folder(error, folder, part) from None
        self._make(folder, part)
        return self._inner(folder, part, makes=False)

    def _make(self, folder: int, part: str) -> None:
        try:
            os.mkdir(part, dir_fd=folder)
            if self._root.sync:
                os.fsync(folder)
        except FileExistsError:
            pass  # somebody else made it meanwhile: opening it shows what it is
        except OSError as error:
            raise self._failed(error) from None

    def _no_folder(self, error: OSError, folder: int, part: str) -> EffectFailed:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            with contextlib.suppress(OSError):
                if stat.S_ISLNK(os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode):
                    return EffectFailed(REFUSED, f"{self._what}: `{part}` is a link, and links are not followed")
            error = NotADirectoryError(errno.ENOTDIR, f"`{part}` is no folder")
        return self._failed(error)

    # -- files ------------------------------------------------------------------------------------

    def _open(self, folder: int, flags: int) -> int:
        """The file, which is a regular one: nothing that waits, rings or runs is ever read or written."""
        found = self._stat(folder)
        if found is not None:
            self._check_kind(found)  # opening some devices does something already
        try:
            file = os.open(self._name, flags | _ANY_FILE, 0o666, dir_fd=folder)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):  # swapped in after the look
                raise EffectFailed(REFUSED, f"{self._what} is no regular file") from None
            raise self._failed(error) from None
        try:
            self._check_kind(os.fstat(file))
        except BaseException:
            os.close(file)
            raise
        return file

    def _stat(self, folder: int) -> os.stat_result | None:
        try:
            return os.stat(self._name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failed(error) from None

    def _check_kind(self, found: os.stat_result) -> None:
        if stat.S_ISLNK(found.st_mode):
            raise EffectFailed(REFUSED, f"{self._what} is a link, and links are not followed")
        if stat.S_ISDIR(found.st_mode):
            raise EffectFailed(REFUSED, f"{self._what} is a folder")
        if not stat.S_ISREG(found.st_mode):
            raise EffectFailed(REFUSED, f"{self._what} is no regular file")
        if found.st_nlink > 1 and not self._root.hard_links:
            message = f"{self._what} has another name, perhaps outside; `hard_links = true` allows such files"
            raise EffectFailed(REFUSED, message)

    def _mode_of_old(self, folder: int) -> int | None:
        """The permissions of the file that is replaced: its successor is no more readable than it was."""
        found = self._stat(folder)
        if found is None:
            return None
        self._check_kind(found)
        return stat.S_IMODE(found.st_mode) & 0o777

    def _content(self, file: int) -> bytes:
        pieces: list[bytes] = []
        left = self._root.max_bytes + 1
        while left > 0:
            self._check_time()
            try:
                piece = os.read(file, min(left, _CHUNK))
            except OSError as error:
                raise self._failed(error) from None
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
            left -= len(piece)
        raise EffectFailed("bad_response", f"{self._what} is over `max_bytes`, {self._root.max_bytes:,} bytes")

    def _value(self, gives: Type, content: object) -> object:
        try:
            return accept(gives, content)
        except ValueProblem as problem:
            raise EffectFailed("bad_response", f"{self._what} is no {gives}: {problem.kind}") from None

    def _write_all(self, file: int, content: bytes) -> None:
        left = memoryview(content)
        while left:
            left = left[os.write(file, left) :]

    def _check_writable(self, size: int) -> None:
        if self._root.read_only:
            raise EffectFailed(REFUSED, f"`{self._root.name}` is read-only")
        if size > self._root.max_bytes:
            limit = f"{self._root.max_bytes:,} bytes"
            raise EffectFailed(REFUSED, f"{self._what} would be over `max_bytes`, {limit}")

    def _lock(self, file: int) -> None:
        """Two that append at once do so one after the other."""
        give_up = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                self._check_time()
                if time.monotonic() > give_up:
                    raise EffectFailed("timeout", f"{self._what} is locked by somebody else") from None
                time.sleep(0.005)
            except OSError as error:
                raise self._failed(error) from None

    def _check_time(self) -> None:
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise EffectFailed("timeout", f"{self._what} took longer than {self._seconds:g} s")

    def _failed(self, error: OSError, may_have_happened: bool = False) -> EffectFailed:
        if self._is_read and error.errno in (errno.ENOENT, errno.ENOTDIR):
            return EffectFailed("not_found", f"{self._what} does not exist")
        return EffectFailed("unavailable", f"{self._what}: {error.strerror}", may_have_happened=may_have_happened)


@contextlib.contextmanager
def _closing(file: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(file)
