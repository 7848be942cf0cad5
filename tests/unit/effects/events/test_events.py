"""Events to subscribers in the process, to a real Redis, and through an outbox."""

from __future__ import annotations

import logging
import multiprocessing
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.servers import Redis, free_port
from tests.unit.effects.ask_of import ask_of, failure, table
from vesper.effects.events.event import Event
from vesper.effects.events.memory import MemoryTopic
from vesper.effects.events.performer import OUTBOX_TABLE, EventPerformer
from vesper.effects.events.settings import EventSettings
from vesper.effects.performer import Ask, EffectFailed
from vesper.effects.settings import ConfigError
from vesper.values.json_value import Json, json_of
from vesper.values.types import Type

TOPIC = "orders.done"


def settings(**values: object) -> EventSettings:
    return EventSettings.from_table(TOPIC, table("topics", **values))


def event_ask(payload: object, event_key: str | None = None, topic: str = TOPIC, **more: Any) -> Ask:
    arguments: dict[str, object] = {"payload": json_of(payload)}
    if event_key is not None:
        arguments["event_key"] = event_key
    return ask_of("event_publish", {"topic": topic}, arguments, **more)


def keyed(payload: object, key: str, **more: Any) -> Ask:
    return event_ask(payload, effect_class="keyed", key=key, **more)


class _Subscriber:
    """Keeps what it gets; `expect` waits until there is as much."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._changed = threading.Condition()

    def __call__(self, event: Event) -> None:
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def expect(self, count: int) -> list[Event]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.events) >= count, timeout=30)
            return list(self.events)


# -- memory ---------------------------------------------------------------------------------------


@pytest.fixture
def in_memory() -> Iterator[EventPerformer]:
    performer = EventPerformer({TOPIC: settings(url="memory:")})
    yield performer
    performer.close()


def test_subscribers_get_each_event_in_order(in_memory: EventPerformer) -> None:
    first, second = _Subscriber(), _Subscriber()
    in_memory.subscribe(TOPIC, first)
    end = in_memory.subscribe(TOPIC, second)
    before = datetime.now(UTC)
    ids = [in_memory.perform(event_ask({"order": number, "total": Decimal("1.50")}, "k")) for number in range(20)]
    events = first.expect(20)
    assert [each.id for each in events] == ids
    assert [each.payload for each in events] == [{"order": n, "total": Decimal("1.50")} for n in range(20)]
    assert {(each.topic, each.event_key, each.execution) for each in events} == {(TOPIC, "k", "ex_1")}
    assert all(before <= each.published_at <= datetime.now(UTC) for each in events)
    second.expect(20)
    end()
    in_memory.perform(event_ask({"order": 20}))
    first.expect(21)
    in_memory.close()
    assert len(second.events) == 20


def test_every_unsafe_event_has_an_id_of_its_own(in_memory: EventPerformer) -> None:
    ids = {in_memory.perform(event_ask(1)) for _ in range(100)}
    assert len(ids) == 100
    assert all(str(uuid.UUID(str(each))) == each for each in ids)


def test_a_subscriber_that_fails_is_logged_and_stops_nobody(
    in_memory: EventPerformer, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(event: Event) -> None:
        raise RuntimeError("subscriber broke")

    works = _Subscriber()
    in_memory.subscribe(TOPIC, fails)
    in_memory.subscribe(TOPIC, works)
    with caplog.at_level(logging.ERROR, "vesper.effects.events.performer"):
        for number in range(3):
            in_memory.perform(event_ask(number))
        works.expect(3)
        in_memory.close()
    assert caplog.text.count("RuntimeError: subscriber broke") == 3


def test_a_subscriber_may_change_what_it_gets(in_memory: EventPerformer) -> None:
    def changes(event: Event) -> None:
        assert isinstance(event.payload, dict)
        event.payload.clear()

    works = _Subscriber()
    in_memory.subscribe(TOPIC, changes)
    in_memory.subscribe(TOPIC, works)
    in_memory.perform(event_ask({"a": 1}))
    assert works.expect(1)[0].payload == {"a": 1}


def test_a_queue_that_is_full_refuses() -> None:
    performer = EventPerformer({TOPIC: settings(url="memory:", max_length=2)})
    goes_on = threading.Event()
    taken = threading.Event()

    def slow(event: Event) -> None:
        taken.set()
        assert goes_on.wait(30)

    performer.subscribe(TOPIC, slow)
    performer.perform(event_ask(0))
    assert taken.wait(30)
    performer.perform(event_ask(1))
    performer.perform(keyed(2, "k"))
    failed = failure("event_publish", lambda: performer.perform(keyed(3, "refused")))
    assert failed.code == "unavailable"
    assert not failed.may_have_happened
    goes_on.set()
    performer.close()
    works = _Subscriber()
    performer.subscribe(TOPIC, works)
    performer.perform(keyed(3, "refused"))  # what was refused left no key behind
    assert works.expect(1)[0].payload == 3
    performer.close()


def test_keys_are_remembered_for_their_time() -> None:
    now = [0.0]
    topic = MemoryTopic(TOPIC, 10, 60, lambda: now[0])
    works = _Subscriber()
    topic.subscribe(works)

    def publish(id_: str, key: str | None) -> str:
        return topic.publish(Event(id_, TOPIC, Json(None), None, "ex", datetime.now(UTC)), "null", key, None)

    assert [publish("1", "k"), publish("2", "k"), publish("3", None)] == ["1", "1", "3"]
    now[0] = 59.9
    assert publish("4", "k") == "1"
    now[0] = 60.0
    assert publish("5", "k") == "5"
    assert [each.id for each in works.expect(3)] == ["1", "3", "5"]
    topic.close()


def test_a_forked_process_hands_out_its_own_events(in_memory: EventPerformer) -> None:
    works = _Subscriber()
    in_memory.subscribe(TOPIC, works)
    in_memory.perform(event_ask("parent"))
    works.expect(1)
    fork = multiprocessing.get_context("fork")
    results = fork.Queue()

    def child() -> None:
        works.events.clear()
        in_memory.perform(event_ask("child"))
        results.put([each.payload for each in works.expect(1)])

    process = fork.Process(target=child)
    process.start()
    assert results.get(timeout=30) == ["child"]
    process.join()
    assert [each.payload for each in works.events] == ["parent"]


# -- Redis ----------------------------------------------------------------------------------------


@pytest.fixture
def stream(request: pytest.FixtureRequest) -> str:
    return f"stream:{request.node.name}"


@pytest.fixture
def client(redis_server: Redis) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_server.url, decode_responses=True) as found:
        yield found


@pytest.fixture
def in_redis(redis_server: Redis, stream: str) -> Iterator[EventPerformer]:
    performer = EventPerformer({TOPIC: settings(url=redis_server.url, stream=stream, max_length=1000)})
    yield performer
    performer.close()


def entries(client: redis.Redis, stream: str) -> list[dict[str, str]]:
    found: Any = client.xrange(stream)
    return [fields for _, fields in found]


def test_an_event_is_an_entry_of_the_stream(in_redis: EventPerformer, client: redis.Redis, stream: str) -> None:
    payload = {"z": "ü\r\n", "a": Decimal("1.50")}
    id_ = in_redis.perform(event_ask(payload, "customer 7"))
    (entry,) = entries(client, stream)
    assert entry["published_at"].endswith("Z")
    moment = datetime.fromisoformat(entry.pop("published_at"))
    assert abs(datetime.now(UTC) - moment) < timedelta(minutes=5)
    assert entry == {
        "id": id_,
        "topic": TOPIC,
        "payload": '{"a":1.5,"z":"ü\\r\\n"}',
        "event_key": "customer 7",
        "execution": "ex_1",
    }


def test_a_key_publishes_once(in_redis: EventPerformer, client: redis.Redis, stream: str) -> None:
    first = in_redis.perform(keyed({"n": 1}, "order 7"))
    again = in_redis.perform(keyed({"n": 1}, "order 7", is_repeat=True, execution="ex_2"))
    other = in_redis.perform(keyed({"n": 1}, "order 8"))
    assert first == again != other
    assert [each["id"] for each in entries(client, stream)] == [first, other]
    (key, *_) = client.keys(f"{stream}:key:*")
    assert 86_000_000 < client.pttl(key) <= 86_400_000


def test_the_id_of_a_key_stays_when_the_key_is_forgotten(
    in_redis: EventPerformer, client: redis.Redis, stream: str
) -> None:
    first = in_redis.perform(keyed(1, "k"))
    client.delete(*client.keys(f"{stream}:key:*"))
    assert in_redis.perform(keyed(1, "k")) == first
    assert len(entries(client, stream)) == 2  # it was published again, and a consumer can tell


def test_many_at_once_under_one_key(in_redis: EventPerformer, client: redis.Redis, stream: str) -> None:
    ids: list[object] = []
    ready = threading.Barrier(8)

    def publish() -> None:
        ready.wait(30)
        ids.append(in_redis.perform(keyed(1, "the one")))

    threads = [threading.Thread(target=publish) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 8
    assert len(set(ids)) == 1
    assert len(entries(client, stream)) == 1


def test_a_stream_that_refuses_leaves_no_key(in_redis: EventPerformer, client: redis.Redis, stream: str) -> None:
    client.set(stream, "no stream")
    failed = failure("event_publish", lambda: in_redis.perform(keyed(1, "k")))
    assert failed.code == "unavailable"
    assert "WRONGTYPE" in failed.message
    assert client.keys(f"{stream}:key:*") == []
    client.delete(stream)
    in_redis.perform(keyed(1, "k"))
    assert len(entries(client, stream)) == 1


def test_a_stream_is_kept_short(redis_server: Redis, client: redis.Redis, stream: str) -> None:
    performer = EventPerformer({TOPIC: settings(url=redis_server.url, stream=stream, max_length=10)})
    for number in range(500):
        performer.perform(event_ask(number))
    assert client.xlen(stream) < 300  # about ten: Redis cuts in pieces of a hundred
    performer.close()


def test_topics_share_what_events_says(redis_server: Redis, client: redis.Redis) -> None:
    default = EventSettings.from_table("events", table("events", url=redis_server.url))
    performer = EventPerformer({}, default)
    performer.perform(event_ask(1, topic="a"))
    performer.perform(event_ask(2, topic="b.c"))
    assert [each["payload"] for each in entries(client, "vesper:events:b.c")] == ["2"]
    client.delete("vesper:events:a", "vesper:events:b.c")
    performer.close()


def test_redis_that_is_away() -> None:
    performer = EventPerformer({TOPIC: settings(url=f"redis://127.0.0.1:{free_port()}")})
    failed = failure("event_publish", lambda: performer.perform(event_ask(1)))
    assert (failed.code, failed.may_have_happened) == ("unavailable", False)


def test_redis_that_does_not_answer_may_have_published(redis_server: Redis, client: redis.Redis, stream: str) -> None:
    performer = EventPerformer({TOPIC: settings(url=redis_server.url, stream=stream)})
    performer.perform(keyed(0, "before"))
    client.client_pause(1_000)
    failed = failure("event_publish", lambda: performer.perform(keyed(1, "k", timeout=0.1)))
    assert (failed.code, failed.may_have_happened) == ("timeout", True)
    client.client_unpause()
    performer.perform(keyed(1, "k", is_repeat=True))
    assert [each["payload"] for each in entries(client, stream)] == ["0", "1"]
    performer.close()


def test_a_topic_in_redis_has_no_subscribers_here(in_redis: EventPerformer, stream: str) -> None:
    with pytest.raises(ValueError, match=f"read its stream `{stream}` with XREADGROUP"):
        in_redis.subscribe(TOPIC, print)


# -- all ------------------------------------------------------------------------------------------


def test_an_event_that_is_too_long() -> None:
    performer = EventPerformer({TOPIC: settings(url="memory:", max_payload="10 B")})
    performer.perform(event_ask("x" * 8))
    failed = failure("event_publish", lambda: performer.perform(event_ask("x" * 9)))
    assert failed.message == "the event is over `max_payload` of the topic `orders.done`, 10 bytes"


def test_no_topic_of_that_name() -> None:
    failed = failure("event_publish", lambda: EventPerformer({}).perform(event_ask(1)))
    assert (
        failed.message == 'no topic `orders.done` is configured: add [topics."orders.done"] or [events] to vesper.toml'
    )


@pytest.mark.parametrize(
    "values, says",
    [
        ({"url": "kafka://x"}, "is expected"),
        ({"url": "memory:", "stream": "x"}, "a topic in memory has no such setting"),
        ({"url": "memory:", "key_ttl": "10ms"}, "at least a second"),
        ({"url": "redis://x", "max_lenght": 5}, "did you mean `max_length`?"),
    ],
)
def test_settings_that_cannot_be_used(values: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match="topics") as refused:
        settings(**values)
    assert says in str(refused.value)


# -- outbox ---------------------------------------------------------------------------------------


class _Databases:
    """Performs what the outbox asks of a database, on a real SQLite file: a statement and its receipt in one
    transaction."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.row_factory = sqlite3.Row
        self.connection.execute(OUTBOX_TABLE["sqlite"])
        self.connection.execute("CREATE TABLE receipts (receipt TEXT PRIMARY KEY)")

    def perform(self, ask: Ask, types: Mapping[str, Type]) -> object:
        assert ask.fixed["database"] == "main"
        bind: Any = ask.arguments["bind"]
        assert bind.keys() <= types.keys()
        if ask.effect == "database_query":
            return [dict(row) for row in self.connection.execute(ask.fixed["sql"], bind)]
        with self.connection:
            self.connection.execute("BEGIN IMMEDIATE")
            if ask.effect_class == "txn":
                try:
                    self.connection.execute("INSERT INTO receipts VALUES (?)", [ask.receipt])
                except sqlite3.IntegrityError:
                    return 1
            return self.connection.execute(ask.fixed["sql"], bind).rowcount

    def probe(self, ask: Ask) -> object:
        raise EffectFailed("unavailable", ask.path)

    def close(self) -> None:
        self.connection.close()


@pytest.fixture
def databases(tmp_path: Path) -> Iterator[_Databases]:
    found = _Databases(tmp_path / "main.db")
    yield found
    found.close()


def _waiting(databases: _Databases) -> list[str]:
    return [row["payload"] for row in databases.connection.execute("SELECT payload FROM vesper_outbox ORDER BY seq")]


def test_the_outbox_takes_an_event_once_and_the_relay_publishes_it(
    redis_server: Redis, client: redis.Redis, stream: str, databases: _Databases
) -> None:
    topics = {TOPIC: settings(url=redis_server.url, stream=stream, database="main")}
    performer = EventPerformer(topics, databases=databases)
    ask = event_ask({"n": Decimal("1.5")}, "k", effect_class="txn")
    first = performer.perform(ask)
    assert performer.perform(ask) == first
    second = performer.perform(event_ask({"n": 2}, effect_class="txn", path="other"))
    assert first != second
    assert _waiting(databases) == ['{"n":1.5}', '{"n":2}']
    assert entries(client, stream) == []
    assert performer.relay_outbox("main") == 2
    assert [(each["id"], each.get("event_key")) for each in entries(client, stream)] == [(first, "k"), (second, None)]
    assert _waiting(databases) == []
    assert performer.relay_outbox("main") == 0
    performer.close()


def test_a_relay_that_is_cut_off_publishes_nothing_twice(
    redis_server: Redis, client: redis.Redis, stream: str, databases: _Databases
) -> None:
    topics = {TOPIC: settings(url=redis_server.url, stream=stream, database="main")}
    performer = EventPerformer(topics, databases=databases)
    for number in range(3):
        performer.perform(event_ask(number, effect_class="txn", path=f"step[{number}]"))
    real: Callable[[Ask, Mapping[str, Type]], object] = databases.perform

    def fails_to_delete(ask: Ask, types: Mapping[str, Type]) -> object:
        if ask.effect == "database_write":
            raise EffectFailed("unavailable", "the database is away")
        return real(ask, types)

    databases.perform = fails_to_delete  # type: ignore[method-assign]
    with pytest.raises(EffectFailed):
        performer.relay_outbox("main")
    databases.perform = real  # type: ignore[assignment, method-assign]
    assert [each["payload"] for each in entries(client, stream)] == ["0"]
    assert performer.relay_outbox("main", most=2) == 2
    assert performer.relay_outbox("main", most=2) == 1
    assert [each["payload"] for each in entries(client, stream)] == ["0", "1", "2"]
    performer.close()


def test_a_topic_that_is_away_holds_up_no_other(databases: _Databases) -> None:
    topics = {
        "away": EventSettings.from_table("away", table("t", url=f"redis://127.0.0.1:{free_port()}", database="main")),
        TOPIC: settings(url="memory:", database="main"),
    }
    performer = EventPerformer(topics, databases=databases)
    works = _Subscriber()
    performer.subscribe(TOPIC, works)
    for number, topic in enumerate(["away", TOPIC, "away", TOPIC]):
        performer.perform(event_ask(number, effect_class="txn", topic=topic, path=f"step[{number}]"))
    databases.connection.execute("UPDATE vesper_outbox SET payload = '{' WHERE payload = '3'")
    with pytest.raises(EffectFailed, match="the topic `away`"):
        performer.relay_outbox("main")
    assert [each.payload for each in works.expect(1)] == [1]
    assert _waiting(databases) == ["0", "2", "{"]
    databases.connection.execute("DELETE FROM vesper_outbox WHERE topic = 'away'")
    with pytest.raises(EffectFailed, match="of the outbox was not written by Vesper: correct it, or delete it"):
        performer.relay_outbox("main")
    performer.close()


def test_an_outbox_that_refuses_fails_with_a_code_of_events(databases: _Databases) -> None:
    performer = EventPerformer({TOPIC: settings(url="memory:", database="main")}, databases=databases)

    def conflicts(ask: Ask, types: Mapping[str, Type]) -> object:
        raise EffectFailed("conflict", "a row with that id is there", may_have_happened=True)

    databases.perform = conflicts  # type: ignore[method-assign]
    failed = failure("event_publish", lambda: performer.perform(event_ask(1, effect_class="txn")))
    assert (failed.code, failed.may_have_happened) == ("unavailable", True)
    assert failed.message == "the outbox of the topic `orders.done`: a row with that id is there"


def test_a_missing_outbox_names_the_page_with_its_table(tmp_path: Path) -> None:
    databases = _Databases(tmp_path / "a.db")
    performer = EventPerformer({TOPIC: settings(url="memory:", database="main")}, databases=databases)

    def missing(ask: Ask, types: Mapping[str, Type]) -> object:
        raise EffectFailed("unavailable", "`main`: no such table: vesper_outbox")

    databases.perform = missing  # type: ignore[method-assign]
    failed = failure("event_publish", lambda: performer.perform(event_ask(1, effect_class="txn")))
    assert "vesper_outbox; create the table once: docs/how-to/configure-caches-and-events.md#topics" in failed.message


def test_txn_without_an_outbox_is_refused(in_memory: EventPerformer) -> None:
    failed = failure("event_publish", lambda: in_memory.perform(event_ask(1, effect_class="txn")))
    assert 'add `database = "main"` to the topic `orders.done`, or make the step `keyed`' in failed.message
    performer = EventPerformer({TOPIC: settings(url="memory:", database="main")})
    failed = failure("event_publish", lambda: performer.perform(event_ask(1, effect_class="txn")))
    assert "and none is configured" in failed.message
