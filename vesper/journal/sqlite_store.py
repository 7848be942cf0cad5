"""A journal in a file: SQLite with a write-ahead log.

Commits are combined. A thread that commits queues its batch and asks for the lock of the writer; whoever has it writes
all that is queued in one transaction. A lone thread so writes at once, without a switch to another one; of many that
commit while the disk syncs, the next one writes for all.

A batch that is only a row of lines (nearly every one) is one statement outside of any explicit transaction, which
checks the fence and inserts: that is a third of the time that BEGIN, UPDATE, INSERT and COMMIT would take.

SQLite must not see a fork: its locks belong to the process, and what it remembers of them would be wrong in the child.
So connections are closed before one and opened again, by parent and child, when they are next used.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from vesper.journal import schema
from vesper.journal.batch import Batch
from vesper.journal.cells import integer
from vesper.journal.errors import JournalError
from vesper.journal.schema import PLACES
from vesper.journal.sqlite_errors import journal_error
from vesper.journal.store import Row, Transaction, check_version, fenced, migrate, write_audit, write_batch
from vesper.journal.volatile import is_volatile

BUSY_SECONDS = 5.0
"""How long another process may hold the file before it counts as locked."""
_FORK_SECONDS = 10.0
_LOG_PAGES = 4000
"""Pages of the log (16 MiB) before it is moved into the file: a page that many commits wrote is moved once."""

# One statement, so one transaction: SQLite lets only one write at a time, nobody can take the run over in between.
_PLAIN = (
    "INSERT INTO vesper_commits (place, lines, hashes) "
    "SELECT ?, ?, ? WHERE EXISTS (SELECT 1 FROM vesper_executions WHERE id = ? AND fence = ?)"
)


class _Connections:
    """What belongs to one process: a writer, a reader, and who waits."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.queue: deque[Batch] = deque()
        self.writer: sqlite3.Connection | None = None
        self.level = ""
        self.reading_lock = threading.Lock()
        self.reader: sqlite3.Connection | None = None
        self.inode = (0, 0)
        self.is_torn = False
        """True in a child that was forked while its parent wrote: SQLite cannot be used any more."""


class SqliteStore:
    """A journal in the file at `path`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.audit_key: bytes | None = None
        self._here = _Connections()
        _STORES.add(self)

    @staticmethod
    def of_dsn(rest: str) -> SqliteStore:
        """What stands behind `sqlite:`: a path, or `//` and, as in a URL, a path in which signs may be escaped."""
        text = rest
        if rest.startswith("//"):
            host, slash, path = rest[2:].partition("/")
            if host not in ("", "localhost") or not slash:
                raise JournalError(
                    f"`sqlite:{rest[:80]}` names no file: `sqlite:journal.db`, `sqlite:///folder/journal.db`"
                )
            text = unquote("/" + path)
        if not text or text.startswith(":") or "\0" in text:
            raise JournalError("a journal is a file: `sqlite:PATH`; one in memory would keep nothing")
        return SqliteStore(Path(text).absolute())

    @property
    def name(self) -> str:
        return str(self._path)

    @property
    def volatile_reason(self) -> str | None:
        return is_volatile(self._path)

    # -- writing ----------------------------------------------------------------------------------

    def submit(self, batch: Batch) -> None:
        here = self._here
        here.queue.append(batch)
        try:
            with here.lock:
                if not batch.done:
                    self._write_queued(here)
        except BaseException:
            # Interrupted while it waited: nobody may write later what this thread believes unwritten.
            with suppress(ValueError):
                here.queue.remove(batch)
            raise
        if batch.error is not None:
            raise batch.error

    def _write_queued(self, here: _Connections) -> None:
        queue = here.queue
        batches = [queue.popleft() for _ in range(len(queue))]
        try:
            connection = here.writer or self._open(here)
            is_synced = False
            for batch in batches:
                is_synced = is_synced or batch.is_synced
            _set_level(here, connection, "FULL" if is_synced else "NORMAL")
            if len(batches) == 1 and batches[0].is_plain:
                batch = batches[0]
                first, lines, hashes = batch.rows[0]
                values = (batch.run * PLACES + first, lines, hashes, batch.run, batch.fence)
                if connection.execute(_PLAIN, values).rowcount != 1:
                    batch.error = fenced(batch.execution)
            else:
                self._check_file(here)
                self._write_together(connection, batches)
        except sqlite3.Error as error:
            self._abandon(here, error)
            for batch in batches:
                batch.error = journal_error(error, self._path, BUSY_SECONDS)
        except JournalError as error:
            for batch in batches:
                batch.error = type(error)(*error.args)
        except BaseException:
            for batch in batches:
                batch.error = JournalError(f"{self._path}: the thread that wrote the journal was interrupted")
            raise
        finally:
            for batch in batches:
                batch.done = True

    def _write_together(self, connection: sqlite3.Connection, batches: list[Batch]) -> None:
        transaction = _SqliteTransaction(connection)
        connection.execute("BEGIN IMMEDIATE")
        try:
            for batch in batches:
                if batch.is_plain:
                    first, lines, hashes = batch.rows[0]
                    values = (batch.run * PLACES + first, lines, hashes, batch.run, batch.fence)
                    if connection.execute(_PLAIN, values).rowcount != 1:
                        batch.error = fenced(batch.execution)
                else:
                    write_batch(transaction, batch)
            write_audit(transaction, batches, self.audit_key)
            connection.execute("COMMIT")
        finally:
            _roll_back(connection)

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        here = self._here
        with here.lock:
            try:
                connection = here.writer or self._open(here)
                self._check_file(here)
                _set_level(here, connection, "FULL")
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield _SqliteTransaction(connection)
                    connection.execute("COMMIT")
                finally:
                    _roll_back(connection)
            except sqlite3.Error as error:
                self._abandon(here, error)
                raise journal_error(error, self._path, BUSY_SECONDS) from error

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        here = self._here
        if here.reader is None:
            self._make_ready(here)
        with here.reading_lock:
            try:
                connection = here.reader or self._open_reader(here)
                connection.execute("BEGIN")
                try:
                    yield _SqliteTransaction(connection)
                finally:
                    _roll_back(connection)
            except sqlite3.Error as error:
                if here.reader is not None:
                    here.reader.close()
                    here.reader = None
                raise journal_error(error, self._path, BUSY_SECONDS) from error

    def scrub(self) -> None:
        """What was deleted was overwritten in its page (`secure_delete`); this takes it out of the log too."""
        here = self._here
        with here.lock:
            try:
                connection = here.writer or self._open(here)
                deadline = time.monotonic() + BUSY_SECONDS
                while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                    if time.monotonic() > deadline:
                        raise JournalError(
                            f"{self._path}: the key was deleted, but somebody reads the journal, and an old copy of it "
                            "stays in the write-ahead log until that is done; erase again"
                        )
                    time.sleep(0.02)
            except sqlite3.Error as error:
                self._abandon(here, error)
                raise journal_error(error, self._path, BUSY_SECONDS) from error

    def lock_for_prune(self, transaction: Transaction) -> None:
        """SQLite has one writer at a time anyway."""

    def close(self) -> None:
        here = self._here
        with here.lock, here.reading_lock:
            _close(here)

    # -- opening ----------------------------------------------------------------------------------

    def _open(self, here: _Connections) -> sqlite3.Connection:
        """The connection that writes; the file and its tables are made where there are none."""
        if here.is_torn:
            raise JournalError(
                f"{self._path}: this process was forked while its parent was writing the journal; it cannot use it. "
                "Fork before the journal is used, or start a new process instead"
            )
        self._make_file()
        connection = self._connect()
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            if mode != "wal":
                raise JournalError(
                    f"{self._path}: the file system has no shared memory for a write-ahead log (mode {mode}): "
                    "put the journal on a local disk"
                )
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
            connection.execute("PRAGMA synchronous = FULL")
            self._migrate(connection)
        except BaseException:
            connection.close()
            raise
        status = self._path.stat()
        here.inode = (status.st_dev, status.st_ino)
        here.level = "FULL"
        here.writer = connection
        return connection

    def _migrate(self, connection: sqlite3.Connection) -> None:
        known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'vesper_migrations'").fetchone()
        if known is not None:
            version = integer(
                connection.execute("SELECT COALESCE(MAX(version), 0) FROM vesper_migrations").fetchone()[0]
            )
            check_version(version, self.name)
            if version == schema.VERSION:
                return
        connection.execute("BEGIN IMMEDIATE")
        try:
            migrate(_SqliteTransaction(connection), self.name, schema.SQLITE)
            connection.execute("COMMIT")
        finally:
            _roll_back(connection)

    def _make_file(self) -> None:
        """A new file is for its owner alone, for it holds what nodes were called with. SQLite gives the files beside
        it the same rights."""
        try:
            if not self._path.parent.exists():
                self._path.parent.mkdir(mode=0o700)  # one folder, such as `.vesper`; a longer path is a mistake
                _sync_folder(self._path.parent.parent)
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            if self._path.is_dir():
                raise JournalError(f"{self._path} is a folder: a journal is a file") from None
        except FileNotFoundError:
            raise JournalError(
                f"{self._path}: the folder {self._path.parent.parent} does not exist; create it"
            ) from None
        except OSError as error:
            raise JournalError(f"{self._path}: the journal cannot be created: {error.strerror}") from None

    def _make_ready(self, here: _Connections) -> None:
        """Opens the writer, which makes the tables. Never with the lock of the reader: who wants both takes the
        writer's first."""
        with here.lock:
            try:
                if here.writer is None:
                    self._open(here)
            except sqlite3.Error as error:
                raise journal_error(error, self._path, BUSY_SECONDS) from error

    def _open_reader(self, here: _Connections) -> sqlite3.Connection:
        connection = self._connect()
        connection.execute("PRAGMA query_only = ON")
        here.reader = connection
        return connection

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)

    def _check_file(self, here: _Connections) -> None:
        """SQLite goes on writing to a file that somebody deleted or replaced: nobody would find it again."""
        try:
            status = self._path.stat()
        except OSError:
            status = None
        if status is None or (status.st_dev, status.st_ino) != here.inode:
            with here.reading_lock:
                _close(here)
            raise JournalError(f"{self._path}: somebody deleted or replaced the journal while it was in use")

    def _abandon(self, here: _Connections, error: sqlite3.Error) -> None:
        """A connection that met a broken file or disk is not used again."""
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL):
            _close_writer(here)


class _SqliteTransaction:
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
    """A folder that was made is found again after a loss of power; SQLite sees to that for the files in it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _set_level(here: _Connections, connection: sqlite3.Connection, level: str) -> None:
    """FULL syncs the log at every commit; NORMAL lets a loss of power take the last ones, and nothing else."""
    if here.level != level:
        connection.execute(f"PRAGMA synchronous = {level}")
        here.level = level


def _roll_back(connection: sqlite3.Connection) -> None:
    """Ends what is still open; SQLite has ended it itself after some errors."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _close_writer(here: _Connections) -> None:
    connection, here.writer = here.writer, None
    if connection is not None:
        connection.close()


def _close(here: _Connections) -> None:
    reader, here.reader = here.reader, None
    if reader is not None:
        reader.close()
    _close_writer(here)


# -- forks ----------------------------------------------------------------------------------------

_STORES: weakref.WeakSet[SqliteStore] = weakref.WeakSet()
_forking: list[tuple[SqliteStore, bool, bool]] = []


def _before_fork() -> None:
    for store in list(_STORES):
        here = store._here
        has_writer = here.lock.acquire(timeout=_FORK_SECONDS)
        has_reader = here.reading_lock.acquire(timeout=_FORK_SECONDS)
        if has_writer and has_reader:
            _close(here)
        _forking.append((store, has_writer, has_reader))


def _after_fork_in_parent() -> None:
    while _forking:
        store, has_writer, has_reader = _forking.pop()
        if has_reader:
            store._here.reading_lock.release()
        if has_writer:
            store._here.lock.release()


def _after_fork_in_child() -> None:
    while _forking:
        store, has_writer, has_reader = _forking.pop()
        inherited = store._here
        store._here = _Connections()
        if not (has_writer and has_reader):
            store._here.is_torn = True
            _INHERITED.append(inherited)  # closing it would end locks and logs of the parent


_INHERITED: list[_Connections] = []

os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
