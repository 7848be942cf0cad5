"""A savepoint in a caller's transaction on PostgreSQL, and its columns as the bytes that the server sent.

It is imported only where a connection to PostgreSQL is joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import psycopg
from psycopg import adapt, postgres
from psycopg.abc import Buffer
from psycopg.pq import Format, TransactionStatus
from psycopg.types.numeric import Int4, Int8

from vesper.effects.database.joined import WrongConnection, kind_error, milliseconds, next_savepoint
from vesper.effects.database.postgres_values import cell_of
from vesper.effects.performer import EffectFailed

_FORMS = {
    "timezone": "UTC",
    "datestyle": "ISO",
    "intervalstyle": "iso_8601",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
}
"""Settings of a session that decide how values look in text."""


class PostgresSession:
    """A savepoint on a connection of psycopg."""

    def __init__(self, name: str, connection: object, seconds: float, writes: bool) -> None:
        if not isinstance(connection, psycopg.Connection):
            raise kind_error(name, connection, "a PostgreSQL", "psycopg.Connection")
        _check(name, connection)
        self._connection: psycopg.Connection[Any] = connection
        self._writes = writes
        self._savepoint = next_savepoint()
        cursor = psycopg.Cursor(connection)
        cursor.execute(f"SAVEPOINT {self._savepoint}".encode())
        cursor.execute(b"SELECT current_setting('statement_timeout')")
        before = cursor.pgresult.get_value(0, 0) if cursor.pgresult is not None else None
        self._timeout = (before or b"0").decode()
        cursor.execute(f"SET LOCAL statement_timeout = {milliseconds(seconds)}".encode())
        if not writes:
            forms = "; ".join(f"SET LOCAL {setting} = '{value}'" for setting, value in _FORMS.items())
            cursor.execute(f"{forms}; SET LOCAL transaction_read_only = on".encode())

    def change(self, sql: str, values: Mapping[str, object]) -> int:
        return max(self._cursor().execute(sql.encode(), _bind_values(values)).rowcount, 0)

    def rows(self, sql: str, values: Mapping[str, object], most: int) -> tuple[list[str], list[Sequence[object]]]:
        cursor = self._cursor()
        # The server stops by itself. The order of the inner SELECT stays: nothing here would change it.
        text = f"SELECT * FROM (\n{sql}\n) AS vesper_rows LIMIT {most:d}"  # noqa: S608  # the node's own statement
        raw: Iterator[Any] = iter(cursor.execute(text.encode(), _bind_values(values)))
        columns = [each.name for each in cursor.description or ()]
        oids = [each.type_code for each in cursor.description or ()]
        return columns, [[cell_of(oid, cell) for oid, cell in zip(oids, row, strict=True)] for row in raw]

    def create(self, sql: str) -> None:
        self._cursor().execute(sql.encode())

    def leave(self) -> None:
        cursor = self._cursor()
        if self._writes:
            cursor.execute(f"SET LOCAL statement_timeout = '{self._timeout}'; RELEASE {self._savepoint}".encode())
        else:
            self._roll_back(cursor)  # a query has changed nothing, and the session gets its settings back

    def undo(self) -> bool:
        try:
            self._roll_back(self._cursor())
        except psycopg.OperationalError:
            if not self._connection.closed:
                raise
            # The connection is lost, and the whole transaction with it; the failure that led here has the reason.
        return False

    def _roll_back(self, cursor: psycopg.Cursor[Any]) -> None:
        cursor.execute(f"ROLLBACK TO {self._savepoint}; RELEASE {self._savepoint}".encode())

    def _cursor(self) -> psycopg.Cursor[Any]:
        cursor: psycopg.Cursor[Any] = psycopg.Cursor(self._connection)
        for oid in _KNOWN_TYPES:
            cursor.adapters.register_loader(oid, _RawLoader)
        return cursor


def _check(name: str, connection: psycopg.Connection[Any]) -> None:
    called = f"the connection joined for `{name}`"
    status = connection.info.transaction_status
    if connection.closed or status == TransactionStatus.UNKNOWN:
        raise EffectFailed("unavailable", f"{called} is closed")
    if status == TransactionStatus.INERROR:
        raise EffectFailed("unavailable", f"the transaction of {called} has failed before; roll it back")
    if connection.autocommit and status == TransactionStatus.IDLE:
        raise WrongConnection(f"{called} has no open transaction; begin one first: `with connection.transaction():`")
    if connection.info.parameter_status("standard_conforming_strings") != "on":
        raise WrongConnection(f"{called} has `standard_conforming_strings` off: its SQL would mean something else")


def _bind_values(values: Mapping[str, object]) -> dict[str, object]:
    return {name: _column(value) for name, value in values.items()}


def _column(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        # By its size psycopg would use smallint, which overflows in the first multiplication.
        return Int4(value) if -(2**31) <= value < 2**31 else Int8(value)
    return value


class _RawLoader(adapt.Loader):
    """Loader that returns the bytes of a column undecoded."""

    format = Format.TEXT

    def load(self, data: Buffer) -> bytes:
        return bytes(data)


_KNOWN_TYPES = [0, *(oid for info in postgres.types for oid in (info.oid, info.array_oid) if oid)]
