"""Where traces are kept that no journal has: those of pure nodes, and of re-executions.

One file of SQLite. A trace that is there is never changed: it is added once, and goes when it is old or when there are
too many. Sensitive ones are sealed as the journal seals its runs. Every call opens the file anew, so a store may be
used by any number of threads and processes, and after a fork.
"""

from __future__ import annotations

import os
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from vesper.config.traces import TraceSettings
from vesper.engines.outcome import DeclaredError, Failed, LimitHit, Outcome
from vesper.journal.errors import JournalError
from vesper.journal.sealing import KeyRing, RunKey
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
    """The kind of the outcome; None where it has not ended."""
    code: str | None
    divergence: str | None
    origin: str | None
    """The trace that it was made from, of a re-execution."""
    is_sensitive: bool
    is_stored: bool = True
    """False where the journal has it."""


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
        """Keeps a trace. One with the same id must not be there: traces are never replaced."""
        self.add_all((trace,))

    def add_all(self, traces: Iterable[Trace]) -> None:
        """Keeps all of them or none."""
        rows = [self._row(each) for each in traces]
        with self._writing() as connection:
            for row, key in rows:
                trace_id = str(row[0])
                try:
                    connection.execute(f"INSERT INTO traces VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608
                except sqlite3.IntegrityError:
                    raise TraceError(f"{self.name} has a trace {trace_id} already: it is not replaced") from None
                if key is not None:
                    values = (trace_id, *self._keys.wrap(key, trace_id))
                    connection.execute("INSERT INTO trace_keys VALUES (?, ?, ?)", values)
            self._bound(connection)

    def _row(self, trace: Trace) -> tuple[tuple[object, ...], RunKey | None]:
        """What is written of a trace, and what it is sealed with."""
        written = trace.to_bytes()
        if len(written) > MAX_BYTES:
            raise TraceError(f"the trace of {trace.node_id} has {len(written):,} bytes, and {MAX_BYTES:,} are kept")
        data = zlib.compress(written, 6)
        key = RunKey.new(trace.trace_id) if trace.is_sensitive else None
        if key is not None:
            data = key.seal(data, 0)
        row = (
            trace.trace_id, trace.node_id, trace.semantic_hash, " ".join(trace.engines), trace.started_us,
            trace.duration_us, None if trace.outcome is None else trace.outcome.kind, outcome_code(trace.outcome),
            trace.divergence, None if trace.origin is None else trace.origin.trace_id, int(trace.is_sensitive),
            len(data), data,
        )  # fmt: skip
        return row, key

    def read(self, trace_id: str) -> Trace:
        """The trace with this id. Raises `TraceError` where there is none, or it cannot be read."""
        with self._reading() as connection:
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
                    raise TraceError(f"{where} is erased: its key was deleted, and what it held can be read by nobody")
                master, wrapped = keys[0]
                data = self._keys.unwrap(master, wrapped, trace_id).open(data, 0)
            found = Trace.from_bytes(_decompressed(data, where), where)
        except JournalError as error:  # of the keys
            raise TraceError(str(error)) from None
        if found.trace_id != trace_id:
            raise TraceError(f"{where} was changed: it says that it is {found.trace_id}")
        return found

    def ids(self, prefix: str = "", limit: int = 1000) -> list[str]:
        """The ids that start so, in order."""
        if not self.exists:
            return []
        with self._reading() as connection:
            found = connection.execute(
                "SELECT trace_id FROM traces WHERE trace_id >= ? AND substr(trace_id, 1, ?) = ? ORDER BY 1 LIMIT ?",
                (prefix, len(prefix), prefix, limit),
            ).fetchall()
        return [str(each[0]) for each in found]

    def find(self, node: str | None = None, since_us: int | None = None, limit: int = 100) -> list[TraceSummary]:
        """Traces, newest first."""
        if not self.exists:
            return []
        with self._reading() as connection:
            found = connection.execute(
                f"SELECT {_COLUMNS} FROM traces "  # noqa: S608
                "WHERE (?1 IS NULL OR node_id = ?1) AND (?2 IS NULL OR started_us >= ?2) "
                "ORDER BY started_us DESC LIMIT ?3",
                (node, since_us, limit),
            ).fetchall()
        return [_summary(*row) for row in found]

    def node_ids(self) -> list[str]:
        if not self.exists:
            return []
        with self._reading() as connection:
            return [str(each[0]) for each in connection.execute("SELECT DISTINCT node_id FROM traces ORDER BY 1")]

    def prune(self, before_us: int, node: str | None = None) -> int:
        """Deletes traces that began before, with their keys; how many."""
        if not self.exists:
            return 0
        with self._writing() as connection:
            gone = connection.execute(
                "DELETE FROM traces WHERE started_us < ?1 AND (?2 IS NULL OR node_id = ?2)", (before_us, node)
            ).rowcount
            connection.execute("DELETE FROM trace_keys WHERE trace_id NOT IN (SELECT trace_id FROM traces)")
        return gone

    def prunable(self, before_us: int, node: str | None = None) -> int:
        """How many `prune` would delete."""
        if not self.exists:
            return 0
        with self._reading() as connection:
            found = connection.execute(
                "SELECT count(*) FROM traces WHERE started_us < ?1 AND (?2 IS NULL OR node_id = ?2)", (before_us, node)
            ).fetchone()
        return int(found[0])

    # -- the file ---------------------------------------------------------------------------------

    def _bound(self, connection: sqlite3.Connection) -> None:
        """Deletes what is too old, and the oldest where there is too much."""
        settings = self._settings
        before_us = time.time_ns() // 1000 - int(settings.retention * 1_000_000)
        gone = connection.execute("DELETE FROM traces WHERE started_us < ?", (before_us,)).rowcount
        # Those that the newest leave no room for, by number or by size.
        gone += connection.execute(
            "DELETE FROM traces WHERE trace_id IN (SELECT trace_id FROM (SELECT trace_id, "
            "row_number() OVER newest AS place, sum(size) OVER newest AS total FROM traces "
            "WINDOW newest AS (ORDER BY started_us DESC, trace_id DESC)) WHERE place > ? OR total > ?)",
            (settings.max_traces, settings.max_size),
        ).rowcount
        if gone:
            connection.execute("DELETE FROM trace_keys WHERE trace_id NOT IN (SELECT trace_id FROM traces)")

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        path = self._settings.path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():  # what a node was given is for its owner's eyes
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise TraceError(f"{path}: traces cannot be kept here: {error.strerror or error}") from None
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                for statement in _SCHEMA:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {_VERSION}")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        if not self.exists:
            raise TraceError(f"{self.name}: there are no traces here")
        with self._connected() as connection:
            yield connection

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        path = self._settings.path
        try:
            connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
            try:
                connection.execute("PRAGMA secure_delete = ON")  # what is pruned is gone
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                if version > _VERSION:
                    raise TraceError(
                        f"{path}: the store of traces has the format {version}, and this Vesper knows {_VERSION}: "
                        "a newer one made it"
                    )
                yield connection
            finally:
                with suppress(sqlite3.Error):
                    connection.rollback()
                connection.close()
        except sqlite3.Error as error:
            raise TraceError(f"{path}: the store of traces cannot be used: {error}") from None


def _decompressed(data: bytes, where: str) -> bytes:
    try:
        found = zlib.decompressobj().decompress(data, MAX_BYTES + 1)
    except zlib.error:
        raise TraceError(f"{where} is damaged: it cannot be decompressed") from None
    return found


def _summary(
    trace_id: str, node_id: str, semantic_hash: str, engines: str, started_us: int, duration_us: int | None,
    outcome: str | None, code: str | None, divergence: str | None, origin: str | None, is_sensitive: int,
) -> TraceSummary:  # fmt: skip
    """Of the columns of `_COLUMNS`."""
    names = tuple(engines.split())
    said = (outcome, code, divergence, origin, bool(is_sensitive))
    return TraceSummary(trace_id, node_id, semantic_hash, names, started_us, duration_us, *said)


def outcome_code(outcome: Outcome | None) -> str | None:
    """What an outcome is called besides its kind: the code of an error, the limit that was hit."""
    match outcome:
        case DeclaredError(value):
            return str(value.get("error_code", "")) or None
        case Failed(code):
            return str(code)
        case LimitHit(limit):
            return limit
        case _:
            return None
