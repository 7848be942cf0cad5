"""A journal in PostgreSQL, for services of several machines.

A commit of lines is one statement, which checks the fence, moves the head, prolongs the lease and inserts: one journey
to the server and back. The server itself syncs for all that commit at the same time. Leases are judged by its clock.
Runs that write nothing use connections that do not wait for the disk, as `synchronous = NORMAL` does in a file.
"""

from __future__ import annotations

from vesper.journal import schema
from vesper.journal.batch import Batch
from vesper.journal.errors import JournalError
from vesper.journal.schema import PLACES
from vesper.journal.store import check_version, fenced, migrate, write_audit, write_batch
from vesper.storage.postgres_server import NOW, Connection, Connections, PostgresServer
from vesper.storage.transaction import Transaction

_LINES = f"""
    WITH ours AS (
        UPDATE vesper_executions
        SET lease_until_us =
                CASE WHEN COALESCE(%(status)s::text, 'running') = 'running' THEN {NOW} + %(lease)s::bigint ELSE 0 END,
            updated_us = {NOW},
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
            CASE WHEN %(status)s::text = 'running' THEN {NOW} + %(lease)s::bigint ELSE 0 END,
            %(started)s::bigint, {NOW}, %(engine)s::text, %(joined)s::bigint, %(sensitive)s::bigint,
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


class _Connections(Connections):
    def __init__(self) -> None:
        super().__init__()
        self.definitions: set[str] = set()
        """Hashes of those that were seen in the store; they may have been pruned since."""


class PostgresStore(PostgresServer):
    """A journal in the database that `dsn` names."""

    what = "journal"

    def __init__(self, dsn: str) -> None:
        super().__init__(dsn)
        self.audit_key: bytes | None = None

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

    # -- the server -------------------------------------------------------------------------------

    def _new_connections(self) -> _Connections:
        return _Connections()

    def _here(self) -> _Connections:
        here = super()._here()
        assert isinstance(here, _Connections)
        return here

    def _error(self, text: str) -> JournalError:
        return JournalError(text)

    def _make_tables(self, connection: Connection) -> None:
        if connection.execute("SELECT to_regclass('vesper_migrations')").fetchone() != (None,):
            found = connection.execute("SELECT COALESCE(MAX(version), 0) FROM vesper_migrations").fetchone()
            version = int(found[0]) if found else 0
            check_version(version, self._name)
            if version == schema.VERSION:
                return
        with self._migrating(connection) as transaction:
            migrate(transaction, self._name, schema.POSTGRES)
