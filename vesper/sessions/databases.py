"""The databases of sessions: a file of SQLite, or a server of PostgreSQL."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager
from typing import Final, Protocol

from vesper.sessions.errors import SessionError
from vesper.sessions.tables import make_tables
from vesper.storage.postgres_server import Connection, PostgresServer
from vesper.storage.sql_words import POSTGRES_WORDS, SQLITE_WORDS
from vesper.storage.sqlite_file import SqliteFile, SqliteTransaction, path_of_dsn, roll_back
from vesper.storage.transaction import Transaction

_BUSY_SECONDS: Final = 10.0


class SessionDatabase(Protocol):
    """The database that holds the tables. It raises `SessionError`."""

    @property
    def name(self) -> str: ...
    def writing(self) -> AbstractContextManager[Transaction]: ...
    def reading(self) -> AbstractContextManager[Transaction]: ...
    def close(self) -> None: ...


def open_database(dsn: str) -> SessionDatabase:
    """Return the database that a DSN names; nothing is opened yet. Raises `SessionError`."""
    if not dsn.startswith("sqlite:"):
        return _Server(dsn)
    path = path_of_dsn(dsn.removeprefix("sqlite:"))
    if path is None:
        raise SessionError(f"`{dsn[:80]}` names no file: `sqlite:.vesper/sessions.db` or `postgresql://…` is expected")
    return _File(path)


class _File(SqliteFile):
    what = "sessions"

    @property
    def _busy_seconds(self) -> float:
        return _BUSY_SECONDS

    def _error(self, text: str) -> SessionError:
        return SessionError(text)

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            make_tables(SqliteTransaction(connection), self.name, SQLITE_WORDS)
            connection.execute("COMMIT")
        finally:
            roll_back(connection)


class _Server(PostgresServer):
    what = "sessions"

    def _error(self, text: str) -> SessionError:
        return SessionError(text)

    def _make_tables(self, connection: Connection) -> None:
        with self._migrating(connection) as transaction:
            make_tables(transaction, self.name, POSTGRES_WORDS)
