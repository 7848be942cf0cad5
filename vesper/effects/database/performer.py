"""Databases as effects: `database_query` and `database_write`, on SQLite and PostgreSQL.

Both give the same for the same statement (docs/how-to/configure-databases.md says where a column type decides). All
that differs stands in sqlite.py and postgres.py.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType

from vesper.effects.database.pool import Deadline
from vesper.effects.database.receipts import RECEIPTS, ReceiptsMissing, find, once, receipt_name
from vesper.effects.database.roles import role_risks
from vesper.effects.database.session import Backend, Purpose, Session, WrongConnection
from vesper.effects.database.settings import DatabaseSettings
from vesper.effects.database.sql import SqlRefused, statement_of
from vesper.effects.database.sqlite import SqliteBackend, TransactionLost
from vesper.effects.database.values import Reader, size_of
from vesper.effects.performer import NOT_DONE, Ask, EffectFailed
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.values.model import Value
from vesper.values.types import ArrayOf, OptionalOf, Type

__all__ = ["DatabasePerformer", "DatabaseSettings", "WrongConnection", "is_joined", "joined"]

_VERBS = {
    "database_query": ("SELECT", "WITH", "VALUES"),
    "database_write": ("INSERT", "UPDATE", "DELETE", "WITH"),
}


@dataclass(slots=True)
class _Joined:
    connection: object
    is_lost: bool = False
    """True once the database has ended the caller's transaction by itself: what came after would be in another one."""


_joined: ContextVar[Mapping[str, _Joined]] = ContextVar("vesper_joined_databases", default=MappingProxyType({}))


@contextmanager
def joined(name: str, connection: object) -> Iterator[None]:
    """While it is open, effects on the database with this name are part of the transaction of this connection, a
    `sqlite3.Connection` or a `psycopg.Connection`: they happen when the caller commits, and not when it rolls back.

    It holds for this thread (this task of asyncio), and for what is run in a copy of its context.
    """
    psycopg = sys.modules.get("psycopg")
    kinds = (sqlite3.Connection,) if psycopg is None else (sqlite3.Connection, psycopg.Connection)
    if not isinstance(connection, kinds):
        kind = f"{type(connection).__module__}.{type(connection).__name__}"
        raise WrongConnection(f"`{name}` is joined by a sqlite3.Connection or a psycopg.Connection, not by a {kind}")
    token = _joined.set({**_joined.get(), name: _Joined(connection)})
    try:
        yield
    finally:
        _joined.reset(token)


def is_joined() -> bool:
    """True where effects on some database are part of a caller's transaction."""
    return bool(_joined.get())


def joined_names() -> frozenset[str]:
    """The databases that are."""
    return frozenset(_joined.get())


class DatabasePerformer:
    """Performs `database_query` and `database_write` on the databases that are configured. Nothing is opened before it
    is used."""

    def __init__(self, settings: Mapping[str, DatabaseSettings], secret: Callable[[str], str]) -> None:
        self._settings = dict(settings)
        self._secret = secret
        self._backends: dict[str, Backend] = {}

    def perform(self, ask: Ask) -> object:
        name, values = ask.fixed["database"], _bound(ask)
        self._check_verb(name, ask)
        if ask.effect == "database_query":
            return self._query(name, ask, values)
        sql = ask.fixed["sql"]

        def act(session: Session) -> str:
            session.guard(sql)
            return str(session.change(sql, values))

        if ask.effect_class != "unsafe":
            return int(self.once(name, ask, act, refusal="conflict"))
        with self.session(name, ask, writes=True, refusal="conflict") as session:
            return int(act(session))

    def probe(self, ask: Ask) -> object:
        found = self.happened(ask.fixed["database"], ask)
        return NOT_DONE if found is None else int(found)

    def close(self) -> None:
        backends, self._backends = self._backends, {}
        for backend in backends.values():
            backend.close()

    def role_risks(self, name: str) -> list[str]:
        """Return the rights of a database's role that no node needs. Raises `EffectFailed` if it cannot be reached."""
        with self._session(name, Purpose(Deadline(self._configured(name).timeout), False, "unavailable")) as session:
            return role_risks(session) if session.kind == "postgres" else []

    # -- for effects that are kept in a database --------------------------------------------------

    @contextmanager
    def session(self, name: str, ask: Ask, *, writes: bool, refusal: str) -> Iterator[Session]:
        """A transaction on the database with this name, or in the caller's where it is joined. `refusal` is the code
        for a value that the database does not take."""
        with self._session(name, Purpose(self._deadline(name, ask), writes, refusal)) as session:
            yield session

    def once(self, name: str, ask: Ask, act: Callable[[Session], str], *, refusal: str) -> str:
        """What `act` gives, in one transaction with the receipt of the request; what it gave before, where the receipt
        is there already. The table of the receipts is made where the database has none yet."""
        purpose = Purpose(self._deadline(name, ask), True, refusal)
        receipt = receipt_name(ask)
        try:
            with self._session(name, purpose) as session:
                return once(session, receipt, act)
        except ReceiptsMissing:
            with self._session(name, purpose) as session:
                session.create(RECEIPTS)
        with self._session(name, purpose) as session:
            return once(session, receipt, act)

    def happened(self, name: str, ask: Ask) -> str | None:
        """What stands in the receipt of the request; None where there is none."""
        with self.session(name, ask, writes=False, refusal="unavailable") as session:
            return find(session, receipt_name(ask))

    # -- the parts --------------------------------------------------------------------------------

    def _query(self, name: str, ask: Ask, values: Mapping[str, Value]) -> object:
        rows = ask.fixed["rows"]
        most = self._configured(name).max_rows if rows == "all" else 1
        with self.session(name, ask, writes=False, refusal="bad_response") as session:
            session.guard(ask.fixed["sql"])
            columns, cells = session.rows(ask.fixed["sql"], values, most + 1)
            with closing(cells):
                found = self._read(name, ask, columns, cells, session.booleans_are_integers, most)
        if len(found) > most:
            advice = f" (`max_rows` is {most:,}); add a LIMIT, or raise it" if rows == "all" else ""
            raise EffectFailed("too_many_rows", f"the query on `{name}` gives more than {_counted(most)}{advice}")
        if rows == "all":
            return found
        if not found and rows == "one":
            raise EffectFailed("not_found", f"the query on `{name}` gives no row")
        return found[0] if found else None

    def _read(
        self,
        name: str,
        ask: Ask,
        columns: Sequence[str],
        cells: Iterable[Sequence[object]],
        has_no_booleans: bool,
        most: int,
    ) -> list[object]:
        """The rows as values; one too many is only there to be counted."""
        settings, row = self._configured(name), _row_type(ask)
        reader: Reader | None = None
        found: list[object] = []
        total = 0
        for number, each in enumerate(cells, 1):
            if number > most:
                return [*found, None]
            reader = reader or Reader(columns, row, name, has_no_booleans)
            total += sum(_measured(cell, column, number, settings) for cell, column in zip(each, columns, strict=True))
            if total > settings.max_result:
                text = (
                    f"the first {_counted(number)} of `{name}` hold more than `max_result` of {settings.max_result:,}"
                )
                raise EffectFailed("bad_response", f"{text} bytes; select less, or raise it")
            found.append(reader.read(each, number))
        return found

    def _check_verb(self, name: str, ask: Ask) -> None:
        """The checker has seen to it; a node that was damaged since must not get further than this. (A WITH that writes
        in a query is refused by its transaction, which can only read.)"""
        sql = ask.fixed["sql"]
        try:
            verb = statement_of(sql, "sqlite" if self._configured(name).is_sqlite else "postgres").verb
        except SqlRefused as refused:
            raise EffectFailed("unavailable", f"its SQL {refused}") from None
        if verb not in _VERBS[ask.effect]:
            raise EffectFailed("unavailable", f"its SQL begins with {verb}, which is nothing for {ask.effect}")

    @contextmanager
    def _session(self, name: str, purpose: Purpose) -> Iterator[Session]:
        backend = self._backend(name)
        caller = _joined.get().get(name)
        if caller is None:
            with backend.transaction(purpose) as session:
                yield session
            return
        if caller.is_lost:
            raise EffectFailed("unavailable", f"the transaction joined for `{name}` is gone since an earlier failure")
        if purpose.writes and self._configured(name).read_only:
            raise EffectFailed("unavailable", f"`{name}` is configured as `read_only`")
        try:
            with backend.joined(caller.connection, purpose) as session:
                yield session
        except TransactionLost:
            caller.is_lost = True
            raise

    def _deadline(self, name: str, ask: Ask) -> Deadline:
        return Deadline(self._configured(name).timeout if ask.timeout is None else ask.timeout)

    def _configured(self, name: str) -> DatabaseSettings:
        if name not in self._settings:
            close = did_you_mean(name, sorted(self._settings))
            text = f"no database `{name}` is configured; add [databases.{name}]"
            raise EffectFailed("unavailable", f"{text}; {close}" if close else text)
        return self._settings[name]

    def _backend(self, name: str) -> Backend:
        found = self._backends.get(name)
        if found is not None:
            return found
        # Without a lock, which a fork could leave locked: of two that are made at once one is kept, and none has opened
        # anything yet.
        return self._backends.setdefault(name, self._new_backend(self._configured(name)))

    def _new_backend(self, settings: DatabaseSettings) -> Backend:
        if settings.is_sqlite:
            return SqliteBackend(settings)
        from vesper.effects.database.postgres import PostgresBackend

        secret = settings.password_secret
        return PostgresBackend(settings, None if secret is None else lambda: self._secret(secret))


def _bound(ask: Ask) -> Mapping[str, Value]:
    bind = ask.arguments.get("bind")
    if bind is None:
        return {}
    assert isinstance(bind, dict), "`bind` is a record"
    return {str(name): value for name, value in bind.items()}


def _counted(rows: int) -> str:
    return "one row" if rows == 1 else f"{rows:,} rows"


def _row_type(ask: Ask) -> Type:
    match ask.fixed["rows"], ask.gives:
        case "all", ArrayOf(element):
            return element
        case "optional", OptionalOf(inner):
            return inner
        case "one", type_:
            return type_
        case rows, type_:
            raise AssertionError(f"{type_} is not the type of `{rows}` rows")


def _measured(cell: object, column: str, number: int, settings: DatabaseSettings) -> int:
    size = size_of(cell)
    if size > settings.max_value:
        text = f"column `{column}` of row {number} of `{settings.name}` holds {size:,} bytes"
        raise EffectFailed("bad_response", f"{text}, more than `max_value` of {settings.max_value:,}")
    return size
