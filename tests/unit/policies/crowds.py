"""Crowds of threads before one state, for tests and for the proof."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable
from typing import TypeVar

from tests.proofs.policies.reference.gate import Admitted, Rejected, Waiting
from tests.support.shared_limits import PolicyState, Token
from vesper.policies.settings import Policy

SECOND = 1_000_000
THRESHOLD = 20
OPEN_US = 2 * SECOND
"""Long enough for a crowd on a slow machine to come and be turned away."""

_Found = TypeVar("_Found")


def at_once(threads: int, work: Callable[[int], _Found]) -> list[_Found]:
    """What each thread found; they start together. A thread that fails fails the caller."""
    ready = threading.Barrier(threads)
    found: dict[int, _Found] = {}
    failures: list[BaseException] = []

    def one(number: int) -> None:
        try:
            ready.wait(60)
            found[number] = work(number)
        except BaseException as error:
            failures.append(error)
            raise

    crowd = [threading.Thread(target=one, args=(number,), daemon=True) for number in range(threads)]
    for each in crowd:
        each.start()
    for each in crowd:
        each.join(120)
    if failures:
        raise failures[0]
    return [found[number] for number in range(threads)]


def most_in_a_window(moments: list[int], window_us: int) -> int:
    """How many moments the fullest window holds, with its beginning and without its end."""
    ordered = sorted(moments)
    return max((bisect_left(ordered, first + window_us) - place for place, first in enumerate(ordered)), default=0)


class Clock:
    """Microseconds of a clock that does not go back."""

    def now_us(self) -> int:
        return time.monotonic_ns() // 1_000

    def sleep_us(self, us: int) -> None:
        time.sleep(us / SECOND)

    def sleep_until_us(self, at_us: int) -> None:
        while (left_us := at_us - self.now_us()) > 0:
            self.sleep_us(left_us)


class StillClock(Clock):
    """A clock that goes on when somebody sleeps, and then at once."""

    def __init__(self) -> None:
        self._now_us = 0

    def now_us(self) -> int:
        return self._now_us

    def sleep_us(self, us: int) -> None:
        self._now_us += us


def breaker_under_a_crowd(state: PolicyState, name: str, threads: int, clock: Clock) -> list[str]:
    """What went wrong: a breaker with a threshold of 20 sees 19 failures at once, then one more; then all ask at once
    while it is open, and again when it is half open, twice: the first probe fails and the second succeeds."""
    policy: Policy = {
        "breaker_failures": THRESHOLD,
        "breaker_within_us": 60 * SECOND,
        "breaker_open_us": OPEN_US,
    }
    wrong: list[str] = []

    def ask(_: int) -> Token | None:
        admission = state.acquire(name, policy, clock.now_us())
        if isinstance(admission.decision, Rejected) and admission.decision.by != "circuit_breaker":
            wrong.append(f"rejected by {admission.decision.by}")
        return admission.token if isinstance(admission.decision, Admitted) else None

    def expect(what: str, found: object, expected: object) -> None:
        if found != expected:
            wrong.append(f"{what}: {found}, expected {expected}")

    tokens = [each for each in at_once(threads, ask) if each is not None]
    expect("admitted by a closed breaker", len(tokens), threads)
    before, last, late = tokens[: THRESHOLD - 1], tokens[THRESHOLD - 1], tokens[THRESHOLD:]
    changes = at_once(len(before), lambda number: state.release(before[number], "http_503", clock.now_us()).breaker)
    expect(f"after {len(before)} failures at once", set(changes), {"none"})
    extra = ask(0)
    expect("one more is admitted", extra is not None, True)
    expect("the last failure", state.release(last, "timeout", clock.now_us()).breaker, "opened")
    expect("admitted by an open breaker", sum(each is not None for each in at_once(threads, ask)), 0)
    changes = at_once(len(late), lambda number: state.release(late[number], "http_503", clock.now_us()).breaker)
    expect("failures that come late", set(changes), {"none"})
    for code, change in (("timeout", "opened"), (None, "closed")):
        clock.sleep_us(OPEN_US + 1_000)
        probes = [each for each in at_once(threads, ask) if each is not None]
        expect("probes of a half-open breaker", len(probes), 1)
        expect(f"a probe that ends with {code}", state.release(probes[0], code, clock.now_us()).breaker, change)
    expect("admitted after it closed", sum(each is not None for each in at_once(threads, ask)), threads)
    return wrong


def most_inside_a_room(state: PolicyState, name: str, threads: int, limit: int) -> int:
    """How many were inside at once, of threads that each enter once and wait for it as the Host does."""
    clock, lock = Clock(), threading.Lock()
    inside, most = 0, 0

    def one(_: int) -> None:
        nonlocal inside, most
        deadline_us = clock.now_us() + 60 * SECOND
        admission = state.acquire(name, {"concurrency": limit}, clock.now_us(), deadline_us)
        while isinstance(admission.decision, Waiting):
            clock.sleep_until_us(admission.decision.until_us)
            admission = state.acquire(name, {"concurrency": limit}, clock.now_us(), deadline_us, admission.token)
        assert admission.token is not None, admission.decision
        with lock:
            inside += 1
            most = max(most, inside)
        clock.sleep_us(1_000)
        with lock:
            inside -= 1
        state.release(admission.token, None, clock.now_us())

    at_once(threads, one)
    return most
