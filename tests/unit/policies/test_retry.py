"""Retry: what is tried again, after how long, and when it is over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.proofs.policies.reference.codes import takes
from tests.proofs.policies.reference.retry import (
    DRAWS,
    Failed,
    GiveUp,
    State,
    TryAgain,
    backoff_us,
    step,
)
from vesper.policies.retry import DEFAULT_CODES, LONGEST_DELAY_US, Rule
from vesper.policies.settings import Policy, PolicyError

SECOND = 1_000_000
LISTED = ("timeout", "unavailable", "http_429", "http_503")


def first(rule: Rule, event: Failed, deadline_us: int | None = None, now_us: int = 0) -> TryAgain | GiveUp:
    return step(State(rule, deadline_us), event, now_us)[1]


@pytest.mark.parametrize("codes", [LISTED, ("timeout", "unavailable", "http_429", "http_5xx")])
@pytest.mark.parametrize(
    "code,is_retried",
    [
        ("timeout", True),
        ("unavailable", True),
        ("http_429", True),
        ("http_503", True),
        ("http_400", False),
        ("http_401", False),
        ("http_403", False),
        ("http_404", False),
        ("http_422", False),
        ("bad_response", False),
        ("conflict", False),
    ],
)
def test_which_codes_are_retried(codes: tuple[str, ...], code: str, is_retried: bool) -> None:
    decided = first(Rule(3, codes), Failed(code))
    assert decided == (TryAgain(2, 0, code) if is_retried else GiveUp(1, code, "code"))


@given(st.integers(100, 599).map("http_{}".format) | st.sampled_from(("bad_response", "conflict", "not_found")))
def test_no_answer_is_retried_unless_the_node_says_so(code: str) -> None:
    assert first(Rule.of({"attempts": 5}, "read"), Failed(code)) == GiveUp(1, code, "code")


@pytest.mark.parametrize(
    "codes,code,is_taken",
    [
        (("http_5xx",), "http_503", True),
        (("http_5xx",), "http_404", False),
        (("http_5xx",), "http_error", False),
        (("http_4xx",), "http_400", True),
        (("http_error",), "http_302", True),
        (("http_error",), "http_error", True),
        (("http_error",), "timeout", False),
        (("any",), "conflict", True),
        (("any",), "http_400", True),
        ((), "timeout", False),
        (("timeout",), "timeouts", False),
        (("http_5xx",), "http_5033", False),
        (("http_5xx",), "http_5٣3", False),
    ],
)
def test_a_list_takes_codes_as_handlers_do(codes: tuple[str, ...], code: str, is_taken: bool) -> None:
    assert takes(codes, code) is is_taken


def test_waits_grow_to_their_longest() -> None:
    state = State(Rule(6, base_us=100, factor=3, max_us=1_000))
    delays = []
    for _ in range(5):
        state, decided = step(state, Failed("timeout"), 0)
        assert isinstance(decided, TryAgain)
        delays.append(decided.delay_us)
    assert delays == [100, 300, 900, 1_000, 1_000]
    assert step(state, Failed("timeout"), 0)[1] == GiveUp(6, "timeout", "attempts")


def test_without_a_longest_wait_none_is_over_an_hour_unless_the_first_one_is() -> None:
    assert backoff_us(Rule.of({"attempts": 100, "backoff_us": SECOND, "backoff_factor": 100}, "read"), 99) == (
        LONGEST_DELAY_US
    )
    two_hours = 2 * LONGEST_DELAY_US
    assert backoff_us(Rule.of({"attempts": 100, "backoff_us": two_hours}, "read"), 50) == two_hours


@given(st.integers(0, 10**9), st.integers(0, DRAWS - 1))
def test_full_jitter_is_between_zero_and_the_whole_wait(base_us: int, draw: int) -> None:
    decided = first(Rule(2, base_us=base_us, is_jittered=True), Failed("timeout", draw))
    assert isinstance(decided, TryAgain)
    assert 0 <= decided.delay_us <= base_us
    assert decided.jitter == draw


def test_full_jitter_reaches_both_ends_and_spreads_evenly() -> None:
    rule = Rule(2, base_us=9, is_jittered=True)
    draws = [0, *((2 * number + 1) * DRAWS // 2_000 for number in range(1_000)), DRAWS - 1]
    delays = [
        decided.delay_us for draw in draws if isinstance(decided := first(rule, Failed("timeout", draw)), TryAgain)
    ]
    assert [delays.count(each) for each in range(10)] == [101, *[100] * 8, 101]


def test_a_draw_that_is_none_is_refused() -> None:
    for draw in (-1, DRAWS):
        with pytest.raises(ValueError, match="a draw is a whole number from 0 to"):
            first(Rule(2, is_jittered=True), Failed("timeout", draw))


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.integers(0, DRAWS - 1), st.integers(0, 12_000))
def test_what_the_other_side_asks_for_is_the_least(base_us: int, asked_us: int, draw: int, left_us: int) -> None:
    rule = Rule(2, base_us=base_us, is_jittered=True)
    decided = first(rule, Failed("timeout", draw, asked_us), deadline_us=500 + left_us, now_us=500)
    if isinstance(decided, TryAgain):
        assert asked_us <= decided.delay_us < left_us
    else:
        assert max(base_us, asked_us) >= left_us
        assert decided.reason == ("retry_after" if 0 < asked_us >= left_us else "deadline")


def test_no_longest_wait_shortens_what_the_other_side_asks_for() -> None:
    assert first(Rule(2, LISTED, 10, max_us=20), Failed("http_429", 0, 5_000)) == TryAgain(2, 5_000, "http_429")


def test_nobody_outside_makes_us_sleep_for_more_than_an_hour() -> None:
    rule = Rule(2, LISTED)
    assert isinstance(first(rule, Failed("http_429", 0, LONGEST_DELAY_US)), TryAgain)
    assert first(rule, Failed("http_429", 0, LONGEST_DELAY_US + 1)) == GiveUp(1, "http_429", "retry_after")


def test_nothing_is_tried_at_or_after_the_end_of_the_execution() -> None:
    rule = Rule(3, base_us=100)
    assert first(rule, Failed("timeout"), deadline_us=1_101, now_us=1_000) == TryAgain(2, 100, "timeout")
    assert first(rule, Failed("timeout"), deadline_us=1_100, now_us=1_000) == GiveUp(1, "timeout", "deadline")
    assert first(Rule(3), Failed("timeout"), deadline_us=1_000, now_us=1_000) == GiveUp(1, "timeout", "deadline")


@given(
    st.integers(1, 9),
    st.integers(0, SECOND),
    st.integers(1, 100),
    st.booleans(),
    st.none() | st.integers(0, 100 * SECOND),
    st.lists(st.tuples(st.integers(0, DRAWS - 1), st.integers(0, SECOND)), min_size=10, max_size=10),
)
def test_it_ends(
    attempts: int,
    base_us: int,
    factor: int,
    is_jittered: bool,
    deadline_us: int | None,
    tries: list[tuple[int, int]],
) -> None:
    """No more attempts than are allowed, none after the end, and their numbers go up by one."""
    rule = Rule(attempts, base_us=base_us, factor=factor, is_jittered=is_jittered)
    state, now_us, begun = State(rule, deadline_us), 0, 0
    for begun, (draw, took_us) in enumerate(tries, start=1):
        assert begun == 1 or deadline_us is None or now_us < deadline_us
        now_us += took_us
        state, decided = step(state, Failed("timeout", draw), now_us)
        if isinstance(decided, GiveUp):
            assert decided.attempts == begun
            break
        assert decided.attempt == begun + 1
        now_us += decided.delay_us
    assert begun <= attempts


def test_an_unsafe_effect_is_never_repeated_whatever_the_policy_says() -> None:
    policy: Policy = {"attempts": 100, "retry_on": ("any",)}
    assert first(Rule.of(policy, "unsafe"), Failed("timeout")) == GiveUp(1, "timeout", "unsafe")
    for effect_class in ("read", "keyed", "txn", "probe"):
        assert isinstance(first(Rule.of(policy, effect_class), Failed("timeout")), TryAgain)


def test_a_rule_is_read_from_a_policy() -> None:
    policy: Policy = {
        "attempts": 4,
        "retry_on": ("http_429",),
        "backoff_us": 10,
        "backoff_max_us": 50,
        "backoff_factor": 3,
        "jitter": "full",
    }
    assert Rule.of(policy, "read") == Rule(4, ("http_429",), 10, 3, 50, True)
    assert Rule.of({}, "read") == Rule(1, DEFAULT_CODES, 0, 2, LONGEST_DELAY_US, False)
    assert Rule.of({"attempts": 2, "retry_on": ()}, "read").codes == ()
    assert not Rule.of({"jitter": "none"}, "read").is_jittered


@pytest.mark.parametrize(
    "policy,message",
    [
        ({"attempts": 101}, "`attempts` must be a whole number from 1 to 100, not 101"),
        ({"attempts": 0}, "from 1 to 100, not 0"),
        ({"attempts": True}, "not True"),
        ({"attempts": "3"}, "not '3'"),
        ({"backoff_us": 10**16}, "`backoff_us` must be a whole number"),
        ({"jitter": "some"}, "`jitter` must be one of none, full, not 'some'"),
        ({"retry_on": "timeout"}, "`retry_on` must be a list of codes"),
    ],
)
def test_a_policy_that_nobody_can_work_with_is_refused(policy: Policy, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        Rule.of(policy, "read")
