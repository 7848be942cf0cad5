"""Breaker, concurrency and rate as one: who is turned away by one takes nothing of the others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.proofs.policies.reference import breaker, concurrency, gate, rate_limit
from tests.proofs.policies.reference.gate import Abandoned, Admitted, Ask, Ended, Rejected, Rule, State, Waiting
from tests.unit.policies.gate_stories import RULES, Happening, happenings

SECOND = 1_000_000
LATER = 10**12
RULE = Rule(breaker.Rule(2, SECOND, SECOND), concurrency.Rule(2), rate_limit.Rule(10, SECOND))


def asks(state: State, who: str, now_us: int, before_us: int = LATER) -> tuple[State, gate.Answer]:
    return gate.ask(state, Ask(who, SECOND, before_us), now_us)


def test_who_goes_takes_of_all_three() -> None:
    state, answer = asks(State().under(RULE), "a", 5)
    assert answer == Admitted(5, 0)
    assert state.concurrency is not None
    assert state.rate is not None
    assert state.concurrency.inside == ((SECOND + 5, "a"),)
    assert state.rate.arrival == 50 + SECOND


def test_who_waits_for_the_rate_has_a_lease_from_then_on() -> None:
    state, _ = asks(State().under(RULE), "a", 0)
    state, answer = asks(state, "b", 0)
    assert answer == Admitted(100_000, 100_000)
    assert state.concurrency is not None
    assert state.concurrency.inside == ((SECOND, "a"), (SECOND + 100_000, "b"))


def test_the_breaker_answers_first_and_takes_its_asker_out_of_the_queue() -> None:
    state = State().under(RULE)
    for who in ("a", "b"):
        state, _ = asks(state, who, 0)
    state, waits = asks(state, "c", 0)
    assert waits == Waiting("concurrency", 2_000, 2_000)
    for who in ("a", "b"):
        state, _ = gate.leave(state, Ended(who, 0, True), 10)
    before = state
    state, answer = asks(state, "c", 20)
    assert answer == Rejected("circuit_breaker", SECOND + 10, SECOND - 10)
    assert (state.breaker, state.rate) == (before.breaker, before.rate)
    assert state.concurrency == concurrency.State(concurrency.Rule(2))


def test_who_has_no_place_becomes_no_probe_and_takes_no_moment() -> None:
    rule = Rule(breaker.Rule(1, SECOND, 10), concurrency.Rule(1), rate_limit.Rule(10, SECOND))
    state, _ = asks(State().under(rule), "long", 0)
    state, _ = gate.leave(state, Ended("other", 0, True), 5)
    before = state
    state, answer = asks(state, "b", 100)
    assert isinstance(answer, Waiting)
    assert (state.breaker, state.rate) == (before.breaker, before.rate)
    state, answer = asks(state, "c", 100, before_us=101)
    assert answer == Rejected("concurrency", 100, 0)
    assert (state.breaker, state.rate) == (before.breaker, before.rate)


def test_who_is_too_slow_for_the_rate_takes_no_place_and_becomes_no_probe() -> None:
    rule = Rule(breaker.Rule(1, SECOND, 10), concurrency.Rule(5), rate_limit.Rule(1, SECOND))
    state, _ = asks(State().under(rule), "a", 0)
    state, _ = gate.leave(state, Ended("a", 0, True), 5)
    before = state
    state, answer = asks(state, "b", 100, before_us=SECOND)
    assert answer == Rejected("rate_limit", SECOND, SECOND - 100)
    assert state == before


def test_what_a_caller_has_no_policy_for_stays_as_it_is() -> None:
    state, _ = asks(State().under(RULE), "a", 0)
    part = state.under(Rule(rate=rate_limit.Rule(10, SECOND)))
    assert (part.breaker, part.concurrency, part.rate) == (None, None, state.rate)
    after, _ = asks(part, "b", 0)
    assert state.with_part(after) == State(state.breaker, state.concurrency, after.rate)


def test_new_numbers_hold_for_what_was_counted_before() -> None:
    state, _ = asks(State().under(RULE), "a", 0)
    state, _ = gate.leave(state, Ended("a", 0, True), 1)
    stricter = state.under(Rule(breaker.Rule(1, SECOND, SECOND)))
    _, released = gate.leave(stricter, Ended("b", 0, True), 2)
    assert released == gate.Released("opened")


@given(st.sampled_from(RULES), happenings)
def test_its_promises_hold_in_every_story(rule: Rule, story: list[Happening]) -> None:
    state, now = State().under(rule), 10**9
    out: dict[str, int] = {}
    moments: list[int] = []
    for happening in story:
        now += happening.gap_us
        who, before = happening.who, state
        if happening.what != "ask":
            is_failure = happening.what == "failed"
            abandoned = happening.what == "abandoned"
            event = Abandoned(who) if abandoned else Ended(who, out.get(who, now), is_failure)
            state, _ = gate.step(state, event, now)
            out.pop(who, None)
            continue
        state, answer = asks(state, who, now, now + happening.patience_us)
        if isinstance(answer, Admitted):
            assert answer.at_us == now + answer.wait_us
            assert answer.wait_us == 0 or answer.wait_us < happening.patience_us
            out[who] = now
            moments.append(answer.at_us)
        else:
            assert (state.breaker, state.rate) == (before.breaker, before.rate)
            assert isinstance(answer, Rejected) or answer.until_us < now + happening.patience_us
        if isinstance(answer, Rejected) and state.concurrency is not None:
            assert all(each != who for _, each in state.concurrency.inside)
            assert all(each != who for each, _ in state.concurrency.queue)
        if state.concurrency is not None:
            assert sum(until > now for until, _ in state.concurrency.inside) <= state.concurrency.rule.limit
    if rule.rate is not None:
        for first in moments:
            inside = sum(first <= at < first + rule.rate.per_us for at in moments)
            assert inside <= rule.rate.limit + rule.rate.burst - 1
