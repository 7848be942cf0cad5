"""Settings of topics: `[topics.NAME]`, and `[events]` for every topic that has no table of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from vesper.effects.redis_server import RedisAddress, require_redis
from vesper.effects.settings import ConfigError, Table

_UNUSED: Final = {
    "memory": ("stream", "timeout", "password_secret", "lease", "kafka"),
    "redis": ("kafka",),
    "outbox": ("stream", "timeout", "password_secret", "max_length", "key_ttl", "kafka"),
    "kafka": ("max_length", "key_ttl"),
}
"""Settings that a kind of topic does not have."""
_BROKERS: Final = re.compile(r"kafka://([^/@?#,]+:[0-9]{1,5}(?:,[^/@?#,]+:[0-9]{1,5})*)", re.ASCII)
_RESERVED: Final = frozenset(
    ("bootstrap.servers", "enable.auto.commit", "enable.auto.offset.store", "enable.idempotence", "group.id")
)
"""Settings of librdkafka that the promises of a topic rest on."""


@dataclass(frozen=True, slots=True)
class EventSettings:
    """Settings of one topic."""

    name: str
    kind: str
    """`memory`, `redis`, `outbox` or `kafka`."""
    address: RedisAddress | None
    """The server of a topic in Redis."""
    brokers: str
    """`HOST:PORT,…` of Kafka."""
    stream: str | None
    """Stream of Redis or topic of Kafka. Topics may share a stream: every entry names its topic."""
    max_length: int
    max_payload: int
    key_ttl: float
    timeout: float
    database: str | None
    """The database with the outbox; None: no event of class `txn`."""
    password_secret: str | None
    lease: float
    """Seconds after which the messages of a consumer that is silent go to another one."""
    options: tuple[tuple[str, str], ...]
    """Settings of librdkafka."""

    @classmethod
    def from_table(cls, name: str, table: Table) -> EventSettings:
        url = table.text("url")
        kind = {"memory:": "memory", "outbox:": "outbox"}.get(url, "kafka" if url.startswith("kafka:") else "redis")
        if kind == "redis" and not url.startswith(("redis:", "rediss:")):
            expected = "`memory:`, `outbox:`, `redis://HOST:PORT/0` or `kafka://HOST:PORT` is expected"
            raise table.error("url", expected)
        for other in _UNUSED[kind]:
            if other in table:
                raise table.error(other, f"a topic in {_PLACES[kind]} has no such setting")
        found = cls(
            name,
            kind,
            RedisAddress.from_table(table, url) if kind == "redis" else None,
            _brokers(table, url) if kind == "kafka" else "",
            table.text("stream") if "stream" in table else None,
            table.integer("max_length", 10_000 if kind == "memory" else 1_000_000, least=1),
            table.size("max_payload", 1 << 20),
            table.seconds("key_ttl", 86_400.0),
            table.seconds("timeout", 5.0),
            table.text("database") if "database" in table else None,
            table.text("password_secret") if "password_secret" in table else None,
            table.seconds("lease", 30.0),
            _options(table.table("kafka")),
        )
        table.done()
        _check(table, found)
        return found

    def of(self, topic: str) -> EventSettings:
        """Return the settings of `[events]` for one topic."""
        return replace(self, name=topic)

    @property
    def redis_stream(self) -> str:
        return self.stream or f"vesper:events:{self.name}"

    @property
    def kafka_topic(self) -> str:
        return self.stream or self.name

    def kafka_settings(self, password: str | None) -> Mapping[str, str]:
        """Return the settings of any client of the brokers."""
        secret = {} if password is None else {"sasl.password": password}
        return {"bootstrap.servers": self.brokers, "client.id": "vesper", **dict(self.options), **secret}


_PLACES: Final = {"memory": "memory", "redis": "Redis", "outbox": "an outbox", "kafka": "Kafka"}


def _check(table: Table, found: EventSettings) -> None:
    if found.kind == "redis":
        require_redis(table.where)
        if found.address is not None and found.address.password is not None and found.password_secret is not None:
            raise table.error("password_secret", "the password stands in `url` already")
    if found.kind == "outbox" and found.database is None:
        raise table.error("url", 'an outbox is a table of a database: add `database = "NAME"`')
    if not 0 < found.timeout <= 600:
        raise table.error("timeout", "more than nothing and at most 10 minutes is expected")
    if found.key_ttl < 1:
        raise table.error("key_ttl", "at least a second is expected")
    if not 1 <= found.lease <= 3600:
        raise table.error("lease", "at least a second and at most an hour is expected")


def _brokers(table: Table, url: str) -> str:
    found = _BROKERS.fullmatch(url)
    if found is None:
        raise table.error("url", "`kafka://HOST:PORT` is expected, further brokers after commas")
    try:
        import confluent_kafka  # noqa: F401  # when the settings are read, not at the first event
    except ImportError:
        needed = "`kafka://` needs the package confluent-kafka: pip install 'vesper[kafka]'"
        raise ConfigError(table.where, needed) from None
    return found[1]


def _options(table: Table) -> tuple[tuple[str, str], ...]:
    for name in table.names():
        if name in _RESERVED:
            raise table.error(name, "Vesper sets this itself")
    return tuple((name, table.text(name)) for name in table.names())
