"""Performer of the effects of sessions.

A change is made once for each request: its receipt is written in the same transaction.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, Final

from vesper.effects.performer import Ask, EffectFailed
from vesper.effects.sessions.settings import SessionSettings
from vesper.effects.stored_json import TooLong, stored_text, stored_value
from vesper.sessions.databases import SessionDatabase, open_database
from vesper.sessions.errors import SessionError, UnknownSession, WrongMessages
from vesper.sessions.store import SessionStore
from vesper.values.model import plain

_CHANGES: Final = ("session_append", "session_compact", "session_put")
_PRUNE_SECONDS: Final = 3600.0
"""Time between two deletions of sessions whose `retention` is over."""


class SessionPerformer:
    """Performs the effects of all configured sessions. `dsn` returns the database of a session's settings."""

    def __init__(self, settings: Mapping[str, SessionSettings], dsn: Callable[[SessionSettings], str]) -> None:
        self._settings = dict(settings)
        self._databases: dict[str, SessionDatabase] = {}
        self._stores: dict[str, SessionStore] = {}
        self._next_prune: dict[str, float] = {}
        for name, each in self._settings.items():
            place = dsn(each)
            database = self._databases.get(place)
            if database is None:
                database = self._databases[place] = open_database(place)
            self._stores[name] = SessionStore(database, name, each.limits)

    def store(self, name: str) -> SessionStore:
        """Return the store of a configured name. Raises `EffectFailed` if it is not configured."""
        found = self._stores.get(name)
        if found is None:
            problem = f"no sessions `{name}` are configured: add [sessions.{name}] to vesper.toml"
            raise EffectFailed("unavailable", problem)
        return found

    def perform(self, ask: Ask) -> object:
        name = ask.fixed["session"]
        store = self.store(name)
        if ask.is_sensitive and ask.effect in _CHANGES and not self._settings[name].stores_sensitive:
            raise EffectFailed(
                "unavailable",
                f"the node has sensitive values, and sessions are not encrypted: set `stores_sensitive = true` in "
                f"[sessions.{name}] if its database may hold them",
            )
        session = ask.arguments["id"]
        assert isinstance(session, str)
        try:
            return self._perform(ask, store, session)
        except (WrongMessages, UnknownSession) as problem:
            raise EffectFailed("invalid_argument", str(problem)) from None
        except SessionError as problem:
            raise EffectFailed("unavailable", str(problem)) from None

    def probe(self, ask: Ask) -> object:
        raise EffectFailed("unavailable", f"{ask.effect} has receipts: it is done again, and never probed")

    def close(self) -> None:
        for database in self._databases.values():
            database.close()

    def _perform(self, ask: Ask, store: SessionStore, session: str) -> object:
        arguments: Mapping[str, Any] = ask.arguments
        match ask.effect:
            case "session_read":
                text = json.dumps(store.read(session).members(), ensure_ascii=False)
                return stored_value(ask.gives, text, f"the session `{session}` of `{store.name}`")
            case "session_append":
                messages, usage = _plain_json(arguments["messages"]), _plain_json(arguments.get("usage"))
                count = store.append(session, messages, usage, execution=ask.execution, receipt=ask.receipt)
                self._prune(store, session)
                return count
            case "session_compact":
                return store.compact(session, arguments["summary"], arguments["through"], receipt=ask.receipt)
            case "session_get":
                text = store.get(session, arguments["key"]) or "null"
                return stored_value(ask.gives, text, f"a value of the session `{session}` of `{store.name}`")
            case "session_put":
                try:
                    text = stored_text(arguments["value"], store.limits.max_value)
                except TooLong:
                    message = f"the value is over `max_value` of `{store.name}`, {store.limits.max_value:,} bytes"
                    raise WrongMessages(message) from None
                store.put(session, arguments["key"], text, int(ask.fixed["ttl_us"]), receipt=ask.receipt)
                return True
            case "session_delete":
                return store.forget(session, arguments["key"], receipt=ask.receipt)
            case _:
                raise ValueError(f"sessions do not perform {ask.effect}")

    def _prune(self, store: SessionStore, session: str) -> None:
        """Delete the sessions whose retention is over, at most once an hour.

        The current time is that of `session`, which has just changed.
        """
        retention = self._settings[store.name].retention
        if retention is None or monotonic() < self._next_prune.get(store.name, 0.0):
            return
        self._next_prune[store.name] = monotonic() + _PRUNE_SECONDS
        store.prune(store.show(session).updated_us - int(retention * 1_000_000))


def _plain_json(value: Any) -> object:
    """Return a json value as lists and dicts."""
    return None if value is None else plain(value)
