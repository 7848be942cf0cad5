"""What every broker keeps: order per key over several processes, leases, lag. Each with its real server."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
import redis

from tests.support.servers import Postgres, Redis
from tests.unit.topics.project import SETTINGS, TOPIC, open_project
from vesper.effects.events.event import Event
from vesper.effects.events.performer import OUTBOX_CONSUMER_TABLES, OUTBOX_TABLE
from vesper.host.host import Host
from vesper.topics.message import Message, Source, TopicUnavailable
from vesper.topics.sources import open_source
from vesper.topics.sources.outbox import OutboxSource
from vesper.topics.sources.redis import RedisSource
from vesper.values.json_value import json_of

Open = Callable[..., Source]


@pytest.fixture(scope="module")
def outbox(postgres: Postgres) -> str:
    """A database with the tables of an outbox."""
    dsn = postgres.new_database()
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in (OUTBOX_TABLE["postgresql"], *OUTBOX_CONSUMER_TABLES):
            connection.execute(statement.encode())
    return dsn


@pytest.fixture(params=["redis", "sqlite", "postgres"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
    """A Host whose topic is in a real server."""
    settings, topic = SETTINGS, 'url = "outbox:"\ndatabase = "main"'
    if request.param == "redis":
        server: Redis = request.getfixturevalue("redis_server")
        topic = f'url = "{server.url}"\nstream = "{uuid.uuid4()}"'
    elif request.param == "postgres":
        dsn = request.getfixturevalue("outbox")
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("TRUNCATE vesper_outbox, vesper_outbox_groups, vesper_outbox_claims")
        settings += f'[databases.events]\ndsn = "{dsn}"\n'
        topic = 'url = "outbox:"\ndatabase = "events"'
    with open_project(tmp_path, topic, settings=settings) as project:
        yield project.host


@pytest.fixture
def opened(host: Host) -> Iterator[Open]:
    """Opens sources as several processes have them; `lease` in seconds."""
    sources: list[Source] = []

    def make(group: str = "g", lease: float = 30.0, is_ordered: bool = True) -> Source:
        topics = host.event_topics()
        settings = replace(topics.settings_of(TOPIC), lease=lease)
        if settings.kind == "redis":
            source: Source = RedisSource(settings, group, is_ordered, None)
        else:
            source = OutboxSource(settings, group, is_ordered, topics, settings.database == "main")
        sources.append(source)
        return source

    yield make
    for each in sources:
        each.close()


def publish(host: Host, *names: str) -> None:
    """Publish messages named `KEY.NUMBER`; a name without a key has none."""
    for name in names:
        key = name.partition(".")[0] or None
        host.event_topics().republish(Event(name, TOPIC, json_of({"name": name}), key, "", datetime.now(UTC)))


def ids(messages: list[Message]) -> list[str]:
    return [each.id for each in messages]


def test_one_message_of_a_key_is_handed_out_in_all_processes(host: Host, opened: Open) -> None:
    publish(host, "a.1", "a.2", "b.1", ".1", ".2", "a.3")
    first, second = opened(), opened()
    one = first.take(2)
    assert ids(one) in (["a.1", "b.1"], ["a.1"])  # a source may read two messages of one key
    rest = second.take(10)
    assert sorted(ids(one + rest)) == [".1", ".2", "a.1", "b.1"]
    assert (first.take(10), second.take(10)) == ([], [])
    assert first.lag() == 6
    (a1,) = (each for each in one if each.id == "a.1")
    assert a1.payload == '{"name":"a.1"}'
    following = first.finish([a1]) or second.take(10)
    assert ids(following) == ["a.2"]
    assert ids(first.finish(following) or first.take(10)) == ["a.3"]
    assert first.lag() == 4


def test_messages_of_a_dead_process_go_to_another_in_order(host: Host, opened: Open) -> None:
    publish(host, "a.1", "a.2")
    dead = opened(lease=0.001)
    assert ids(dead.take(5)) == ["a.1"]
    living = opened(lease=0.001)
    (again,) = living.take(5) or living.take(5)
    assert again.id == "a.1"
    following = living.finish([again]) or living.take(5)
    assert ids(following) == ["a.2"]
    assert dead.finish([again]) == []  # a process that was only slow
    living.finish(following)
    assert living.lag() == 0


def test_leases_are_renewed_and_released(host: Host, opened: Open) -> None:
    publish(host, "a.1")
    holder, other = opened(lease=30), opened(lease=30)
    held = holder.take(1)
    holder.keep(held)
    assert other.take(1) == []
    holder.release(held)
    assert ids(other.take(1)) == ["a.1"]


def test_each_group_gets_every_message(host: Host, opened: Open) -> None:
    publish(host, "a.1", "a.2")
    first, second = opened("first"), opened("second")
    assert (first.lag(), second.lag()) == (2, 2)
    for source, taken in [(each, each.take(1)) for each in (first, second)]:
        assert ids(taken) == ["a.1"]
        taken = source.finish(taken) or source.take(1)
        assert ids(taken) == ["a.2"]
        source.finish(taken)
        assert (source.lag(), source.take(1)) == (0, [])


def test_without_order_messages_of_a_key_run_side_by_side(host: Host, opened: Open) -> None:
    publish(host, "a.1", "a.2")
    assert ids(opened(is_ordered=False).take(5)) == ["a.1", "a.2"]


# -- Redis alone ----------------------------------------------------------------------------------


@pytest.fixture
def stream(tmp_path: Path, redis_server: Redis) -> Iterator[tuple[Source, redis.Redis, str]]:
    name = str(uuid.uuid4())
    topic = f'url = "{redis_server.url}"\nstream = "{name}"'
    with open_project(tmp_path, topic) as project, redis.Redis.from_url(redis_server.url) as client:
        source = open_source(project.host, TOPIC, "g")
        yield source, client, name
        source.close()


def test_entries_of_other_programs_need_no_id(stream: tuple[Source, redis.Redis, str]) -> None:
    source, client, name = stream
    place = str(client.xadd(name, {"payload": "1"}), "ascii")  # type: ignore[arg-type]  # bytes without decoding
    client.xadd(name, {"payload": b"\xff", "id": "no key\n", "event_key": b"\xfe"})
    client.xadd(name, {"payload": "2", "topic": "another"})
    taken = source.take(5)
    assert [(each.id[:7], each.payload) for each in taken] == [(place[:7], "1"), ("sha256:", "\udcff")]
    assert source.finish(taken) == []
    assert source.lag() == 0


def test_an_entry_that_was_trimmed_blocks_no_later_one(stream: tuple[Source, redis.Redis, str]) -> None:
    source, client, name = stream
    gone = client.xadd(name, {"payload": "1", "event_key": "a"})
    client.xadd(name, {"payload": "2", "event_key": "a"})
    assert len(source.take(1)) == 1
    client.xdel(name, gone)
    assert [each.payload for each in source.take(5)] == ["2"]


def test_a_group_that_was_deleted_is_made_again(stream: tuple[Source, redis.Redis, str]) -> None:
    source, client, name = stream
    client.xadd(name, {"payload": "1"})
    assert len(source.take(5)) == 1
    client.xgroup_destroy(name, "g")
    with pytest.raises(TopicUnavailable, match="NOGROUP"):
        source.take(5)
    assert len(source.take(5)) == 1


def test_tables_that_are_missing_are_named(tmp_path: Path) -> None:
    with (
        open_project(tmp_path, 'url = "outbox:"\ndatabase = "bare"', settings=SETTINGS + _BARE) as project,
        pytest.raises(TopicUnavailable, match=r"vesper_outbox_groups.*docs/how-to/consume-events\.md"),
    ):
        open_source(project.host, TOPIC, "g").take(1)


_BARE = '[databases.bare]\ndsn = "sqlite:bare.db"\ncreate = true\n'
