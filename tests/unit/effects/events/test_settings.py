"""Settings of topics in Kafka and in an outbox."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.unit.effects.ask_of import ask_of, table
from vesper.config.settings import config_from
from vesper.effects.events.performer import OUTBOX_TABLE, EventPerformer
from vesper.effects.events.settings import EventSettings
from vesper.effects.settings import ConfigError
from vesper.host.host import Host
from vesper.values.json_value import json_of


def settings(**values: object) -> EventSettings:
    return EventSettings.from_table("orders", table("topics", **values))


def test_settings_of_kafka() -> None:
    found = settings(url="kafka://a:9092,b:9093", kafka={"security.protocol": "SASL_SSL"}, stream="shop.orders")
    assert (found.kind, found.kafka_topic) == ("kafka", "shop.orders")
    assert found.kafka_settings("hidden") == {
        "bootstrap.servers": "a:9092,b:9093",
        "client.id": "vesper",
        "security.protocol": "SASL_SSL",
        "sasl.password": "hidden",
    }


@pytest.mark.parametrize(
    "values, message",
    [
        ({"url": "kafka://a"}, "`kafka://HOST:PORT` is expected"),
        ({"url": "kafka://a:1", "max_length": 5}, "a topic in Kafka has no such setting"),
        ({"url": "kafka://a:1", "kafka": {"group.id": "x"}}, "Vesper sets this itself"),
        ({"url": "outbox:"}, "add `database = "),
        ({"url": "outbox:", "database": "main", "stream": "x"}, "a topic in an outbox has no such setting"),
        ({"url": "memory:", "lease": "5s"}, "a topic in memory has no such setting"),
        ({"url": "redis://a", "lease": "5ms"}, "at least a second and at most an hour"),
        ({"url": "amqp://a"}, "`outbox:`, `redis://HOST:PORT/0` or `kafka://HOST:PORT` is expected"),
    ],
)
def test_settings_that_cannot_be_used(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings(**values)


def test_an_outbox_that_is_the_topic_keeps_its_rows_for_consumers(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "main.db")) as database:
        database.execute(OUTBOX_TABLE["sqlite"])
    values = {
        "databases": {"main": {"dsn": "sqlite:main.db"}},
        "topics": {"orders": {"url": "outbox:", "database": "main"}, "mails": {"url": "memory:", "database": "main"}},
    }
    with Host(config_from(values, tmp_path)) as host:
        topics = host.event_topics()
        arguments = {"payload": json_of({"n": 1})}
        for _ in range(2):
            topics.perform(ask_of("event_publish", {"topic": "orders"}, arguments, effect_class="keyed", key="k"))
        topics.perform(ask_of("event_publish", {"topic": "orders"}, arguments, effect_class="unsafe"))
        topics.perform(ask_of("event_publish", {"topic": "mails"}, arguments, effect_class="txn"))
        assert topics.waiting_in_outbox("main")[0] == 1  # of those that move elsewhere
        assert topics.relay_outbox("main") == 1
        assert topics.relay_outbox("main") == 0
        default = EventPerformer({}, settings(url="outbox:", database="main"), databases=topics._databases)
        assert default.relay_outbox("main") == 0
        with pytest.raises(ValueError, match=r"an `event_handler` with `events: \{topic: orders\}` consumes it"):
            topics.subscribe("orders", print)
    with closing(sqlite3.connect(tmp_path / "main.db")) as database:
        assert database.execute("SELECT count(*) FROM vesper_outbox").fetchone() == (2,)
