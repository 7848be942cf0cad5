"""The state of one process: under threads, after a fork, and with more names than there is room for."""

from __future__ import annotations

import os
import signal
import threading
import warnings

import pytest

from tests.proofs.policies.reference.gate import LONGEST_WAIT_US, Admitted, Rejected, Released, Waiting
from tests.proofs.policies.reference.memory_state import TooManyNames
from tests.support.shared_limits import MemoryPolicyState
from tests.unit.policies.crowds import (
    SECOND,
    StillClock,
    at_once,
    breaker_under_a_crowd,
    most_in_a_window,
    most_inside_a_room,
)
from vesper.policies.settings import Policy, PolicyError

RATE: Policy = {"rate_limit": 100, "rate_per_us": SECOND}
ROOM: Policy = {"concurrency": 2}
BREAKER: Policy = {"breaker_failures": 2, "breaker_within_us": SECOND, "breaker_open_us": SECOND}


def test_without_limits_everybody_goes_and_nothing_is_kept() -> None:
    state = MemoryPolicyState(max_names=0)
    admission = state.acquire("n", {"timeout_us": 5, "attempts": 3}, 10)
    assert admission.decision == Admitted(10, 0)
    assert admission.token is not None
    assert state.release(admission.token, "timeout", 20) == Released("none")


def test_names_do_not_share() -> None:
    state = MemoryPolicyState()
    assert [state.acquire(name, RATE, 0).decision for name in "aba"] == [
        Admitted(0, 0),
        Admitted(0, 0),
        Admitted(10_000, 10_000),
    ]


def test_a_crowd_of_threads_is_given_moments_one_by_one() -> None:
    state = MemoryPolicyState()

    def one(_: int) -> list[int]:
        decisions = [state.acquire("n", RATE, 0, 10**9).decision for _ in range(20)]
        return [each.at_us for each in decisions if isinstance(each, Admitted)]

    moments = [at for each in at_once(64, one) for at in each]
    assert sorted(moments) == [number * 10_000 for number in range(64 * 20)]
    assert most_in_a_window(moments, SECOND) == 100


def test_a_waiter_that_cannot_be_in_time_is_rejected_and_takes_nothing() -> None:
    state = MemoryPolicyState()
    state.acquire("n", RATE, 0)
    assert state.acquire("n", RATE, 0, 10_000).decision == Rejected("rate_limit", 10_000, 10_000)
    assert state.acquire("n", RATE, 0, 10_001).decision == Admitted(10_000, 10_000)


def test_without_a_deadline_nobody_waits_for_ever() -> None:
    state = MemoryPolicyState()
    slow: Policy = {"rate_limit": 1, "rate_per_us": LONGEST_WAIT_US}
    state.acquire("n", slow, 0)
    assert state.acquire("n", slow, 0).decision == Rejected("rate_limit", LONGEST_WAIT_US, LONGEST_WAIT_US)
    assert isinstance(state.acquire("n", slow, 0, 2 * LONGEST_WAIT_US).decision, Admitted)


def test_a_breaker_under_a_crowd_opens_once_and_probes_once() -> None:
    assert breaker_under_a_crowd(MemoryPolicyState(), "n", 64, StillClock()) == []


def test_a_room_is_never_fuller_than_it_may_be_and_all_get_in() -> None:
    assert most_inside_a_room(MemoryPolicyState(), "n", 32, 3) <= 3


def test_without_a_deadline_nobody_stands_in_the_queue_for_ever() -> None:
    state = MemoryPolicyState()
    for _ in range(2):
        state.acquire("n", ROOM, 0)
    admission, now_us = state.acquire("n", ROOM, 0), 0
    while isinstance(admission.decision, Waiting):
        now_us = admission.decision.until_us
        admission = state.acquire("n", ROOM, now_us, waiting=admission.token)
    assert admission.decision == Rejected("concurrency", now_us, 0)
    assert LONGEST_WAIT_US - 10_000 < now_us < LONGEST_WAIT_US


def test_who_waits_for_a_place_asks_again_with_the_token() -> None:
    state = MemoryPolicyState()
    first, second = (state.acquire("n", ROOM, 0).token for _ in range(2))
    waiting = state.acquire("n", ROOM, 0)
    assert waiting.decision == Waiting("concurrency", 2_000, 2_000)
    assert first is not None
    assert second is not None
    state.release(first, None, 1_000)
    assert isinstance(state.acquire("n", ROOM, 1_500).decision, Waiting), "a newcomer does not overtake"
    assert state.acquire("n", ROOM, 2_000, waiting=waiting.token).decision == Admitted(2_000, 0)


def test_who_waits_no_longer_makes_room_in_the_queue() -> None:
    state = MemoryPolicyState()
    first = state.acquire("n", {"concurrency": 1}, 0).token
    waiting = state.acquire("n", {"concurrency": 1}, 0).token
    assert first is not None
    assert waiting is not None
    state.abandon(waiting, 1)
    state.release(first, None, 1)
    assert state.acquire("n", {"concurrency": 1}, 2).decision == Admitted(2, 0)


def test_giving_back_twice_does_no_harm() -> None:
    state = MemoryPolicyState()
    tokens = [state.acquire("n", {**BREAKER, "concurrency": 3}, 0).token for _ in range(3)]
    assert tokens[0] is not None
    for _ in range(3):
        assert state.release(tokens[0], "timeout", 1) == Released("none")
    assert isinstance(state.acquire("n", {**BREAKER, "concurrency": 3}, 2).decision, Admitted)
    assert isinstance(state.acquire("n", {**BREAKER, "concurrency": 3}, 2).decision, Waiting)


def test_an_attempt_that_was_not_made_is_no_verdict() -> None:
    state = MemoryPolicyState()
    for _ in range(2):
        token = state.acquire("n", BREAKER, 0).token
        assert token is not None
        state.release(token, "http_503", 0)
    probe = state.acquire("n", BREAKER, SECOND)
    assert probe.token is not None
    assert isinstance(state.acquire("n", BREAKER, SECOND).decision, Rejected)
    state.abandon(probe.token, SECOND)
    assert isinstance(state.acquire("n", BREAKER, SECOND).decision, Admitted)


def test_threads_that_read_the_clock_in_another_order_do_not_turn_it_back() -> None:
    state = MemoryPolicyState()
    state.acquire("n", RATE, 50_000)
    assert state.acquire("n", RATE, 49_000).decision == Admitted(60_000, 10_000)


def test_a_clock_that_was_set_back_starts_over() -> None:
    state = MemoryPolicyState()
    hour = 3_600 * SECOND
    token = state.acquire("n", {**RATE, **BREAKER}, hour).token
    assert token is not None
    assert state.acquire("n", {**RATE, **BREAKER}, 0).decision == Admitted(0, 0)
    assert state.release(token, "timeout", 1) == Released("none")


def test_a_policy_that_nobody_can_work_with_is_refused() -> None:
    with pytest.raises(PolicyError, match="`concurrency` must be a whole number from 1 to 10,000, not 0"):
        MemoryPolicyState().acquire("n", {"concurrency": 0}, 0)


def test_idle_names_make_room_and_busy_ones_stay() -> None:
    state = MemoryPolicyState(max_names=3)
    held = [state.acquire("held", ROOM, 0).token for _ in range(2)]
    for number in range(50):
        admission = state.acquire(f"n{number}", ROOM, number)
        assert admission.token is not None
        state.release(admission.token, None, number)
    assert isinstance(state.acquire("held", ROOM, 50).decision, Waiting)
    assert len(held) == 2


def test_more_busy_names_than_there_is_room_for_are_refused() -> None:
    state = MemoryPolicyState(max_names=2)
    for name in "ab":
        state.acquire(name, ROOM, 0)
    with pytest.raises(TooManyNames, match="2 names of policies are in use at once"):
        state.acquire("c", ROOM, 0)
    assert state.acquire("c", ROOM, 400 * SECOND).decision == Admitted(400 * SECOND, 0), "leases are over"


def test_an_attempt_that_runs_keeps_its_breaker() -> None:
    state = MemoryPolicyState(max_names=1)
    running = [state.acquire("n", BREAKER, 0).token for _ in range(2)]
    with pytest.raises(TooManyNames):
        state.acquire("other", BREAKER, 1)
    assert [state.release(token, "timeout", 2).breaker for token in running if token] == ["none", "opened"]


def test_a_forked_child_starts_anew_though_threads_use_the_state() -> None:
    state = MemoryPolicyState()
    for _ in range(2):
        state.acquire("n", ROOM, 0)
    is_over = threading.Event()

    def use() -> None:
        while not is_over.is_set():
            state.acquire("n", ROOM, 0)

    users = [threading.Thread(target=use) for _ in range(4)]
    for each in users:
        each.start()
    try:
        for _ in range(20):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # from 3.12 on: forking with threads is tested
                child = os.fork()
            if child == 0:
                signal.alarm(20)  # a child that hangs at the lock ends with a signal, which is not 0
                os._exit(0 if isinstance(state.acquire("n", ROOM, 0).decision, Admitted) else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        is_over.set()
        for each in users:
            each.join()
    assert not isinstance(state.acquire("n", ROOM, 0).decision, Admitted)
