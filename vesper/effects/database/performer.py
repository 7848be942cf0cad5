"""Databases as effects: `database_query` and `database_write`, on SQLite and PostgreSQL.

The native performer does the work (direct_runtime/crates/vesper-host/src/database); this module creates it from the
configuration. Both kinds return equal values for one statement (docs/how-to/configure-databases.md).
"""

from __future__ import annotations

import _sqlite3
import sqlite3
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from vesper.effects.database.joined import WrongConnection, is_joined, join, joined, joined_names
from vesper.effects.database.settings import DatabaseSettings
from vesper.effects.database.statements import PURE_NAMES, facts_of
from vesper.effects.performer import Ask
from vesper.effects.settings import ConfigError
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.storage.after_fork import Order, register
from vesper.values.types import Type

if TYPE_CHECKING:
    from vesper._direct import Databases, NativePerformer

__all__ = ["DatabasePerformer", "DatabaseSettings", "WrongConnection", "is_joined", "joined", "joined_names"]

_databases: weakref.WeakSet[DatabasePerformer] = weakref.WeakSet()


class DatabasePerformer:
    """The configured databases. Each is opened at its first use."""

    def __init__(self, settings: Mapping[str, DatabaseSettings], secret: Callable[[str], str]) -> None:
        from vesper._direct import Databases

        library = (getattr(_sqlite3, "__file__", None), sqlite3.sqlite_version)
        try:
            self.native: Databases = Databases(
                list(settings.values()), facts_of, PURE_NAMES, did_you_mean, join, secret, library
            )
        except ValueError as error:
            raise ConfigError("databases", str(error)) from None
        _databases.add(self)

    def perform(self, ask: Ask, types: Mapping[str, Type] | None = None) -> object:
        """Perform a request outside of a run; `types` has the types of its parameters. Raises `EffectFailed`."""
        return self.native.perform(ask, types)

    def probe(self, ask: Ask) -> object:
        """Return the result of an earlier request, or `NOT_DONE`. Raises `EffectFailed`."""
        return self.native.probe(ask, None)

    def native_performer(self, is_joined: bool) -> NativePerformer:
        """Return the performer that the run loop calls."""
        return self.native.performer(is_joined)

    def role_risks(self, name: str) -> list[str]:
        """Return the rights of a database's role that no node needs. Raises `EffectFailed` if it cannot be reached."""
        return self.native.role_risks(name)

    def close(self) -> None:
        self.native.close()


def _for_all(act: Callable[[Databases], None]) -> Callable[[], None]:
    def run() -> None:
        for each in list(_databases):
            act(each.native)

    return run


register(
    order=Order.EFFECTS,
    before=_for_all(lambda databases: databases.before_fork()),
    after_in_parent=_for_all(lambda databases: databases.after_fork_in_parent()),
    after_in_child=_for_all(lambda databases: databases.after_fork_in_child()),
)
