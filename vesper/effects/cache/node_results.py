"""Results of nodes in Redis, shared by processes: bytes with a time to live, and locks that expire."""

from __future__ import annotations

import os
from typing import Any

from vesper.cache.results import SharedAway
from vesper.effects.performer import EffectFailed
from vesper.effects.redis_server import RedisServer

# Deletes the lock only where it holds this token: it may have expired, and another process may hold it now.
_UNLOCK = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
_MAX_BYTES = 16 << 20


class RedisResults:
    def __init__(self, server: RedisServer, prefix: str) -> None:
        self._server = server
        self._prefix = prefix

    def find(self, key: str) -> bytes | None:
        found = self._run("GET", f"{self._prefix}{key}")
        return found if isinstance(found, bytes) else None

    def put(self, key: str, data: bytes, ttl: float) -> None:
        if len(data) <= _MAX_BYTES:
            self._run("SET", f"{self._prefix}{key}", data, "PX", max(1, round(ttl * 1000)))

    def lock(self, key: str, seconds: float) -> str | None:
        token = os.urandom(16).hex()
        answer = self._run("SET", f"{self._prefix}{key}:lock", token, "NX", "PX", max(1, round(seconds * 1000)))
        return None if answer is None else token

    def unlock(self, key: str, token: str) -> None:
        self._run("EVAL", _UNLOCK, 1, f"{self._prefix}{key}:lock", token)

    def size(self) -> int:
        """Return the number of results, without locks."""
        return sum(not each.endswith(b":lock") for each in self._keys())

    def clear(self) -> int:
        """Remove all results and return their number."""
        keys = self._keys()
        for first in range(0, len(keys), 500):
            self._run("UNLINK", *keys[first : first + 500])
        return sum(not each.endswith(b":lock") for each in keys)

    def _keys(self) -> list[bytes]:
        escaped = "".join(f"\\{each}" if each in "*?[]\\" else each for each in self._prefix)
        found: set[bytes] = set()
        cursor: bytes | int = 0
        while True:
            cursor, keys = self._run("SCAN", cursor, "MATCH", f"{escaped}*", "COUNT", 1000)
            found.update(keys)
            if int(cursor) == 0:
                return sorted(found)

    def _run(self, *command: str | bytes | int) -> Any:
        try:
            return self._server.run_one(command, None)
        except EffectFailed as problem:
            raise SharedAway(str(problem)) from None
