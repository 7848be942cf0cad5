"""Effects in a caller's transaction: the joined connections, and sessions on them.

The native databases decide what a request does (receipts, values, failures); a session here runs their statements on
the caller's connection, inside its own savepoint. Errors of the driver are raised unchanged.
"""

from __future__ import annotations

import math
import sqlite3
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count, islice
from types import MappingProxyType
from typing import Protocol

from vesper.effects.performer import EffectFailed
from vesper.values.vesper_error import VesperError

_savepoints = count(1)


class WrongConnection(VesperError, TypeError):
    """A connection that cannot be joined; the message has the reason. It is an error of the calling program."""


@dataclass(slots=True)
class _Joined:
    connection: object
    is_lost: bool = False
    """True once the database has ended the caller's transaction: what came after would be in another one."""


_joined: ContextVar[Mapping[str, _Joined]] = ContextVar("vesper_joined_databases", default=MappingProxyType({}))


@contextmanager
def joined(name: str, connection: object) -> Iterator[None]:
    """Make effects on the database `name` part of the transaction of a connection, inside the `with` block.

    The connection is a `sqlite3.Connection` or a `psycopg.Connection`. The effects are committed or rolled back
    together with the caller's transaction. It holds for this thread (this task of asyncio), and for code that runs in a
    copy of its context.
    """
    psycopg = sys.modules.get("psycopg")
    kinds = (sqlite3.Connection,) if psycopg is None else (sqlite3.Connection, psycopg.Connection)
    if not isinstance(connection, kinds):
        kind = f"{type(connection).__module__}.{type(connection).__name__}"
        raise WrongConnection(f"`{name}` is joined by a sqlite3.Connection or a psycopg.Connection, not by a {kind}")
    token = _joined.set({**_joined.get(), name: _Joined(connection)})
    try:
        yield
    finally:
        _joined.reset(token)


def is_joined() -> bool:
    """Return whether effects on some database are part of a caller's transaction."""
    return bool(_joined.get())


def joined_names() -> frozenset[str]:
    """Return the joined databases."""
    return frozenset(_joined.get())


class JoinedSession(Protocol):
    """A savepoint in a caller's transaction."""

    def change(self, sql: str, values: Mapping[str, object]) -> int:
        """Run one statement and return the number of rows that it changed."""
        ...

    def rows(self, sql: str, values: Mapping[str, object], most: int) -> tuple[list[str], list[Sequence[object]]]:
        """Return the names of the columns and at most `most` rows."""
        ...

    def create(self, sql: str) -> None:
        """Create a table of Vesper."""
        ...

    def leave(self) -> None:
        """End the savepoint, so that the statements are part of the caller's transaction."""
        ...

    def undo(self) -> bool:
        """Undo the statements; return whether the caller's whole transaction is gone."""
        ...


def join(name: str, kind: str, seconds: float, writes: bool) -> JoinedSession | None:
    """Enter the caller's transaction on a database for at most `seconds`. None if there is none."""
    caller = _joined.get().get(name)
    if caller is None:
        return None
    if caller.is_lost:
        raise EffectFailed("unavailable", f"the transaction joined for `{name}` is gone since an earlier failure")
    if kind == "sqlite":
        return _SqliteSession(name, caller, seconds, writes)
    from vesper.effects.database.joined_postgres import PostgresSession

    return PostgresSession(name, caller.connection, seconds, writes)


def kind_error(name: str, connection: object, kind: str, wanted: str) -> WrongConnection:
    """Return the exception for a connection to another kind of database."""
    given = f"{type(connection).__module__}.{type(connection).__name__}"
    return WrongConnection(f"`{name}` is {kind} database, and the joined connection is a {given}; give a {wanted}")


def next_savepoint() -> str:
    return f"vesper_{next(_savepoints)}"


class _SqliteSession:
    """A savepoint on a connection of SQLite."""

    def __init__(self, name: str, caller: _Joined, seconds: float, writes: bool) -> None:
        connection = caller.connection
        if not isinstance(connection, sqlite3.Connection):
            raise kind_error(name, connection, "an SQLite", "sqlite3.Connection")
        self._caller = caller
        self._raw = connection
        self._writes = writes
        self._savepoint = next_savepoint()
        self._enter(name)
        self._text_factory = connection.text_factory
        connection.text_factory = _text
        self._watch = threading.Timer(max(seconds, 0), connection.interrupt)
        self._watch.daemon = True
        self._watch.start()

    def _enter(self, name: str) -> None:
        connection = self._raw
        try:
            if not connection.in_transaction:
                # Leaving the outermost savepoint would commit, and the caller commits.
                if connection.isolation_level is None or getattr(connection, "autocommit", None) is True:
                    text = f"the connection joined for `{name}` has no open transaction"
                    raise WrongConnection(f'{text}; begin one first: `connection.execute("BEGIN")`')
                connection.execute("BEGIN")
            connection.execute(f"SAVEPOINT {self._savepoint}")
        except sqlite3.ProgrammingError as error:  # it is closed, or belongs to another thread
            raise WrongConnection(f"the connection joined for `{name}` cannot be used: {error}") from error

    def change(self, sql: str, values: Mapping[str, object]) -> int:
        cursor = self._cursor().execute(sql, values)
        for _ in cursor:  # nothing reads the rows of a RETURNING, but only at its end the changes are counted
            pass
        return max(cursor.rowcount, 0)

    def rows(self, sql: str, values: Mapping[str, object], most: int) -> tuple[list[str], list[Sequence[object]]]:
        cursor = self._cursor()
        if self._writes:
            cursor.execute(sql, values)
        else:
            (was_reading,) = self._cursor().execute("PRAGMA query_only").fetchone()
            self._raw.execute("PRAGMA query_only = 1")
            try:
                cursor.execute(sql, values)
            finally:
                self._raw.execute(f"PRAGMA query_only = {int(was_reading)}")
        found: list[Sequence[object]] = list(islice(cursor, most))
        columns = [each[0] for each in cursor.description or ()]
        cursor.close()
        return columns, found

    def create(self, sql: str) -> None:
        self._cursor().execute(sql)

    def leave(self) -> None:
        self._release_connection()
        self._raw.execute(f"RELEASE {self._savepoint}")

    def undo(self) -> bool:
        self._release_connection()
        if not self._raw.in_transaction:
            # SQLite ends the whole transaction when it stops a statement that writes.
            self._caller.is_lost = True
            return True
        self._raw.execute(f"ROLLBACK TO {self._savepoint}")
        self._raw.execute(f"RELEASE {self._savepoint}")
        return False

    def _release_connection(self) -> None:
        """Restore the caller's settings of the connection and stop the timer that interrupts it."""
        self._watch.cancel()
        self._watch.join()
        self._raw.text_factory = self._text_factory

    def _cursor(self) -> sqlite3.Cursor:
        cursor = self._raw.cursor()
        cursor.row_factory = None  # the caller's connection may convert its rows
        return cursor


class Unreadable:
    """A column whose content is no value of the language. `called` is its name in messages."""

    __slots__ = ("called",)

    def __init__(self, called: str) -> None:
        self.called = called


def _text(raw: bytes) -> object:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return Unreadable("a text that is not UTF-8")


def milliseconds(seconds: float) -> int:
    return max(1, math.ceil(seconds * 1000))
