"""Migration state in PostgreSQL, for services of several machines.

The row of a node is locked for as long as a transaction on it lasts; transactions on other nodes go on beside it. A
server that does not answer is waited for two seconds, whatever is wrong with it: it may be stopped, or the network may
swallow what it says, and then no time limit of its own ends the waiting.
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
"""A process that stops in the middle of a transaction keeps a node from the others for so long."""


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
            connection.execute("SET default_transaction_isolation = 'read committed'")  # a lock is what parts them
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

    def _error_of_crowd(self, text: str) -> StoreError:
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
        """SQL_ASCII gives bytes where a text was written, and the others do not take every text."""
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise StoreError(
                f"{self.name}: the database has the encoding {encoding}, and the migration state needs UTF8. That of a "
                "database cannot be changed: make another one with `CREATE DATABASE vesper ENCODING 'UTF8' TEMPLATE "
                "template0`, and name it in the DSN of the store"
            )


@lru_cache(maxsize=1)
def _bounded_connection() -> type[Connection]:
    """A connection that gives up. psycopg is imported when a store is used, so its class is made then."""
    import psycopg

    class Bounded(psycopg.Connection[tuple[Any, ...]]):
        def wait(self, gen: Generator[Any, Any, Any], *arguments: Any, **named: Any) -> Any:
            try:
                return super().wait(_until(time.monotonic() + WAIT_SECONDS + 0.5, gen), *arguments, **named)
            except _NoAnswer:
                self.close()
                raise psycopg.OperationalError(f"no answer within {WAIT_SECONDS:g} s") from None

    return Bounded


class _NoAnswer(Exception):
    pass


def _until(deadline: float, steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """The same steps. The driver comes by several times a second, also where nothing has come."""
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > deadline:
                raise _NoAnswer
            wanted = steps.send(ready)
    except StopIteration as end:
        return end.value
