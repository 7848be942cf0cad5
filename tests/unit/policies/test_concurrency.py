"""Concurrency: never more than the limit, in the order of coming, and no place lost to the dead."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.proofs.policies.reference import concurrency
from tests.proofs.policies.reference.concurrency import (
    ASK_AGAIN_US,
    LONGEST_PAUSE_US,
    MAX_WAITING,
    PATIENCE_US,
    Ask,
    Entered,
    Full,
    Leave,
    Left,
    Queued,
    Rule,
    State,
    step,
)
from vesper.policies.settings import PolicyError

LEASE = 3_000_000

events = st.lists(
    st.tuples(
        st.sampled_from(("ask", "ask", "ask", "leave")),
        st.integers(0, 9),
        st.sampled_from((0, 1, 700, 50_000, 600_000)),
        st.none() | st.sampled_from((0, 1_500, 90_000)),
    ),
    max_size=60,
)


@given(st.integers(1, 4), events)
def test_it_decides_as_lists_do(limit: int, happened: list[tuple[str, int, int, int | None]]) -> None:
    """Against leases in a dictionary and a queue in a list."""
    state, now = State(Rule(limit)), 0
    leases: dict[str, int] = {}
    queue: list[str] = []
    kept: dict[str, int] = {}
    for what, number, gap, patience in happened:
        now += gap
        who = f"w{number}"
        for other, until in list(leases.items()):
            if until <= now:
                del leases[other]
        queue = [each for each in queue if kept[each] > now or each == who]
        if what == "leave":
            was_inside = leases.pop(who, None) is not None
            queue = [each for each in queue if each != who]
            state, decided = step(state, Leave(who), now)
            assert decided == Left(int(was_inside))
            continue
        state, decided = step(state, Ask(who, LEASE, None if patience is None else now + patience), now)
        ahead = queue.index(who) if who in queue else len(queue)
        if who in leases or ahead < limit - len(leases):
            leases[who] = now + LEASE
            queue = [each for each in queue if each != who]
            assert decided == Entered(len(leases))
        elif isinstance(decided, Full):
            assert patience is not None
            assert patience < 2 * LONGEST_PAUSE_US
            queue = [each for each in queue if each != who]
        else:
            assert isinstance(decided, Queued)
            assert decided.ahead == ahead
            assert now < decided.until_us <= now + LONGEST_PAUSE_US
            assert patience is None or decided.until_us < now + patience
            if who not in queue:
                queue.append(who)
            kept[who] = decided.until_us + PATIENCE_US
        assert [who for _, who in sorted(state.inside)] == sorted(leases, key=lambda each: (leases[each], each))
        assert [who for who, _ in state.queue] == queue
        assert len(leases) <= limit


def inside(limit: int, *who: str, now_us: int = 0) -> State:
    state = State(Rule(limit))
    for each in who:
        state, decided = step(state, Ask(each, LEASE), now_us)
        assert isinstance(decided, Entered)
    return state


def test_a_place_that_becomes_free_goes_to_the_first_in_the_queue() -> None:
    state = inside(1, "a")
    state, first = step(state, Ask("b", LEASE), 10)
    state, second = step(state, Ask("c", LEASE), 20)
    assert (first, second) == (Queued(10 + ASK_AGAIN_US, 0), Queued(20 + 2 * ASK_AGAIN_US, 1))
    state, _ = step(state, Leave("a"), 30)
    state, newcomer = step(state, Ask("d", LEASE), 40)
    assert isinstance(newcomer, Queued)
    state, overtaking = step(state, Ask("c", LEASE), 50)
    assert isinstance(overtaking, Queued)
    state, _ = step(state, Ask("b", LEASE), 60)
    assert [who for _, who in state.inside] == ["b"]


def test_the_dead_free_their_place_when_their_lease_is_over() -> None:
    state = inside(1, "dead")
    state, waits = step(state, Ask("b", LEASE), LEASE - 1)
    assert isinstance(waits, Queued)
    assert step(state, Ask("b", LEASE), LEASE)[1] == Entered(1)


def test_who_does_not_come_back_does_not_hold_up_the_queue() -> None:
    state = inside(1, "a")
    state, first = step(state, Ask("gone", LEASE), 0)
    state, _ = step(state, Ask("b", LEASE), 0)
    state, _ = step(state, Leave("a"), 1)
    assert isinstance(first, Queued)
    state, still = step(state, Ask("b", LEASE), first.until_us + PATIENCE_US - 1)
    assert isinstance(still, Queued)
    assert step(state, Ask("b", LEASE), first.until_us + PATIENCE_US)[1] == Entered(1)


def test_a_question_that_was_sent_twice_takes_one_place() -> None:
    state = inside(2, "a")
    state, again = step(state, Ask("a", LEASE), 5)
    assert (again, state.inside) == (Entered(1), ((LEASE + 5, "a"),))


def test_who_has_no_time_does_not_wait() -> None:
    state = inside(1, "a")
    assert step(state, Ask("b", LEASE, ASK_AGAIN_US), 0) == (state, Full(0))
    assert isinstance(step(state, Ask("b", LEASE, ASK_AGAIN_US + 1), 0)[1], Queued)


def test_the_queue_is_bounded() -> None:
    state = inside(1, "a")
    for number in range(MAX_WAITING):
        state, decided = step(state, Ask(f"w{number}", LEASE), 0)
        assert isinstance(decided, Queued)
    assert step(state, Ask("one more", LEASE), 0) == (state, Full(MAX_WAITING))


def test_it_is_idle_when_a_new_one_would_do_the_same() -> None:
    state = inside(1, "a")
    assert concurrency.is_idle(State(Rule(1)), 0)
    assert not concurrency.is_idle(state, LEASE - 1)
    assert concurrency.is_idle(state, LEASE)
    state, _ = step(state, Ask("b", LEASE), LEASE - 1)
    assert not concurrency.is_idle(state, LEASE)


def test_a_rule_is_read_from_a_policy() -> None:
    assert Rule.of({"concurrency": 4}) == Rule(4)
    assert Rule.of({}) is None
    with pytest.raises(PolicyError, match="from 1 to 10,000, not 10001"):
        Rule.of({"concurrency": 10_001})
