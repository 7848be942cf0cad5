"""Entries on disk: a name and bytes, trusted only with their MAC.

Each entry is one file, written beside its place and renamed: a reader finds a whole entry or none, of two writers the
last wins, and a killed process leaves a file that the next eviction deletes. The MAC covers the name, so an entry under
another name counts as damaged. The time of a file is that of its last use; beyond the bounds, the oldest are deleted.
"""

from __future__ import annotations

import os
import stat
import time
from _operator import _compare_digest  # `hmac.compare_digest` without importing OpenSSL

from vesper.cache.counters import SavedCounters
from vesper.cache.folder import NoCache, folder_name, ignore_os_errors, is_own, key_name, read_key, trusted_folder

try:
    from _blake2 import blake2b  # `hashlib` imports OpenSSL first, a tenth of the time of a warm start
except ImportError:  # pragma: no cover  # a Python with another layout
    from hashlib import blake2b

MAGIC = b"vesper-entry-1\n"
SUFFIX = ".entry"
MAX_ENTRY = 32 * 1024 * 1024
BYTES_VARIABLE = "VESPER_CACHE_BYTES"
_MAX_BYTES = 256 * 1024 * 1024
_MAX_ENTRIES = 20_000
_DIGEST = 32
_TOUCH_SECONDS = 600.0
"""Seconds between two updates of the time of an entry that is used often."""
_ABANDONED_SECONDS = 300.0
"""Seconds after which a half-written file is abandoned."""


def digest(*parts: bytes) -> bytes:
    """Return one hash of several parts, each with its length."""
    made = blake2b(digest_size=_DIGEST)
    for part in parts:
        made.update(len(part).to_bytes(8, "little"))
        made.update(part)
    return made.digest()


class Entries:
    """The entries of one folder."""

    def __init__(self, folder: str, key: bytes, max_bytes: int = _MAX_BYTES, max_entries: int = _MAX_ENTRIES) -> None:
        self.folder = folder
        self._key = key
        self.max_bytes = max_bytes
        self.max_entries = max_entries
        self.kept = SavedCounters(f"{os.path.dirname(folder)}/counters")

    # -- asking -----------------------------------------------------------------------------------

    def find(self, name: str) -> bytes | None:
        """Return the bytes under this name, if they are present and unchanged."""
        counters = self.kept.counters
        try:
            handle = os.open(self._file(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            counters.misses += 1
            return None
        except OSError:
            counters.misses += 1
            counters.refused += 1
            return None
        try:
            status = os.fstat(handle)
            data = self._read(handle, status)
            body = None if data is None else self._body(name, data)
            if body is not None and time.time() - status.st_mtime > _TOUCH_SECONDS:
                with ignore_os_errors:
                    os.utime(handle)
        except OSError:
            body = None
        finally:
            os.close(handle)
        if body is None:
            counters.misses += 1
            counters.refused += 1
        else:
            counters.hits += 1
        return body

    def _read(self, handle: int, status: os.stat_result) -> bytes | None:
        if not stat.S_ISREG(status.st_mode) or not is_own(status) or status.st_mode & 0o022:
            return None
        if status.st_size > MAX_ENTRY:
            return None
        parts, left = [], status.st_size
        while left > 0 and (part := os.read(handle, left)):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _body(self, name: str, data: bytes) -> bytes | None:
        start = len(MAGIC) + _DIGEST
        if len(data) < start or not data.startswith(MAGIC):
            return None
        body = data[start:]
        return body if _compare_digest(data[len(MAGIC) : start], self._mac(name, body)) else None

    def _mac(self, name: str, body: bytes) -> bytes:
        made = blake2b(name.encode("ascii"), digest_size=_DIGEST, key=self._key)
        made.update(b"\0")
        made.update(body)
        return made.digest()

    def _file(self, name: str) -> str:
        return f"{self.folder}/{name}{SUFFIX}"

    # -- telling ----------------------------------------------------------------------------------

    def put(self, name: str, body: bytes) -> bool:
        """Store an entry; return False where it is too large or the folder cannot be written."""
        if len(body) + len(MAGIC) + _DIGEST > min(MAX_ENTRY, self.max_bytes):
            return False
        temporary = f"{self.folder}/.{name[:16]}.{os.getpid()}.{int.from_bytes(os.urandom(4))}"
        try:
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            return False
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines((MAGIC, self._mac(name, body), body))
            os.replace(temporary, self._file(name))
        except BaseException as error:
            with ignore_os_errors:
                os.unlink(temporary)
            if isinstance(error, OSError):
                return False
            raise
        self.kept.counters.writes += 1
        self.evict()
        return True

    def drop(self, name: str) -> None:
        with ignore_os_errors:
            os.unlink(self._file(name))

    # -- bounds -----------------------------------------------------------------------------------

    def evict(self) -> int:
        """Delete entries beyond the bounds, least recently used first, and abandoned files."""
        found, count = self._list(), 0
        size = sum(each[1] for each in found)
        for _, length, path in sorted(found):
            if size <= self.max_bytes and len(found) - count <= self.max_entries:
                break
            with ignore_os_errors:
                os.unlink(path)
                size -= length
                count += 1
        self.kept.counters.evictions += count
        return count

    def _list(self) -> list[tuple[float, int, str]]:
        """Return time of use, size and path of every entry."""
        found, old = [], time.time() - _ABANDONED_SECONDS
        with ignore_os_errors, os.scandir(self.folder) as listed:
            for each in listed:
                with ignore_os_errors:
                    status = each.stat(follow_symlinks=False)
                    if each.name.endswith(SUFFIX):
                        found.append((status.st_mtime, status.st_size, each.path))
                    elif each.name.startswith(".") and status.st_mtime < old:
                        os.unlink(each.path)
        return found

    def size(self) -> tuple[int, int]:
        """Return the number of entries, and their bytes."""
        found = self._list()
        return len(found), sum(each[1] for each in found)

    def clear(self) -> int:
        """Delete every entry, and return how many there were."""
        found = self._list()
        for _, _, path in found:
            with ignore_os_errors:
                os.unlink(path)
        self.kept.clear()
        return len(found)


def open_entries() -> Entries:
    """Open the cache that the environment names. Raises `NoCache` with the reason where there is none."""
    folder = folder_name()
    trusted_folder(folder)
    inner = f"{folder}/nodes"
    trusted_folder(inner)
    return Entries(inner, read_key(key_name()), _bound())


def _bound() -> int:
    said = os.environ.get(BYTES_VARIABLE, "")
    if not said:
        return _MAX_BYTES
    if not said.isascii() or not said.isdigit() or len(said) > 15:
        raise NoCache(f"{BYTES_VARIABLE}={said} is no number of bytes")
    return int(said)


_opened: dict[tuple[str | None, ...], Entries | NoCache] = {}


def entries() -> Entries | None:
    """Return the cache of this process, opened once for each state of the environment; None where there is none.

    Warns once where a folder cannot be trusted.
    """
    names = ("VESPER_CACHE", "VESPER_NO_CACHE", "VESPER_CACHE_KEY", BYTES_VARIABLE, "XDG_CACHE_HOME", "HOME")
    state = tuple(map(os.environ.get, names))
    found = _opened.get(state)
    if found is None:
        try:
            found = open_entries()
        except NoCache as why:
            found = why
            if not why.is_meant:
                import warnings

                warnings.warn(f"nodes are loaded without a cache: {why}", RuntimeWarning, stacklevel=2)
        _opened[state] = found
    return None if isinstance(found, NoCache) else found
