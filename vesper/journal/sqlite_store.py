"""A journal in a file: SQLite with a write-ahead log.

Commits are combined. A thread that commits queues its batch and asks for the lock of the writer; whoever has it writes
all that is queued in one transaction. A lone thread so writes at once, without a switch to another one; of many that
commit while the disk syncs, the next one writes for all.

A batch that is only a row of lines (nearly every one) is one statement outside of any explicit transaction, which
checks the fence and inserts: that is a third of the time that BEGIN, UPDATE, INSERT and COMMIT would take.
"""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

from vesper.journal import schema
from vesper.journal.batch import Batch
from vesper.journal.cells import integer
from vesper.journal.errors import JournalError
from vesper.journal.schema import PLACES
from vesper.journal.store import check_version, fenced, migrate, write_audit, write_batch
from vesper.storage.durability import is_volatile
from vesper.storage.sqlite_errors import sqlite_message
from vesper.storage.sqlite_file import Connections, SqliteFile, SqliteTransaction, roll_back, set_level
from vesper.storage.transaction import Transaction

BUSY_SECONDS = 5.0
"""How long another process may hold the file before it counts as locked."""

# One statement, so one transaction: SQLite lets only one write at a time, nobody can take the run over in between.
_PLAIN = (
    "INSERT INTO vesper_commits (place, lines, hashes) "
    "SELECT ?, ?, ? WHERE EXISTS (SELECT 1 FROM vesper_executions WHERE id = ? AND fence = ?)"
)


class _Connections(Connections):
    """With the batches that wait."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: deque[Batch] = deque()


class SqliteStore(SqliteFile):
    """A journal in the file at `path`."""

    what = "journal"
    _here: _Connections

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.audit_key: bytes | None = None

    @staticmethod
    def of_dsn(rest: str) -> SqliteStore:
        path = SqliteFile.path_of_dsn(rest)
        if path is None and rest.startswith("//"):
            raise JournalError(
                f"`sqlite:{rest[:80]}` names no file: `sqlite:journal.db`, `sqlite:///folder/journal.db`"
            )
        if path is None:
            raise JournalError("a journal is a file: `sqlite:PATH`; one in memory would keep nothing")
        return SqliteStore(path)

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
        batches = [queue.popleft()]
        while queue:
            batches.append(queue.popleft())
        try:
            connection = here.writer or self._open(here)
            batch = batches[0]
            is_synced = batch.is_synced or any(each.is_synced for each in batches)
            set_level(here, connection, "FULL" if is_synced else "NORMAL")
            if len(batches) == 1 and batch.is_plain:
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
                batch.error = self._error_of(error)
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
        transaction = SqliteTransaction(connection)
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
            roll_back(connection)

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
                raise self._error_of(error) from error

    def lock_for_prune(self, transaction: Transaction) -> None:
        """SQLite has one writer at a time anyway."""

    # -- the file ---------------------------------------------------------------------------------

    def _connections(self) -> Connections:
        return _Connections()

    @property
    def _busy_seconds(self) -> float:
        return BUSY_SECONDS

    def _error(self, text: str) -> JournalError:
        return JournalError(text)

    def _error_of(self, error: sqlite3.Error) -> JournalError:
        return JournalError(sqlite_message(error, self._path, self.what, BUSY_SECONDS))

    def _make_tables(self, connection: sqlite3.Connection) -> None:
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
            migrate(SqliteTransaction(connection), self.name, schema.SQLITE)
            connection.execute("COMMIT")
        finally:
            roll_back(connection)
