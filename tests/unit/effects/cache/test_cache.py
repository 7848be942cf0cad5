"""Caches in memory and in a real Redis: the same for a node."""

from __future__ import annotations

import multiprocessing
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
import redis

from tests.support.servers import Redis, free_port
from tests.unit.effects.ask_of import ask_of, failure, table
from vesper.effects.cache.memory import MemoryCache
from vesper.effects.cache.performer import CachePerformer, CacheSettings
from vesper.effects.settings import ConfigError
from vesper.values.types import INTEGER, STRING, ArrayOf, OptionalOf, Type, declared_type

HOUR = 3_600_000_000


def settings(**values: object) -> CacheSettings:
    return CacheSettings.from_table("main", table("caches.main", **values))


class _Node:
    """Asks as a node does."""

    def __init__(self, performer: CachePerformer) -> None:
        self.performer = performer

    def get(self, key: str, gives: Type, timeout: float | None = None) -> object:
        ask = ask_of("cache_get", {"cache": "main"}, {"key": key}, OptionalOf(gives), timeout=timeout)
        return self.performer.perform(ask)

    def put(self, key: str, value: Any, ttl_us: int = HOUR) -> object:
        fixed = {"cache": "main", "ttl_us": str(ttl_us)}
        return self.performer.perform(ask_of("cache_put", fixed, {"key": key, "value": value}))

    def delete(self, key: str) -> object:
        return self.performer.perform(ask_of("cache_delete", {"cache": "main"}, {"key": key}))


@pytest.fixture(params=["memory", "redis"])
def node(request: pytest.FixtureRequest) -> Iterator[_Node]:
    if request.param == "memory":
        found = settings(url="memory:", max_value="1 KiB")
    else:
        server: Redis = request.getfixturevalue("redis_server")
        found = settings(url=server.url, max_value="1 KiB", prefix=f"{request.node.name}:")
    performer = CachePerformer({"main": found})
    yield _Node(performer)
    performer.close()


def test_put_get_delete(node: _Node) -> None:
    order = declared_type("{total: decimal, tags: set<string>, by: map<integer, string>}")
    value = {"total": Decimal("12.50"), "tags": frozenset({"b", "a"}), "by": {2: "x"}}
    assert node.get("order:1", order) is None
    assert node.put("order:1", value) is True
    assert node.get("order:1", order) == value
    assert str(node.get("order:1", declared_type("{total: decimal}"))) == "{'total': Decimal('12.50')}"
    assert node.delete("order:1") is True
    assert node.delete("order:1") is False
    assert node.get("order:1", order) is None


def test_what_was_put_is_not_the_object_that_comes_out(node: _Node) -> None:
    numbers: list[int] = [1, 2]
    node.put("numbers", numbers)
    numbers.append(3)
    found = node.get("numbers", ArrayOf(INTEGER))
    assert found == [1, 2]
    assert node.get("numbers", ArrayOf(INTEGER)) is not found


def test_an_entry_ends(node: _Node) -> None:
    node.put("short", 1, ttl_us=20_000)
    node.put("long", 1)
    time.sleep(0.05)
    assert node.get("short", INTEGER) is None
    assert node.delete("short") is False
    assert node.get("long", INTEGER) == 1
    node.put("shortest", 1, ttl_us=1)  # less than Redis counts


def test_a_value_of_another_type_is_a_bad_response(node: _Node) -> None:
    node.put("name", "Ada")
    failed = failure("cache_get", lambda: node.get("name", INTEGER))
    assert (failed.code, failed.message) == (
        "bad_response",
        "what the cache `main` holds is no integer: wrong_type",
    )


def test_a_value_or_a_key_that_is_too_long_is_refused_whole(node: _Node) -> None:
    node.put("text", "old")
    failed = failure("cache_put", lambda: node.put("text", "x" * 2000))
    assert failed.message == "the value is over `max_value` of the cache `main`, 1,024 bytes"
    assert node.get("text", STRING) == "old"
    failed = failure("cache_get", lambda: node.get("é" * 600, STRING))
    assert "keys of up to 1,024 bytes" in failed.message


def test_keys_are_taken_as_they_are(node: _Node) -> None:
    keys = ["", " ", "a b", "a\r\nSET x 1", "\0", "*", "{tag}", "é", "😀", "../x", "a:b", "%s", "$(x)"]
    for index, key in enumerate(keys):
        node.put(key, index)
    assert [node.get(key, INTEGER) for key in keys] == list(range(len(keys)))
    assert node.get("x", INTEGER) is None


def test_threads_use_one_cache_at_once(node: _Node) -> None:
    problems: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for number in range(50):
                node.put(name, number)
                assert node.get(name, INTEGER) == number
        except BaseException as problem:  # noqa: BLE001
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(f"thread {index}",)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def _in_child(node: _Node, results: multiprocessing.Queue[object]) -> None:
    node.put("of the child", 1)
    results.put((node.get("before", INTEGER), node.get("of the child", INTEGER)))


def test_a_forked_process_has_connections_of_its_own(node: _Node, request: pytest.FixtureRequest) -> None:
    node.put("before", 7)
    fork = multiprocessing.get_context("fork")
    results: multiprocessing.Queue[object] = fork.Queue()
    child = fork.Process(target=_in_child, args=(node, results))
    child.start()
    is_shared = "redis" in request.node.name
    assert results.get(timeout=30) == ((7 if is_shared else None), 1)
    child.join()
    assert node.get("of the child", INTEGER) == (1 if is_shared else None)
    assert node.get("before", INTEGER) == 7


def test_nothing_heavy_is_loaded_before_it_is_used() -> None:
    modules = "cache, events, files, secrets, custom"
    program = f"from vesper.effects import {modules}; import sys; print({{'redis', 'asyncio'}} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


def test_it_may_be_used_again_after_it_was_closed(node: _Node) -> None:
    node.put("x", 1)
    node.performer.close()
    node.put("y", 2)
    assert node.get("y", INTEGER) == 2


def test_no_cache_of_that_name() -> None:
    failed = failure("cache_get", lambda: _Node(CachePerformer({})).get("x", INTEGER))
    assert failed.message == "no cache `main` is configured: add [caches.main] to vesper.toml"


# -- memory ---------------------------------------------------------------------------------------


def test_what_was_used_longest_ago_goes_first() -> None:
    cache = MemoryCache(3, 1 << 20)
    for key in "abc":
        cache.put(key, "1", HOUR, None)
    cache.get("a", 10, None)
    cache.put("d", "1", HOUR, None)
    assert [key for key in "abcd" if cache.get(key, 10, None)] == ["a", "c", "d"]


def test_bytes_are_bounded() -> None:
    cache = MemoryCache(1000, 10_000)
    for index in range(100):
        cache.put(f"{index:02}", "x" * 998, HOUR, None)  # 1,200 each, with what Python needs
    assert sum(cache.get(f"{index:02}", 1000, None) is not None for index in range(100)) == 8
    cache.put("99", "y", HOUR, None)  # replaced, and what it held is free again
    cache.put("100", "x" * 998, HOUR, None)
    assert cache.get("99", 1000, None) == "y"


# -- Redis ----------------------------------------------------------------------------------------


def test_the_text_in_redis_is_plain_json(redis_server: Redis) -> None:
    node = _Node(CachePerformer({"main": settings(url=redis_server.url, prefix="shared:")}))
    with redis.Redis.from_url(redis_server.url) as client:
        node.put("rates", {"EUR": Decimal("1.10")})
        assert client.get("shared:rates") == b'{"EUR":"1.10"}'
        client.set("shared:other", '{"EUR": 1.25}')
        assert node.get("other", declared_type("map<string, decimal>")) == {"EUR": Decimal("1.25")}
        node.put("kept", 1, ttl_us=HOUR)
        assert 3_500_000 < client.pttl("shared:kept") <= 3_600_000


def test_hostile_values_in_redis_are_bad_responses(redis_server: Redis) -> None:
    node = _Node(CachePerformer({"main": settings(url=redis_server.url, prefix="hostile:", max_value="64 KiB")}))
    with redis.Redis.from_url(redis_server.url) as client:
        client.set("hostile:large", b'"' + b"x" * 5_000_000 + b'"')
        client.set("hostile:bytes", b"\xff\xfe")
        client.set("hostile:empty", b"")
        client.set("hostile:pickle", b"cos\nsystem\n(S'true'\ntR.")
        client.lpush("hostile:list", "1")
    says = {"large": "is over 65,536 bytes", "bytes": "no UTF-8", "empty": "not JSON", "pickle": "not JSON"}
    for key, message in {**says, "list": "no text: WRONGTYPE"}.items():
        failed = failure("cache_get", lambda key=key: node.get(key, STRING))  # type: ignore[misc]
        assert (failed.code, message in failed.message) == ("bad_response", True)


def test_redis_that_is_away_is_unavailable() -> None:
    port = free_port()
    node = _Node(CachePerformer({"main": settings(url=f"redis://user:hunter22@127.0.0.1:{port}/0")}))
    failed = failure("cache_get", lambda: node.get("x", INTEGER))
    assert failed.code == "unavailable"
    assert f"redis://127.0.0.1:{port}/0 cannot be used" in failed.message
    assert "hunter22" not in failed.message


def test_redis_that_goes_away_and_comes_back() -> None:
    server = Redis()
    node = _Node(CachePerformer({"main": settings(url=server.url)}))
    assert node.put("x", 1) is True
    server.stop(hard=True)
    assert failure("cache_get", lambda: node.get("x", INTEGER)).code == "unavailable"
    server.start()
    assert node.get("x", INTEGER) is None
    server.stop(hard=True)
    server.start()
    assert node.get("x", INTEGER) is None  # on the connection that the server has closed nothing was sent
    server.remove()


def test_redis_that_does_not_answer_is_a_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        node = _Node(CachePerformer({"main": settings(url=f"redis://127.0.0.1:{port}/0", timeout="300ms")}))
        begun = time.monotonic()
        failed = failure("cache_get", lambda: node.get("x", INTEGER, timeout=60))
        assert failed.code == "timeout"
        assert time.monotonic() - begun < 20


def test_the_time_of_an_ask_is_shorter_than_that_of_the_cache(redis_server: Redis) -> None:
    node = _Node(CachePerformer({"main": settings(url=redis_server.url, timeout="60s")}))
    node.put("slow", 1)
    with redis.Redis.from_url(redis_server.url) as client:
        client.client_pause(1_000)
        begun = time.monotonic()
        failed = failure("cache_get", lambda: node.get("slow", INTEGER, timeout=0.1))
        assert (failed.code, "0.1 s" in failed.message) == ("timeout", True)
        assert time.monotonic() - begun < 20
        client.client_unpause()
    assert node.get("slow", INTEGER) == 1  # the late answer is not taken for that of the next command


def test_a_password_comes_from_the_secrets(redis_server: Redis) -> None:
    asked: list[str] = []

    def secret(name: str) -> str:
        asked.append(name)
        return "letmein-123"

    with redis.Redis.from_url(redis_server.url) as client:
        client.acl_setuser("cacher", enabled=True, passwords=["+letmein-123"], keys=["*"], commands=["+@all"])
        url = redis_server.url.replace("redis://", "redis://cacher@")
        found = settings(url=url, password_secret="redis_password")
        node = _Node(CachePerformer({"main": found}, secret))
        assert node.put("x", 1) is True
        assert asked == ["redis_password"]
        wrong = _Node(CachePerformer({"main": found}, lambda _: "wrong-password"))
        failed = failure("cache_put", lambda: wrong.put("x", 1))
        assert failed.code == "unavailable"
        assert "wrong-password" not in failed.message
        client.acl_deluser("cacher")


def test_what_redis_refuses_is_unavailable(redis_server: Redis) -> None:
    with redis.Redis.from_url(redis_server.url) as client:
        client.acl_setuser("reader", enabled=True, nopass=True, keys=["*"], commands=["+@read", "+multi", "+exec"])
        node = _Node(CachePerformer({"main": settings(url=redis_server.url.replace("redis://", "redis://reader:x@"))}))
        failed = failure("cache_put", lambda: node.put("x", 1))
        assert failed.code == "unavailable"
        assert "refuses" in failed.message
        client.acl_deluser("reader")


# -- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values, says",
    [
        ({}, "`url` is missing"),
        ({"url": "memcached://x"}, "`memory:` or `redis://host:6379/0`"),
        ({"url": "redis:///0"}, "`memory:` or `redis://host:6379/0`"),
        ({"url": "redis://host:port/0"}, "`memory:` or `redis://host:6379/0`"),
        ({"url": "redis://host/" + "9" * 5000}, "`memory:` or `redis://host:6379/0`"),
        ({"url": "redis://[::1/0"}, "`memory:` or `redis://host:6379/0`"),
        ({"url": "redis://host/zero"}, "`memory:` or `redis://host:6379/0`"),
        ({"url": "redis://:s3cret@host/0?socket_timeout=9"}, "the option `socket_timeout` cannot be used"),
        ({"url": "rediss://host/0?ssl_cert_reqs=none"}, "the option `ssl_cert_reqs` cannot be used"),
        ({"url": "redis://:s3cret#x@host/0"}, "`memory:` or"),
        ({"url": "redis://host", "max_entries": 5}, "set `maxmemory` there"),
        ({"url": "memory:", "prefix": "x"}, "a cache in memory has no such setting"),
        ({"url": "memory:", "max_entrys": 5}, "did you mean `max_entries`?"),
        ({"url": "memory:", "max_entries": 0}, "a number from 1"),
        ({"url": "memory:", "max_bytes": "1 MiB"}, "would not fit"),
        ({"url": "redis://host", "timeout": "0s"}, "more than nothing"),
        ({"url": "redis://:s3cret@host", "password_secret": "x"}, "stands in `url` already"),
    ],
)
def test_settings_that_cannot_be_used(values: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings(**values)
    assert str(refused.value).startswith("vesper.toml: caches.main")
    assert says in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_redis_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(ConfigError) as refused:
        settings(url="redis://host")
    assert "pip install 'vesper[redis]'" in str(refused.value)
    settings(url="memory:")


def test_settings_show_no_password() -> None:
    assert "s3cret" not in repr(settings(url="redis://:s3cret@host/0"))
