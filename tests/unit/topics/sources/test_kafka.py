"""Offsets, partitions and pauses of Kafka, without a broker; `make proof-topics` uses a real one."""

from __future__ import annotations

from typing import Any

import confluent_kafka
import pytest

from tests.unit.effects.ask_of import table
from vesper.effects.events.settings import EventSettings
from vesper.topics.message import TopicUnavailable
from vesper.topics.sources.kafka import KafkaSource


class FakeMessage:
    def __init__(self, partition: int, offset: int, key: bytes | None = None, error: object = None) -> None:
        self._facts = partition, offset, key, error

    def partition(self) -> int:
        return self._facts[0]

    def offset(self) -> int:
        return self._facts[1]

    def key(self) -> bytes | None:
        return self._facts[2]

    def error(self) -> object:
        return self._facts[3]

    def value(self) -> bytes:
        return b"1"

    def headers(self) -> list[tuple[str, bytes]]:
        return [("id", f"m{self.offset()}".encode())] if self.key() != b"foreign" else []


class FakeConsumer:
    """Records calls; `coming` is delivered by the next poll."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.settings = settings
        self.coming: list[FakeMessage] = []
        self.committed_offsets: list[tuple[int, int]] = []
        self.is_paused = False
        self.on_assign: Any = None
        self.on_revoke: Any = None

    def subscribe(self, topics: list[str], on_assign: Any, on_revoke: Any, on_lost: Any) -> None:
        self.on_assign, self.on_revoke = on_assign, on_revoke
        self.assign(0, 1)

    def assign(self, *numbers: int) -> None:
        self.on_assign(self, [confluent_kafka.TopicPartition("orders", each) for each in numbers])

    def revoke(self, *numbers: int) -> None:
        self.on_revoke(self, [confluent_kafka.TopicPartition("orders", each) for each in numbers])

    def consume(self, count: int, timeout: float) -> list[FakeMessage]:
        found, self.coming = self.coming, []
        return found

    def commit(self, offsets: list[Any], asynchronous: bool) -> None:
        self.committed_offsets += [(each.partition, each.offset) for each in offsets]

    def pause(self, _places: object) -> None:
        self.is_paused = True

    def resume(self, _places: object) -> None:
        self.is_paused = False

    def assignment(self) -> list[Any]:
        return []


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> KafkaSource:
    monkeypatch.setattr(confluent_kafka, "Consumer", FakeConsumer)
    settings = EventSettings.from_table("orders", table("topics", url="kafka://127.0.0.1:1"))
    found = KafkaSource(settings, "g", True, None, 4)
    assert found.take(1) == []
    return found


def consumer_of(source: KafkaSource) -> FakeConsumer:
    found: FakeConsumer = source._consumer
    return found


def test_the_committed_offset_is_that_of_the_first_unfinished_message(source: KafkaSource) -> None:
    consumer = consumer_of(source)
    consumer.coming = [FakeMessage(0, n, key) for n, key in ((5, b"a"), (6, b"b"), (7, b"a"), (8, None))]
    a, b, free = source.take(9)
    assert [a.id, b.id, free.id] == ["m5", "m6", "m8"]  # m7 waits for m5
    assert source.finish([b, free]) == []
    assert consumer.committed_offsets == []
    (following,) = source.finish([a])
    assert (following.id, following.position) == ("m7", "0/7")
    assert consumer.committed_offsets == [(0, 7)]
    source.finish([following])
    assert consumer.committed_offsets == [(0, 7), (0, 9)]


def test_a_partition_that_was_taken_away_is_not_committed(source: KafkaSource) -> None:
    consumer = consumer_of(source)
    consumer.coming = [FakeMessage(0, 1, b"a"), FakeMessage(0, 2, b"a"), FakeMessage(1, 1, b"b")]
    first, other = source.take(9)
    consumer.revoke(0)
    assert source.finish([first, other]) == []
    assert consumer.committed_offsets == [(1, 2)]
    consumer.assign(0)
    consumer.coming = [FakeMessage(0, 1, b"a"), FakeMessage(0, 2, b"a")]  # its new owner is this process again
    (again,) = source.take(9)
    assert [each.id for each in source.finish([again])] == ["m2"]
    assert consumer.committed_offsets == [(1, 2), (0, 2)]


def test_messages_that_wait_pause_the_partitions(source: KafkaSource) -> None:
    consumer = consumer_of(source)
    consumer.coming = [FakeMessage(0, n, b"a") for n in range(6)]
    (held,) = source.take(9)
    source.take(9)
    states = [consumer.is_paused]
    for _ in range(3):
        (held,) = source.finish([held])
    source.take(9)
    states.append(consumer.is_paused)
    source.keep([held])
    assert [*states, consumer.is_paused] == [True, False, True]


def test_messages_of_other_programs_have_their_place_as_id(source: KafkaSource) -> None:
    consumer_of(source).coming = [FakeMessage(1, 3, b"foreign")]
    assert source.take(1)[0].id == "orders/1/3"


def test_an_error_of_the_broker_is_an_outage(source: KafkaSource) -> None:
    error = confluent_kafka.KafkaError(confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART)
    consumer_of(source).coming = [FakeMessage(0, 0, error=error)]
    with pytest.raises(TopicUnavailable, match="Unknown topic or partition"):
        source.take(1)
    assert consumer_of(source).settings["enable.auto.commit"] == "false"
