"""The state in Redis: it decides as the machines do, over processes, and says so when it cannot."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import signal
import socket
import threading
import time
import warnings
from collections.abc import Iterator

import pytest
import redis

from tests.proofs.policies.reference.gate import Admitted, Rejected, Released, Waiting
from tests.support.servers import Redis, free_port
from tests.support.shared_limits import Admission, ClockedRedis, MemoryPolicyState, RedisPolicyState
from tests.unit.policies.crowds import (
    SECOND,
    StillClock,
    at_once,
    breaker_under_a_crowd,
    most_in_a_window,
    most_inside_a_room,
)
from vesper.policies.settings import MAX_US, Policy

ROOM: Policy = {"concurrency": 2}
RATE: Policy = {"rate_limit": 100, "rate_per_us": SECOND}
BREAKER: Policy = {"breaker_failures": 2, "breaker_within_us": SECOND, "breaker_open_us": SECOND}
NOW = 1_790_000_000_000_000
_NUMBERS = itertools.count()


def new_name() -> str:
    return f"test {next(_NUMBERS)}"


@pytest.fixture
def clocked(redis_server: Redis) -> Iterator[ClockedRedis]:
    state = ClockedRedis(redis_server.url, NOW)
    yield state
    state.close()


@pytest.fixture
def shared(redis_server: Redis) -> Iterator[RedisPolicyState]:
    state = RedisPolicyState(redis_server.url, on_store_failure="refuse", timeout=30)
    yield state
    state.close()


def summary(admission: Admission) -> tuple[str, str, int]:
    decision = admission.decision
    by = "" if isinstance(decision, Admitted) else decision.by
    return decision.decision, by, decision.wait_us


@pytest.mark.parametrize(
    "policy",
    [
        {"rate_limit": 1_000_000_000, "rate_per_us": MAX_US, "rate_burst": 999_999_999},
        {"rate_limit": 999_999_937, "rate_per_us": MAX_US - 1},
        {"rate_limit": 7, "rate_per_us": MAX_US},
        {"breaker_failures": 1, "breaker_within_us": MAX_US, "breaker_open_us": MAX_US, "timeout_us": MAX_US},
    ],
)
def test_the_largest_numbers_stay_exact(clocked: ClockedRedis, policy: Policy) -> None:
    memory, name = MemoryPolicyState(), new_name()
    for number in range(5):
        clocked.at_us = NOW + number
        now_us, deadline_us = NOW + number, 10**16
        one, other = (state.acquire(name, policy, now_us, deadline_us) for state in (clocked, memory))
        assert summary(one) == summary(other)
        for state, admission in ((clocked, one), (memory, other)):
            if admission.token is not None and number % 2:
                state.release(admission.token, "timeout", now_us)


def test_new_numbers_of_a_rate_hold_for_what_was_granted(clocked: ClockedRedis) -> None:
    memory, name = MemoryPolicyState(), new_name()
    for policy in (
        {"rate_limit": 3, "rate_per_us": 10},
        {"rate_limit": 7, "rate_per_us": 100},
        {"rate_limit": 7, "rate_per_us": 100},
        {"rate_limit": 3, "rate_per_us": 10},
    ):
        one, other = (state.acquire(name, policy, NOW, NOW + SECOND) for state in (clocked, memory))
        assert summary(one) == summary(other)


def test_two_states_share_and_names_do_not(redis_server: Redis, shared: RedisPolicyState) -> None:
    other, name = RedisPolicyState(redis_server.url, on_store_failure="refuse", timeout=30), new_name()
    tokens = [state.acquire(name, ROOM, 0).token for state in (shared, other)]
    waiting = shared.acquire(name, ROOM, 0)
    assert isinstance(waiting.decision, Waiting)
    assert isinstance(shared.acquire(new_name(), ROOM, 0).decision, Admitted)
    assert tokens[1] is not None
    other.release(tokens[1], None, 0)
    assert isinstance(shared.acquire(name, ROOM, 0, waiting=waiting.token).decision, Admitted)
    other.close()


def test_prefixes_keep_states_apart(redis_server: Redis, shared: RedisPolicyState) -> None:
    name = new_name()
    for _ in range(2):
        shared.acquire(name, ROOM, 0)
    apart = RedisPolicyState(redis_server.url, prefix="another:", on_store_failure="refuse", timeout=30)
    assert isinstance(apart.acquire(name, ROOM, 0).decision, Admitted)
    apart.close()


def test_times_are_those_of_the_caller(shared: RedisPolicyState) -> None:
    name = new_name()
    assert shared.acquire(name, RATE, 5).decision == Admitted(5, 0)
    second = shared.acquire(name, RATE, 7).decision
    assert isinstance(second, Admitted)
    assert second.at_us == 7 + second.wait_us
    assert second.wait_us <= 10_000


def test_a_crowd_is_given_moments_one_by_one(shared: RedisPolicyState) -> None:
    name = new_name()

    def one(_: int) -> list[int]:
        found = []
        for _ in range(5):
            admission = shared.acquire(name, RATE, 0, 10**9)
            assert isinstance(admission.decision, Admitted)
            assert admission.token is not None
            found.append(admission.token.admitted_us + admission.decision.wait_us)
        return found

    moments = [at for each in at_once(64, one) for at in each]
    assert len(set(moments)) == 320
    assert most_in_a_window(moments, SECOND) <= 101
    assert max(moments) - min(moments) >= 319 * 10_000


def test_a_breaker_under_a_crowd_opens_once_and_probes_once(clocked: ClockedRedis) -> None:
    class OfTheTest(StillClock):
        def sleep_us(self, us: int) -> None:
            super().sleep_us(us)
            clocked.at_us = NOW + self.now_us()

    assert breaker_under_a_crowd(clocked, new_name(), 64, OfTheTest()) == []


def test_a_room_is_never_fuller_than_it_may_be_and_all_get_in(shared: RedisPolicyState) -> None:
    assert most_inside_a_room(shared, new_name(), 32, 3) <= 3


def test_a_forked_child_shares_the_limits_and_not_the_connection(shared: RedisPolicyState) -> None:
    name = new_name()
    for _ in range(2):
        shared.acquire(name, ROOM, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from 3.12 on, where other tests left threads
        child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(0 if all(isinstance(shared.acquire(name, ROOM, 0).decision, Waiting) for _ in range(50)) else 1)
    answers = [type(shared.acquire(name, ROOM, 0).decision) for _ in range(50)]
    assert os.waitpid(child, 0)[1] == 0
    assert answers == [Waiting] * 50


def test_every_key_ends_and_none_too_early(redis_server: Redis, shared: RedisPolicyState) -> None:
    name = new_name()
    policy: Policy = {**ROOM, **RATE, "breaker_failures": 5, "breaker_within_us": 3_600 * SECOND}
    policy = {**policy, "breaker_open_us": 7_200 * SECOND, "timeout_us": SECOND}
    tokens = [shared.acquire(name, policy, 0, 10**9) for _ in range(3)]
    assert tokens[0].token is not None
    shared.release(tokens[0].token, "timeout", 0)
    shared.acquire(name, {**ROOM, "timeout_us": 1}, 0, 10)
    client = redis.Redis.from_url(redis_server.url)
    keys = sorted(key.decode() for key in client.scan_iter(f"vesper:policy:{{{name}}}:*"))
    assert [key.rpartition(":")[2] for key in keys] == ["failures", "inside", "kept", "queue", "state"]
    assert all(7_200_000 < client.pttl(key) <= 7_260_000 for key in keys)
    client.close()


def test_a_server_that_was_started_anew_has_forgotten_and_goes_on() -> None:
    server = Redis()
    try:
        state = RedisPolicyState(server.url, on_store_failure="refuse", timeout=30)
        tokens = [state.acquire("n", ROOM, 0).token for _ in range(2)]
        server.stop(hard=True)
        server.start()
        assert isinstance(state.acquire("n", ROOM, 0).decision, Admitted)
        assert tokens[0] is not None
        assert state.release(tokens[0], "timeout", 0) == Released("none")
        state.close()
    finally:
        server.remove()


def test_without_redis_limits_hold_in_the_process_and_it_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "vesper.policies")
    server = Redis()
    try:
        state = RedisPolicyState(server.url, timeout=30, pause=0)
        kept = state.acquire("n", ROOM, 0)
        assert kept.token is not None
        server.stop(hard=True)
        local = [state.acquire("n", ROOM, 0) for _ in range(3)]
        assert [type(each.decision) for each in local] == [Admitted, Admitted, Waiting]
        assert state.release(kept.token, "timeout", 0) == Released("none")
        assert local[0].token is not None
        state.release(local[0].token, None, 0)
        assert isinstance(state.acquire("n", ROOM, 0, waiting=local[2].token).decision, Admitted)
        warned = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
        assert warned == [
            "the policies' Redis cannot be asked (ConnectionError): limits hold in each process alone until it answers"
        ]
        server.start()
        assert isinstance(state.acquire("n", ROOM, 0).decision, Admitted)
        assert caplog.records[-1].getMessage() == "the policies' Redis answers again"
        state.close()
    finally:
        server.remove()


def test_a_store_that_must_be_asked_refuses_when_it_cannot_be(caplog: pytest.LogCaptureFixture) -> None:
    url = f"redis://:hidden-word@127.0.0.1:{free_port()}/0"
    state = RedisPolicyState(url, on_store_failure="refuse")
    rejected = Admission(Rejected("store", SECOND + 5, SECOND), None)
    assert at_once(16, lambda _: state.acquire("n", ROOM, 5)) == [rejected] * 16
    assert isinstance(state.acquire("n", {}, 5).decision, Admitted), "who has no limits needs no store"
    assert len(caplog.records) == 1
    assert "effects are refused" in caplog.text
    assert "hidden-word" not in caplog.text
    state.close()


def test_after_a_failure_redis_is_left_alone_for_a_while() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(20)
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        state = RedisPolicyState(url, on_store_failure="refuse", timeout=0.05, pause=0.5)
        for _ in range(10):
            assert isinstance(state.acquire("n", ROOM, 0).decision, Rejected)
        silent.accept()[0].close()
        silent.setblocking(False)
        with pytest.raises(BlockingIOError):
            silent.accept()
        time.sleep(0.6)
        state.acquire("n", ROOM, 0)
        silent.settimeout(20)
        silent.accept()[0].close()
        state.close()


@pytest.mark.parametrize(
    "frame",
    [
        b"$-2\r\n",
        b"?\r\n",
        b"*99999999999999999999\r\n",
        b"$999999999999\r\n",
        b"*1\r\n" * 50,
        b"\xff\xff\r\n",
        b":\r\n",
        b"$3\r\nabcde",
        b"*4\r\n+admitted\r\n+\r\n+x\r\n+1\r\n",
        b"*1\r\n+admitted\r\n",
        b"-ERR no\r\n",
    ],
)
def test_a_hostile_reply_is_a_failure(frame: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hostile:

        def serve() -> None:
            with hostile.accept()[0] as connection:
                connection.recv(65_536)
                connection.sendall(frame)
                with contextlib.suppress(ConnectionError):
                    connection.recv(65_536)

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        url = f"redis://127.0.0.1:{hostile.getsockname()[1]}/0"
        state = RedisPolicyState(url, on_store_failure="refuse", timeout=20)
        assert isinstance(state.acquire("n", ROOM, 0).decision, Rejected)
        assert ("ResponseError" if frame.startswith(b"-") else "InvalidResponse") in caplog.text
        state.close()
        server.join(20)


def test_a_password_and_a_database_are_sent(redis_server: Redis) -> None:
    name, user = new_name(), f"user-{os.getpid()}"
    with redis.Redis.from_url(redis_server.url) as client:
        client.acl_setuser(user, enabled=True, passwords=["+p@ss/word"], keys="*", categories=["+@all"])
    address = redis_server.url.removeprefix("redis://").removesuffix("/0")
    state = RedisPolicyState(f"redis://{user}:p%40ss%2Fword@{address}/12", on_store_failure="refuse", timeout=30)
    assert isinstance(state.acquire(name, ROOM, 0).decision, Admitted)
    state.close()
    with redis.Redis.from_url(redis_server.url.removesuffix("/0") + "/12") as client:
        assert client.exists(f"vesper:policy:{{{name}}}:inside")


def test_a_wrong_password_refuses(redis_server: Redis, caplog: pytest.LogCaptureFixture) -> None:
    url = redis_server.url.replace("redis://", "redis://nobody:hidden-word@")
    state = RedisPolicyState(url, on_store_failure="refuse", timeout=30)
    assert isinstance(state.acquire("n", ROOM, 0).decision, Rejected)
    assert "AuthenticationError" in caplog.text
    assert "hidden-word" not in caplog.text
    state.close()


@pytest.mark.parametrize(
    "url",
    [
        "http://x:hidden@y",
        "redis://u:hidden@127.0.0.1/0?no_such=1",
        "redis://u:hidden@127.0.0.1/0?socket_timeout=x",
        "redis://u:hidden@127.0.0.1/x",
        "redis://u:hidden@127.0.0.1:port/0",
        "redis://u:hidden@127.0.0.1/0?ssl_ca_certs=x",
        "unix://",
        "redis:hidden",
    ],
)
def test_an_address_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="this is no address of Redis") as caught:
        RedisPolicyState(url)
    assert "hidden" not in str(caught.value)
