"""A PostgreSQL server, in which somebody keeps tables: the journal, and the migration state.

Connections are kept and used again, by one thread at a time. After a fork the child opens its own.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from vesper.storage.transaction import Row, Transaction
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    import psycopg

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

CONNECTIONS = 16
"""At most so many for each way of syncing."""
NOW = "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint"
_MIGRATION_LOCK = 0x76657370  # any number that other programs will hardly use


class Connections:
    """What belongs to one process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.idle: dict[bool, list[Connection]] = {True: [], False: []}
        self.free = {True: threading.Semaphore(CONNECTIONS), False: threading.Semaphore(CONNECTIONS)}
        self.is_ready = False


class PostgresServer:
    """The database that `dsn` names. Whoever keeps something in it says what that is called, and makes its tables."""

    what = "tables"
    connect_seconds = 10
    statement_seconds = 30.0

    def __init__(self, dsn: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise self._error(
                f"a {self.what} in PostgreSQL needs the package psycopg: pip install 'vesper[postgres]'"
            ) from None
        try:
            parts = psycopg.conninfo.conninfo_to_dict(dsn)
        except psycopg.ProgrammingError:  # its message may hold the whole DSN, and so a password
            raise self._error(
                f"the DSN of the {self.what} cannot be read: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE` is "
                "expected, with special signs escaped as in a URL"
            ) from None
        self._dsn = dsn
        port = f":{parts['port']}" if parts.get("port") else ""
        self._name = f"postgresql://{parts.get('host', '')}{port}/{parts.get('dbname', '')}"
        self._connections = self._new_connections()

    # -- what is the keeper's to say --------------------------------------------------------------

    def _new_connections(self) -> Connections:
        return Connections()

    def _open_connection(self) -> Connection:
        import psycopg

        return psycopg.connect(self._dsn, autocommit=True, connect_timeout=self.connect_seconds)

    def _make_tables(self, connection: Connection) -> None:
        """Makes the tables, or brings them up to date; refuses those of a newer Vesper."""
        raise NotImplementedError

    def _error(self, text: str) -> VesperError:
        raise NotImplementedError

    def _error_of(self, error: psycopg.Error) -> VesperError:
        return self._error(self._said(error))

    def _error_of_crowd(self, text: str) -> VesperError:
        """All connections were in use for too long."""
        return self._error(text)

    # -- using it ---------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._name

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        with self._transaction(is_synced=True) as transaction:
            yield transaction

    @contextmanager
    def looking(self) -> Iterator[Transaction]:
        """For one statement that reads, or that writes one row: one journey to the server and back."""
        with self._connection(is_synced=True) as connection:
            yield PostgresTransaction(connection, "")

    @contextmanager
    def _transaction(self, is_synced: bool) -> Iterator[Transaction]:
        with self._connection(is_synced) as connection, connection.transaction():
            yield PostgresTransaction(connection, " FOR UPDATE")

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        with self._connection(is_synced=True) as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield PostgresTransaction(connection, "")

    def close(self) -> None:
        here = self._here()
        with here.lock:
            idle = [connection for each in here.idle.values() for connection in each]
            here.idle = {True: [], False: []}
        for connection in idle:
            connection.close()

    # -- connections ------------------------------------------------------------------------------

    def _here(self) -> Connections:
        here = self._connections
        if here.pid != os.getpid():
            _INHERITED.append(here)  # the sockets are the parent's: closing them here would end its sessions
            here = self._connections = self._new_connections()
        return here

    @contextmanager
    def _connection(self, is_synced: bool) -> Iterator[Connection]:
        """A connection that nobody else uses meanwhile. What the driver reports is an error of
        the keeper's; a connection that met an error of the server's or the network's is not used again."""
        import psycopg

        here = self._here()
        if not here.free[is_synced].acquire(timeout=self.statement_seconds):
            raise self._error_of_crowd(
                f"{self._name}: all {CONNECTIONS} connections have been in use for {self.statement_seconds:g} s"
            )
        connection = None
        try:
            connection = self._idle(here, is_synced) or self._connect(here, is_synced)
            yield connection
        except psycopg.Error as error:
            raise self._error_of(error) from error
        finally:
            if connection is not None:
                if connection.closed or connection.pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                    connection.close()
                else:
                    with here.lock:
                        here.idle[is_synced].append(connection)
            here.free[is_synced].release()

    def _idle(self, here: Connections, is_synced: bool) -> Connection | None:
        while True:
            with here.lock:
                connection = here.idle[is_synced].pop() if here.idle[is_synced] else None
            if connection is None:
                return None
            # Nothing comes unasked but the end: the server was restarted, or ended the session.
            if not connection.closed and not select.select([connection.fileno()], [], [], 0)[0]:
                return connection
            connection.close()

    def _connect(self, here: Connections, is_synced: bool) -> Connection:
        connection = self._open_connection()
        try:
            connection.execute(f"SET statement_timeout = {int(self.statement_seconds * 1000)}")
            # Statements that are used again and again look rows up by their key: planning them anew takes longer.
            connection.execute("SET plan_cache_mode = force_generic_plan")
            if not is_synced:
                connection.execute("SET synchronous_commit = off")
            else:
                # Where the administrator asks for more than `on`, that stays.
                connection.execute(
                    "SELECT set_config('synchronous_commit', 'on', false) "
                    "WHERE current_setting('synchronous_commit') IN ('off', 'local')"
                )
            if not here.is_ready:
                self._make_tables(connection)
                here.is_ready = True
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _migrating(self, connection: Connection) -> Iterator[Transaction]:
        """One process at a time makes tables."""
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
            yield PostgresTransaction(connection, "")

    def _said(self, error: psycopg.Error) -> str:
        """What the driver reports, in the words of somebody who has to do something about it."""
        import psycopg

        said = " ".join(str(error).split())[:300]
        match error:
            case psycopg.errors.DiskFull():
                text = "the disk of the server is full; nothing was written. Make room"
            case psycopg.errors.ReadOnlySqlTransaction():
                text = "the server only reads: it is a standby, or the database is read-only; nothing was written"
            case psycopg.errors.InsufficientPrivilege():
                text = f"this user may not use the tables of the {self.what}"
            case psycopg.errors.QueryCanceled() | psycopg.errors.LockNotAvailable():
                text = f"the server did not answer within {self.statement_seconds:g} s; somebody may hold a lock"
            case psycopg.OperationalError():
                text = f"the server of the {self.what} cannot be reached, or ended the connection"
            case _:
                text = f"the {self.what} cannot be used"
        return f"{self._name}: {text} (PostgreSQL: {said})"


class PostgresTransaction:
    __slots__ = ("_connection", "locking")

    def __init__(self, connection: Connection, locking: str) -> None:
        self._connection = connection
        self.locking = locking

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        return self._connection.execute(_translated(sql), parameters).fetchall()

    def run(self, sql: str, parameters: Sequence[object] = ()) -> int:
        return self._connection.execute(_translated(sql), parameters).rowcount

    def now_us(self) -> int:
        found = self._connection.execute(f"SELECT {NOW}").fetchone()
        assert found is not None
        return int(found[0])


@lru_cache(maxsize=256)
def _translated(sql: str) -> bytes:
    """Our SQL is written with `?`; none of it holds one, or a `%`, in a literal."""
    return sql.replace("?", "%s").encode()


_INHERITED: list[Connections] = []
