"""What a node's statement may touch in SQLite, held by SQLite itself.

The checker reads tables and functions from the text of a statement. SQLite's authorizer reports what the statement
really reads, writes and calls when it is compiled, and this guard denies the rest. A compiled statement is not
authorized again, so a repeated one costs nothing.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from functools import lru_cache

from vesper.effects.performer import EffectFailed
from vesper.values.generated.sql_functions import FUNCTIONS, SYNTAX_FUNCTIONS

_OF_OPERATORS = frozenset(("->", "->>", "glob", "like", "match"))
_PURE = FUNCTIONS["sqlite"] | SYNTAX_FUNCTIONS | _OF_OPERATORS
_WRITES = (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE)
_SHADOW = ("config", "content", "data", "docsize", "idx", "node", "parent", "rowid", "segdir", "segments", "stat")
"""Endings of the tables in which a virtual table keeps its rows."""
_SCHEMA = "sqlite_master"
_VIEWS = "SELECT lower(name) FROM sqlite_master WHERE type = 'view'"
_KEYS = """SELECT lower(m.name), lower(f."table") FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f
WHERE m.type = 'table'"""


@dataclass(frozen=True, slots=True)
class Limits:
    """Tables and functions of one statement, in small letters."""

    reads: frozenset[str]
    writes: frozenset[str]
    functions: frozenset[str]
    local_names: frozenset[str]


@lru_cache(maxsize=4096)
def limits_of(sql: str) -> Limits:
    """Return what the checker reads from a statement. Raises `EffectFailed` for one that it refuses."""
    from vesper.language.check.flow.sql import SqlProblem, read_sql

    try:
        found = read_sql(sql)
    except SqlProblem as problem:
        raise EffectFailed("unavailable", f"its SQL {problem}: the node was not checked, or is damaged") from None
    tables, written = _lower(found.read_tables), _lower(found.write_tables)
    return Limits(tables | written, written, _lower(found.functions), _lower(found.local_names))


def _lower(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)


class Guard:
    """The authorizer of one connection. Without limits it allows everything: the statement is one of Vesper's."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._raw = raw
        self.limits: Limits | None = None
        self._related: frozenset[str] = frozenset()
        self._reads_view = False
        self._version: object = None
        self._views: frozenset[str] = frozenset()
        self._keys: list[tuple[str, ...]] = []
        """Pairs of tables that a foreign key connects."""
        raw.set_authorizer(self._decide)

    def set_up(self, sql: str) -> None:
        """Hold the next statement to the limits of this text."""
        limits = limits_of(sql)
        version = _rows(self._raw, "PRAGMA schema_version")
        if version != self._version:
            self._views = frozenset(name for (name,) in _rows(self._raw, _VIEWS))
            self._keys = _rows(self._raw, _KEYS)
            self._version = version
        self._related = _related(self._keys, limits.writes)
        self._reads_view = not self._views.isdisjoint(limits.reads)
        self.limits = limits

    def _decide(
        self, action: int, first: str | None, second: str | None, database: str | None, source: str | None
    ) -> int:
        limits = self.limits
        if limits is None or self._is_allowed(limits, action, (first or "").lower(), (second or "").lower(), source):
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    def _is_allowed(self, limits: Limits, action: int, first: str, second: str, source: str | None) -> bool:
        if source is not None and source.lower() not in limits.local_names:
            return True  # inside a view or a trigger, which are the database's own
        if action == sqlite3.SQLITE_READ:
            if not second and (self._reads_view or first in limits.local_names):
                return True  # rows without a column: SQLite names the table below a view or a WITH
            is_schema = first == _SCHEMA and second == "rowid"  # read where a table function is set up
            return is_schema or first in FUNCTIONS["sqlite"] or self._is_table(first, limits.reads)
        if action in _WRITES:
            is_schema = first == _SCHEMA and action == sqlite3.SQLITE_UPDATE
            return is_schema or self._is_table(first, limits.writes)
        if action == sqlite3.SQLITE_FUNCTION:
            return second in _PURE or second in limits.functions
        if action == sqlite3.SQLITE_PRAGMA:
            return first == "data_version" and not second  # of a full-text table
        return action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE)

    def _is_table(self, name: str, tables: frozenset[str]) -> bool:
        if name in tables or name in self._related:
            return True
        owner, _, ending = name.rpartition("_")
        return ending in _SHADOW and owner in tables


def _related(keys: list[tuple[str, ...]], tables: frozenset[str]) -> frozenset[str]:
    """Return the tables that foreign keys connect with these: a write reads their keys, and may cascade to them."""
    found, before = set(tables), 0
    while keys and len(found) != before:
        before = len(found)
        found.update(*(pair for pair in keys if not found.isdisjoint(pair)))
    return frozenset(found)


def _rows(raw: sqlite3.Connection, sql: str) -> list[tuple[str, ...]]:
    cursor = raw.cursor()
    cursor.row_factory = None
    return cursor.execute(sql).fetchall()
