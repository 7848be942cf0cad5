"""Store of traces that no journal has: of pure nodes and of re-executions.

One SQLite file. A stored trace never changes: it is added once and deleted by age or when the store is full. Sensitive
traces are sealed as in the journal. Each call opens the file, so a store may be shared by threads and processes and
used after a fork.
"""

from __future__ import annotations

import os
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from vesper.config.traces import TraceSettings
from vesper.engines.outcome import outcome_code
from vesper.journal.errors import JournalError
from vesper.journal.journal import KeyRing, RunKey
from vesper.storage.file_access import create_private, make_private_folder
from vesper.storage.trust import distrust
from vesper.trace.masking import masked_trace
from vesper.trace.model import MAX_BYTES, Trace, TraceError

_VERSION = 1
_BUSY_SECONDS = 5.0
_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS traces (
        trace_id TEXT PRIMARY KEY, node_id TEXT NOT NULL, semantic_hash TEXT NOT NULL, engines TEXT NOT NULL,
        started_us INTEGER NOT NULL, duration_us INTEGER, outcome TEXT, code TEXT, divergence TEXT, origin TEXT,
        is_sensitive INTEGER NOT NULL, size INTEGER NOT NULL, data BLOB NOT NULL
    )""",
    "CREATE INDEX IF NOT EXISTS traces_started ON traces (started_us)",
    "CREATE INDEX IF NOT EXISTS traces_node ON traces (node_id, started_us)",
    "CREATE TABLE IF NOT EXISTS trace_keys (trace_id TEXT PRIMARY KEY, master TEXT NOT NULL, wrapped BLOB NOT NULL)",
)
_COLUMNS = (
    "trace_id, node_id, semantic_hash, engines, started_us, duration_us, outcome, code, divergence, origin, "
    "is_sensitive"
)


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """A trace in a list."""

    trace_id: str
    node_id: str
    semantic_hash: str
    engines: tuple[str, ...]
    started_us: int
    duration_us: int | None
    outcome: str | None
    """Kind of the outcome; None for an execution that has not ended."""
    code: str | None
    divergence: str | None
    origin: str | None
    """Id of the original trace, for a re-execution."""
    is_sensitive: bool
    is_stored: bool = True
    """False for an execution of the journal."""


class TraceStore:
    def __init__(self, settings: TraceSettings, keys: KeyRing | None = None) -> None:
        self._settings = settings
        self._keys = keys or KeyRing()

    @property
    def name(self) -> str:
        return str(self._settings.path)

    @property
    def exists(self) -> bool:
        return self._settings.path.exists()

    def add(self, trace: Trace) -> None:
        """Store a trace. Its id must be new, because traces are never replaced."""
        self.add_all((trace,))

    def add_all(self, traces: Iterable[Trace]) -> None:
        """Store all traces or none."""
        rows = [self._row(each) for each in traces]
        with self._open_for_writing() as connection:
            for row, key in rows:
                trace_id = str(row[0])
                try:
                    connection.execute(f"INSERT INTO traces VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608
                except sqlite3.IntegrityError:
                    raise TraceError(f"{self.name} already has a trace {trace_id}; traces are never replaced") from None
                if key is not None:
                    values = (trace_id, *self._keys.wrap(key, trace_id))
                    connection.execute("INSERT INTO trace_keys VALUES (?, ?, ?)", values)
            self._enforce_limits(connection)

    def _row(self, trace: Trace) -> tuple[tuple[object, ...], RunKey | None]:
        """Return the row of a trace and the key that seals it."""
        written = trace.to_bytes()
        if len(written) > MAX_BYTES:
            raise TraceError(f"the trace of {trace.node_id} has {len(written):,} bytes; the maximum is {MAX_BYTES:,}")
        data = zlib.compress(written, 6)
        key = RunKey.new(trace.trace_id) if trace.is_sensitive else None
        if key is not None:
            data = key.seal(data, 0)
        row = (
            trace.trace_id, trace.node_id, trace.semantic_hash, " ".join(trace.engines), trace.started_us,
            trace.duration_us, None if trace.outcome is None else trace.outcome.kind, _shown_code(trace),
            trace.divergence, None if trace.origin is None else trace.origin.trace_id, int(trace.is_sensitive),
            len(data), data,
        )  # fmt: skip
        return row, key

    def read(self, trace_id: str) -> Trace:
        """Return the trace with this id. Raises `TraceError` if it is missing or unreadable."""
        with self._open_for_reading() as connection:
            rows = connection.execute(
                "SELECT is_sensitive, data FROM traces WHERE trace_id = ?", (trace_id,)
            ).fetchall()
            keys = connection.execute(
                "SELECT master, wrapped FROM trace_keys WHERE trace_id = ?", (trace_id,)
            ).fetchall()
        if not rows:
            raise TraceError(f"{self.name} has no trace {trace_id}")
        is_sensitive, data = rows[0]
        where = f"trace {trace_id}"
        try:
            if is_sensitive:
                if not keys:
                    raise TraceError(f"{where} is erased: its key was deleted, so its data cannot be read")
                master, wrapped = keys[0]
                data = self._keys.unwrap(master, wrapped, trace_id).open(data, 0)
            found = Trace.from_bytes(_decompress(data, where), where)
        except JournalError as error:  # raised for a missing key
            raise TraceError(str(error)) from None
        if found.trace_id != trace_id:
            raise TraceError(f"{where} was changed: its content has the id {found.trace_id}")
        return found

    def ids(self, prefix: str = "", limit: int = 1000) -> list[str]:
        """Return the ids with a prefix, in order."""
        if not self.exists:
            return []
        with self._open_for_reading() as connection:
            found = connection.execute(
                "SELECT trace_id FROM traces WHERE trace_id >= ? AND substr(trace_id, 1, ?) = ? ORDER BY 1 LIMIT ?",
                (prefix, len(prefix), prefix, limit),
            ).fetchall()
        return [str(each[0]) for each in found]

    def find(
        self,
        node: str | None = None,
        since_us: int | None = None,
        limit: int = 100,
        *,
        before: tuple[int, str] | None = None,
        outcomes: Sequence[str] | None = None,
        prefix: str = "",
    ) -> list[TraceSummary]:
        """Return traces, newest first: those that started before a time and id, with one of the outcomes."""
        if not self.exists:
            return []
        kinds = ", ".join(f"?{7 + place}" for place in range(len(outcomes or ())))
        with self._open_for_reading() as connection:
            found = connection.execute(
                f"SELECT {_COLUMNS} FROM traces "  # noqa: S608
                "WHERE (?1 IS NULL OR node_id = ?1) AND (?2 IS NULL OR started_us >= ?2) "
                "AND (?3 IS NULL OR started_us < ?3 OR (started_us = ?3 AND trace_id < ?4)) "
                "AND substr(trace_id, 1, length(?6)) = ?6 "
                f"{'' if outcomes is None else f'AND outcome IN ({kinds}) '}"
                "ORDER BY started_us DESC, trace_id DESC LIMIT ?5",
                (node, since_us, *(before or (None, None)), limit, prefix, *(outcomes or ())),
            ).fetchall()
        return [_build_summary(*row) for row in found]

    def node_ids(self) -> list[str]:
        if not self.exists:
            return []
        with self._open_for_reading() as connection:
            return [str(each[0]) for each in connection.execute("SELECT DISTINCT node_id FROM traces ORDER BY 1")]

    def prune(self, before_us: int, node: str | None = None) -> int:
        """Delete traces that started before a time, with their keys; return their number."""
        if not self.exists:
            return 0
        with self._open_for_writing() as connection:
            gone = connection.execute(
                "DELETE FROM traces WHERE started_us < ?1 AND (?2 IS NULL OR node_id = ?2)", (before_us, node)
            ).rowcount
            connection.execute("DELETE FROM trace_keys WHERE trace_id NOT IN (SELECT trace_id FROM traces)")
        return gone

    def prunable(self, before_us: int, node: str | None = None) -> int:
        """Return how many traces `prune` would delete."""
        if not self.exists:
            return 0
        with self._open_for_reading() as connection:
            found = connection.execute(
                "SELECT count(*) FROM traces WHERE started_us < ?1 AND (?2 IS NULL OR node_id = ?2)", (before_us, node)
            ).fetchone()
        return int(found[0])

    # -- the file ---------------------------------------------------------------------------------

    def _enforce_limits(self, connection: sqlite3.Connection) -> None:
        """Delete traces that are too old, and the oldest beyond the maximum count or size."""
        settings = self._settings
        before_us = time.time_ns() // 1000 - int(settings.retention * 1_000_000)
        gone = connection.execute("DELETE FROM traces WHERE started_us < ?", (before_us,)).rowcount
        # Traces beyond the maximum count or total size, counted from the newest.
        gone += connection.execute(
            "DELETE FROM traces WHERE trace_id IN (SELECT trace_id FROM (SELECT trace_id, "
            "row_number() OVER newest AS place, sum(size) OVER newest AS total FROM traces "
            "WINDOW newest AS (ORDER BY started_us DESC, trace_id DESC)) WHERE place > ? OR total > ?)",
            (settings.max_traces, settings.max_size),
        ).rowcount
        if gone:
            connection.execute("DELETE FROM trace_keys WHERE trace_id NOT IN (SELECT trace_id FROM traces)")

    @contextmanager
    def _open_for_writing(self) -> Iterator[sqlite3.Connection]:
        path = self._settings.path
        try:
            make_private_folder(path.parent)
            if not path.exists():  # only the owner may read inputs of nodes
                with suppress(FileExistsError):  # another process was first
                    os.close(create_private(path))
        except OSError as error:
            raise TraceError(f"{path}: traces cannot be stored here: {error.strerror or error}") from None
        with self._connect() as connection:
            connection.execute("BEGIN IMMEDIATE")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                for statement in _SCHEMA:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {_VERSION}")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def _open_for_reading(self) -> Iterator[sqlite3.Connection]:
        if not self.exists:
            raise TraceError(f"{self.name}: no traces are stored here")
        with self._connect() as connection:
            yield connection

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        path = self._settings.path
        if (reason := distrust(path)) is not None:
            raise TraceError(reason)
        try:
            connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
            try:
                connection.execute("PRAGMA secure_delete = ON")  # overwrite pruned data
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                if version > _VERSION:
                    raise TraceError(
                        f"{path}: the trace store has format {version}, and this Vesper reads {_VERSION}: "
                        "use the newer Vesper that wrote it"
                    )
                yield connection
            finally:
                with suppress(sqlite3.Error):
                    connection.rollback()
                connection.close()
        except sqlite3.Error as error:
            raise TraceError(f"{path}: the trace store cannot be used: {error}") from None


def _decompress(data: bytes, where: str) -> bytes:
    try:
        found = zlib.decompressobj().decompress(data, MAX_BYTES + 1)
    except zlib.error:
        raise TraceError(f"{where} is damaged: it cannot be decompressed") from None
    return found


def _build_summary(
    trace_id: str, node_id: str, semantic_hash: str, engines: str, started_us: int, duration_us: int | None,
    outcome: str | None, code: str | None, divergence: str | None, origin: str | None, is_sensitive: int,
) -> TraceSummary:  # fmt: skip
    """Build a summary from the columns of `_COLUMNS`."""
    names = tuple(engines.split())
    rest = (outcome, code, divergence, origin, bool(is_sensitive))
    return TraceSummary(trace_id, node_id, semantic_hash, names, started_us, duration_us, *rest)


def _shown_code(trace: Trace) -> str | None:
    """Return the code of a trace for its row, which is not sealed."""
    if trace.outcome is None or not trace.is_sensitive:
        return outcome_code(trace.outcome)
    return outcome_code(masked_trace(trace).outcome)
