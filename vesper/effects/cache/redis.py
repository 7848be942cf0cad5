"""A cache in Redis, which processes share. An entry is a string under `prefix` and key, with a time to live."""

from __future__ import annotations

from collections.abc import Callable

from vesper.effects.performer import EffectFailed
from vesper.effects.redis_server import RedisAddress, RedisServer


class RedisCache:
    def __init__(
        self, address: RedisAddress, timeout: float, name: str, prefix: str, password: Callable[[], str] | None
    ) -> None:
        self._name = name
        self._prefix = prefix
        self._server = RedisServer(address, timeout, f"the cache `{name}`", password)

    def get(self, key: str, limit: int, timeout: float | None) -> str | None:
        place = self._prefix + key
        # GETRANGE reads no more than may be used of any value; it does not tell an empty one from none.
        commands = [("MULTI",), ("EXISTS", place), ("GETRANGE", place, 0, limit), ("EXEC",)]
        is_there, found = self._server.check_answer(self._server.run(commands, timeout)[3])
        if isinstance(found, Exception):
            raise EffectFailed("bad_response", f"what the cache `{self._name}` holds is no text: {found}")
        if not is_there:
            return None
        if len(found) > limit:
            raise EffectFailed("bad_response", f"what the cache `{self._name}` holds is over {limit:,} bytes")
        try:
            text: str = found.decode("utf-8")
        except UnicodeDecodeError:
            raise EffectFailed("bad_response", f"what the cache `{self._name}` holds is no UTF-8") from None
        return text

    def put(self, key: str, text: str, ttl_us: int, timeout: float | None) -> None:
        milliseconds = max(1, -(-ttl_us // 1000))  # Redis counts no less; an entry never ends early
        self._server.run_one(("SET", self._prefix + key, text, "PX", milliseconds), timeout)

    def delete(self, key: str, timeout: float | None) -> bool:
        return bool(self._server.run_one(("DEL", self._prefix + key), timeout) == 1)

    def close(self) -> None:
        self._server.close()
