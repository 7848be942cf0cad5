"""Sessions end by time and by number; their tokens differ each time and belong to one session."""

from __future__ import annotations

from vesper.dashboard.access.sessions import (
    ABSOLUTE_SECONDS,
    FAILURE_SECONDS,
    IDLE_SECONDS,
    MAX_FAILURES,
    MAX_SESSIONS,
    Attempts,
    Sessions,
)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_an_idle_session_ends_and_a_used_one_at_its_absolute_time() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    idle, used = sessions.create("a"), sessions.create("b")
    while clock.now < ABSOLUTE_SECONDS - IDLE_SECONDS / 2:
        clock.now += IDLE_SECONDS / 2 + 1
        assert sessions.find(used) is not None
        sessions.find(idle, is_used=False)
    assert sessions.find(idle) is None
    clock.now = ABSOLUTE_SECONDS + 1
    assert sessions.find(used) is None


def test_the_session_used_least_recently_makes_room() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    first, second = sessions.create("a"), sessions.create("b")
    clock.now = 1
    sessions.find(first)
    for _ in range(MAX_SESSIONS - 1):
        sessions.create("c")
    assert sessions.find(first) is not None
    assert sessions.find(second) is None


def test_tokens_are_masked_and_belong_to_their_session() -> None:
    sessions = Sessions()
    one, other = sessions.find(sessions.create("a")), sessions.find(sessions.create("a"))
    assert one is not None
    assert other is not None
    assert one.token() != one.token()
    assert one.has_token(one.token())
    assert not one.has_token(other.token())
    assert not any(one.has_token(each) for each in ("", "00", "xyz", "00" * 64, one.token()[:-2]))


def test_failures_are_forgotten_after_a_while() -> None:
    clock = Clock()
    attempts = Attempts(clock)
    for _ in range(MAX_FAILURES):
        attempts.add("10.0.0.1")
    assert attempts.is_blocked("10.0.0.1")
    assert not attempts.is_blocked("10.0.0.2")
    clock.now = FAILURE_SECONDS + 1
    assert not attempts.is_blocked("10.0.0.1")
