"""Events: `event_publish`, to subscribers in the process or to a stream of Redis.

What is promised, by class:

- `unsafe`: it is published once, and never again by us.
- `keyed`: publishing again under the same key, for as long as the topic remembers keys (`key_ttl`), gives the id of the
  first time and publishes nothing. The id follows from the topic and the key alone, so that a consumer recognises a
  repeat even after that.
- `txn`: a row in the table `vesper_outbox` of the topic's `database`, in one transaction with the receipt.
  `relay_outbox` moves such rows to the topic, at least once, in order; the stream drops repeats by the event's id.

Events in the memory of a process are handed out by a thread, at most once: those that wait when the process ends are
lost, and so is one whose subscriber raises (which is logged).
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from vesper.effects.events.event import Event
from vesper.effects.events.memory import MemoryTopic, Subscriber
from vesper.effects.events.redis import RedisTopic
from vesper.effects.performer import Ask, EffectFailed, no_secret
from vesper.effects.redis_server import RedisAddress, require_redis
from vesper.effects.settings import Table
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
_PUT: Final = (
    "INSERT INTO vesper_outbox (id, topic, payload, event_key, execution, created_at) "
    "VALUES (:id, :topic, :payload, :event_key, :execution, :created_at)"
)
_WAITING: Final = (
    "SELECT id, topic, payload, event_key, execution, created_at FROM vesper_outbox ORDER BY seq LIMIT :most"
)
_STATE: Final = "SELECT count(*) AS waiting, min(created_at) AS oldest FROM vesper_outbox LIMIT :most"
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


@dataclass(frozen=True, slots=True)
class EventSettings:
    """`[topics.NAME]`, or `[events]` for every topic that has no table of its own."""

    name: str
    address: RedisAddress | None
    """None: in the memory of each process."""
    stream: str | None
    """Of Redis; None: `vesper:events:` and the topic. Topics may share one: every entry names its topic."""
    max_length: int
    max_payload: int
    key_ttl: float
    timeout: float
    database: str | None
    """The database with the outbox; None: no event of class `txn`."""
    password_secret: str | None

    @classmethod
    def from_table(cls, name: str, table: Table) -> EventSettings:
        url = table.text("url")
        address = None if url == "memory:" else RedisAddress.from_table(table, url)
        if address is None:
            for other in ("stream", "timeout", "password_secret"):
                if other in table:
                    raise table.error(other, "a topic in memory has no such setting")
        else:
            require_redis(table.where)
            if address.password is not None and "password_secret" in table:
                raise table.error("password_secret", "the password stands in `url` already")
        found = cls(
            name,
            address,
            table.text("stream") if "stream" in table else None,
            table.integer("max_length", 10_000 if address is None else 1_000_000, least=1),
            table.size("max_payload", 1 << 20),
            table.seconds("key_ttl", 86_400.0),
            table.seconds("timeout", 5.0),
            table.text("database") if "database" in table else None,
            table.text("password_secret") if "password_secret" in table else None,
        )
        table.done()
        if not 0 < found.timeout <= 600:
            raise table.error("timeout", "more than nothing and at most 10 minutes is expected")
        if found.key_ttl < 1:
            raise table.error("key_ttl", "at least a second is expected")
        return found

    def of(self, topic: str) -> EventSettings:
        """The settings of `[events]` for one topic."""
        return replace(self, name=topic)

    @property
    def redis_stream(self) -> str:
        return self.stream or f"vesper:events:{self.name}"


class Topic(Protocol):
    """Takes events. `key` is what repeats are recognised by, or None."""

    def publish(self, event: Event, payload: str, key: str | None, timeout: float | None) -> str: ...
    def close(self) -> None: ...


class OutboxDatabases(Protocol):
    """The databases that outboxes are in."""

    def perform(self, ask: Ask, types: Mapping[str, Type]) -> object:
        """Perform a query or a write, whose parameters have these types. Raises `EffectFailed`."""
        ...


class EventPerformer:
    """Publishes to all configured topics.

    `databases` performs `database_write` and `database_query` (`DatabasePerformer` does): the outbox goes through it,
    and so into the caller's transaction where the execution has joined one.
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
        settings, topic = self._topic(name)
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
        if ask.effect_class == "txn":
            return self._put_in_outbox(settings, event, ask)
        return topic.publish(event, canonical_text(payload), key, ask.timeout)

    def probe(self, ask: Ask) -> object:
        raise EffectFailed("unavailable", f"{ask.effect} is never of class `probe`")

    def subscribe(self, topic: str, subscriber: Subscriber) -> Callable[[], None]:
        """Calls `subscriber` with every `Event` that this process publishes to a topic in memory, one after the other
        in a thread; what is given back ends that. An exception of it is logged, and the next event comes all the
        same."""
        found = self._topic(topic)[1]
        if not isinstance(found, MemoryTopic):
            stream = self._topic(topic)[0].redis_stream
            raise ValueError(f"the topic `{topic}` is in Redis: read its stream `{stream}` with XREADGROUP")
        return found.subscribe(subscriber)

    def waiting_in_outbox(self, database: str) -> tuple[int, float]:
        """Return the number of events in an outbox, and the age of the oldest in seconds. Raises `EffectFailed`."""
        ask = Ask(
            execution="",
            path="waiting_in_outbox",
            effect="database_query",
            effect_class="read",
            fixed={"database": database, "sql": _STATE, "rows": "all"},
            arguments=_bound(most=1),
            gives=ArrayOf(Record((("waiting", INTEGER), ("oldest", OptionalOf(STRING))))),
        )
        rows = self._required_databases(database).perform(ask, _OUTBOX)
        assert isinstance(rows, list)
        (row,) = rows
        oldest = row["oldest"]
        age = 0.0 if oldest is None else (datetime.now(UTC) - datetime.fromisoformat(oldest)).total_seconds()
        return row["waiting"], max(age, 0.0)

    def relay_outbox(self, database: str, most: int = 100) -> int:
        """Publishes what waits in the outbox of a database, oldest first, and takes it out; how many there were.

        Any number of processes may do this at once. Raises `EffectFailed` where the database is away, or a topic: the
        events of the other topics are published first, and what was not taken out comes next time."""
        databases = self._required_databases(database)
        ask = Ask(
            execution="",
            path="relay_outbox",
            effect="database_query",
            effect_class="read",
            fixed={"database": database, "sql": _WAITING, "rows": "all"},
            arguments=_bound(most=most),
            gives=ArrayOf(_ROW),
        )
        rows = databases.perform(ask, _OUTBOX)
        assert isinstance(rows, list)
        failed: dict[str, EffectFailed] = {}
        for row in rows:
            topic = row["topic"]
            if topic in failed:
                continue  # its events stay in order
            try:
                event = _event_of(row)
                self._topic(topic)[1].publish(event, row["payload"], f"outbox:{event.id}", None)
            except EffectFailed as failure:
                failed[topic] = failure
                continue
            kill_point("outbox.published")
            fixed = {"database": database, "sql": _TAKE}
            bind = _bound(id=event.id)
            databases.perform(
                replace(
                    ask, effect="database_write", effect_class="unsafe", fixed=fixed, arguments=bind, gives=INTEGER
                ),
                _OUTBOX,
            )
        for first in failed.values():
            raise first
        return len(rows)

    def close(self) -> None:
        for topic in self._topics.values():
            topic.close()

    def _topic(self, name: str) -> tuple[EventSettings, Topic]:
        settings = self._settings.get(name)
        if settings is None:
            if self._default is None:
                message = f'no topic `{name}` is configured: add [topics."{name}"] or [events] to vesper.toml'
                raise EffectFailed("unavailable", message)
            settings = self._settings.setdefault(name, self._default.of(name))
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics.setdefault(name, self._opened(settings))  # of two threads one topic stays
        return settings, topic

    def _opened(self, settings: EventSettings) -> Topic:
        if settings.address is None:
            return MemoryTopic(settings.name, settings.max_length, settings.key_ttl)
        named, secret = settings.password_secret, self._secret
        password = None if named is None else lambda: secret(named)
        return RedisTopic(
            settings.address,
            settings.timeout,
            settings.name,
            settings.redis_stream,
            settings.max_length,
            settings.key_ttl,
            password,
        )

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
        bind = _bound(
            id=event.id,
            topic=event.topic,
            payload=canonical_text(event.json),
            event_key=event.event_key,
            execution=event.execution,
            created_at=timestamp_text(event.published_at),
        )
        fixed = {"database": settings.database, "sql": _PUT}
        try:
            # The receipt is that of this ask: a repeat finds it, and writes no second row.
            self._required_databases(settings.database).perform(
                replace(ask, effect="database_write", fixed=fixed, arguments=bind, gives=INTEGER), _OUTBOX
            )
        except EffectFailed as failure:
            code = failure.code if failure.code in EFFECTS["event_publish"].codes() else "unavailable"
            raise EffectFailed(
                code,
                f"the outbox of the topic `{event.topic}`: {failure.message}",
                retry_after=failure.retry_after,
                may_have_happened=failure.may_have_happened,
            ) from None
        return event.id


def _bound(**values: Value) -> dict[str, Value]:
    return {"bind": values}


def _event_of(row: Mapping[str, Any]) -> Event:
    """The event that a row of the outbox holds."""
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
