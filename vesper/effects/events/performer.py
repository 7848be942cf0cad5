"""Events: `event_publish`, to subscribers in the process, a stream of Redis, a topic of Kafka or an outbox.

The guarantees by class:

- `unsafe`: an event is published once and never repeated by the Host.
- `keyed`: publishing again under the same key, for as long as the topic remembers keys (`key_ttl`), returns the id of
  the first time and publishes nothing. The id follows from the topic and the key alone, so that a consumer recognises a
  repeat even after that.
- `txn`: a row in the table `vesper_outbox` of the topic's `database`, in one transaction with the receipt.
  `relay_outbox` moves such rows to the topic, at least once, in order; the stream drops repeats by the event's id.
  Where the outbox is the topic (`url = "outbox:"`), events of every class are rows, and consumers read them there.

Events in the memory of a process are delivered by a thread, at most once: those still queued when the process ends are
lost, and so is one whose subscriber raises (which is logged).
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from vesper.effects.events.event import Event
from vesper.effects.events.memory import MemoryTopic, Subscriber
from vesper.effects.events.redis import RedisTopic
from vesper.effects.events.settings import EventSettings
from vesper.effects.performer import Ask, EffectFailed, no_secret
from vesper.effects.stored_json import TooLong, stored_text
from vesper.storage.kill_points import kill_point
from vesper.values.generated.effects import EFFECTS
from vesper.values.json_value import Json, canonical_text, parse_json
from vesper.values.model import Value, accept
from vesper.values.problem import ValueProblem
from vesper.values.times import timestamp_text
from vesper.values.types import INTEGER, JSON, STRING, ArrayOf, OptionalOf, Record, Type

OUTBOX_TABLE: Final = {
    "sqlite": """\
CREATE TABLE IF NOT EXISTS vesper_outbox (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, topic TEXT NOT NULL, payload TEXT NOT NULL,
  event_key TEXT, execution TEXT NOT NULL, created_at TEXT NOT NULL)""",
    "postgresql": """\
CREATE TABLE IF NOT EXISTS vesper_outbox (
  seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id TEXT NOT NULL UNIQUE, topic TEXT NOT NULL,
  payload TEXT NOT NULL, event_key TEXT, execution TEXT NOT NULL, created_at TEXT NOT NULL)""",
}
"""The table that a database needs before a topic may name it, by the kind of database."""
OUTBOX_HELP: Final = (
    "create the table once: docs/how-to/configure-caches-and-events.md#topics has its text, as has `OUTBOX_TABLE` of "
    "vesper.effects.events.performer"
)
OUTBOX_CONSUMER_TABLES: Final = (
    """\
CREATE TABLE IF NOT EXISTS vesper_outbox_groups (
  topic TEXT NOT NULL, grp TEXT NOT NULL, PRIMARY KEY (topic, grp))""",
    """\
CREATE TABLE IF NOT EXISTS vesper_outbox_claims (
  grp TEXT NOT NULL, seq BIGINT NOT NULL, owner TEXT NOT NULL, until_us BIGINT NOT NULL, PRIMARY KEY (grp, seq))""",
    "CREATE INDEX IF NOT EXISTS vesper_outbox_order ON vesper_outbox (topic, seq)",
    "CREATE INDEX IF NOT EXISTS vesper_outbox_keys ON vesper_outbox (topic, event_key, seq)",
)
"""The tables that a database needs as well before nodes consume its outbox (`url = "outbox:"`)."""
_PUT: Final = (
    "INSERT INTO vesper_outbox (id, topic, payload, event_key, execution, created_at) "
    "VALUES (:id, :topic, :payload, :event_key, :execution, :created_at)"
)
_PUT_ONCE: Final = f"{_PUT} ON CONFLICT (id) DO NOTHING"
_WAITING: Final = (
    "SELECT id, topic, payload, event_key, execution, created_at FROM vesper_outbox WHERE {} ORDER BY seq LIMIT :most"
)
_STATE: Final = "SELECT count(*) AS waiting, min(created_at) AS oldest FROM vesper_outbox WHERE {} LIMIT :most"
_TAKE: Final = "DELETE FROM vesper_outbox WHERE id = :id"
_OUTBOX: Final[Mapping[str, Type]] = {
    "id": STRING,
    "topic": STRING,
    "payload": STRING,
    "event_key": OptionalOf(STRING),
    "execution": STRING,
    "created_at": STRING,
    "most": INTEGER,
}
"""Types of the parameters of statements on the outbox."""
_ROW: Final = Record(
    (
        ("id", STRING),
        ("topic", STRING),
        ("payload", STRING),
        ("event_key", OptionalOf(STRING)),
        ("execution", STRING),
        ("created_at", STRING),
    )
)
_NAMESPACE: Final = uuid.UUID("5a4c1f0e-6d3b-5c7a-9b1e-7e5f0c2d8a46")
"""Ours alone; it never changes, or repeats would no longer be recognised."""


class Topic(Protocol):
    """Receiver of events. Repeats are recognised by `key`, unless it is None."""

    def publish(self, event: Event, payload: str, key: str | None, timeout: float | None) -> str: ...
    def close(self) -> None: ...


class OutboxDatabases(Protocol):
    """The databases with the tables of outboxes."""

    def perform(self, ask: Ask, types: Mapping[str, Type]) -> object:
        """Perform a query or a write, whose parameters have these types. Raises `EffectFailed`."""
        ...


class EventPerformer:
    """Publishes to all configured topics.

    `databases` performs `database_write` and `database_query` (`DatabasePerformer` does). The outbox is written through
    it, and so in the caller's transaction if the execution has joined one.
    """

    def __init__(
        self,
        topics: Mapping[str, EventSettings],
        default: EventSettings | None = None,
        secret: Callable[[str], str] = no_secret,
        databases: OutboxDatabases | None = None,
    ) -> None:
        self._settings = dict(topics)
        self._default = default
        self._secret = secret
        self._databases = databases
        self._topics: dict[str, Topic] = {}

    def perform(self, ask: Ask) -> object:
        if ask.effect != "event_publish":
            raise ValueError(f"a topic does not perform {ask.effect}")
        name = ask.fixed["topic"]
        settings = self.settings_of(name)
        given, event_key = ask.arguments["payload"], ask.arguments.get("event_key")
        payload = accept(JSON, given)
        assert isinstance(payload, Json)
        try:
            stored_text(payload, settings.max_payload)
        except TooLong:
            limit = f"{settings.max_payload:,} bytes"
            raise EffectFailed(
                "invalid_argument", f"the event is over `max_payload` of the topic `{name}`, {limit}"
            ) from None
        key = ask.key if ask.effect_class == "keyed" else None
        if ask.effect_class == "keyed" and key is None:
            raise ValueError(f"an event of class `keyed` has no key: {ask.path}")
        event = Event(
            _event_id(name, ask),
            name,
            payload,
            event_key if isinstance(event_key, str) else None,
            ask.execution,
            datetime.now(UTC),
        )
        if ask.effect_class == "txn" or settings.kind == "outbox":
            return self._put_in_outbox(settings, event, ask)
        return self._topic(settings).publish(event, canonical_text(payload), key, ask.timeout)

    def probe(self, ask: Ask) -> object:
        raise EffectFailed("unavailable", f"{ask.effect} is never of class `probe`")

    def subscribe(self, topic: str, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with every event that this process publishes to a topic in memory.

        Call the result to end that. Events are delivered one after the other in a thread. An exception of the
        subscriber is logged and does not stop the delivery.
        """
        settings = self.settings_of(topic)
        found = None if settings.kind == "outbox" else self._topic(settings)
        if not isinstance(found, MemoryTopic):
            reader = (
                f"in Redis: read its stream `{settings.redis_stream}` with XREADGROUP"
                if settings.kind == "redis"
                else f"not in memory: an `event_handler` with `events: {{topic: {topic}}}` consumes it"
            )
            raise ValueError(f"the topic `{topic}` is {reader}")
        return found.subscribe(subscriber)

    def republish(self, event: Event) -> None:
        """Publish an event outside of a run. Publishing an id again may add a repeat. Raises `EffectFailed`."""
        settings = self.settings_of(event.topic)
        if settings.kind == "outbox":
            fixed = {"topic": event.topic}
            ask = Ask(event.execution, "republish", "event_publish", "unsafe", fixed, {}, STRING)
            self._put_in_outbox(settings, event, ask)
        else:
            self._topic(settings).publish(event, canonical_text(event.json), None, None)

    def settings_of(self, topic: str) -> EventSettings:
        """Return the settings of a topic. Raises `EffectFailed` for one that is not configured."""
        settings = self._settings.get(topic)
        if settings is None:
            if self._default is None:
                message = f'no topic `{topic}` is configured: add [topics."{topic}"] or [events] to vesper.toml'
                raise EffectFailed("unavailable", message)
            settings = self._settings.setdefault(topic, self._default.of(topic))
        return settings

    def topics(self) -> list[str]:
        """Return the topics that have a table, and those of `[events]` that were used."""
        return sorted(self._settings)

    def password_of(self, settings: EventSettings) -> Callable[[], str] | None:
        """Return the function that reads the password of a topic's server."""
        named, secret = settings.password_secret, self._secret
        return None if named is None else lambda: secret(named)

    def run_sql(self, database: str, sql: str, types: Mapping[str, Type], gives: Type, **values: Value) -> Any:
        """Perform a statement on the tables of an outbox.

        It is a write if `gives` is INTEGER. Raises `EffectFailed`.
        """
        effect = "database_write" if gives == INTEGER else "database_query"
        fixed = {"database": database, "sql": sql} | ({} if gives == INTEGER else {"rows": "all"})
        effect_class = "unsafe" if gives == INTEGER else "read"
        ask = Ask("", "outbox", effect, effect_class, fixed, _bind_argument(**values), gives)
        return self._required_databases(database).perform(ask, types)

    def waiting_in_outbox(self, database: str) -> tuple[int, float]:
        """Return the number of events in an outbox, and the age of the oldest in seconds. Raises `EffectFailed`."""
        where, names = self._relay_condition(database)
        gives = ArrayOf(Record((("waiting", INTEGER), ("oldest", OptionalOf(STRING)))))
        types = {**_OUTBOX, **dict.fromkeys(names, STRING)}
        rows = self.run_sql(database, _STATE.format(where), types, gives, most=1, **names)
        assert isinstance(rows, list)
        (row,) = rows
        oldest = row["oldest"]
        age = 0.0 if oldest is None else (datetime.now(UTC) - datetime.fromisoformat(oldest)).total_seconds()
        return row["waiting"], max(age, 0.0)

    def relay_outbox(self, database: str, most: int = 100) -> int:
        """Publish the events of a database's outbox, oldest first, and delete their rows. Returns their number.

        Any number of processes may do this at once. Raises `EffectFailed` if the database or a topic is unavailable:
        the events of the other topics are published first, and the rows that remain are published next time.
        """
        where, names = self._relay_condition(database)
        types = {**_OUTBOX, **dict.fromkeys(names, STRING)}
        rows = self.run_sql(database, _WAITING.format(where), types, ArrayOf(_ROW), most=most, **names)
        assert isinstance(rows, list)
        failed: dict[str, EffectFailed] = {}
        for row in rows:
            topic = row["topic"]
            if topic in failed:
                continue  # its events stay in order
            try:
                event = _event_of(row)
                self._topic(self.settings_of(topic)).publish(event, row["payload"], f"outbox:{event.id}", None)
            except EffectFailed as failure:
                failed[topic] = failure
                continue
            kill_point("outbox.published")
            self.run_sql(database, _TAKE, _OUTBOX, INTEGER, id=event.id)
        for first in failed.values():
            raise first
        return len(rows)

    def close(self) -> None:
        for topic in self._topics.values():
            topic.close()

    def _topic(self, settings: EventSettings) -> Topic:
        topic = self._topics.get(settings.name)
        if topic is None:
            topic = self._topics.setdefault(settings.name, self._open_topic(settings))  # of two threads one topic stays
        return topic

    def _open_topic(self, settings: EventSettings) -> Topic:
        password = self.password_of(settings)
        if settings.kind == "kafka":
            from vesper.effects.events.kafka import KafkaTopic

            return KafkaTopic(settings, password)
        if settings.address is None:
            return MemoryTopic(settings.name, settings.max_length, settings.key_ttl)
        return RedisTopic(
            settings.address,
            settings.timeout,
            settings.name,
            settings.redis_stream,
            settings.max_length,
            settings.key_ttl,
            password,
        )

    def _relay_condition(self, database: str) -> tuple[str, dict[str, Value]]:
        """Return the SQL condition of the rows to relay, and the values of its parameters."""
        default = self._default
        is_consumed = default is not None and default.kind == "outbox" and default.database == database
        others = [each.name for each in self._settings.values() if (each.kind == "outbox") != is_consumed]
        names: dict[str, Value] = {f"topic_{number}": name for number, name in enumerate(others)}
        listed = ", ".join(f":{name}" for name in names)
        if is_consumed:
            return (f"topic IN ({listed})" if names else "1 = 0"), names
        return (f"topic NOT IN ({listed})" if names else "1 = 1"), names

    def _required_databases(self, database: str) -> OutboxDatabases:
        if self._databases is None:
            raise EffectFailed("unavailable", f"the outbox is in the database `{database}`, and none is configured")
        return self._databases

    def _put_in_outbox(self, settings: EventSettings, event: Event, ask: Ask) -> str:
        if settings.database is None:
            raise EffectFailed(
                "unavailable",
                f'an event of class `txn` needs an outbox: add `database = "main"` to the topic `{event.topic}`, '
                "or make the step `keyed`",
            )
        bind = _bind_argument(
            id=event.id,
            topic=event.topic,
            payload=canonical_text(event.json),
            event_key=event.event_key,
            execution=event.execution,
            created_at=timestamp_text(event.published_at),
        )
        # Where the outbox is the topic, a repeat of a keyed event finds its row.
        is_txn = ask.effect_class == "txn"
        fixed = {"database": settings.database, "sql": _PUT if is_txn else _PUT_ONCE}
        effect_class = "txn" if is_txn else "unsafe"
        try:
            # The receipt is that of this ask: a repeat finds it, and writes no second row.
            self._required_databases(settings.database).perform(
                replace(
                    ask, effect="database_write", effect_class=effect_class, fixed=fixed, arguments=bind, gives=INTEGER
                ),
                _OUTBOX,
            )
        except EffectFailed as failure:
            code = failure.code if failure.code in EFFECTS["event_publish"].codes() else "unavailable"
            advice = f"; {OUTBOX_HELP}" if "vesper_outbox" in failure.message else ""
            raise EffectFailed(
                code,
                f"the outbox of the topic `{event.topic}`: {failure.message}{advice}",
                retry_after=failure.retry_after,
                may_have_happened=failure.may_have_happened,
            ) from None
        return event.id


def _bind_argument(**values: Value) -> dict[str, Value]:
    return {"bind": values}


def _event_of(row: Mapping[str, Any]) -> Event:
    """Return the event of a row of the outbox."""
    try:
        payload, created = parse_json(row["payload"]), datetime.fromisoformat(row["created_at"])
    except (ValueError, ValueProblem):
        message = f"the row `{row['id']}` of the outbox was not written by Vesper: correct it, or delete it"
        raise EffectFailed("unavailable", message) from None
    return Event(row["id"], row["topic"], payload, row["event_key"], row["execution"], created)


def _event_id(topic: str, ask: Ask) -> str:
    if ask.effect_class == "unsafe":
        return str(uuid.uuid4())
    digest = hashlib.sha256(f"{len(topic)}:{topic}:{ask.receipt}".encode()).hexdigest()
    return str(uuid.uuid5(_NAMESPACE, digest))
