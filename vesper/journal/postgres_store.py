"""A journal in PostgreSQL, for services of several machines.

A commit of lines is one statement, which checks the fence, moves the head, prolongs the lease and inserts: one journey
to the server and back. The server itself syncs for all that commit at the same time. Leases are judged by its clock.
Runs that write nothing use connections that do not wait for the disk, as `synchronous = NORMAL` does in a file.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from vesper.journal import schema
from vesper.journal.batch import Batch
from vesper.journal.errors import JournalError
from vesper.journal.schema import PLACES
from vesper.journal.store import Row, Transaction, check_version, fenced, migrate, write_audit, write_batch

if TYPE_CHECKING:
    import psycopg

    _Connection = psycopg.Connection[tuple[Any, ...]]

_CONNECTIONS = 16
"""At most so many for each way of syncing."""
_CONNECT_SECONDS = 10
_STATEMENT_SECONDS = 30
_MIGRATION_LOCK = 0x76657370  # any number that other programs will hardly use

_NOW = "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint"
_LINES = f"""
    WITH ours AS (
        UPDATE vesper_executions
        SET lease_until_us =
                CASE WHEN COALESCE(%(status)s::text, 'running') = 'running' THEN {_NOW} + %(lease)s::bigint ELSE 0 END,
            updated_us = {_NOW},
            head_seq = %(seq)s::bigint,
            head_hash = %(hash)s::bytea,
            status = COALESCE(%(status)s::text, status),
            outcome = COALESCE(%(outcome)s::text, outcome)
        WHERE id = %(run)s::bigint AND fence = %(fence)s::bigint
        RETURNING id
    )
    INSERT INTO vesper_commits (place, lines, hashes)
    SELECT ours.id * {PLACES} + %(first)s::bigint, %(lines)s::bytea, %(hashes)s::bytea FROM ours
"""  # noqa: S608
# Where the definition was pruned since it was seen, or the execution exists, no row is written.
_BEGIN = f"""
    WITH born AS (
        INSERT INTO vesper_executions (
            execution, node_id, semantic_hash, status, outcome, owner, fence, lease_until_us, started_us, updated_us,
            engine, is_joined, is_sensitive, is_synced, head_seq, head_hash
        )
        SELECT
            %(execution)s::text, %(node)s::text, %(definition)s::text, %(status)s::text, %(outcome)s::text,
            %(owner)s::text, %(fence)s::bigint,
            CASE WHEN %(status)s::text = 'running' THEN {_NOW} + %(lease)s::bigint ELSE 0 END,
            %(started)s::bigint, {_NOW}, %(engine)s::text, %(joined)s::bigint, %(sensitive)s::bigint,
            %(synced)s::bigint, %(seq)s::bigint, %(hash)s::bytea
        WHERE EXISTS (SELECT 1 FROM vesper_definitions WHERE semantic_hash = %(definition)s::text)
        ON CONFLICT (execution) DO NOTHING
        RETURNING id
    ), written AS (
        INSERT INTO vesper_commits (place, lines, hashes)
        SELECT born.id * {PLACES} + %(first)s::bigint, %(lines)s::bytea, %(hashes)s::bytea FROM born
    )
    SELECT id FROM born
"""  # noqa: S608


class _Connections:
    """What belongs to one process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.idle: dict[bool, list[_Connection]] = {True: [], False: []}
        self.free = {True: threading.Semaphore(_CONNECTIONS), False: threading.Semaphore(_CONNECTIONS)}
        self.is_ready = False
        self.definitions: set[str] = set()
        """Hashes of those that were seen in the store; they may have been pruned since."""


class PostgresStore:
    """A journal in the database that `dsn` names."""

    def __init__(self, dsn: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise JournalError(
                "a journal in PostgreSQL needs the package psycopg: pip install 'vesper[postgres]'"
            ) from None
        try:
            parts = psycopg.conninfo.conninfo_to_dict(dsn)
        except psycopg.ProgrammingError:  # its message may hold the whole DSN, and so a password
            raise JournalError(
                "the DSN of the journal cannot be read: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE` is expected, "
                "with special signs escaped as in a URL"
            ) from None
        self._dsn = dsn
        self._name = f"postgresql://{parts.get('host', '')}/{parts.get('dbname', '')}"
        self.audit_key: bytes | None = None
        self._connections = _Connections()

    @property
    def name(self) -> str:
        return self._name

    @property
    def volatile_reason(self) -> str | None:
        """Where a server keeps its data is its administrator's to know."""
        return None

    # -- writing ----------------------------------------------------------------------------------

    def submit(self, batch: Batch) -> None:
        if not self._is_one_statement(batch) or not self._submit_lines(batch):
            self._submit_parts(batch)
        if batch.error is not None:
            raise batch.error

    def _is_one_statement(self, batch: Batch) -> bool:
        if batch.blobs or batch.audit or len(batch.rows) != 1:
            return False
        birth = batch.birth
        return birth is None or (birth.key is None and birth.definition.semantic_hash in self._here().definitions)

    def _submit_lines(self, batch: Batch) -> bool:
        """Whether that was all: of a run that begins the long way may have to be gone."""
        first, lines, hashes = batch.rows[0]
        values: dict[str, object] = {
            "run": batch.run,
            "fence": batch.fence,
            "first": first,
            "lines": lines,
            "hashes": hashes,
            "seq": batch.head_seq,
            "hash": batch.head_hash,
            "lease": batch.lease_us,
            "status": None if batch.status is None else batch.status.value,
            "outcome": batch.outcome,
        }
        birth = batch.birth
        with self._connection(batch.is_synced) as connection:
            if birth is None:
                if connection.execute(_LINES, values, prepare=True).rowcount != 1:
                    batch.error = fenced(batch.execution)
                return True
            summary = birth.summary
            values |= {
                "execution": summary.execution,
                "node": summary.node_id,
                "definition": summary.semantic_hash,
                "status": (summary.status if batch.status is None else batch.status).value,
                "owner": summary.owner,
                "started": summary.started_us,
                "engine": summary.engine,
                "joined": int(summary.is_joined),
                "sensitive": int(summary.is_sensitive),
                "synced": int(birth.is_synced),
            }
            found = connection.execute(_BEGIN, values, prepare=True).fetchone()
            if found is not None:
                batch.run = int(found[0])
            return found is not None

    def _submit_parts(self, batch: Batch) -> None:
        batch.is_prolonged = True  # without the lock of an UPDATE somebody could take the run over meanwhile
        with self._transaction(batch.is_synced) as transaction:
            write_batch(transaction, batch)
            write_audit(transaction, [batch], self.audit_key)
        if batch.birth is not None and batch.error is None:
            self._here().definitions.add(batch.birth.definition.semantic_hash)

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        with self._transaction(is_synced=True) as transaction:
            yield transaction

    @contextmanager
    def _transaction(self, is_synced: bool) -> Iterator[Transaction]:
        with self._connection(is_synced) as connection, connection.transaction():
            yield _PostgresTransaction(connection, " FOR UPDATE")

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        with self._connection(is_synced=True) as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield _PostgresTransaction(connection, "")

    def scrub(self) -> None:
        """Deleted rows are gone from the table when it was vacuumed; the server's log is its administrator's."""
        with self._connection(is_synced=True) as connection:
            connection.execute("VACUUM vesper_keys")

    def lock_for_prune(self, transaction: Transaction) -> None:
        # Also runs that begin wait: they rely on a definition that they find.
        transaction.run(
            "LOCK TABLE vesper_executions, vesper_blobs, vesper_blob_uses, vesper_definitions "
            "IN SHARE ROW EXCLUSIVE MODE"
        )

    def close(self) -> None:
        here = self._here()
        with here.lock:
            idle = [connection for each in here.idle.values() for connection in each]
            here.idle = {True: [], False: []}
        for connection in idle:
            connection.close()

    # -- connections ------------------------------------------------------------------------------

    def _here(self) -> _Connections:
        here = self._connections
        if here.pid != os.getpid():
            _INHERITED.append(here)  # the sockets are the parent's: closing them here would end its sessions
            here = self._connections = _Connections()
        return here

    @contextmanager
    def _connection(self, is_synced: bool) -> Iterator[_Connection]:
        """A connection that nobody else uses meanwhile. What the driver reports is a `JournalError`; a connection that
        met an error of the server's or the network's is not used again."""
        import psycopg

        here = self._here()
        if not here.free[is_synced].acquire(timeout=_STATEMENT_SECONDS):
            raise JournalError(
                f"{self._name}: all {_CONNECTIONS} connections have been in use for {_STATEMENT_SECONDS} s"
            )
        connection = None
        try:
            connection = self._idle(here, is_synced) or self._connect(here, is_synced)
            yield connection
        except psycopg.Error as error:
            raise self._error(error) from error
        finally:
            if connection is not None:
                if connection.closed or connection.pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                    connection.close()
                else:
                    with here.lock:
                        here.idle[is_synced].append(connection)
            here.free[is_synced].release()

    def _idle(self, here: _Connections, is_synced: bool) -> _Connection | None:
        while True:
            with here.lock:
                connection = here.idle[is_synced].pop() if here.idle[is_synced] else None
            if connection is None:
                return None
            # Nothing comes unasked but the end: the server was restarted, or ended the session.
            if not connection.closed and not select.select([connection.fileno()], [], [], 0)[0]:
                return connection
            connection.close()

    def _connect(self, here: _Connections, is_synced: bool) -> _Connection:
        import psycopg

        connection = psycopg.connect(self._dsn, autocommit=True, connect_timeout=_CONNECT_SECONDS)
        try:
            connection.execute(f"SET statement_timeout = '{_STATEMENT_SECONDS}s'")
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
                self._migrate(connection)
                here.is_ready = True
        except BaseException:
            connection.close()
            raise
        return connection

    def _migrate(self, connection: _Connection) -> None:
        if connection.execute("SELECT to_regclass('vesper_migrations')").fetchone() != (None,):
            found = connection.execute("SELECT COALESCE(MAX(version), 0) FROM vesper_migrations").fetchone()
            version = int(found[0]) if found else 0
            check_version(version, self._name)
            if version == schema.VERSION:
                return
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
            migrate(_PostgresTransaction(connection, ""), self._name, schema.POSTGRES)

    def _error(self, error: psycopg.Error) -> JournalError:
        import psycopg

        said = " ".join(str(error).split())[:300]
        match error:
            case psycopg.errors.DiskFull():
                text = "the disk of the server is full; nothing was written. Make room"
            case psycopg.errors.ReadOnlySqlTransaction():
                text = "the server only reads: it is a standby, or the database is read-only; nothing was written"
            case psycopg.errors.InsufficientPrivilege():
                text = "this user may not use the tables of the journal"
            case psycopg.errors.QueryCanceled() | psycopg.errors.LockNotAvailable():
                text = f"the server did not answer within {_STATEMENT_SECONDS} s; somebody may hold a lock"
            case psycopg.OperationalError():
                text = "the server of the journal cannot be reached, or ended the connection"
            case _:
                text = "the journal cannot be used"
        return JournalError(f"{self._name}: {text} (PostgreSQL: {said})")


class _PostgresTransaction:
    __slots__ = ("_connection", "locking")

    def __init__(self, connection: _Connection, locking: str) -> None:
        self._connection = connection
        self.locking = locking

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        return self._connection.execute(_translated(sql), parameters).fetchall()

    def run(self, sql: str, parameters: Sequence[object] = ()) -> int:
        return self._connection.execute(_translated(sql), parameters).rowcount

    def now_us(self) -> int:
        found = self._connection.execute(f"SELECT {_NOW}").fetchone()
        assert found is not None
        return int(found[0])


@lru_cache(maxsize=256)
def _translated(sql: str) -> bytes:
    """Our SQL is written with `?`; none of it holds one, or a `%`, in a literal."""
    return sql.replace("?", "%s").encode()


_INHERITED: list[_Connections] = []
