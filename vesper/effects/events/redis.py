"""A topic that is a stream of Redis.

An entry has the fields `id`, `topic`, `payload` (canonical JSON), `execution`, `published_at`, and `event_key` where
there is one. The stream is kept to about `max_length` entries: a consumer that falls further behind misses events.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

from vesper.effects.events.event import Event
from vesper.effects.redis_server import Command, RedisAddress, RedisServer
from vesper.values.times import timestamp_text

# The stream first: where it refuses, no key is left behind that would make the next attempt a repeat.
_ONCE: Final = """\
local first = redis.call('GET', KEYS[1])
if first then return first end
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], '*', unpack(ARGV, 4))
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return ARGV[1]
"""


class RedisTopic:
    def __init__(
        self,
        address: RedisAddress,
        timeout: float,
        name: str,
        stream: str,
        max_length: int,
        key_ttl: float,
        password: Callable[[], str] | None,
    ) -> None:
        self._stream = stream
        self._max_length = max_length
        self._key_ttl_ms = max(1, round(key_ttl * 1000))
        self._server = RedisServer(address, timeout, f"the topic `{name}`", password)

    def publish(self, event: Event, payload: str, key: str | None, timeout: float | None) -> str:
        fields: Command = (
            "id", event.id,
            "topic", event.topic,
            "payload", payload,
            "execution", event.execution,
            "published_at", timestamp_text(event.published_at),
            *(() if event.event_key is None else ("event_key", event.event_key)),
        )  # fmt: skip
        if key is None:
            self._server.run_one(("XADD", self._stream, "MAXLEN", "~", self._max_length, "*", *fields), timeout)
            return event.id
        remembered = f"{self._stream}:key:{hashlib.sha256(f'{event.topic}:{key}'.encode()).hexdigest()}"
        command = ("EVAL", _ONCE, 2, remembered, self._stream, event.id, self._max_length, self._key_ttl_ms, *fields)
        first: bytes = self._server.run_one(command, timeout)
        return first.decode()

    def close(self) -> None:
        self._server.close()
