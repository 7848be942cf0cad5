"""The places that messages come from, each by the broker's own means."""

from __future__ import annotations

from vesper.host.host import Host
from vesper.topics.message import Source


def open_source(host: Host, topic: str, group: str, is_ordered: bool = True, capacity: int = 1) -> Source:
    """Return the source of a group. Raises `EffectFailed` for a topic that is not configured.

    `capacity` limits messages of Kafka and of memory that wait in this process.
    """
    topics = host.event_topics()
    settings = topics.settings_of(topic)
    match settings.kind:
        case "redis":
            from vesper.topics.sources.redis import RedisSource

            return RedisSource(settings, group, is_ordered, topics.password_of(settings))
        case "outbox":
            from vesper.topics.sources.outbox import OutboxSource

            is_sqlite = host.config.parts.databases[settings.database or ""].is_sqlite
            return OutboxSource(settings, group, is_ordered, topics, is_sqlite)
        case "kafka":
            from vesper.topics.sources.kafka import KafkaSource

            return KafkaSource(settings, group, is_ordered, topics.password_of(settings), capacity)
        case _:
            from vesper.topics.sources.memory import MemorySource

            return MemorySource(topics, topic, is_ordered, capacity)
