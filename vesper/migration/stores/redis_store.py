"""Migration state in Redis.

A transaction reads immediately and buffers its writes. At its end one `MULTI … EXEC` sends them, under a `WATCH` of the
node's `turn`, which every transaction on the node increments: if another one committed first, Redis changes nothing,
and the work is repeated. If the reply to `EXEC` is lost, the result is unknown; the same batch, sent again, then finds
its number.

A transaction that lost once reserves the node for a moment, and later ones wait, so that none starves. The reservation
is only for fairness; `WATCH` alone ensures correctness.

All keys have one hash tag. Redis Cluster is not supported. A set takes 60 to 90 bytes of memory per fingerprint.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from vesper.migration.stores.redis_values import (
    PREFIX,
    Keys,
    damage_error,
    decode_text,
    key_of,
    line_of,
    number_and_time,
    parse_count,
    turn_and_text,
    warnings_of,
)
from vesper.migration.stores.store import Line, NodeKey, StoreAway, StoreError, Transaction, kind_text
from vesper.migration.stores.store_rules import (
    PROCESS_RETENTION_US,
    SECRET_BYTES,
    check_fingerprint,
    check_secret,
    next_line,
)

T = TypeVar("T")
FORMAT = 1
WAIT_SECONDS = 2.0
"""Timeout in seconds of a reply, and of the repetitions of a transaction that lost to others."""
CHUNK_SIZE = 10_000
_PAUSE_SECONDS = 0.005
_RESERVED_MS = 500
_DIVERGENCES_PER_TURN = 1 << 20
"""More than the number of divergences that a transaction can write."""
_FORMAT_KEY, _VERSIONS_KEY, _SECRET_KEY = f"{PREFIX}format", f"{PREFIX}versions", f"{PREFIX}secret"


class _ProcessClient:
    """The client of one process."""

    __slots__ = ("client", "pid")

    def __init__(self, client: Any) -> None:
        self.pid = os.getpid()
        self.client = client
        """Untyped: by the driver's types a reply may be text, and here all replies are bytes."""


_INHERITED: list[_ProcessClient] = []


class RedisMigrationStore:
    """The store in the Redis that `url` names: see `store.Store`."""

    def __init__(self, url: str) -> None:
        try:
            from redis import Redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError:
            raise StoreError(
                "migration state in Redis needs a package that is missing: pip install 'vesper[redis]'"
            ) from None
        # The driver must not retry: an EXEC with an unknown result has to reach our own code.
        times = {"socket_timeout": WAIT_SECONDS, "socket_connect_timeout": WAIT_SECONDS}
        self._make: Callable[[], Any] = lambda: Redis.from_url(url, retry=Retry(NoBackoff(), 0), **times)
        try:
            self._process_client = _ProcessClient(self._make())
            pool = self._process_client.client.connection_pool
            pool.connection_class(**pool.connection_kwargs)  # rejects unknown options in the address
        except (TypeError, ValueError):  # without the driver's message, which may contain the password
            raise StoreError(
                "this is no address of Redis: `redis://HOST:PORT/NUMBER`, `rediss://…` or `unix://…`, with options "
                "that there are, is expected"
            ) from None
        given = pool.connection_kwargs
        if given.get("decode_responses"):
            raise StoreError("the address of Redis asks for decoded answers (`decode_responses`): leave that away")
        place = given.get("path") or f"{given.get('host', 'localhost')}:{given.get('port', 6379)}"
        self._name = f"redis://{place}/{given.get('db', 0)}"

    @property
    def name(self) -> str:
        return self._name

    @property
    def _client(self) -> Any:
        """The client of this process.

        A child makes its own after a fork, which copies locks that other threads hold.
        """
        here = self._process_client
        if here.pid != os.getpid():
            _INHERITED.append(here)  # the sockets are the parent's
            here = self._process_client = _ProcessClient(self._make())
        return here.client

    def warnings(self) -> Sequence[str]:
        with self._translating_errors():
            return [f"{self._name}: {text}" for text in warnings_of(self._client)]

    def transact(self, key: NodeKey, work: Callable[[Transaction], T]) -> T:
        from redis.exceptions import WatchError

        keys = Keys(key)
        deadline = time.monotonic() + WAIT_SECONDS
        has_reserved = False
        with self._translating_errors(), self._client.pipeline() as pipeline:
            while True:
                change = _Change(pipeline, self._name, keys)
                if has_reserved or not change.is_reserved:
                    done = work(change)
                    try:
                        change.commit(has_reserved)
                    except WatchError as error:
                        if error.__context__ is not None:
                            raise  # the connection broke: the result is unknown
                        has_reserved = has_reserved or self._reserve(keys)
                    else:
                        return done
                pipeline.reset()
                if time.monotonic() > deadline:
                    raise StoreAway(
                        f"{self._name}: others were faster at {key.node} for {WAIT_SECONDS:g} s; nothing was done"
                    )
                time.sleep(random.uniform(0, _PAUSE_SECONDS))

    def _reserve(self, keys: Keys) -> bool:
        """Reserve the node unless it is reserved. The reservation expires by itself."""
        return bool(self._client.set(keys.reserved, 1, nx=True, px=_RESERVED_MS))

    def versions(self) -> Mapping[NodeKey, int]:
        with self._translating_errors():
            found = self._client.hgetall(_VERSIONS_KEY)
        return {key_of(decode_text(name, self._name)): parse_count(each, self._name) for name, each in found.items()}

    def read(self, key: NodeKey) -> str | None:
        with self._translating_errors():
            found = self._client.get(Keys(key).state)
        return None if found is None else decode_text(found, self._name)

    def states(self) -> Mapping[NodeKey, str | None]:
        found = self._read_each(lambda pipeline, keys: pipeline.get(keys.state))
        return {key: None if each is None else decode_text(each, self._name) for key, each in found.items()}

    def documents(self, name: str) -> Mapping[NodeKey, str]:
        found = self._read_each(lambda pipeline, keys: pipeline.hget(keys.documents, name))
        return {key: decode_text(each, self._name) for key, each in found.items() if each is not None}

    def histories(self, kind: str) -> Mapping[NodeKey, Sequence[Line]]:
        found = self._read_each(lambda pipeline, keys: pipeline.lrange(keys.history, 0, -1))
        text = kind_text(kind)
        return {
            key: [line for line in self._lines(each) if line.number == 1 or text in line.text]
            for key, each in found.items()
            if each
        }

    def _read_each(self, read: Callable[[Any, Keys], object]) -> dict[NodeKey, Any]:
        """Send one read for every node, and return the replies."""
        nodes = list(self.versions())
        with self._translating_errors(), self._client.pipeline(transaction=False) as pipeline:
            for key in nodes:
                read(pipeline, Keys(key))
            return dict(zip(nodes, pipeline.execute(), strict=True))

    def history(self, key: NodeKey) -> Sequence[Line]:
        with self._translating_errors():
            return self._lines(self._client.lrange(Keys(key).history, 0, -1))

    def _lines(self, found: list[bytes]) -> list[Line]:
        return [line_of(each, self._name) for each in found]

    def divergences(self, key: NodeKey) -> Sequence[str]:
        with self._translating_errors():
            return self._newest_first(self._client.hvals(Keys(key).divergences))

    def all_divergences(self) -> Mapping[NodeKey, Sequence[str]]:
        found = self._read_each(lambda pipeline, keys: pipeline.hvals(keys.divergences))
        return {key: self._newest_first(each) for key, each in found.items() if each}

    def _newest_first(self, found: list[bytes]) -> list[str]:
        return [text for _, text in sorted((turn_and_text(each, self._name) for each in found), reverse=True)]

    def paths(self, key: NodeKey) -> Mapping[str, str]:
        with self._translating_errors():
            found = self._client.hgetall(Keys(key).paths)
        return {decode_text(path, self._name): decode_text(found[path], self._name) for path in sorted(found)}

    def document(self, key: NodeKey, name: str) -> str | None:
        with self._translating_errors():
            found = self._client.hget(Keys(key).documents, name)
            return None if found is None else decode_text(found, self._name)

    def secret(self) -> bytes:
        with self._translating_errors():
            self._client.set(_SECRET_KEY, secrets.token_bytes(SECRET_BYTES), nx=True)
            return check_secret(self._client.get(_SECRET_KEY), self._name)

    def close(self) -> None:
        self._client.close()

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        """Translate errors of the driver into `StoreError` and `StoreAway`.

        Messages of the driver may contain an address with a password, so that only their kind is shown; replies of
        Redis are shown.
        """
        from redis import exceptions

        try:
            yield
        except (exceptions.ConnectionError, exceptions.TimeoutError, exceptions.WatchError) as error:
            # The driver raises WatchError also where the connection broke while a key was watched.
            kind = type(error.__context__ or error).__name__
            raise StoreAway(f"{self._name}: Redis cannot be reached or does not answer ({kind})") from error
        except exceptions.RedisError as error:
            raise self._error_of_reply(error) from error

    def _error_of_reply(self, error: Exception) -> StoreError:
        from redis import exceptions

        # The driver prepends the command, which contains the data.
        said = " ".join(str(error).rpartition("caused error: ")[2].split())[:300]
        if isinstance(error, exceptions.ReadOnlyError):
            return StoreAway(f"{self._name}: this Redis only reads now: it is a replica; nothing was done ({said})")
        if isinstance(error, exceptions.OutOfMemoryError):
            return StoreAway(f"{self._name}: Redis has no memory left (`maxmemory`); nothing was done. Make room")
        if "MISCONF" in said:
            return StoreAway(f"{self._name}: Redis cannot write to its disk; nothing was done ({said})")
        if "WRONGTYPE" in said:
            return damage_error(said, self._name)
        if "unknown command" in said:
            return StoreError(f"{self._name}: Redis 6.2 or newer is needed ({said})")
        return StoreError(f"{self._name}: the migration state cannot be used ({said})")


class _Set:
    """A set as the transaction sees it: its size in Redis, and the buffered changes."""

    __slots__ = ("added", "is_dropped", "removed", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.added: set[int] = set()
        self.removed: set[int] = set()
        self.is_dropped = False


class _Change:
    """One transaction on one node: see `store.Transaction`."""

    def __init__(self, pipeline: Any, name: str, keys: Keys) -> None:
        from redis.exceptions import WatchError

        self._watch_error = WatchError
        self._redis = pipeline
        self._name = name
        self._keys = keys
        pipeline.watch(keys.turn, _FORMAT_KEY)
        state, turn, found, reserved = pipeline.mget(keys.state, keys.turn, _FORMAT_KEY, keys.reserved)
        self.is_reserved = reserved is not None
        self._has_format = found is not None
        _check_format(found, name)
        self._turn = 0 if turn is None else parse_count(turn, name)
        self._state: str | None = None if state is None else decode_text(state, name)
        self._put_state: list[str] = []
        self._put_applied: dict[str, int] = {}
        self._put_divergences: dict[str, str] = {}
        self._put_paths: dict[str, str] = {}
        self._put_documents: dict[str, str] = {}
        self._is_cleared = False
        self._lines: list[Line] = []
        self._head: tuple[int, str] | None = None
        self._sets: dict[str, _Set] = {}

    def state(self) -> str | None:
        return self._state

    def put_state(self, text: str) -> None:
        self._state = text
        self._put_state.append(text)

    def applied(self, process: str) -> int:
        if process in self._put_applied:
            return self._put_applied[process]
        found = self._redis.hget(self._keys.processes, process)
        return 0 if found is None else number_and_time(found, self._name)[0]

    def put_applied(self, process: str, number: int) -> None:
        self._put_applied[process] = number

    def known(self, scope: str, fingerprints: Iterable[int]) -> set[int]:
        wanted = list(fingerprints)
        changed = self._set(scope)
        found = changed.added.intersection(wanted)
        if not changed.is_dropped and changed.size > len(changed.added):
            for chunk in _chunks(wanted):
                answers = self._redis.smismember(self._keys.sets + scope, list(map(_member, chunk)))
                found.update(each for each, is_member in zip(chunk, answers, strict=True) if is_member)
        return found - changed.removed

    def add(self, scope: str, fingerprints: Iterable[int]) -> None:
        wanted = set(fingerprints)
        new = wanted - self.known(scope, wanted)
        changed = self._set(scope)
        changed.removed -= new
        changed.added |= new
        changed.size += len(new)

    def remove(self, scope: str, fingerprint: int) -> None:
        if self.known(scope, [fingerprint]):
            changed = self._set(scope)
            changed.added.discard(fingerprint)
            changed.removed.add(fingerprint)
            changed.size -= 1

    def size(self, scope: str) -> int:
        return self._set(scope).size

    def drop(self, prefix: str) -> None:
        names = {decode_text(each, self._name) for each in self._redis.smembers(self._keys.scopes)}
        for scope in names.union(self._sets):
            if scope.startswith(prefix):
                self._sets[scope] = _Set(0)
                self._sets[scope].is_dropped = True

    def head(self) -> tuple[int, str]:
        if self._head is None:
            last = self._redis.lindex(self._keys.history, -1)
            line = None if last is None else line_of(last, self._name)
            self._head = (0, "") if line is None else (line.number, line.hash)
        return self._head

    def append(self, line: Line) -> None:
        self._head = next_line(self.head(), line, self._name)
        self._lines.append(line)

    def divergence(self, fingerprint: str) -> str | None:
        if fingerprint in self._put_divergences:
            return self._put_divergences[fingerprint]
        found = self._redis.hget(self._keys.divergences, fingerprint)
        return None if found is None else turn_and_text(found, self._name)[1]

    def put_divergence(self, fingerprint: str, text: str) -> None:
        self._put_divergences.pop(fingerprint, None)  # keeps the newest last
        self._put_divergences[fingerprint] = text

    def path(self, path: str) -> str | None:
        if path in self._put_paths:
            return self._put_paths[path]
        found = None if self._is_cleared else self._redis.hget(self._keys.paths, path)
        return None if found is None else decode_text(found, self._name)

    def put_path(self, path: str, text: str) -> None:
        self._put_paths[path] = text

    def document(self, name: str) -> str | None:
        if name in self._put_documents:
            return self._put_documents[name]
        found = None if self._is_cleared else self._redis.hget(self._keys.documents, name)
        return None if found is None else decode_text(found, self._name)

    def put_document(self, name: str, text: str) -> None:
        self._put_documents[name] = text

    def clear(self) -> None:
        self._is_cleared = True
        self._put_documents.clear()
        self._put_paths.clear()

    def commit(self, has_reserved: bool) -> None:
        """Send all buffered writes. Raises `WatchError` where another transaction committed first.

        Then nothing was written, or, without writes, the reads are not from one moment.
        """
        commands = [*self._commands()]
        if not commands:
            turn = self._redis.get(self._keys.turn)
            self._redis.reset()
            if self._turn != (0 if turn is None else parse_count(turn, self._name)):
                raise self._watch_error("another transaction was done meanwhile")
            return
        self._redis.multi()
        for each in commands:
            self._redis.execute_command(*each)
        if not self._has_format:
            self._redis.set(_FORMAT_KEY, FORMAT)
        self._redis.incr(self._keys.turn)
        if has_reserved:
            self._redis.delete(self._keys.reserved)
        self._redis.execute()

    def _commands(self) -> Iterator[tuple[Any, ...]]:
        keys = self._keys
        if self._put_state:
            yield "SET", keys.state, self._put_state[-1]
            yield "HINCRBY", _VERSIONS_KEY, keys.field, len(self._put_state)
        if self._put_applied:
            yield from self._batch_commands()
        for scope, changed in self._sets.items():
            yield from _set_commands(keys, scope, changed)
        if self._lines:
            yield "RPUSH", keys.history, *(json.dumps([each.number, each.text, each.hash]) for each in self._lines)
        for number, (fingerprint, text) in enumerate(self._put_divergences.items()):
            yield "HSET", keys.divergences, fingerprint, f"{self._turn * _DIVERGENCES_PER_TURN + number}\n{text}"
        if self._is_cleared:
            yield "UNLINK", keys.paths, keys.documents
        for path, text in self._put_paths.items():
            yield "HSET", keys.paths, path, text
        for name, text in self._put_documents.items():
            yield "HSET", keys.documents, name, text

    def _batch_commands(self) -> Iterator[tuple[Any, ...]]:
        """Yield the commands that store batch numbers, and that delete those of long-ended processes.

        Times are from the clock of Redis, which all processes share.
        """
        seconds, rest = self._redis.time()
        now_us = seconds * 10**6 + rest
        for process, number in self._put_applied.items():
            if not self._redis.hexists(self._keys.processes, process):
                found = self._redis.hgetall(self._keys.processes)
                limit = now_us - PROCESS_RETENTION_US
                old = [name for name, each in found.items() if number_and_time(each, self._name)[1] < limit]
                if old:
                    yield "HDEL", self._keys.processes, *old
            yield "HSET", self._keys.processes, process, f"{number} {now_us}"

    def _set(self, scope: str) -> _Set:
        if scope not in self._sets:
            self._sets[scope] = _Set(self._redis.scard(self._keys.sets + scope))
        return self._sets[scope]


def _set_commands(keys: Keys, scope: str, changed: _Set) -> Iterator[tuple[Any, ...]]:
    if changed.is_dropped:
        yield "UNLINK", keys.sets + scope
        if not changed.added:
            yield "SREM", keys.scopes, scope
    for chunk in _chunks(changed.removed - changed.added):
        yield "SREM", keys.sets + scope, *map(_member, chunk)
    for chunk in _chunks(changed.added):
        yield "SADD", keys.sets + scope, *map(_member, chunk)
    if changed.added:
        yield "SADD", keys.scopes, scope


def _chunks(fingerprints: Iterable[int]) -> Iterator[list[int]]:
    left = iter(fingerprints)
    while chunk := list(islice(left, CHUNK_SIZE)):
        yield chunk


def _member(fingerprint: int) -> bytes:
    return check_fingerprint(fingerprint).to_bytes(8, "big")


def _check_format(found: bytes | None, name: str) -> None:
    if found is not None and found != str(FORMAT).encode():
        raise StoreError(
            f"{name}: the migration state has the format {found[:20].decode(errors='replace')}, and this Vesper knows "
            f"{FORMAT}: a newer one made it; use that one, or another store"
        )
