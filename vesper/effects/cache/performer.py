"""Caches: `cache_get`, `cache_put` and `cache_delete`, in the process or in Redis.

Both kinds hold the same texts (`stored_json`), so that a node cannot tell which one it uses: a value that is read is
never the object that was stored, and is checked against the type that the step declares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from vesper.effects.cache.memory import MemoryCache
from vesper.effects.cache.redis import RedisCache
from vesper.effects.performer import Ask, EffectFailed, no_secret
from vesper.effects.redis_server import RedisAddress, require_redis
from vesper.effects.settings import Table
from vesper.effects.stored_json import TooLong, stored_text, stored_value

_MAX_KEY_BYTES = 1024
_ROOM = 4096
"""For the key of an entry and what Python needs for it."""


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """`[caches.NAME]`."""

    name: str
    address: RedisAddress | None
    """None: in the memory of each process."""
    max_entries: int
    max_bytes: int
    """Of a cache in memory: the texts of all keys and values together."""
    max_value: int
    prefix: str
    timeout: float
    password_secret: str | None

    @classmethod
    def from_table(cls, name: str, table: Table) -> CacheSettings:
        url = table.text("url")
        address = None if url == "memory:" else RedisAddress.from_table(table, url)
        max_value = table.size("max_value", 1 << 20)
        if address is None:
            for other in ("prefix", "timeout", "password_secret"):
                if other in table:
                    raise table.error(other, "a cache in memory has no such setting")
        else:
            require_redis(table.where)
            for other in ("max_entries", "max_bytes"):
                if other in table:
                    raise table.error(other, "Redis itself bounds its memory: set `maxmemory` there")
            if address.password is not None and "password_secret" in table:
                raise table.error("password_secret", "the password stands in `url` already")
        found = cls(
            name,
            address,
            table.integer("max_entries", 10_000, least=1),
            table.size("max_bytes", 64 << 20),
            max_value,
            table.text("prefix", f"vesper:cache:{name}:"),
            table.seconds("timeout", 2.0),
            table.text("password_secret") if "password_secret" in table else None,
        )
        table.done()
        if not 0 < found.timeout <= 600:
            raise table.error("timeout", "more than nothing and at most 10 minutes is expected")
        if address is None and found.max_bytes < max_value + _ROOM:
            raise table.error("max_bytes", f"one value may have `max_value`, {max_value:,} bytes, and would not fit")
        return found


class Cache(Protocol):
    """A store of texts by key. `limit` is the largest number of bytes of a text that is read."""

    def get(self, key: str, limit: int, timeout: float | None) -> str | None: ...
    def put(self, key: str, text: str, ttl_us: int, timeout: float | None) -> None: ...
    def delete(self, key: str, timeout: float | None) -> bool: ...
    def close(self) -> None: ...


class CachePerformer:
    """Performs the effects of all configured caches."""

    def __init__(self, settings: Mapping[str, CacheSettings], secret: Callable[[str], str] = no_secret) -> None:
        self._settings = dict(settings)
        self._caches = {name: _open_cache(each, secret) for name, each in self._settings.items()}

    def perform(self, ask: Ask) -> object:
        name = ask.fixed["cache"]
        cache, settings = self._caches.get(name), self._settings.get(name)
        if cache is None or settings is None:
            raise EffectFailed("unavailable", f"no cache `{name}` is configured: add [caches.{name}] to vesper.toml")
        key = ask.arguments["key"]
        assert isinstance(key, str)
        if len(key.encode()) > _MAX_KEY_BYTES:
            raise EffectFailed("invalid_argument", f"the cache `{name}` takes keys of up to {_MAX_KEY_BYTES:,} bytes")
        match ask.effect:
            case "cache_get":
                text = cache.get(key, settings.max_value, ask.timeout)
                return None if text is None else stored_value(ask.gives, text, f"what the cache `{name}` holds")
            case "cache_put":
                try:
                    text = stored_text(ask.arguments["value"], settings.max_value)
                except TooLong:
                    message = f"the value is over `max_value` of the cache `{name}`, {settings.max_value:,} bytes"
                    raise EffectFailed("invalid_argument", message) from None
                cache.put(key, text, int(ask.fixed["ttl_us"]), ask.timeout)
                return True
            case "cache_delete":
                return cache.delete(key, ask.timeout)
            case _:
                raise ValueError(f"a cache does not perform {ask.effect}")

    def probe(self, ask: Ask) -> object:
        raise EffectFailed("unavailable", f"{ask.effect} is of class `read`: it is done again, and never probed")

    def close(self) -> None:
        for cache in self._caches.values():
            cache.close()


def _open_cache(settings: CacheSettings, secret: Callable[[str], str]) -> Cache:
    if settings.address is None:
        return MemoryCache(settings.max_entries, settings.max_bytes)
    named = settings.password_secret
    password = None if named is None else lambda: secret(named)
    return RedisCache(settings.address, settings.timeout, settings.name, settings.prefix, password)
