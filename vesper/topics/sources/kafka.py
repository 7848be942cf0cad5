"""A topic of Kafka with a consumer group.

Events of a key are in one partition, and the group gives a partition to one process. Within it, keys run side by side;
the committed offset is that of the first unfinished message, so the next owner of a partition sees every unfinished
message in order. A former owner that still runs one holds its run key in the journal, and the new owner waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import confluent_kafka
from confluent_kafka import TopicPartition

from vesper.effects.events.settings import EventSettings
from vesper.topics.message import Message, TopicUnavailable, checked_id
from vesper.topics.sources.lanes import Lanes

_SECONDS: Final = 5.0
"""Time limit of requests to the brokers."""


@dataclass(slots=True)
class _Partition:
    """A partition while this process has it."""

    number: int
    lanes: Lanes
    open: dict[int, bool] = field(default_factory=dict)
    """Offsets above the committed one, in order; True for finished ones."""
    is_lost: bool = False

    def finish(self, offset: int) -> int | None:
        """Return the offset to commit where it moves."""
        if offset not in self.open:
            return None
        self.open[offset] = True
        moved = None
        while self.open and self.open[first := next(iter(self.open))]:
            del self.open[first]
            moved = first + 1
        return moved


class KafkaSource:
    """A member of the group. Heartbeats are librdkafka's; polls report changes of partitions."""

    keep_seconds = 0.2

    def __init__(
        self,
        settings: EventSettings,
        group: str,
        is_ordered: bool,
        password: Callable[[], str] | None,
        capacity: int,
    ) -> None:
        self._topic = settings.kafka_topic
        self._is_ordered = is_ordered
        self._capacity = capacity
        self._partitions: dict[int, _Partition] = {}
        self._is_paused: bool | None = False
        """None where a new partition is not in the state of the others."""
        own = {
            "group.id": group,
            "enable.auto.commit": "false",
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": str(round(settings.lease * 1000)),
            "max.poll.interval.ms": "86400000",  # a thread that only polls; runs are limited by their own policies
        }
        shared = settings.kafka_settings(None if password is None else password())
        self._consumer: Any = confluent_kafka.Consumer({**own, **shared})
        self._is_subscribed = False

    def take(self, limit: int) -> list[Message]:
        if not self._is_subscribed:
            self._call(
                self._consumer.subscribe, [self._topic], on_assign=self._assigned, on_revoke=self._revoked,
                on_lost=self._lost,
            )  # fmt: skip
            self._is_subscribed = True
        waiting = sum(len(each.lanes) for each in self._partitions.values())
        self._pause(waiting >= self._capacity)
        # A poll also keeps the membership of the group and reports changes of partitions.
        for each in self._call(self._consumer.consume, max(1, self._capacity - waiting), 0.0 if waiting else 0.05):
            self._add(each)
        found: list[Message] = []
        for partition in self._partitions.values():
            found += partition.lanes.take(limit - len(found))
        return found

    def finish(self, messages: list[Message]) -> list[Message]:
        found, moved = [], {}
        for each in messages:
            partition: _Partition = each.token
            if partition.is_lost:
                continue  # its new owner finds the run in the journal
            offset = partition.finish(int(each.position.partition("/")[2]))
            if offset is not None:
                moved[partition.number] = offset
            following = partition.lanes.finish(each)
            if following is not None:
                found.append(following)
        if moved:
            offsets = [TopicPartition(self._topic, number, offset) for number, offset in moved.items()]
            self._call(self._consumer.commit, offsets=offsets, asynchronous=True)
        return found

    def keep(self, messages: list[Message]) -> None:
        """Renew the membership of the group while nothing is taken."""
        self._pause(True)
        for each in self._call(self._consumer.consume, 1, 0.0):
            self._add(each)

    def release(self, messages: list[Message]) -> None:
        """Closing the consumer gives its partitions back."""

    def lag(self) -> int:
        known = self._call(self._consumer.list_topics, self._topic, timeout=_SECONDS).topics[self._topic].partitions
        places = [TopicPartition(self._topic, number) for number in known]
        total = 0
        for each in self._call(self._consumer.committed, places, timeout=_SECONDS):
            low, high = self._call(self._consumer.get_watermark_offsets, each, timeout=_SECONDS)
            total += high - max(low, each.offset)  # a group without an offset has a negative one
        return total

    def close(self) -> None:
        self._consumer.close()

    def _add(self, message: Any) -> None:
        error = message.error()
        if error is not None:
            raise TopicUnavailable(f"the topic `{self._topic}`: Kafka: {error.str()}")
        partition = self._partitions.get(message.partition())
        if partition is None:
            return
        position = f"{message.partition()}/{message.offset()}"
        headers = {name: value for name, value in message.headers() or () if value is not None}
        given, key, value = headers.get("id"), message.key(), message.value() or b""
        partition.open[message.offset()] = False
        partition.lanes.add(
            Message(
                checked_id(None if given is None else given.decode(errors="replace"), f"{self._topic}/{position}"),
                value.decode(errors="surrogateescape"),
                None if key is None else key.decode(errors="surrogateescape"),
                position,
                partition,
            )
        )

    def _assigned(self, _consumer: object, places: list[TopicPartition]) -> None:
        for each in places:
            self._partitions[each.partition] = _Partition(each.partition, Lanes(self._is_ordered))
        self._is_paused = None

    def _revoked(self, _consumer: object, places: list[TopicPartition]) -> None:
        self._lost(_consumer, places)

    def _lost(self, _consumer: object, places: list[TopicPartition]) -> None:
        for each in places:
            partition = self._partitions.pop(each.partition, None)
            if partition is not None:
                partition.is_lost = True

    def _pause(self, is_paused: bool) -> None:
        if is_paused != self._is_paused:
            self._call(self._consumer.pause if is_paused else self._consumer.resume, self._consumer.assignment())
            self._is_paused = is_paused

    def _call(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        try:
            return call(*arguments, **named)
        except confluent_kafka.KafkaException as error:
            raise TopicUnavailable(f"the topic `{self._topic}`: Kafka: {error}") from None
