"""PostgreSQL: connections, transactions and failures.

What the server sends is taken as it is, in text, and read by database_values: no setting of a session and no adapter
that an application has registered can change what a value is. A session can only read (a query is one round trip); a
write begins a transaction that can do more.
"""

from __future__ import annotations

import math
import select
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

from vesper.effects.database.pool import Deadline, Pool
from vesper.effects.database.session import (
    MissingTable,
    Purpose,
    Rows,
    Session,
    WrongConnection,
    prepared,
    refuse_foreign,
)
from vesper.effects.database.settings import DatabaseSettings
from vesper.effects.database.values import to_column
from vesper.effects.performer import EffectFailed
from vesper.effects.settings import ConfigError
from vesper.values.model import Value

if TYPE_CHECKING:
    import psycopg

    from vesper.effects.database.postgres_connection import OurConnection

_FORMS = {
    "timezone": "UTC",
    "datestyle": "ISO",
    "intervalstyle": "iso_8601",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
}
_SESSION = {**_FORMS, "default_transaction_read_only": "on"}
"""The settings of a session that decide how values look in text."""
_REPORTED = (
    "TimeZone",
    "DateStyle",
    "IntervalStyle",
    "client_encoding",
    "standard_conforming_strings",
    "default_transaction_read_only",
)
_GRACE = 1.0
"""Seconds by which the server may be late in stopping a statement before the connection is cut."""
_LOCK = 0x76657370
"""The advisory lock under which our tables are made."""
_numbers = count(1)


class PostgresBackend:
    kind = "postgres"

    def __init__(self, settings: DatabaseSettings, password: Callable[[], str] | None) -> None:
        try:
            import psycopg  # noqa: F401
        except ImportError as error:
            text = f"a PostgreSQL database needs psycopg ({error}): pip install 'vesper[postgres]'"
            raise ConfigError(settings.where, text) from error
        self._settings = settings
        self._password = password
        self._pool: Pool[OurConnection] = Pool(f"`{settings.name}`", settings.pool_size, self._open, _close)

    def close(self) -> None:
        self._pool.close()

    # -- transactions of our own ------------------------------------------------------------------

    @contextmanager
    def transaction(self, purpose: Purpose) -> Iterator[Session]:
        if purpose.writes and self._settings.read_only:
            raise EffectFailed("unavailable", f"`{self._settings.name}` is configured as `read_only`")
        generation = self._pool.generation
        connection = self._begun(purpose)
        is_sound = False
        try:
            try:
                yield _Session(connection, purpose, self._settings.name)
                self._commit(connection, purpose)
            finally:
                is_sound = _rolled_back(connection)
        finally:
            if is_sound:
                self._pool.give_back(connection, generation)
            else:
                self._pool.drop(connection)

    def _begun(self, purpose: Purpose) -> OurConnection:
        """A connection for a query, or with an open transaction for a write. One that has waited may have died since:
        then a new one is opened, because nothing has been asked of it yet."""
        import psycopg

        connection, is_used = self._pool.take(purpose.deadline)
        try:
            if is_used and _has_news(connection):
                connection, is_used = self._pool.another(purpose.deadline, connection), False
            try:
                self._begin(connection, purpose)
            except psycopg.OperationalError:
                if not is_used or not connection.closed or purpose.deadline.has_passed():
                    raise
                connection = self._pool.another(purpose.deadline, connection)
                self._begin(connection, purpose)
        except psycopg.Error as error:
            self._pool.drop(connection)
            raise _failure(error, purpose, self._settings.name) from error
        except BaseException:
            self._pool.drop(connection)
            raise
        return connection

    def _begin(self, connection: OurConnection, purpose: Purpose) -> None:
        connection.cut_at = Deadline(purpose.deadline.left() + _GRACE)
        if purpose.writes:
            limit = _milliseconds(purpose.deadline.left())
            connection.execute(f"BEGIN READ WRITE; SET LOCAL statement_timeout = {limit}".encode())
            return
        limit = _milliseconds(purpose.deadline.seconds)  # mostly the same as the last time
        if limit != connection.limit:
            connection.execute(f"SET statement_timeout = {limit}".encode())
            connection.limit = limit

    def _commit(self, connection: OurConnection, purpose: Purpose) -> None:
        import psycopg

        if purpose.deadline.has_passed():
            raise purpose.deadline.failure(f"the transaction on `{self._settings.name}`")
        if not purpose.writes:
            return
        try:
            connection.execute(b"COMMIT")
        except psycopg.Error as error:
            raise _failure(error, purpose, self._settings.name, is_commit=True) from error

    def _open(self, deadline: Deadline) -> OurConnection:
        import psycopg

        from vesper.effects.database.postgres_connection import OurConnection, raw_values

        settings = self._settings
        try:
            given: dict[str, Any] = dict(psycopg.conninfo.conninfo_to_dict(settings.dsn))
            options = [str(given["options"])] if given.get("options") else []
            options += [f"-c {name}={value}" for name, value in _SESSION.items()]
            given.update(options=" ".join(options), client_encoding="utf8")
            given.setdefault("application_name", "vesper")
            given["connect_timeout"] = max(2, min(int(given.get("connect_timeout") or 10), math.ceil(deadline.left())))
            if self._password is not None:
                given["password"] = self._password()  # each time: it may have changed
            connection = OurConnection.connect(**given, autocommit=True, context=raw_values())
        except psycopg.Error as error:
            text = " ".join(str(error).split())
            if deadline.has_passed():
                raise deadline.failure(f"connecting to `{settings.name}`") from error
            raise EffectFailed("unavailable", f"`{settings.name}` cannot be reached: {text}") from error
        connection.reported = _reported(connection)
        if None in connection.reported:
            connection.close()
            raise EffectFailed("unavailable", f"`{settings.name}` is older than PostgreSQL 14, which is needed")
        return connection

    # -- the caller's transaction -----------------------------------------------------------------

    @contextmanager
    def joined(self, connection: object, purpose: Purpose) -> Iterator[Session]:
        import psycopg

        if not isinstance(connection, psycopg.Connection):
            kind = f"{type(connection).__module__}.{type(connection).__name__}"
            text = f"`{self._settings.name}` is a PostgreSQL database, and the joined connection is a {kind}"
            raise WrongConnection(f"{text}; give a psycopg.Connection")
        self._check_joined(connection)
        name = f"vesper_{next(_numbers)}"
        cursor = psycopg.Cursor(connection)
        try:
            cursor.execute(f"SAVEPOINT {name}".encode())
            cursor.execute(b"SELECT current_setting('statement_timeout')")
            before = cursor.pgresult.get_value(0, 0) if cursor.pgresult is not None else None
            cursor.execute(f"SET LOCAL statement_timeout = {_milliseconds(purpose.deadline.left())}".encode())
            if not purpose.writes:
                forms = "; ".join(f"SET LOCAL {setting} = '{value}'" for setting, value in _FORMS.items())
                cursor.execute(f"{forms}; SET LOCAL transaction_read_only = on".encode())
        except psycopg.Error as error:
            raise _failure(error, purpose, self._settings.name) from error
        try:
            yield _Session(connection, purpose, self._settings.name)
        except BaseException:
            self._undo(cursor, name)
            raise
        try:
            if purpose.writes:
                cursor.execute(f"SET LOCAL statement_timeout = '{(before or b'0').decode()}'; RELEASE {name}".encode())
            else:
                # A query has changed nothing; going back gives the session its settings again.
                cursor.execute(f"ROLLBACK TO {name}; RELEASE {name}".encode())
        except psycopg.Error as error:
            raise _failure(error, purpose, self._settings.name) from error

    def _check_joined(self, connection: psycopg.Connection[Any]) -> None:
        from psycopg.pq import TransactionStatus

        called = f"the connection joined for `{self._settings.name}`"
        status = connection.info.transaction_status
        if connection.closed or status == TransactionStatus.UNKNOWN:
            raise EffectFailed("unavailable", f"{called} is closed")
        if status == TransactionStatus.INERROR:
            raise EffectFailed("unavailable", f"the transaction of {called} has failed before; roll it back")
        if connection.autocommit and status == TransactionStatus.IDLE:
            raise WrongConnection(
                f"{called} has no open transaction; begin one first: `with connection.transaction():`"
            )
        if connection.info.parameter_status("standard_conforming_strings") != "on":
            raise WrongConnection(f"{called} has `standard_conforming_strings` off: its SQL would mean something else")

    def _undo(self, cursor: psycopg.Cursor[Any], name: str) -> None:
        import psycopg

        try:
            cursor.execute(f"ROLLBACK TO {name}; RELEASE {name}".encode())
        except psycopg.OperationalError:
            if not cursor.connection.closed:
                raise
            # The connection is lost, and the whole transaction with it; the failure that led here says why.


def _milliseconds(seconds: float) -> int:
    return max(1, math.ceil(seconds * 1000))


def _reported(connection: OurConnection) -> tuple[str | None, ...]:
    """The settings of a session that its server tells of whenever they change: a function of the database may have
    changed one, and the next user of the connection would read something else. Asking costs no round trip."""
    return tuple(connection.info.parameter_status(name) for name in _REPORTED)


def _has_news(connection: OurConnection) -> bool:
    """True where the server has sent something that nobody asked for: mostly, that the connection has ended."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _close(connection: OurConnection) -> None:
    connection.close()


def _rolled_back(connection: OurConnection) -> bool:
    """Ends what is left of a transaction; False where the connection is of no more use."""
    import psycopg
    from psycopg.pq import TransactionStatus

    status = connection.info.transaction_status
    if connection.closed or status in (TransactionStatus.UNKNOWN, TransactionStatus.ACTIVE):
        return False
    if status != TransactionStatus.IDLE:
        try:
            connection.cut_at = Deadline(_GRACE)
            connection.execute(b"ROLLBACK")
        except psycopg.Error:
            return False  # it is closed, which rolls back as well
    connection.cut_at = None
    return _reported(connection) == connection.reported


# -- statements -----------------------------------------------------------------------------------


class _Session:
    kind = "postgres"
    booleans_are_integers = False

    def __init__(self, connection: psycopg.Connection[Any], purpose: Purpose, database: str) -> None:
        self._connection = connection
        self._purpose = purpose
        self._database = database

    def guard(self, sql: str) -> None:
        refuse_foreign(sql, self.kind)

    def change(self, sql: str, values: Mapping[str, Value]) -> int:
        import psycopg

        statement = prepared(sql, self.kind, values)
        bound = self._bound(values)
        try:
            return max(self._cursor().execute(statement.text.encode(), bound).rowcount, 0)
        except psycopg.Error as error:
            raise self._failure(error) from error

    def rows(self, sql: str, values: Mapping[str, Value], most: int) -> Rows:
        import psycopg

        statement = prepared(sql, self.kind, values)
        bound = self._bound(values)
        cursor = self._cursor()
        try:
            # The server stops by itself. (The order of the inner SELECT stays: nothing here would change it.)
            text = f"SELECT * FROM (\n{statement.text}\n) AS vesper_rows LIMIT {most:d}".encode()  # noqa: S608
            if most <= _FEW:
                rows: Iterator[Any] = iter(cursor.execute(text, bound))  # has its plan ready after a few times
            else:
                rows = cursor.stream(text, bound)  # a result that is too large is seen to be so before it is in memory
            first = next(rows, None)
        except psycopg.Error as error:
            raise self._failure(error) from error
        columns = [each.name for each in cursor.description or ()]
        oids = [each.type_code for each in cursor.description or ()]
        return columns, self._fetched(rows, first, oids, most)

    def _fetched(
        self, rows: Iterator[Any], row: Any, oids: list[int], most: int
    ) -> Generator[Sequence[object], None, None]:
        import psycopg

        from vesper.effects.database.postgres_values import cell_of

        try:
            for _ in range(most):
                if row is None:
                    return
                yield [cell_of(oid, raw) for oid, raw in zip(oids, row, strict=True)]
                row = next(rows, None)
        except psycopg.Error as error:
            raise self._failure(error) from error
        finally:
            close = getattr(rows, "close", None)
            if close is not None:
                close()  # what is left of the result is not waited for

    def create(self, tables: Mapping[str, str]) -> None:
        import psycopg

        try:
            # Two that make one table at once would both find it missing.
            self._cursor().execute(f"SELECT pg_advisory_xact_lock({_LOCK}); {tables[self.kind]}".encode())
        except psycopg.Error as error:
            raise self._failure(error) from error

    def _cursor(self) -> psycopg.Cursor[Any]:
        from psycopg import Cursor

        from vesper.effects.database.postgres_connection import OurConnection, take_raw_values

        cursor: psycopg.Cursor[Any] = Cursor(self._connection)
        if not isinstance(self._connection, OurConnection):
            take_raw_values(cursor.adapters)
        return cursor

    def _bound(self, values: Mapping[str, Value]) -> dict[str, object]:
        return {name: self._column(name, value) for name, value in values.items()}

    def _column(self, name: str, value: Value) -> object:
        from psycopg.types.numeric import Int4, Int8

        if isinstance(value, int) and not isinstance(value, bool):
            # By its size psycopg would say smallint, which overflows in the first multiplication.
            return Int4(value) if -(2**31) <= value < 2**31 else Int8(value)
        column = to_column(value)
        if isinstance(column, str) and "\0" in column:
            text = f"the text for `:{name}` has a NUL character, which PostgreSQL cannot hold"
            raise EffectFailed(self._purpose.refusal, text)
        return column

    def _failure(self, error: psycopg.Error) -> EffectFailed:
        return _failure(error, self._purpose, self._database)


_FEW = 2


# -- failures -------------------------------------------------------------------------------------


def _failure(error: psycopg.Error, purpose: Purpose, database: str, is_commit: bool = False) -> EffectFailed:
    """What an error means, by its SQLSTATE. Details are left out: they repeat values, which may be secret."""
    from vesper.effects.database.postgres_connection import DeadlinePassed

    if isinstance(error, DeadlinePassed):
        return purpose.deadline.failure(f"`{database}` did not answer: this", may_have_happened=is_commit)
    state = error.sqlstate or ""
    text = f"`{database}`: {_said(error)}"
    match state[:2]:
        case "23":
            return EffectFailed(purpose.refusal, text)
        case "22" | "P0":  # a value that does not fit, or a trigger that refuses
            return EffectFailed(purpose.refusal, text)
        case "40":
            return EffectFailed("unavailable", f"{text}; it was rolled back and may be tried again")
    if state == "57014" and purpose.deadline.left() < _GRACE:  # otherwise it was somebody else who stopped it
        return purpose.deadline.failure(f"the statement on `{database}`")
    if state == "42P01":
        return MissingTable("unavailable", text)
    is_unknown = is_commit and (not state or state.startswith(("57", "08", "XX", "58")))
    return EffectFailed("unavailable", text, may_have_happened=is_unknown)


def _said(error: psycopg.Error) -> str:
    """What the server says, without values."""
    import psycopg

    state, diagnostic = error.sqlstate or "", error.diag
    if state.startswith("23"):
        kind = type(error).__name__
        words = "".join(f" {c.lower()}" if c.isupper() else c for c in kind).strip()
        return (
            f"{words}: constraint `{diagnostic.constraint_name or diagnostic.column_name}` of `{diagnostic.table_name}`"
        )
    if state.startswith("22"):
        words = "".join(f" {c.lower()}" if c.isupper() else c for c in type(error).__name__).strip()
        return f"the database refuses a value: {words}" + (
            f" in column `{diagnostic.column_name}`" if diagnostic.column_name else ""
        )
    if diagnostic.message_primary:
        return diagnostic.message_primary
    if isinstance(error, psycopg.OperationalError):
        return f"the connection was lost: {' '.join(str(error).split())}"
    return " ".join(str(error).split())
