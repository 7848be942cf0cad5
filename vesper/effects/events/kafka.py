"""A topic of Kafka.

A message has the event's payload (canonical JSON) as its value, `event_key` as its key, and the headers `id`,
`execution` and `published_at`. Events with one key are in one partition, in order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vesper.effects.events.event import Event
from vesper.effects.events.settings import EventSettings
from vesper.effects.performer import EffectFailed
from vesper.storage.per_process import PerProcess
from vesper.values.times import timestamp_text

if TYPE_CHECKING:
    from confluent_kafka import Producer


class KafkaTopic:
    """Publishes with `acks=all` and waits for each response. Safe in threads and after a fork."""

    def __init__(self, settings: EventSettings, password: Callable[[], str] | None) -> None:
        self._settings = settings
        self._password = password
        self._producer = PerProcess(self._connect)

    def publish(self, event: Event, payload: str, key: str | None, timeout: float | None) -> str:
        """Publish an event. Kafka does not recognise a repeated `key`; consumers do, by the event's id."""
        import confluent_kafka

        producer = self._producer.get()
        seconds = self._settings.timeout if timeout is None else min(timeout, self._settings.timeout)
        headers = {"id": event.id, "execution": event.execution, "published_at": timestamp_text(event.published_at)}
        errors: list[Any] = []
        try:
            producer.produce(
                self._settings.kafka_topic,
                payload.encode(),
                None if event.event_key is None else event.event_key.encode(),
                headers=[(name, text.encode()) for name, text in headers.items()],
                on_delivery=lambda error, _: errors.append(error),
            )
            producer.poll(0)
        except (confluent_kafka.KafkaException, BufferError) as error:
            raise self._failure("unavailable", str(error), may_have_happened=False) from None
        producer.flush(seconds)
        if not errors:
            raise self._failure("timeout", f"no answer within {seconds:g} s", may_have_happened=True)
        if errors[0] is not None:
            raise self._failure("unavailable", errors[0].str(), may_have_happened=True)
        return event.id

    def close(self) -> None:
        producer = self._producer.drop()
        if producer is not None:
            producer.flush(self._settings.timeout)

    def _connect(self) -> Producer:
        import confluent_kafka

        password = None if self._password is None else self._password()
        own = {
            "enable.idempotence": "true",
            "message.timeout.ms": str(round(self._settings.timeout * 1000)),
            "linger.ms": "0",
            "partitioner": "murmur2_random",  # the partitions that clients in Java choose
        }
        return confluent_kafka.Producer({**own, **self._settings.kafka_settings(password)})

    def _failure(self, code: str, why: str, may_have_happened: bool) -> EffectFailed:
        message = f"the topic `{self._settings.name}`: kafka://{self._settings.brokers}: {why[:200]}"
        return EffectFailed(code, message, may_have_happened=may_have_happened)
