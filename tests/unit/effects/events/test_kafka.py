"""Messages that are published to Kafka, without a broker."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, ClassVar

import confluent_kafka
import pytest

from tests.unit.effects.ask_of import table
from vesper.effects.events.event import Event
from vesper.effects.events.kafka import KafkaTopic
from vesper.effects.events.settings import EventSettings
from vesper.effects.performer import EffectFailed
from vesper.values.json_value import json_of


class _Producer:
    """Records messages; `answer` is that of the broker, and none comes where it is a text."""

    answer: Any = None
    produced: ClassVar[list[tuple[tuple[object, ...], dict[str, Any]]]] = []

    def __init__(self, given: dict[str, str]) -> None:
        assert (given["bootstrap.servers"], given["enable.idempotence"]) == ("a:9092", "true")

    def produce(self, *place: object, **options: Any) -> None:
        self.produced.append((place, options))

    def poll(self, _timeout: float) -> None: ...

    def flush(self, _timeout: float) -> None:
        if not isinstance(self.answer, str):
            self.produced[-1][1]["on_delivery"](self.answer, None)


def test_a_message_of_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confluent_kafka, "Producer", _Producer)
    monkeypatch.setattr(_Producer, "produced", [])
    settings = EventSettings.from_table("orders", table("topics", url="kafka://a:9092", stream="shop.orders"))
    topic = KafkaTopic(settings, None)
    at = datetime(2026, 11, 18, tzinfo=UTC)
    event = Event("e1", "orders", json_of({"n": 1}), "k", "x1", at)
    assert topic.publish(event, '{"n":1}', None, None) == "e1"
    topic.publish(replace(event, event_key=None), "1", None, None)
    (first, options), (second, _) = _Producer.produced
    assert first == ("shop.orders", b'{"n":1}', b"k")
    assert second == ("shop.orders", b"1", None)
    headers = [("id", b"e1"), ("execution", b"x1"), ("published_at", b"2026-11-18T00:00:00Z")]
    assert options["headers"] == headers
    refused = confluent_kafka.KafkaError(confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED)
    for answer, code in (("no answer", "timeout"), (refused, "unavailable")):
        monkeypatch.setattr(_Producer, "answer", answer)
        with pytest.raises(EffectFailed) as failed:
            topic.publish(event, "1", None, 0.1)
        assert (failed.value.code, failed.value.may_have_happened) == (code, True)
