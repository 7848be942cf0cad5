"""SQLite: connections, transactions and failures.

Reads run on a connection that can only read (`query_only`), writes take the lock of the database at their begin
(`BEGIN IMMEDIATE`): of two writers one waits, and then sees what the other has done.

Who waits for another writer of this process is woken when its turn has come (`sqlite_turns`).
"""

from __future__ import annotations

import itertools
import math
import sqlite3
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from vesper.effects.database.column_affinity import refuse_changed
from vesper.effects.database.pool import Deadline, Pool
from vesper.effects.database.session import (
    MissingTable,
    Purpose,
    Rows,
    Session,
    WrongConnection,
    prepared,
    refuse_foreign,
)
from vesper.effects.database.settings import DatabaseSettings
from vesper.effects.database.sqlite_guard import Guard
from vesper.effects.database.sqlite_turns import Turns
from vesper.effects.database.values import Unreadable, to_column
from vesper.effects.performer import EffectFailed
from vesper.values.model import Value
from vesper.values.numbers import decimal_text
from vesper.values.times import date_text, duration_text

_STEPS_A_LOOK = 4_000
"""So many steps of SQLite's machine are made between two looks at the clock: some tens of microseconds."""
_LONGEST = 64 << 20
"""Bytes of a value, or a row, beyond which SQLite itself refuses: more would be in memory before anybody counts."""
_REFUSED = ("SQLITE_TOOBIG", "SQLITE_MISMATCH", "SQLITE_RANGE")
_BEGIN = "BEGIN IMMEDIATE"
_NAP = 0.001
"""So long SQLite itself waits for another writer, without Python's lock; who has to wait for longer stands in a queue.
Left to itself it sleeps for up to a tenth of a second at a time, while the file may be free for most of it."""
_numbers = itertools.count(1)


class _Connection:
    """A connection of ours, with what it is set to."""

    __slots__ = ("busy_ms", "deadline", "guard", "is_reading", "is_wal", "raw")

    def __init__(self, raw: sqlite3.Connection) -> None:
        self.raw = raw
        self.guard = Guard(raw)
        self.deadline: Deadline | None = None
        self.is_reading = False
        self.is_wal = False
        """Once a transaction has the lock there, it waits for nobody."""
        self.busy_ms = -1
        raw.set_progress_handler(self._look, _STEPS_A_LOOK)

    def _look(self) -> bool:
        return self.deadline is not None and self.deadline.has_passed()

    def set_up(self, deadline: Deadline, busy_seconds: float, is_reading: bool) -> None:
        self.deadline = deadline
        busy_ms = max(1, math.ceil(min(busy_seconds, deadline.left()) * 1000))
        if busy_ms != self.busy_ms:
            self.raw.execute(f"PRAGMA busy_timeout = {busy_ms:d}")
            self.busy_ms = busy_ms
        if is_reading != self.is_reading:
            self.raw.execute(f"PRAGMA query_only = {is_reading:d}")
            self.is_reading = is_reading


class SqliteBackend:
    kind = "sqlite"

    def __init__(self, settings: DatabaseSettings) -> None:
        assert settings.path is not None
        self._settings = settings
        self._path = settings.path
        self._turns = Turns()
        self._pool: Pool[_Connection] = Pool(f"`{settings.name}`", settings.pool_size, self._open, _close, True)

    def close(self) -> None:
        self._pool.close()

    # -- transactions of our own ------------------------------------------------------------------

    @contextmanager
    def transaction(self, purpose: Purpose) -> Iterator[Session]:
        if purpose.writes and self._settings.read_only:
            raise EffectFailed("unavailable", f"`{self._settings.name}` is configured as `read_only`")
        generation = self._pool.generation
        connection, _ = self._pool.take(purpose.deadline)
        has_begun = is_sound = False
        try:
            try:
                session = self._begun(connection, purpose)
                has_begun = True
                yield session
                self._commit(connection, purpose)
            finally:
                connection.deadline = None
                is_sound = _rolled_back(connection.raw)
        finally:
            try:
                if has_begun and purpose.writes:
                    self._turns.passed_on()
            finally:
                if is_sound:
                    self._pool.give_back(connection, generation)
                else:
                    self._pool.drop(connection)

    def _begun(self, connection: _Connection, purpose: Purpose) -> Session:
        busy_seconds = self._settings.busy_timeout
        try:
            if purpose.writes and connection.is_wal:
                connection.set_up(purpose.deadline, min(_NAP, busy_seconds), is_reading=False)
                self._begin_to_write(connection.raw, purpose.deadline)
            else:
                connection.set_up(purpose.deadline, busy_seconds, is_reading=not purpose.writes)
                connection.raw.execute(_BEGIN if purpose.writes else "BEGIN")
        except sqlite3.Error as error:
            raise _failure(error, purpose, self._settings.name) from error
        return _Session(connection.raw, purpose, self._settings.name, connection.guard)

    def _begin_to_write(self, raw: sqlite3.Connection, deadline: Deadline) -> None:
        """Takes the lock of the database, which others may have for a while. Raises what SQLite does."""
        until = time.monotonic() + self._settings.busy_timeout
        if not self._turns.take(lambda: _could_begin(raw), lambda: min(until - time.monotonic(), deadline.left())):
            raw.execute(_BEGIN)

    def _commit(self, connection: _Connection, purpose: Purpose) -> None:
        if purpose.deadline.has_passed():
            raise purpose.deadline.failure(f"the transaction on `{self._settings.name}`")
        connection.deadline = None  # what is being committed is not stopped half-way
        try:
            connection.raw.execute("COMMIT")
        except sqlite3.Error as error:
            raise _failure(error, purpose, self._settings.name, is_commit=purpose.writes) from error

    def _open(self, deadline: Deadline) -> _Connection:
        settings, path = self._settings, self._path
        if not settings.create and not path.exists():
            advice = "make it, or say `create = true`"
            raise EffectFailed("unavailable", f"there is no file `{path}` for the database `{settings.name}`; {advice}")
        mode = "ro" if settings.read_only else "rwc" if settings.create else "rw"
        address = f"file:{quote(str(path.absolute()))}?mode={mode}"
        try:
            raw = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=0)
        except sqlite3.Error as error:
            raise EffectFailed(
                "unavailable", f"the file `{path}` of `{settings.name}` cannot be opened: {error}"
            ) from error
        try:
            raw.text_factory = _text
            raw.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(_LONGEST, settings.max_value))
            connection = _Connection(raw)
            connection.set_up(deadline, settings.busy_timeout, is_reading=False)
            raw.execute(f"PRAGMA foreign_keys = {settings.foreign_keys:d}")
            if not settings.read_only:
                connection.is_wal = _use_wal(raw)
                raw.execute("PRAGMA synchronous = FULL")  # a receipt must not outlive what it is a receipt for
        except sqlite3.Error as error:
            raw.close()
            raise _failure(error, Purpose(deadline, False, "unavailable"), settings.name) from error
        except BaseException:
            raw.close()
            raise
        return connection

    # -- the caller's transaction -----------------------------------------------------------------

    @contextmanager
    def joined(self, connection: object, purpose: Purpose) -> Iterator[Session]:
        if not isinstance(connection, sqlite3.Connection):
            kind = f"{type(connection).__module__}.{type(connection).__name__}"
            text = f"`{self._settings.name}` is an SQLite database, and the joined connection is a {kind}"
            raise WrongConnection(f"{text}; give a sqlite3.Connection")
        name = f"vesper_{next(_numbers)}"
        try:
            self._enter(connection, name)
        except sqlite3.Error as error:
            raise _failure(error, purpose, self._settings.name) from error
        text_factory = connection.text_factory
        watch = threading.Timer(max(purpose.deadline.left(), 0), connection.interrupt)
        watch.daemon = True
        watch.start()
        try:
            connection.text_factory = _text
            yield _Session(connection, purpose, self._settings.name, None, reads_only=not purpose.writes)
        except BaseException as error:
            _stop(watch)
            connection.text_factory = text_factory
            self._undo(connection, name, error)
            raise
        _stop(watch)
        connection.text_factory = text_factory
        try:
            connection.execute(f"RELEASE {name}")
        except sqlite3.Error as error:
            raise _failure(error, purpose, self._settings.name) from error

    def _enter(self, connection: sqlite3.Connection, name: str) -> None:
        try:
            if not connection.in_transaction:
                # Leaving the outermost savepoint would commit, and whoever commits is the caller.
                if connection.isolation_level is None or getattr(connection, "autocommit", None) is True:
                    text = f"the connection joined for `{self._settings.name}` has no open transaction"
                    raise WrongConnection(f'{text}; begin one first: `connection.execute("BEGIN")`')
                connection.execute("BEGIN")
            connection.execute(f"SAVEPOINT {name}")
        except sqlite3.ProgrammingError as error:  # it is closed, or belongs to another thread
            raise WrongConnection(
                f"the connection joined for `{self._settings.name}` cannot be used: {error}"
            ) from error

    def _undo(self, connection: sqlite3.Connection, name: str, error: BaseException) -> None:
        if not connection.in_transaction:
            # SQLite ends the whole transaction when it stops a statement that writes.
            text = f"{error}; SQLite has rolled back the caller's whole transaction on `{self._settings.name}`"
            code = error.code if isinstance(error, EffectFailed) else "unavailable"
            raise TransactionLost(code, text) from error
        connection.execute(f"ROLLBACK TO {name}")
        connection.execute(f"RELEASE {name}")


class TransactionLost(EffectFailed):
    """The caller's transaction is gone: nothing more may be done under its name."""


def _stop(watch: threading.Timer) -> None:
    """Afterwards it interrupts nothing any more."""
    watch.cancel()
    watch.join()


def _use_wal(raw: sqlite3.Connection) -> bool:
    """Whether it is in use now."""
    (mode,) = raw.execute("PRAGMA journal_mode").fetchone()
    if mode != "wal":
        try:
            (mode,) = raw.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            # Somebody uses the file in the other mode just now: it works as it is, and changes the next time.
            if not _is_busy(error):
                raise
    return bool(mode == "wal")


def _could_begin(raw: sqlite3.Connection) -> bool:
    try:
        raw.execute(_BEGIN)
    except sqlite3.OperationalError as error:
        if not _is_busy(error):
            raise
        return False
    return True


def _is_busy(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _close(connection: _Connection) -> None:
    connection.raw.close()


def _rolled_back(raw: sqlite3.Connection) -> bool:
    """Ends what is left of a transaction; False where the connection is of no more use."""
    if raw.in_transaction:
        try:
            raw.execute("ROLLBACK")
        except sqlite3.Error:
            return False  # it is closed, which rolls back as well
    return True


def _text(raw: bytes) -> object:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return Unreadable("a text that is not UTF-8")


# -- statements -----------------------------------------------------------------------------------


class _Session:
    kind = "sqlite"
    booleans_are_integers = True

    def __init__(
        self,
        raw: sqlite3.Connection,
        purpose: Purpose,
        database: str,
        guard: Guard | None,
        reads_only: bool = False,
    ) -> None:
        self._raw = raw
        self._purpose = purpose
        self._database = database
        self._guard = guard
        """None on a connection that is not ours, whose authorizer is its owner's."""
        self._guarded = ""
        self._reads_only = reads_only
        """True on a connection that is not ours: for the time of a query it is made one that can only read."""

    def guard(self, sql: str) -> None:
        refuse_foreign(sql, self.kind)
        self._guarded = sql

    def _execute(self, cursor: sqlite3.Cursor, sql: str, text: str, values: Mapping[str, Value]) -> sqlite3.Cursor:
        """Run one statement; a node's own is held to what its text shows."""
        if self._guard is None or sql != self._guarded:
            return cursor.execute(text, _bound(values))
        try:
            self._guard.set_up(sql)
            return cursor.execute(text, _bound(values))
        finally:
            self._guard.limits = None

    def change(self, sql: str, values: Mapping[str, Value]) -> int:
        statement = prepared(sql, self.kind, values)
        refuse_changed(self._raw, sql, values, self._purpose.refusal)
        try:
            cursor = self._execute(self._cursor(), sql, statement.text, values)
            for _ in cursor:  # of a RETURNING nobody wants the rows, but only then they are counted
                pass
            return max(cursor.rowcount, 0)
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def rows(self, sql: str, values: Mapping[str, Value], most: int) -> Rows:
        statement = prepared(sql, self.kind, values)
        try:
            was_reading = self._raw.execute("PRAGMA query_only").fetchone()[0] if self._reads_only else None
            if self._reads_only:
                self._raw.execute("PRAGMA query_only = 1")
            cursor = self._cursor()
            try:
                self._execute(cursor, sql, statement.text, values)
            finally:
                if self._reads_only:
                    self._raw.execute(f"PRAGMA query_only = {was_reading:d}")
        except sqlite3.Error as error:
            raise self._failure(error) from error
        return [each[0] for each in cursor.description or ()], self._fetched(cursor, most)

    def _fetched(self, cursor: sqlite3.Cursor, most: int) -> Generator[Sequence[object], None, None]:
        try:
            yield from itertools.islice(cursor, most)
        except sqlite3.Error as error:
            raise self._failure(error) from error
        finally:
            cursor.close()

    def create(self, tables: Mapping[str, str]) -> None:
        try:
            self._cursor().execute(tables[self.kind])
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def _cursor(self) -> sqlite3.Cursor:
        cursor = self._raw.cursor()
        cursor.row_factory = None  # a joined connection may make its rows into something else
        return cursor

    def _failure(self, error: sqlite3.Error) -> EffectFailed:
        return _failure(error, self._purpose, self._database)


def _bound(values: Mapping[str, Value]) -> dict[str, Any]:
    return {name: _column(value) for name, value in values.items()}


def _column(value: Value) -> object:
    match value:
        case bool():
            return int(value)
        case Decimal():
            return decimal_text(value)
        case float() if math.isnan(value):
            return "NaN"  # SQLite would make it null
        case datetime():
            # Always six places, so that the order of the texts is the order of the moments.
            return f"{date_text(value)}T{value:%H:%M:%S}.{value.microsecond:06}Z"
        case date():
            return date_text(value)
        case timedelta():
            return duration_text(value)
        case _:
            return to_column(value)


def _failure(error: sqlite3.Error, purpose: Purpose, database: str, is_commit: bool = False) -> EffectFailed:
    """What an error of SQLite means; its messages name tables, columns and constraints, and never a value."""
    name = getattr(error, "sqlite_errorname", "") or ""
    text = f"`{database}`: {error}"
    if name.startswith("SQLITE_CONSTRAINT"):
        return EffectFailed(purpose.refusal, text)
    if name.startswith("SQLITE_INTERRUPT"):
        return purpose.deadline.failure(f"the statement on `{database}`")
    if _is_busy(error):
        if purpose.deadline.has_passed():
            return purpose.deadline.failure(f"waiting for another transaction on `{database}`")
        return EffectFailed("unavailable", f"{text}: another transaction did not end in time")
    if name in _REFUSED or isinstance(error, sqlite3.DataError):
        return EffectFailed(purpose.refusal, text)
    if str(error).startswith("no such table"):
        return MissingTable("unavailable", text)
    return EffectFailed("unavailable", text, may_have_happened=is_commit)
