"""Persistent state machines as effects: `state_transition` and `state_read`, in tables of a configured database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vesper.effects.database.performer import DatabasePerformer
from vesper.effects.performer import Ask

if TYPE_CHECKING:
    from vesper._direct import NativePerformer


class StatePerformer:
    """The state machines of one database. Nodes that declare a machine set its initial state (`know`)."""

    def __init__(self, databases: DatabasePerformer, database: str) -> None:
        self._native = databases.native.states(database)

    def know(self, machine: str, initial: str) -> None:
        """Set the initial state of a machine."""
        self._native.know(machine, initial)

    def perform(self, ask: Ask) -> object:
        """Perform a request outside of a run. Raises `EffectFailed`."""
        return self._native.perform(ask)

    def probe(self, ask: Ask) -> object:
        """Return the result of an earlier request, or `NOT_DONE`. Raises `EffectFailed`."""
        return self._native.probe(ask)

    def native_performer(self, is_joined: bool) -> NativePerformer:
        """Return the performer that the run loop calls."""
        return self._native.performer(is_joined)

    def close(self) -> None:
        """Do nothing: the connections are those of the databases."""
