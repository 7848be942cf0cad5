"""Migration state in a file: SQLite with a write-ahead log, synced with every transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager

from vesper.migration.stores.sql_store import SqlMigrationStore
from vesper.migration.stores.sql_tables import FORMAT, SQLITE, check_format, make_tables
from vesper.migration.stores.store import StoreAway, StoreError
from vesper.storage.durability import is_volatile
from vesper.storage.sqlite_errors import sqlite_message
from vesper.storage.sqlite_file import SqliteFile, SqliteTransaction, path_of_dsn, roll_back
from vesper.storage.transaction import Transaction

BUSY_SECONDS = 2.0
"""Seconds for which another process or thread may hold the file before `StoreAway` is raised."""
_PASSING = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
"""Error codes that may pass; nothing of the transaction was written."""


class SqliteMigrationStore(SqlMigrationStore):
    """The store in the file that `rest`, the part after `sqlite:`, names."""

    def __init__(self, rest: str) -> None:
        path = path_of_dsn(rest)
        if path is None:
            raise StoreError(
                f"`sqlite:{rest[:80]}` names no file: `sqlite:.vesper/migration.db`, `sqlite:///folder/migration.db`; "
                "a store in memory would keep nothing"
            )
        super().__init__(_File(path), SQLITE, _array)


def _array(numbers: list[int]) -> str:
    return f"[{','.join(map(str, numbers))}]"


class _File(SqliteFile):
    what = "migration state"

    @property
    def _busy_seconds(self) -> float:
        return BUSY_SECONDS

    @property
    def _turn_seconds(self) -> float:
        return BUSY_SECONDS

    def looking(self) -> AbstractContextManager[Transaction]:
        return self.reading()

    def warnings(self) -> Sequence[str]:
        reason = is_volatile(self._path)
        return () if reason is None else (f"{self._path}: the migration state may be lost with a restart: {reason}",)

    def _error(self, text: str) -> StoreError:
        return StoreError(text)

    def _error_of_turn(self) -> StoreError:
        return StoreAway(str(super()._error_of_turn()))

    def _error_of(self, error: sqlite3.Error) -> StoreError:
        kind = StoreAway if getattr(error, "sqlite_errorcode", 0) & 0xFF in _PASSING else StoreError
        return kind(sqlite_message(error, self._path, self.what, BUSY_SECONDS))

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'vesper_control_format'").fetchone()
        if known is not None:
            version = connection.execute("SELECT COALESCE(MAX(version), 0) FROM vesper_control_format").fetchone()[0]
            check_format(version, self.name)
            if version == FORMAT:
                return
        connection.execute("BEGIN IMMEDIATE")
        try:
            make_tables(SqliteTransaction(connection), self.name, SQLITE)
            connection.execute("COMMIT")
        finally:
            roll_back(connection)
