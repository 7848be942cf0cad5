"""Migration state in PostgreSQL, for services on several machines.

A transaction locks the row of its node; transactions on other nodes run concurrently. Every wait for the server ends
after two seconds, also where the network drops packets and no timeout of the server applies.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from vesper.migration.stores.sql_store import SqlMigrationStore
from vesper.migration.stores.sql_tables import FORMAT, POSTGRES, check_format, make_tables
from vesper.migration.stores.store import StoreAway, StoreError
from vesper.storage.postgres_server import Connection, PostgresServer

if TYPE_CHECKING:
    import psycopg

WAIT_SECONDS = 2.0
_STALLED_SECONDS = 10
"""Seconds after which the server ends a transaction whose process has stalled."""


class PostgresMigrationStore(SqlMigrationStore):
    """The store in the database that `dsn` names."""

    def __init__(self, dsn: str) -> None:
        super().__init__(_Server(dsn), POSTGRES, _array)


def _array(numbers: list[int]) -> list[int]:
    return numbers


class _Server(PostgresServer):
    what = "migration state"
    connect_seconds = 2
    statement_seconds = WAIT_SECONDS

    def warnings(self) -> Sequence[str]:
        with self.looking() as transaction:
            is_synced = transaction.rows("SELECT current_setting('fsync')") == [("on",)]
        if is_synced:
            return ()
        return (f"{self.name}: the server does not sync (fsync is off): a crash may damage the migration state",)

    def _open_connection(self) -> Connection:
        connection = _bounded_connection().connect(
            self._dsn, autocommit=True, connect_timeout=self.connect_seconds, tcp_user_timeout=int(WAIT_SECONDS * 1000)
        )
        try:
            connection.execute("SET default_transaction_isolation = 'read committed'")  # rows are isolated by locks
            connection.execute(f"SET idle_in_transaction_session_timeout = '{_STALLED_SECONDS}s'".encode())
        except BaseException:
            connection.close()
            raise
        return connection

    def _error(self, text: str) -> StoreError:
        return StoreError(text)

    def _error_of(self, error: psycopg.Error) -> StoreError:
        import psycopg

        passing = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.errors.ReadOnlySqlTransaction)
        return (StoreAway if isinstance(error, passing) else StoreError)(self._message(error))

    def _pool_error(self, text: str) -> StoreError:
        return StoreAway(text)

    def _make_tables(self, connection: Connection) -> None:
        self._check_encoding(connection)
        if connection.execute("SELECT to_regclass('vesper_control_format')").fetchone() != (None,):
            found = connection.execute("SELECT COALESCE(MAX(version), 0) FROM vesper_control_format").fetchone()
            version = int(found[0]) if found else 0
            check_format(version, self.name)
            if version == FORMAT:
                return
        with self._migrating(connection) as transaction:
            make_tables(transaction, self.name, POSTGRES)

    def _check_encoding(self, connection: Connection) -> None:
        """Refuse encodings other than UTF8: SQL_ASCII returns bytes, and the others cannot store every text."""
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise StoreError(
                f"{self.name}: the database has the encoding {encoding}, and the migration state needs UTF8. That of a "
                "database cannot be changed: make another one with `CREATE DATABASE vesper ENCODING 'UTF8' TEMPLATE "
                "template0`, and name it in the DSN of the store"
            )


@lru_cache(maxsize=1)
def _bounded_connection() -> type[Connection]:
    """Return a connection class that gives up after `WAIT_SECONDS`.

    It is built on first use, so that psycopg is imported only where a store is used.
    """
    import psycopg

    class Bounded(psycopg.Connection[tuple[Any, ...]]):
        def wait(self, gen: Generator[Any, Any, Any], *arguments: Any, **named: Any) -> Any:
            try:
                return super().wait(_run_until(time.monotonic() + WAIT_SECONDS + 0.5, gen), *arguments, **named)
            except _NoAnswer:
                self.close()
                raise psycopg.OperationalError(f"no answer within {WAIT_SECONDS:g} s") from None

    return Bounded


class _NoAnswer(Exception):
    pass


def _run_until(deadline: float, steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Run the driver's steps until the deadline. The driver resumes it several times a second, also without data."""
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > deadline:
                raise _NoAnswer
            wanted = steps.send(ready)
    except StopIteration as end:
        return end.value
