"""Rows and open transactions of stores in SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

Row = tuple[Any, ...]


class Transaction(Protocol):
    """An open transaction."""

    @property
    def locking(self) -> str:
        """Return the suffix of a SELECT for a row that will be changed, in stores with several writers."""
        ...

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]: ...
    def run(self, sql: str, parameters: Sequence[object] = ()) -> int:
        """Execute a statement and return the number of rows that it wrote."""
        ...

    def now_us(self) -> int:
        """Return the time for leases, by one clock for all processes that share the store."""
        ...
