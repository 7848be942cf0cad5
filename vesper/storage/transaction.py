"""Rows and open transactions, as stores in SQLite and PostgreSQL hand them out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

Row = tuple[Any, ...]


class Transaction(Protocol):
    """A transaction that is open."""

    @property
    def locking(self) -> str:
        """What stands behind a SELECT of a row that is to be changed, where the store has several writers."""
        ...

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]: ...
    def run(self, sql: str, parameters: Sequence[object] = ()) -> int:
        """How many rows were written."""
        ...

    def now_us(self) -> int:
        """The time by which leases are judged: one clock for all that share the store."""
        ...
