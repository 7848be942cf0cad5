"""Persistent state machines as effects: `state_transition` and `state_read`, in a table of a configured database.

An entity that nobody has moved is in the initial state of its machine and has no row. A move is one transaction: the
receipt, the row under its lock, and a line of history. Of two that move one entity at once, the second sees the state
that the first has left.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from vesper.effects.database.performer import DatabasePerformer
from vesper.effects.database.receipts import receipt_name
from vesper.effects.database.session import MissingTable, Session
from vesper.effects.performer import NOT_DONE, Ask, EffectFailed
from vesper.values.types import Enum

_STATES = """CREATE TABLE IF NOT EXISTS vesper_states (
  machine TEXT NOT NULL, entity TEXT NOT NULL, state TEXT NOT NULL, version {integer} NOT NULL,
  changed_at {moment} NOT NULL, PRIMARY KEY (machine, entity))"""
_HISTORY = """CREATE TABLE IF NOT EXISTS vesper_state_history (
  machine TEXT NOT NULL, entity TEXT NOT NULL, from_state TEXT NOT NULL, to_state TEXT NOT NULL, at {moment} NOT NULL,
  receipt TEXT NOT NULL PRIMARY KEY)"""
_COLUMNS = {
    "sqlite": {"integer": "INTEGER", "moment": "TEXT"},
    "postgres": {"integer": "bigint", "moment": "timestamptz"},
}
STATES = {kind: _STATES.format(**columns) for kind, columns in _COLUMNS.items()}
HISTORY = {kind: _HISTORY.format(**columns) for kind, columns in _COLUMNS.items()}

_BEGIN = (
    "INSERT INTO vesper_states (machine, entity, state, version, changed_at) "
    "VALUES (:machine, :entity, :state, 0, :at) ON CONFLICT (machine, entity) DO NOTHING"
)
_FIND = "SELECT state, version FROM vesper_states WHERE machine = :machine AND entity = :entity"
_MOVE = (
    "UPDATE vesper_states SET state = :state, version = version + 1, changed_at = :at "
    "WHERE machine = :machine AND entity = :entity AND version = :version"
)
_LOCK = "UPDATE vesper_states SET version = version WHERE machine = :machine AND entity = :entity"
_NOTE = (
    "INSERT INTO vesper_state_history (machine, entity, from_state, to_state, at, receipt) "
    "VALUES (:machine, :entity, :before, :after, :at, :receipt)"
)
_LONGEST_ENTITY = 1_000
"""Bytes: an index of PostgreSQL holds little more."""


class StatePerformer:
    """`initial_of` gives the initial state of a machine by its name."""

    def __init__(self, databases: DatabasePerformer, database: str, initial_of: Callable[[str], str]) -> None:
        self._databases = databases
        self._database = database
        self._initial_of = initial_of

    def perform(self, ask: Ask) -> object:
        machine, entity = ask.fixed["machine"], _entity(ask)
        if ask.effect == "state_read":
            return self._known(ask, self._read(ask, machine, entity))
        if ask.effect != "state_transition":
            raise AssertionError(f"`{ask.effect}` is no effect on a state machine")
        sources = [name.strip() for name in ask.fixed["from"].split(",")]
        receipt = receipt_name(ask)

        def act(session: Session) -> str:
            return self._moved(session, machine, entity, sources, ask.fixed["to"], receipt)

        return self._known(ask, self._once(ask, act))

    def probe(self, ask: Ask) -> object:
        found = self._databases.happened(self._database, ask)
        return NOT_DONE if found is None else self._known(ask, found)

    def close(self) -> None:
        """The connections are those of the databases, which are closed by whoever made them."""

    def _once(self, ask: Ask, act: Callable[[Session], str]) -> str:
        try:
            return self._databases.once(self._database, ask, act, refusal="unavailable")
        except MissingTable:
            with self._databases.session(self._database, ask, writes=True, refusal="unavailable") as session:
                session.create(STATES)
                session.create(HISTORY)
        return self._databases.once(self._database, ask, act, refusal="unavailable")

    def _moved(self, session: Session, machine: str, entity: str, sources: list[str], target: str, receipt: str) -> str:
        now = datetime.now(UTC)
        of = {"machine": machine, "entity": entity}
        session.change(_BEGIN, {**of, "state": self._initial_of(machine), "at": now})
        session.change(_LOCK, of)  # nobody else moves it before this transaction has ended
        found = _found(session, machine, entity)
        assert found is not None, "the row is there, and locked"
        before, version = found
        if before not in sources:
            allowed = ", ".join(f"`{name}`" for name in sources)
            raise EffectFailed(
                "invalid_transition", f"it is in `{before}` of `{machine}`, and moves from {allowed} only"
            )
        if session.change(_MOVE, {**of, "state": target, "at": now, "version": version}) != 1:
            raise EffectFailed("unavailable", f"another transaction has moved it in `{machine}`; try again")
        session.change(_NOTE, {**of, "before": before, "after": target, "at": now, "receipt": receipt})
        return before

    def _read(self, ask: Ask, machine: str, entity: str) -> str:
        try:
            with self._databases.session(self._database, ask, writes=False, refusal="unavailable") as session:
                found = _found(session, machine, entity)
        except MissingTable:
            found = None  # nothing has ever moved
        return self._initial_of(machine) if found is None else found[0]

    def _known(self, ask: Ask, state: str) -> str:
        """The state, which the node must know: the machine may have lost it since the entity came into it."""
        if isinstance(ask.gives, Enum) and state not in ask.gives.members:
            text = f"the entity is in the state `{state}`, which this node's `{ask.fixed['machine']}` does not have"
            raise EffectFailed("unavailable", text, may_have_happened=ask.effect == "state_transition")
        return state


def _found(session: Session, machine: str, entity: str) -> tuple[str, int] | None:
    _, rows = session.rows(_FIND, {"machine": machine, "entity": entity}, 1)
    for state, version in rows:
        assert isinstance(state, str)
        assert isinstance(version, int)
        return state, version
    return None


def _entity(ask: Ask) -> str:
    entity = ask.arguments["entity"]
    assert isinstance(entity, str)
    if len(entity.encode()) > _LONGEST_ENTITY:
        raise EffectFailed("unavailable", f"the name of an entity has at most {_LONGEST_ENTITY:,} bytes")
    return entity
