"""The performers of a configuration. Each is created at its first use, so that a run pays only for those it uses."""

from __future__ import annotations

import hashlib
import logging
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, cast

from vesper._direct import ModelCatalog, SecretStore, ambient_performer, file_performer
from vesper.config.settings import Config
from vesper.effects.performer import EffectFailed, Performer
from vesper.effects.settings import ConfigError, close_to
from vesper.host.streaming.events import Kind, RunEvent, RunEvents
from vesper.host.tools.guarded import Guard
from vesper.storage.sources import SYSTEM_SOURCES, Sources

if TYPE_CHECKING:
    from vesper._direct import SharedBudgets
    from vesper.effects.events.memory import Subscriber
    from vesper.effects.events.performer import EventPerformer
    from vesper.host.plans import Plan
    from vesper.journal.journal import Journal, KeyRing
    from vesper.sessions.store import SessionStore

_log = logging.getLogger("vesper.host")
_DATABASES = "vesper.effects.database.performer"
_RELAYED = 100
"""Events that are taken out of an outbox at once."""
_ROUNDS = 100
"""Limit of batches in one go: closing the Host does not wait for a million events."""
_EFFECTS = {
    "database_query": "databases",
    "database_write": "databases",
    "http_request": "providers",
    "cache_get": "caches",
    "cache_put": "caches",
    "cache_delete": "caches",
    "event_publish": "topics",
    "secret_read": "secrets",
    "file_read": "files",
    "file_write": "files",
    "file_append": "files",
    "clock_now": "ambient",
    "random_integer": "ambient",
    "uuid_new": "ambient",
    "state_transition": "state",
    "state_read": "state",
    "custom": "custom",
    "command_run": "commands",
    "mcp_call": "mcp",
    "model_call": "models",
    "budget_read": "budgets",
    **dict.fromkeys(
        (f"session_{action}" for action in ("read", "append", "compact", "get", "put", "delete")), "sessions"
    ),
}
"""The part that performs each effect."""


def loaded_databases() -> ModuleType | None:
    """Return the module of databases if it is loaded. Waits while another thread is loading it."""
    return import_module(_DATABASES) if _DATABASES in sys.modules else None


class Performers(Mapping[str, Performer]):
    """The performers by effect."""

    def __init__(self, config: Config, instead: Mapping[str, Performer], sources: Sources = SYSTEM_SOURCES) -> None:
        self._config = config
        self._sources = sources
        self._instead = dict(instead)
        self._made: dict[str, Performer] = {}
        self._machines: dict[str, tuple[str, str]] = {}
        self._lock = threading.RLock()
        self._secrets: SecretStore | None = None
        self._models: ModelCatalog | None = None
        self.events = RunEvents()
        """Of the runs that these perform for."""
        self.open_budgets: Callable[[], SharedBudgets] | None = None
        """Returns the count of budgets; its Host sets it."""
        self._outages: dict[str, str] = {}
        self._reported: set[str] = set()
        self.guard = Guard(config.tool_rules, config.parts.files, self.redact)
        for module in config.modules:
            try:
                import_module(module)
            except Exception as error:  # a module of the application's may raise whatever it likes
                told = str(error) if isinstance(error, ModuleNotFoundError) else f"{type(error).__name__}: {error}"
                raise ConfigError(
                    self._describe_place("effects.modules"), f"`{module}` cannot be imported: {told}"
                ) from error

    def __getitem__(self, effect: str) -> Performer:
        found = self._instead.get(effect)
        return self._part(_EFFECTS[effect]) if found is None else found

    def __iter__(self) -> Iterator[str]:
        return iter(_EFFECTS)

    def __len__(self) -> int:
        return len(_EFFECTS)

    def performer_of(self, effect: str) -> Performer:
        """Return the performer of an effect. Raises `EffectFailed` where the configuration has none."""
        try:
            found = self.get(effect)
            problem = None if found is not None else f"nothing is configured that performs `{effect}`"
        except ConfigError as error:  # nothing was sent
            found, problem = None, str(error)
        if found is None:
            assert problem is not None
            if problem not in self._reported:  # once: a node that handles the failure reports something else
                self._reported.add(problem)
                _log.error("an effect cannot be performed: %s", problem)
            raise EffectFailed("unavailable", problem)
        return self.guard.around(effect, found)

    def redact(self, text: str) -> str:
        """Return the text without any secret that was read on this Host."""
        return self.secrets.redact(text)

    def secret(self, granted: Collection[str], name: str) -> str:
        """Return a secret for a node with these capabilities. Raises `EffectFailed` for others."""
        capability = f"secrets.read.{name}"
        if capability not in granted:
            raise EffectFailed("not_found", f"the node has no handle for `{capability}`")
        return self.secrets.text(name)

    @property
    def secrets(self) -> SecretStore:
        if self._secrets is None:
            from vesper.effects.secrets.settings import SecretSettings
            from vesper.effects.secrets.store import open_secrets

            with self._lock:
                if self._secrets is None:
                    settings = self._config.parts.secrets or SecretSettings("environment")
                    self._secrets = open_secrets(settings, self._native_sources)
        return self._secrets

    @property
    def models(self) -> ModelCatalog:
        """Return the configured models, by which the cost of a request is bounded."""
        if self._models is None:
            self._models = ModelCatalog(dict(self._config.parts.models))
        return self._models

    def is_followed(self, execution: str) -> bool:
        """Return whether chunks of answers in this run have a subscriber."""
        return self.events.is_followed(execution)

    def publish(self, execution: str, chunk: str) -> None:
        """Publish a chunk of an answer; performers call it from any thread."""
        self.events.publish_text(execution, chunk)

    def report_budget(self, execution: str, kind: str, path: str, name: str, text: str) -> None:
        """Log and publish an event of a budget: a request did not fit, or an alert share is used."""
        _log.warning("%s: `%s`: %s", execution, path, text)
        if self.events.is_followed(execution):
            named = cast("Kind", f"budget_{kind}")
            self.events.publish(RunEvent(execution, named, path, text, budget=name))

    def key_ttl(self, effect: str, fixed: Mapping[str, str]) -> float | None:
        """Return the seconds for which the other side remembers a key; None is for ever."""
        parts = self._config.parts
        if effect == "http_request" and fixed["provider"] in parts.providers:
            return parts.providers[fixed["provider"]].key_ttl
        if effect == "event_publish":
            topic = parts.topics.get(fixed["topic"], parts.events)
            return None if topic is None else topic.key_ttl
        return None

    def know_machines(self, machines: Mapping[str, str], node_id: str) -> None:
        """Set the initial states of a node's machines.

        Raises `ConfigError` if another node declares a different one.
        """
        with self._lock:
            for name, initial in machines.items():
                before, whose = self._machines.setdefault(name, (initial, node_id))
                if before != initial:
                    raise ConfigError(
                        name,
                        f"{whose} starts this machine in `{before}`, {node_id} in `{initial}`: they cannot share it",
                    )
                states = self._made.get("state")
                if states is not None:
                    states.know(name, initial)  # type: ignore[attr-defined]  # of `_make_state`

    def is_joined(self, targets: Iterable[tuple[str, str]]) -> bool:
        """Return whether the effects of a run are part of an open transaction of the caller.

        Any process can finish a run that uses none of the joined databases.
        """
        database = loaded_databases()
        joined: frozenset[str] = frozenset() if database is None else database.joined_names()
        if not joined:
            return False
        targets = set(targets)
        asked = {self._database_of(*target) for target in targets}
        unknown = next((name for name in sorted(joined) if name not in self._config.parts.databases), None)
        if database is not None and unknown is not None and asked - {None}:
            # The caller believes that what the node does is part of their transaction.
            hint = close_to(unknown, sorted(self._config.parts.databases))
            raise database.WrongConnection(f"`{unknown}` is joined, and there is no [databases.{unknown}] here{hint}")
        wait = next((effect for effect, _ in sorted(targets) if effect not in _EFFECTS), None)
        if database is not None and wait is not None and asked & joined:
            raise database.WrongConnection(
                f"the node has a `{wait}`, and a run that is joined to a transaction cannot wait: run it without "
                "`joined`, or move the wait to another node"
            )
        return bool(asked & joined)

    def is_mistake_of_caller(self, error: Exception) -> bool:
        """Return whether the caller's connection cannot be joined: an error of the caller, not of an engine."""
        database = loaded_databases()
        return database is not None and isinstance(error, database.WrongConnection)

    def check_targets(self, targets: Iterable[tuple[str, str]], node_id: str) -> None:
        """Check that the targets of a node are configured. Raises `ConfigError`.

        Custom effects may be registered later.
        """
        parts = self._config.parts
        known: dict[str, Collection[str]] = {
            "providers": parts.providers,
            "databases": parts.databases,
            "caches": parts.caches,
            "topics": parts.topics,
            "files": parts.files,
            "commands": parts.commands,
            "mcp": parts.mcp,
            "models": parts.models,
            "sessions": parts.sessions,
        }
        for effect, target in sorted(targets):
            part = _EFFECTS.get(effect, "")  # the journal performs waits
            table = "databases" if part == "state" else part
            name = self._state_database if part == "state" else target
            if effect in self._instead or table not in known or name in known[table]:
                continue
            if table == "topics" and parts.events is not None:
                continue
            hint = close_to(name, sorted(known[table]))
            raise ConfigError(
                self._describe_place(),
                f"{node_id} asks for `{effect}`, and there is no [{table}.{_key_of(name)}]{hint}",
            )

    def check_registered(self, plans: Iterable[Plan]) -> None:
        """Check that the custom effects of these requests are registered, in the class of their steps. Raises
        `ConfigError`.

        It serves processes that register no more effects: commands, and those that finish runs of others. They would
        otherwise record an effect that may have happened as failed.
        """
        if "custom" in self._instead:
            return
        from vesper.effects.custom.registry import REGISTRY, class_problem

        for plan in plans:
            if plan.effect != "custom":
                continue
            found = REGISTRY.find(plan.target)
            if found is None:
                raise ConfigError(
                    self._describe_place(),
                    f"{plan.node_id} asks for the effect `{plan.target}`, which nobody registered here: name the "
                    f"module with its @vesper.effect under [effects] modules{REGISTRY.closest(plan.target)}",
                )
            problem = class_problem(found, plan.effect_class, plan.node_id)
            if problem is not None:
                raise ConfigError(self._describe_place(), problem)

    def check_secrets(self, plans: Iterable[Plan], names: Iterable[str]) -> None:
        """Check that these secrets can be read, and those of the providers, models and databases of these requests.

        Raises `ConfigError`. It serves processes that finish runs of others: a request that may have been performed
        would fail for a missing secret, and be recorded as not performed.
        """
        parts, needed = self._config.parts, set(names)
        for plan in plans:
            if plan.effect in self._instead:
                continue
            if plan.effect == "http_request" and plan.target in parts.providers:
                needed |= parts.providers[plan.target].secret_names()
            if plan.effect == "model_call" and plan.target in parts.models:
                needed |= parts.models[plan.target].secret_names()
            database = self._database_of(plan.effect, plan.target)
            settings = None if database is None else parts.databases.get(database)
            if settings is not None and settings.password_secret is not None:
                needed.add(settings.password_secret)
        for name in sorted(needed):
            try:
                self.secrets.text(name)
            except EffectFailed as failure:
                raise ConfigError(
                    self._describe_place(), f"a secret that is needed cannot be had here: {failure.message}"
                ) from None

    def _describe_place(self, setting: str = "") -> str:
        """Return the file and the setting that a message refers to."""
        if self._config.path is None:
            return setting or "the configuration"
        return f"{self._config.path}: {setting}" if setting else str(self._config.path)

    def _database_of(self, effect: str, target: str) -> str | None:
        match effect:
            case "database_query" | "database_write":
                return target
            case "state_transition" | "state_read":
                return self._state_database
            case "event_publish":
                topic = self._config.parts.topics.get(target, self._config.parts.events)
                return None if topic is None else topic.database
            case _:
                return None

    @property
    def _state_database(self) -> str:
        return self._config.state_database or "main"

    def subscribe(self, topic: str, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with every event that this process publishes to a topic in memory.

        Raises `ConfigError` if the topic is not configured, or is not in memory.
        """
        try:
            return self.event_topics().subscribe(topic, subscriber)
        except EffectFailed as failure:
            raise ConfigError(self._describe_place(), failure.message) from None
        except ValueError as problem:
            raise ConfigError(self._describe_place(), str(problem)) from None

    def event_topics(self) -> EventPerformer:
        """Return the performer of all topics. Raises `ConfigError` where a test replaced it."""
        from vesper.effects.events.performer import EventPerformer

        performer = self["event_publish"]
        if not isinstance(performer, EventPerformer):
            raise ConfigError(
                self._describe_place(), "another performer stands in for topics here: they have no consumers"
            )
        return performer

    def sessions(self, name: str) -> SessionStore:
        """Return the sessions of a name. Raises `ConfigError` if there are none, or a test replaced them."""
        from vesper.effects.sessions.performer import SessionPerformer

        performer = self["session_read"]
        if not isinstance(performer, SessionPerformer):
            raise ConfigError(self._describe_place(), "another performer stands in for sessions here: it has no store")
        try:
            return performer.store(name)
        except EffectFailed as failure:
            raise ConfigError(self._describe_place(), failure.message) from None

    def prune_sessions(self, now_us: int) -> None:
        """Delete sessions that are over their `retention`. Raises `SessionError` if a store is unavailable."""
        for name, settings in self._config.parts.sessions.items():
            if settings.retention is not None and "session_read" not in self._instead:
                self.sessions(name).prune(now_us - int(settings.retention * 1_000_000))

    def relay_outboxes(self, look: Callable[[str, int, float], None]) -> None:
        """Publish events of outboxes. `look` gets the number and the age in seconds of those that remain.

        An unusable outbox is logged once, until it can be used again.
        """
        parts = self._config.parts
        settings = [*parts.topics.values(), *([] if parts.events is None else [parts.events])]
        databases = dict.fromkeys(each.database for each in settings if each.database is not None)
        if not databases or "event_publish" in self._instead:
            return
        from vesper.effects.events.performer import EventPerformer

        topics = self._part("topics")
        assert isinstance(topics, EventPerformer)
        for database in databases:
            try:
                for _ in range(_ROUNDS):
                    if topics.relay_outbox(database, _RELAYED) < _RELAYED:
                        break
            except EffectFailed as failure:
                message = self.secrets.redact(failure.message)
                if self._outages.get(database) != message:
                    _log.warning("events wait in the outbox of `%s`: %s", database, message)
                self._outages[database] = message
            else:
                self._outages.pop(database, None)
            with suppress(EffectFailed):  # the database is away, which was said above
                look(database, *topics.waiting_in_outbox(database))

    def key_ring(self) -> KeyRing:
        """Return the keys that encrypt sensitive executions in the journal and in the store of traces."""
        from vesper.journal.journal import KeyRing

        settings = self._config.journal
        earlier = [key for name in settings.earlier_key_secrets if (key := self._key(name)) is not None]
        return KeyRing(self._key(settings.key_secret), earlier=earlier, audit=self._key(settings.audit_key_secret))

    def open_journal(self) -> Journal:
        from vesper.journal.journal import open_journal

        settings = self._config.journal
        return open_journal(
            self._config.dsn(settings.dsn),
            lease_seconds=settings.lease,
            keys=self.key_ring(),
            max_body=settings.max_body,
            sources=self._sources,
        )

    def _key(self, secret: str | None) -> bytes | None:
        """Return a key of 32 bytes, derived from a secret of any length."""
        if secret is None:
            return None
        try:
            return hashlib.sha256(self.secrets.text(secret).encode()).digest()
        except EffectFailed as failure:
            raise ConfigError("journal", f"a key of the journal cannot be read: {failure.message}") from None

    def volatile_journal(self) -> str | None:
        """Return why the journal may vanish; None if nothing suggests it."""
        from vesper.storage.durability import is_volatile

        dsn = self._config.dsn(self._config.journal.dsn)
        return is_volatile(dsn.removeprefix("sqlite:")) if dsn.startswith("sqlite:") else None

    def after_fork(self) -> None:
        """Replace the lock in a child process. A thread of the parent may have held it, and does not exist in the
        child.
        """
        self._lock = threading.RLock()

    def close(self) -> None:
        with self._lock:
            for performer in self._made.values():
                performer.close()

    def _part(self, name: str) -> Performer:
        found = self._made.get(name)
        if found is None:
            with self._lock:
                found = self._made.get(name)
                if found is None:
                    found = self._made[name] = self._make(name)
        return found

    # -- making -----------------------------------------------------------------------------------

    def _make(self, name: str) -> Performer:
        return getattr(self, f"_make_{name}")()  # type: ignore[no-any-return]  # the methods below

    def _make_providers(self) -> Performer:
        from vesper.effects.http.performer import http_performer

        return http_performer(self._config.parts.providers, self.secrets)

    def _make_databases(self) -> Performer:
        from vesper.effects.database.performer import DatabasePerformer

        return DatabasePerformer(self._config.parts.databases, self.secrets.text)

    def _make_state(self) -> Performer:
        from vesper.effects.database.performer import DatabasePerformer
        from vesper.effects.database.state_machines import StatePerformer

        databases = self._part("databases")
        assert isinstance(databases, DatabasePerformer)
        made = StatePerformer(databases, self._state_database)
        for machine, (initial, _) in self._machines.items():
            made.know(machine, initial)
        return made

    def _make_caches(self) -> Performer:
        from vesper.effects.cache.performer import CachePerformer

        return CachePerformer(self._config.parts.caches, self.secrets.text)

    def _make_topics(self) -> Performer:
        from vesper.effects.database.performer import DatabasePerformer
        from vesper.effects.events.performer import EventPerformer

        parts = self._config.parts
        databases = self._part("databases") if parts.databases else None
        assert databases is None or isinstance(databases, DatabasePerformer)
        return EventPerformer(parts.topics, parts.events, self.secrets.text, databases)

    def _make_sessions(self) -> Performer:
        from vesper.effects.sessions.performer import SessionPerformer

        return SessionPerformer(self._config.parts.sessions, lambda each: self._config.sessions_dsn(each.dsn))

    def _make_files(self) -> Performer:
        return file_performer(list(self._config.parts.files.values()), self._native_sources)

    def _make_commands(self) -> Performer:
        from vesper.effects.commands.performer import CommandPerformer

        return CommandPerformer(self._config.parts.commands)

    def _make_mcp(self) -> Performer:
        from vesper.effects.mcp.performer import McpPerformer

        return McpPerformer(self._config.parts.mcp, self.secrets.text)

    def _make_secrets(self) -> Performer:
        return self.secrets.performer(self._native_sources)

    def _make_ambient(self) -> Performer:
        return ambient_performer(self._native_sources)

    @property
    def _native_sources(self) -> Sources | None:
        """Return the sources of tests. None for those of the system, which need no call of Python."""
        return None if self._sources is SYSTEM_SOURCES else self._sources

    def _make_models(self) -> Performer:
        from vesper.effects.models.performer import model_performer

        return model_performer(self._config.parts.models, self.secrets, self.secrets.redact)

    def _make_budgets(self) -> Performer:
        if self.open_budgets is None:
            raise ConfigError(self._describe_place("budgets"), "budgets are counted by a Host, and there is none here")
        return self.open_budgets().performer()

    def _make_custom(self) -> Performer:
        from vesper.effects.custom.performer import CustomPerformer

        return CustomPerformer(self.secrets.redact)


def _key_of(name: str) -> str:
    """Return a name in the form of a TOML key."""
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else f'"{name}"'
