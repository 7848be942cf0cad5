"""The circuit breaker against its reference, in every short sequence and in long random ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.proofs.policies.reference import breaker
from tests.proofs.policies.reference.codes import is_trouble
from tests.unit.policies.breaker_reference import ALL, PLAIN, Pair, differences
from vesper.policies.settings import PolicyError

RULE = breaker.Rule(3, 10_000, 5_000)


def closed_after(*failures: int) -> breaker.State:
    state = breaker.State(RULE)
    for number, at_us in enumerate(failures):
        state, _ = breaker.step(state, breaker.Ended(f"f{number}", 0, True), at_us)
    return state


def asks(state: breaker.State, who: str, now_us: int, lease_us: int = 1_000) -> tuple[breaker.State, breaker.Decided]:
    return breaker.step(state, breaker.Ask(who, lease_us), now_us)


@pytest.mark.parametrize("events,most,sequences", [(PLAIN, 8, 87_380), (ALL, 5, 19_607)])
def test_every_sequence_comes_out_as_the_reference_says(events: tuple[str, ...], most: int, sequences: int) -> None:
    walked = 0
    for path, difference in differences(events, most):
        assert not difference, f"{path}: {difference}"
        walked += 1
    assert walked == sequences


@given(st.lists(st.sampled_from(ALL), max_size=60))
def test_long_sequences_come_out_as_the_reference_says(events: list[str]) -> None:
    pair = Pair()
    for event in events:
        assert not pair.do(event)


def test_it_opens_at_the_threshold_and_not_before() -> None:
    assert asks(closed_after(1, 2), "x", 3)[1] == breaker.LetThrough(0)
    opened = closed_after(1, 2, 3)
    assert opened.phase == breaker.Open(5_003)
    assert asks(opened, "x", 5_002)[1] == breaker.Stopped(5_003)


def test_failures_count_while_they_are_within_the_window_and_no_longer() -> None:
    assert isinstance(closed_after(1, 2, 10_000).phase, breaker.Open)
    assert isinstance(closed_after(1, 2, 10_001).phase, breaker.Closed)


def test_one_probe_at_a_time_and_a_new_one_after_its_lease() -> None:
    state, first = asks(closed_after(1, 2, 3), "p", 5_003)
    assert first == breaker.LetThrough(1)
    state, second = asks(state, "q", 6_002)
    assert second == breaker.Stopped(6_002)
    state, third = asks(state, "r", 6_003)
    assert third == breaker.LetThrough(1)
    late, noted = breaker.step(state, breaker.Ended("p", 5_003, False), 6_004)
    assert (late, noted) == (state, breaker.Noted("none"))
    closed, noted = breaker.step(state, breaker.Ended("r", 6_003, False), 6_005)
    assert (closed.phase, noted) == (breaker.Closed(6_005), breaker.Noted("closed"))


def test_a_probe_that_fails_opens_it_again() -> None:
    state, _ = asks(closed_after(1, 2, 3), "p", 5_003)
    state, noted = breaker.step(state, breaker.Ended("p", 5_003, True), 5_100)
    assert (state.phase, noted) == (breaker.Open(10_100), breaker.Noted("opened"))


def test_a_probe_that_was_never_sent_makes_room_for_the_next() -> None:
    state, _ = asks(closed_after(1, 2, 3), "p", 5_003)
    state, _ = breaker.step(state, breaker.Abandoned("p"), 5_004)
    assert asks(state, "q", 5_004)[1] == breaker.LetThrough(1)


def test_what_was_sent_before_it_opened_says_nothing_after_it_closed() -> None:
    state, _ = asks(closed_after(1, 2, 3), "p", 5_003)
    state, _ = breaker.step(state, breaker.Ended("p", 5_003, False), 5_100)
    after, _ = breaker.step(state, breaker.Ended("old", 2, True), 5_101)
    assert after == state


def test_reporting_twice_is_failing_once() -> None:
    state = breaker.State(RULE)
    for at_us in (1, 2, 3, 4):
        state, _ = breaker.step(state, breaker.Ended("same", 0, True), at_us)
    assert state.phase == breaker.Closed(0, ((1, "same"),))


@pytest.mark.parametrize(
    "code,counts",
    [
        ("timeout", True),
        ("unavailable", True),
        ("http_500", True),
        ("http_503", True),
        ("http_599", True),
        ("http_429", False),
        ("http_400", False),
        ("http_401", False),
        ("http_404", False),
        ("bad_response", False),
        ("not_found", False),
        ("http_error", False),
    ],
)
def test_which_failures_count(code: str, counts: bool) -> None:
    assert is_trouble(code) is counts


def test_it_is_idle_when_a_new_one_would_do_the_same() -> None:
    assert breaker.is_idle(breaker.State(RULE), 0)
    assert not breaker.is_idle(closed_after(5), 6)
    assert breaker.is_idle(closed_after(5), 10_005)
    assert not breaker.is_idle(closed_after(1, 2, 3), 1_000_000)


def test_a_rule_is_read_from_a_policy() -> None:
    whole: dict[str, int | str | tuple[str, ...]]
    whole = {"breaker_failures": 5, "breaker_within_us": 60, "breaker_open_us": 30}
    assert breaker.Rule.of(whole) == breaker.Rule(5, 60, 30)
    assert breaker.Rule.of({"attempts": 3}) is None
    with pytest.raises(PolicyError, match="`breaker_within_us` is of no use without `breaker_failures`"):
        breaker.Rule.of({"breaker_within_us": 60})
    with pytest.raises(PolicyError, match="from 1 to 10,000, not 10001"):
        breaker.Rule.of({**whole, "breaker_failures": 10_001})
