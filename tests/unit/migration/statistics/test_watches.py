"""The CUSUM of divergences and the latency detector."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from vesper.migration.control import cusum
from vesper.migration.control.modes import LADDER, THRESHOLDS, Mode
from vesper.migration.statistics import latency
from vesper.migration.statistics.evidence import is_too_unknown


@pytest.mark.parametrize("mode", THRESHOLDS, ids=lambda mode: mode.value)
def test_three_divergences_close_together_give_the_alarm(mode: Mode) -> None:
    state = cusum.RateState()
    alarms = []
    for _ in range(3):
        state = cusum.add_divergence(state, mode)
        alarms.append(cusum.is_alarm(state))
    assert alarms == [False, False, True]


def test_far_apart_they_give_none() -> None:
    state = cusum.RateState()
    for _ in range(100):
        state = cusum.add_agreements(cusum.add_divergence(state, Mode.DIRECT_ONLY), Mode.DIRECT_ONLY, 10_000)
        assert not cusum.is_alarm(state)


def test_a_long_good_past_does_not_hide_a_bad_hour() -> None:
    state = cusum.add_agreements(cusum.add_divergence(cusum.RateState(), Mode.DIRECT_ONLY), Mode.DIRECT_ONLY, 10**9)
    assert state == cusum.RateState()
    for _ in range(3):
        state = cusum.add_divergence(state, Mode.DIRECT_ONLY)
    assert cusum.is_alarm(state)


def test_counting_at_once_equals_counting_one_by_one() -> None:
    draw = random.Random(4)
    one_by_one = at_once = cusum.RateState()
    for _ in range(200):
        runs = draw.randint(0, 400)
        for _ in range(runs):
            one_by_one = cusum.add_agreements(one_by_one, Mode.DUAL_VERIFY, 1)
        one_by_one = cusum.add_divergence(one_by_one, Mode.DUAL_VERIFY)
        at_once = cusum.add_divergence(cusum.add_agreements(at_once, Mode.DUAL_VERIFY, runs), Mode.DUAL_VERIFY)
        assert one_by_one == at_once


@pytest.mark.parametrize("mode", [mode for mode in LADDER if mode not in THRESHOLDS], ids=lambda mode: mode.value)
def test_modes_without_threshold_have_no_rate_alarm(mode: Mode) -> None:
    state = cusum.RateState()
    for _ in range(10):
        state = cusum.add_divergence(state, mode)
    assert state == cusum.RateState()


def round_of(draw: random.Random, scale: float) -> tuple[int, ...]:
    return tuple(int(10_000 * scale * draw.lognormvariate(5, 0.7)) for _ in range(latency.ROUND_SIZE))


def test_equal_engines_are_not_called_slower() -> None:
    draw = random.Random(5)
    assert sum(latency.is_slower(round_of(draw, 1), round_of(draw, 1)) for _ in range(300)) == 0


def test_a_slower_engine_is_seen() -> None:
    draw = random.Random(6)
    assert all(latency.is_slower(round_of(draw, 1), round_of(draw, 1.6)) for _ in range(50))


def test_a_tail_that_got_longer_is_seen_where_the_median_did_not() -> None:
    fast = tuple(100_000 + number % 50_000 for number in range(latency.ROUND_SIZE))
    slow = tuple(time * (5 if number % 8 == 0 else 1) for number, time in enumerate(fast))
    assert sorted(slow)[latency.ROUND_SIZE // 2] < 1.1 * sorted(fast)[latency.ROUND_SIZE // 2]
    assert latency.is_slower(fast, slow)


def test_cold_caches_are_not_called_slower() -> None:
    """A node of 2 µs at 150 requests a second, as measured: Python leads, and the direct engine follows."""
    python = tuple(30_000 + 50 * number for number in range(latency.ROUND_SIZE))
    for by, is_slower in ((20_000, False), (45_000, False), (80_000, True)):
        assert latency.is_slower(python, tuple(each + by for each in python)) is is_slower


def test_a_few_very_long_runs_move_nothing() -> None:
    draw = random.Random(8)
    fast = round_of(draw, 1)
    assert not latency.is_slower(fast, (*fast[:-5], *(10**12,) * 5))


def test_two_bad_rounds_in_a_row_give_the_alarm_and_a_good_one_between_forgives() -> None:
    def after(state: latency.LatencyState, direct_ns: int) -> latency.LatencyState:
        for _ in range(latency.ROUND_SIZE):
            state = latency.add_time(state, 100_000, direct_ns)
        return state

    once = after(latency.LatencyState(), 200_000)
    assert once == latency.LatencyState(bad_rounds=1)
    assert not latency.is_alarm(once)
    assert latency.is_alarm(after(once, 200_000))
    assert after(once, 100_000).bad_rounds == 0


def test_a_round_waits_for_both_engines_in_bounded_memory() -> None:
    state = latency.LatencyState()
    for _ in range(3 * latency.ROUND_SIZE):
        state = latency.add_time(state, 100, None)
    assert len(state.python) == latency.ROUND_SIZE
    assert state.direct == ()


def test_the_ranks_lie_within_the_round() -> None:
    for quantile in latency.QUANTILES:
        found = latency.ranks(quantile, latency.ROUND_SIZE)
        assert 0 <= found.low < quantile * latency.ROUND_SIZE < found.high < latency.ROUND_SIZE
    with pytest.raises(ValueError, match="too few"):
        latency.ranks(Fraction(99, 100), latency.ROUND_SIZE)
    with pytest.raises(ValueError, match="no time"):
        latency.add_time(latency.LatencyState(), -1, None)


@pytest.mark.parametrize("compared, unknown, blocks", [(999, 1, False), (998, 1, True), (0, 0, False), (0, 1, True)])
def test_over_a_thousandth_unknown_blocks(compared: int, unknown: int, blocks: bool) -> None:
    assert is_too_unknown(compared, unknown) is blocks


def test_batched_times_equal_single_ones() -> None:
    draw = random.Random(8)
    for _ in range(30):
        one_by_one = together = latency.LatencyState()
        times: list[tuple[int | None, int | None]] = [
            draw.choice([(100, 300), (100, None), (None, 300), (100, 100), (None, None)])
            for _ in range(draw.randrange(4 * latency.ROUND_SIZE))
        ]
        for python_ns, direct_ns in times:
            one_by_one = latency.add_time(one_by_one, python_ns, direct_ns)
        judged = 0
        while times:
            together, count = latency.add_times(together, times)
            times = times[count:]
            if times:
                together = latency.add_time(together, *times.pop(0))
                judged += 1
        assert together == one_by_one
        assert judged <= 4, "only those with which a round is full are judged"


def test_negative_times_are_refused() -> None:
    for times in ((-1, None), (None, -1)):
        with pytest.raises(ValueError, match="less than no time"):
            latency.add_times(latency.LatencyState(), [(1, 1), times])
