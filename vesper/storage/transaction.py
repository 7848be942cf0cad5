"""Rows and open transactions of stores in SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

Row = tuple[Any, ...]


class Transaction(Protocol):
    """An open transaction."""

    @property
    def locking(self) -> str:
        """The suffix of a SELECT of a row that will be changed, where the store has several writers."""
        ...

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]: ...
    def run(self, sql: str, parameters: Sequence[object] = ()) -> int:
        """Execute a statement and return how many rows were written."""
        ...

    def now_us(self) -> int:
        """Return the time of leases: one clock for all processes that share the store."""
        ...
