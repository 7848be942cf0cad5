"""The rate limit: exact, in the order of asking, and never more than it promises."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.proofs.policies.reference import rate_limit
from tests.proofs.policies.reference.rate_limit import Ask, Granted, Refused, Rule, State, step
from vesper.policies.settings import PolicyError


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    limit = draw(st.integers(1, 50))
    return Rule(limit, draw(st.integers(1, 2_000)), draw(st.integers(1, limit)))


gaps = st.lists(st.tuples(st.integers(0, 300), st.none() | st.integers(0, 500)), max_size=80)
"""How long after the one before somebody asks, and how long they can wait."""


@given(rules(), st.integers(0, 10**15), gaps)
def test_it_decides_as_fractions_do(rule: Rule, start: int, asked: list[tuple[int, int | None]]) -> None:
    state, now = State(rule), start
    distance = Fraction(rule.per_us, rule.limit)
    arrival = Fraction(0)
    for gap, patience in asked:
        now += gap
        before = None if patience is None else now + patience
        earliest = max(Fraction(now), arrival - (rule.burst - 1) * distance)
        state, decided = step(state, Ask(before), now)
        if before is not None and ceil(earliest) >= before:
            assert decided == Refused(ceil(earliest))
        else:
            assert decided == Granted(ceil(earliest))
            arrival = max(arrival, earliest) + distance


@given(rules(), gaps)
def test_no_window_holds_more_than_limit_and_burst(rule: Rule, asked: list[tuple[int, int | None]]) -> None:
    state, now, granted = State(rule), 0, []
    for gap, patience in asked:
        now += gap
        state, decided = step(state, Ask(None if patience is None else now + patience), now)
        if isinstance(decided, Granted):
            granted.append(decided.at_us)
    assert granted == sorted(granted)
    for first in granted:
        inside = sum(first <= at < first + rule.per_us for at in granted)
        assert inside <= rule.limit + rule.burst - 1


@given(rules(), st.integers(1, 200))
def test_who_always_asks_gets_the_whole_rate(rule: Rule, count: int) -> None:
    state, granted = State(rule), []
    for _ in range(count):
        state, decided = step(state, Ask(), 1_000)
        assert isinstance(decided, Granted)
        granted.append(decided.at_us)
    expected = [1_000 + max(0, -(-(k - rule.burst + 1) * rule.per_us // rule.limit)) for k in range(count)]
    assert granted == expected


@given(rules(), st.integers(0, 1_000))
def test_who_is_refused_takes_nothing(rule: Rule, now: int) -> None:
    state, _ = step(State(rule), Ask(), now)
    after, decided = step(state, Ask(now), now)
    assert isinstance(decided, Refused)
    assert after == state


def test_rounding_does_not_add_up() -> None:
    state = State(Rule(3, 10))
    moments = []
    for _ in range(3_001):
        state, decided = step(state, Ask(), 0)
        assert isinstance(decided, Granted)
        moments.append(decided.at_us)
    assert moments[:4] == [0, 4, 7, 10]
    assert moments[3_000] == 10_000


def test_another_rule_takes_over_what_was_granted() -> None:
    state, _ = step(State(Rule(3, 10)), Ask(), 100)
    slower = rate_limit.under(state, Rule(1, 50))
    assert step(slower, Ask(), 100)[1] == Granted(104)
    assert rate_limit.under(state, Rule(3, 10)) is state


def test_it_is_idle_when_a_new_one_would_do_the_same() -> None:
    state, _ = step(State(Rule(1, 10)), Ask(), 100)
    assert not rate_limit.is_idle(state, 109)
    assert rate_limit.is_idle(state, 110)


def test_a_rule_is_read_from_a_policy() -> None:
    assert Rule.of({"rate_limit": 100, "rate_per_us": 1_000_000}) == Rule(100, 1_000_000, 1)
    assert Rule.of({"rate_limit": 100, "rate_per_us": 1_000_000, "rate_burst": 7}) == Rule(100, 1_000_000, 7)
    assert Rule.of({}) is None
    with pytest.raises(PolicyError, match="`rate_limit` is of no use without `rate_per_us`"):
        Rule.of({"rate_limit": 1})
    with pytest.raises(PolicyError, match="`rate_burst` is of no use without `rate_limit`"):
        Rule.of({"rate_burst": 1})
    with pytest.raises(PolicyError, match="at most `rate_limit`, 2, not 3"):
        Rule.of({"rate_limit": 2, "rate_per_us": 1, "rate_burst": 3})
