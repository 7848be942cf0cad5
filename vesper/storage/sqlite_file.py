"""A file of SQLite with a write-ahead log, with tables of the migration state.

SQLite must not see a fork: its locks belong to the process, and its knowledge of them would be wrong in the child. So
connections are closed before a fork and opened again, by parent and child, at their next use.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from vesper.storage.after_fork import Order, register
from vesper.storage.file_access import create_private, make_private_folder
from vesper.storage.sqlite_errors import sqlite_message
from vesper.storage.transaction import Row, Transaction
from vesper.storage.trust import distrust
from vesper.values.vesper_error import VesperError

_FORK_SECONDS = 10.0
_RETRY_SECONDS = 0.005
_LOG_PAGES = 4000
"""Pages of the log (16 MiB) before a checkpoint: a page that many commits wrote is moved once."""


class Connections:
    """The connections of one process: a writer and a reader."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """Of the thread that writes. An RLock, because it knows its owner: a timed wait that Ctrl-C ends must release
        it only where it was taken."""
        self.writer: sqlite3.Connection | None = None
        self.reading_lock = threading.Lock()
        self.reader: sqlite3.Connection | None = None
        self.inode = (0, 0)
        self.is_torn = False
        """True in a child that was forked while its parent wrote: SQLite cannot be used any more."""


class SqliteFile:
    """The file at `path`. A subclass names its content and makes its tables."""

    what = "tables"
    """The content, as messages name it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._here = self._connections()
        _FILES.add(self)

    # -- what is the keeper's to say --------------------------------------------------------------

    def _connections(self) -> Connections:
        return Connections()

    @property
    def _busy_seconds(self) -> float:
        """Return the seconds for which another process may hold the file before it is reported as locked."""
        raise NotImplementedError

    @property
    def _turn_seconds(self) -> float:
        """Return the seconds for which a thread waits for other writers of its process. -1 is unlimited."""
        return -1

    def _error_of_turn(self) -> VesperError:
        return self._error(
            f"{self._path}: other threads of this process have had the {self.what} for {self._turn_seconds:g} s"
        )

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        """Make or upgrade the tables; refuse those of a newer Vesper."""
        raise NotImplementedError

    def _error(self, text: str) -> VesperError:
        raise NotImplementedError

    def _error_of(self, error: sqlite3.Error) -> VesperError:
        return self._error(sqlite_message(error, self._path, self.what, self._busy_seconds))

    # -- using it ---------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return str(self._path)

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Yield a write transaction. One thread of the process writes at a time.

        To be used inside an `Ending` (`store`), which closes it after an interrupt.
        """
        here = self._here
        try:
            if not here.lock.acquire(timeout=self._turn_seconds):
                raise self._error_of_turn()
            try:
                connection = here.writer or self._open(here)
                self._check_file(here)
                with connection:  # commits or rolls back, in C
                    # Within: Ctrl-C during the wait for another process may leave a transaction open.
                    connection.execute("BEGIN IMMEDIATE")
                    yield SqliteTransaction(connection)
            except sqlite3.Error as error:
                self._abandon(here, error)
                raise self._error_of(error) from error
        finally:
            try:  # noqa: SIM105  # `suppress` is Python, and Ctrl-C may come there first
                here.lock.release()
            except RuntimeError:
                pass  # it was not taken

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Yield a read transaction. Any thread may release its lock: one that collects the traceback of an interrupted
        reader does."""
        here = self._here
        if here.reader is None:
            self._make_ready(here)
        with here.reading_lock:
            try:
                connection = here.reader or self._open_reader(here)
                with connection:  # ends it, in C
                    connection.execute("BEGIN")
                    yield SqliteTransaction(connection)
            except sqlite3.Error as error:
                if here.reader is not None:
                    here.reader.close()
                    here.reader = None
                raise self._error_of(error) from error

    def close(self) -> None:
        here = self._here
        with here.lock, here.reading_lock:
            _close(here)

    # -- opening ----------------------------------------------------------------------------------

    def _open(self, here: Connections) -> sqlite3.Connection:
        """Open the writer; make the file and its tables where there are none."""
        if here.is_torn:
            raise self._error(
                f"{self._path}: this process was forked while its parent was writing the {self.what}; it cannot use "
                f"it. Fork before the {self.what} is used, or start a new process instead"
            )
        make_file(self._path, self.what, self._error)
        connection = self._connect()
        try:
            mode = _use_write_ahead_log(connection, self._busy_seconds)
            if mode != "wal":
                raise self._error(
                    f"{self._path}: the file system has no shared memory for a write-ahead log (mode {mode}): "
                    f"put the {self.what} on a local disk"
                )
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
            connection.execute("PRAGMA synchronous = FULL")
            self._make_tables(connection)
        except BaseException:
            connection.close()
            raise
        status = self._path.stat()
        here.inode = (status.st_dev, status.st_ino)
        here.writer = connection
        return connection

    def _make_ready(self, here: Connections) -> None:
        """Open the writer, which creates the tables.

        The caller must not hold the lock of the reader: the lock of the writer is taken first.
        """
        with here.lock:
            try:
                if here.writer is None:
                    self._open(here)
            except sqlite3.Error as error:
                raise self._error_of(error) from error

    def _open_reader(self, here: Connections) -> sqlite3.Connection:
        connection = self._connect()
        connection.execute("PRAGMA query_only = ON")
        here.reader = connection
        return connection

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False)

    def _check_file(self, here: Connections) -> None:
        """Refuse a file that was deleted or replaced: SQLite would write to one that no other process finds."""
        try:
            status = self._path.stat()
        except OSError:
            status = None
        if status is None or (status.st_dev, status.st_ino) != here.inode:
            with here.reading_lock:
                _close(here)
            raise self._error(f"{self._path}: somebody deleted or replaced the {self.what} while it was in use")

    def _abandon(self, here: Connections, error: sqlite3.Error) -> None:
        """Close a connection that met a broken file or disk."""
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL):
            _close_writer(here)


def path_of_dsn(rest: str) -> Path | None:
    """Return the path behind `sqlite:`, or behind `//` with URL escapes. None if it names no file."""
    text = rest
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in ("", "localhost") or not slash:
            return None
        text = unquote("/" + path)
    return None if not text or text.startswith(":") or "\0" in text else Path(text).absolute()


def make_file(path: Path, what: str, error: Callable[[str], VesperError]) -> None:
    """Make a file that only its owner can read, because it holds inputs of nodes.

    SQLite gives the files beside it the same permissions.
    """
    if (reason := distrust(path)) is not None:
        raise error(reason)
    try:
        is_new = not path.parent.exists()
        if is_new and not path.parent.parent.exists():  # more than one missing folder is a mistake
            raise FileNotFoundError
        make_private_folder(path.parent)
        if is_new:
            _sync_folder(path.parent.parent)
        os.close(create_private(path))
    except FileExistsError:
        if path.is_dir():
            raise error(f"{path} is a folder: a {what} is a file") from None
    except FileNotFoundError:
        raise error(f"{path}: the folder {path.parent.parent} does not exist; create it") from None
    except OSError as failure:
        raise error(f"{path}: the {what} cannot be created: {failure.strerror}") from None


def _use_write_ahead_log(connection: sqlite3.Connection, seconds: float) -> str:
    """Switch the file to a write-ahead log and return its journal mode after that.

    SQLite does not wait for the lock of this change: two processes that open a new file at once would meet "database is
    locked".
    """
    last = time.monotonic() + seconds
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            is_busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() >= last:
                raise
        time.sleep(_RETRY_SECONDS)


class SqliteTransaction:
    __slots__ = ("_connection",)
    locking = ""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        found: list[Any] = self._connection.execute(sql, parameters).fetchall()
        return found

    def run(self, sql: str, parameters: Sequence[object] = ()) -> int:
        return self._connection.execute(sql, parameters).rowcount

    def now_us(self) -> int:
        return time.time_ns() // 1000


def _sync_folder(folder: Path) -> None:
    """Sync a new folder, so that it survives a loss of power. SQLite syncs the files in it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def roll_back(connection: sqlite3.Connection) -> None:
    """End an open transaction; after some errors SQLite has ended it itself."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _close_writer(here: Connections) -> None:
    connection, here.writer = here.writer, None
    if connection is not None:
        connection.close()


def _close(here: Connections) -> None:
    reader, here.reader = here.reader, None
    if reader is not None:
        reader.close()
    _close_writer(here)


# -- forks ----------------------------------------------------------------------------------------

_FILES: weakref.WeakSet[SqliteFile] = weakref.WeakSet()


class _Forking(threading.local):
    """The locks that this thread holds while it forks. Another thread may fork at the same time."""

    def __init__(self) -> None:
        self.held: list[tuple[SqliteFile, bool, bool]] = []


_forking = _Forking()


def _before_fork() -> None:
    """Take all locks, in one order for all threads that fork, so that none deadlocks."""
    for file in sorted(_FILES, key=id):
        here = file._here
        is_own = here.lock._is_owned()  # type: ignore[attr-defined]  # it forks while it writes
        has_writer = not is_own and here.lock.acquire(timeout=_FORK_SECONDS)
        has_reader = here.reading_lock.acquire(timeout=_FORK_SECONDS)
        if has_writer and has_reader:
            _close(here)
        _forking.held.append((file, has_writer, has_reader))


def _after_fork_in_parent() -> None:
    while _forking.held:
        file, has_writer, has_reader = _forking.held.pop()
        if has_reader:
            file._here.reading_lock.release()
        if has_writer:
            file._here.lock.release()


def _after_fork_in_child() -> None:
    while _forking.held:
        file, has_writer, has_reader = _forking.held.pop()
        inherited = file._here
        file._here = file._connections()
        if not (has_writer and has_reader):
            file._here.is_torn = True
            _INHERITED.append(inherited)  # closing it would end locks and logs of the parent


_INHERITED: list[Connections] = []

register(
    order=Order.STORAGE,
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
