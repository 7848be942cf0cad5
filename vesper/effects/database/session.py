"""One transaction on one database, whichever kind it is: what the effects on databases are written with."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from vesper.effects.database.pool import Deadline
from vesper.effects.database.sql import SqlRefused, Statement, statement_of
from vesper.effects.performer import EffectFailed
from vesper.language.sql.calls import called_names
from vesper.values.generated.sql_functions import FUNCTIONS, TYPES
from vesper.values.model import Value
from vesper.values.vesper_error import VesperError

_FOREIGN = {
    kind: FUNCTIONS[other] - FUNCTIONS[kind] - TYPES[kind]
    for kind, other in (("postgres", "sqlite"), ("sqlite", "postgres"))
}
Rows: TypeAlias = tuple[Sequence[str], Generator[Sequence[object], None, None]]


class WrongConnection(VesperError, TypeError):
    """The caller's connection cannot be joined: the message says why. It is a mistake of the calling program."""


class MissingTable(EffectFailed):
    """A table that the statement names is not there."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a transaction is for."""

    deadline: Deadline
    writes: bool
    refusal: str
    """The code for a value that the database refuses: what the effect declares for it."""


class Session(Protocol):
    """A transaction that is open. Every method raises `EffectFailed`."""

    kind: str
    booleans_are_integers: bool

    def guard(self, sql: str) -> None:
        """Mark a statement as a node's: it may touch only what its text shows, by the dialect of this database."""
        ...

    def change(self, sql: str, values: Mapping[str, Value]) -> int:
        """Runs one statement; the number of rows that it changed."""
        ...

    def rows(self, sql: str, values: Mapping[str, Value], most: int) -> Rows:
        """The names of the columns (none where there is no row), and at most so many rows: each a cell for each
        column, as database_values has them. Whoever does not read to the end closes it before anything else is run."""
        ...

    def create(self, tables: Mapping[str, str]) -> None:
        """Makes the tables of ours, whose definitions stand by the kind of database, where they are missing; two that
        do so at once do not fail."""
        ...


class Backend(Protocol):
    """One configured database."""

    kind: str

    def transaction(self, purpose: Purpose) -> AbstractContextManager[Session]:
        """Commits at the end, or rolls back when anything is raised."""
        ...

    def joined(self, connection: object, purpose: Purpose) -> AbstractContextManager[Session]:
        """Inside the caller's transaction: at the end nothing is committed; when anything is raised, everything that
        was done inside is undone and nothing else."""
        ...

    def close(self) -> None: ...


def refuse_foreign(sql: str, kind: str) -> None:
    """Raise `EffectFailed` for a function that is pure in the other dialect only.

    The check of a node allows it without a capability, and here it could only be one that the database defines itself.
    """
    for name in sorted(called_names(sql) & _FOREIGN[kind]):
        text = f"`{name}` is a function of {'SQLite' if kind == 'postgres' else 'PostgreSQL'}"
        raise EffectFailed("unavailable", f"{text}, and this database is none; use another function")


def prepared(sql: str, kind: str, values: Mapping[str, Value]) -> Statement:
    """The statement, whose parameters are exactly those that are given.

    The checker has seen to it; that it is so here too is what keeps a statement that was read in two ways from being
    run: a condition that got lost would leave a parameter over.
    """
    try:
        statement = statement_of(sql, kind)
    except SqlRefused as refused:
        raise EffectFailed("unavailable", f"its SQL {refused}") from None
    if statement.parameters != values.keys():
        missing = sorted(statement.parameters - values.keys())
        unused = sorted(values.keys() - statement.parameters)
        what = f"nothing gives `:{missing[0]}` of its SQL" if missing else f"its SQL has no parameter `:{unused[0]}`"
        raise EffectFailed("unavailable", f"{what}: the node was not checked, or is damaged")
    return statement
