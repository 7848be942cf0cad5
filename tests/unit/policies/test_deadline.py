"""Time: what an attempt may take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.policies.deadline import Allowed, Begin, Expired, Rule, State, step

times = st.none() | st.integers(1, 1_000)


@pytest.mark.parametrize(
    "attempt_us,total_us,now_us,decided",
    [
        (None, None, 10**9, Allowed("nothing")),
        (30, None, 10**9, Allowed("attempt", 30)),
        (None, 100, 1_040, Allowed("total", 60)),
        (30, 100, 1_040, Allowed("attempt", 30)),
        (30, 100, 1_070, Allowed("attempt", 30)),
        (30, 100, 1_071, Allowed("total", 29)),
        (30, 100, 1_099, Allowed("total", 1)),
        (30, 100, 1_100, Expired(0)),
        (30, 100, 1_150, Expired(50)),
    ],
)
def test_the_shorter_time_holds(
    attempt_us: int | None, total_us: int | None, now_us: int, decided: Allowed | Expired
) -> None:
    state = State(Rule(attempt_us, total_us), 1_000)
    assert step(state, Begin(), now_us) == (state, decided)


@given(times, times, st.integers(0, 10**6), st.integers(0, 2_000))
def test_no_attempt_may_go_on_after_the_end(
    attempt_us: int | None, total_us: int | None, started_us: int, later_us: int
) -> None:
    state = State(Rule(attempt_us, total_us), started_us)
    _, decided = step(state, Begin(), started_us + later_us)
    if isinstance(decided, Expired):
        assert total_us is not None
        assert decided.over_by_us == later_us - total_us
    else:
        given_up_at = [each for each in (attempt_us, None if total_us is None else total_us - later_us) if each]
        assert decided.timeout_us == min(given_up_at, default=None)


def test_a_rule_is_read_from_a_policy() -> None:
    assert Rule.of({"timeout_us": 5, "total_timeout_us": 7}) == Rule(5, 7)
    assert Rule.of({}) == Rule()
    assert State(Rule(), 3).deadline_us is None
    assert State(Rule(5, 7), 3).deadline_us == 10
