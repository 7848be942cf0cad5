"""A PostgreSQL server with tables of the migration state.

Connections are pooled and used by one thread at a time. After a fork the child opens its own.
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
"""Limit of connections."""
NOW = "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint"
_MIGRATION_LOCK = 0x76657370  # an arbitrary number that other programs are unlikely to use


class Connections:
    """The connections of one process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.idle: list[Connection] = []
        self.free = threading.Semaphore(CONNECTIONS)
        self.is_ready = False


class PostgresServer:
    """The database of `dsn`. A subclass names its content and makes its tables."""

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
        except psycopg.ProgrammingError:  # its message may contain the whole DSN, and so a password
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
        """Make or upgrade the tables; refuse those of a newer Vesper."""
        raise NotImplementedError

    def _error(self, text: str) -> VesperError:
        raise NotImplementedError

    def _error_of(self, error: psycopg.Error) -> VesperError:
        return self._error(self._message(error))

    def _pool_error(self, text: str) -> VesperError:
        """Return the error for a pool without a free connection for too long."""
        return self._error(text)

    # -- using it ---------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._name

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        with self._connection() as connection, connection.transaction():
            yield PostgresTransaction(connection, " FOR UPDATE")

    @contextmanager
    def looking(self) -> Iterator[Transaction]:
        """Open a connection for one statement that reads, or writes one row, in one round trip."""
        with self._connection() as connection:
            yield PostgresTransaction(connection, "")

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        with self._connection() as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield PostgresTransaction(connection, "")

    def close(self) -> None:
        here = self._here()
        with here.lock:
            idle, here.idle = here.idle, []
        for connection in idle:
            connection.close()

    # -- connections ------------------------------------------------------------------------------

    def _here(self) -> Connections:
        here = self._connections
        if here.pid != os.getpid():
            _INHERITED.append(here)  # the sockets belong to the parent: closing them here would end its sessions
            here = self._connections = self._new_connections()
        return here

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """Reserve a connection for this thread.

        Errors of the driver become errors of the subclass; a connection that met an error of the server or the network
        is not reused.
        """
        import psycopg

        here = self._here()
        if not here.free.acquire(timeout=self.statement_seconds):
            raise self._pool_error(
                f"{self._name}: all {CONNECTIONS} connections have been in use for {self.statement_seconds:g} s"
            )
        connection = None
        try:
            connection = self._idle(here) or self._connect(here)
            yield connection
        except psycopg.Error as error:
            raise self._error_of(error) from error
        finally:
            if connection is not None:
                if connection.closed or connection.pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                    connection.close()
                else:
                    with here.lock:
                        here.idle.append(connection)
            here.free.release()

    def _idle(self, here: Connections) -> Connection | None:
        while True:
            with here.lock:
                connection = here.idle.pop() if here.idle else None
            if connection is None:
                return None
            # The only unsolicited data is the end: a restart of the server, or the end of the session.
            if not connection.closed and not select.select([connection.fileno()], [], [], 0)[0]:
                return connection
            connection.close()

    def _connect(self, here: Connections) -> Connection:
        connection = self._open_connection()
        try:
            connection.execute(f"SET statement_timeout = {int(self.statement_seconds * 1000)}")
            # Repeated statements find rows by key: planning them again takes longer.
            connection.execute("SET plan_cache_mode = force_generic_plan")
            # A stricter level than `on`, set by the administrator, stays.
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
        """Hold the lock under which one process at a time makes tables."""
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
            yield PostgresTransaction(connection, "")

    def _message(self, error: psycopg.Error) -> str:
        """Return the driver's report as a message with a remedy."""
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
        return self._connection.execute(_translate(sql), parameters).fetchall()

    def run(self, sql: str, parameters: Sequence[object] = ()) -> int:
        return self._connection.execute(_translate(sql), parameters).rowcount

    def now_us(self) -> int:
        found = self._connection.execute(f"SELECT {NOW}").fetchone()
        assert found is not None
        return int(found[0])


@lru_cache(maxsize=256)
def _translate(sql: str) -> bytes:
    """Return our SQL, written with `?`, with the driver's placeholders. No literal in it has `?` or `%`."""
    return sql.replace("?", "%s").encode()


_INHERITED: list[Connections] = []
