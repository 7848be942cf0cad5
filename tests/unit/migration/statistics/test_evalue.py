"""The e-process: exact in steps and at once, no growth under the hypothesis, few false promotions."""

from __future__ import annotations

import itertools
import math
import random
from decimal import Decimal
from fractions import Fraction

import pytest

from vesper.migration.control.modes import THRESHOLDS, Mode
from vesper.migration.statistics.confidence import clean_runs_needed, supports
from vesper.migration.statistics.evalue import ALPHA, RATIOS, WEIGHTS, EProcess, log_needed, needed

THRESHOLD_LIST = list(THRESHOLDS.values())


def by_formula(threshold: Fraction, runs: int, divergences: int) -> Fraction:
    """Return E(n, d) by its formula, in exact fractions."""
    q0 = 1 - threshold
    return sum(
        (
            weight * ratio**divergences * ((1 - ratio * q0) / (1 - q0)) ** (runs - divergences)
            for ratio, weight in zip(RATIOS, WEIGHTS, strict=True)
        ),
        start=Fraction(0),
    )


def as_decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def test_the_weights_are_a_mixture() -> None:
    assert sum(WEIGHTS) == 1
    assert len(WEIGHTS) == len(RATIOS)
    assert all(0 <= ratio < 1 for ratio in RATIOS)


@pytest.mark.parametrize("threshold", THRESHOLD_LIST, ids=str)
@pytest.mark.parametrize("runs, divergences", [(0, 0), (1, 0), (1, 1), (7, 2), (60, 0), (60, 60), (206, 3)])
def test_it_is_the_designed_sum(threshold: Fraction, runs: int, divergences: int) -> None:
    wanted = as_decimal(by_formula(threshold, runs, divergences))
    found = EProcess.from_counts(threshold, runs, divergences)
    assert abs(found.exact() / wanted - 1) < Decimal("1e-24")
    assert found.log() == pytest.approx(float(wanted.ln()), abs=1e-9)


def test_run_by_run_and_at_once_are_equal_to_the_last_digit() -> None:
    draw = random.Random(2)
    for threshold in THRESHOLD_LIST:
        process, divergences = EProcess(threshold), 0
        for runs in range(1, 400):
            is_divergence = draw.random() < 0.02
            divergences += is_divergence
            process = process.diverge() if is_divergence else process.agree()
            assert process == EProcess.from_counts(threshold, runs, divergences)


@pytest.mark.parametrize("threshold", THRESHOLD_LIST, ids=str)
@pytest.mark.parametrize("times", [Fraction(1), Fraction(3, 2), Fraction(4)])
def test_under_the_hypothesis_it_is_not_expected_to_grow(threshold: Fraction, times: Fraction) -> None:
    """Over all histories of seven runs, each with its chance at a true rate of q0 or more."""
    rate = (1 - threshold) * times
    expected = Decimal(0)
    for history in itertools.product((0, 1), repeat=7):
        divergences = sum(history)
        chance = rate**divergences * (1 - rate) ** (7 - divergences)
        expected += as_decimal(chance) * EProcess.from_counts(threshold, 7, divergences).exact()
    if times == 1:
        assert abs(expected - 1) < Decimal("1e-20")
    else:
        assert expected < 1


@pytest.mark.parametrize("threshold", THRESHOLD_LIST, ids=str)
def test_a_divergence_is_never_in_favour(threshold: Fraction) -> None:
    for runs in (10, 300, 20_000):
        values = [EProcess.from_counts(threshold, runs, divergences).exact() for divergences in range(10)]
        assert values == sorted(values, reverse=True)
        assert len(set(values)) == len(values)


def test_an_agreement_is_never_against() -> None:
    for divergences in (0, 1, 5):
        values = [EProcess.from_counts(THRESHOLD_LIST[0], runs, divergences).exact() for runs in range(5, 60)]
        assert values == sorted(values)


def test_the_error_is_spent_over_all_attempts() -> None:
    spent = sum(1 / needed(attempt) for attempt in range(1, 3_000))
    assert as_decimal(ALPHA) * Decimal("0.999") < spent < as_decimal(ALPHA)
    assert float(needed(1)) == pytest.approx(math.pi**2 / 6 * 10_000)
    assert log_needed(3) == pytest.approx(math.log(9 * math.pi**2 / 6 * 10_000))
    with pytest.raises(ValueError, match="counted from 1"):
        needed(0)


def test_the_answer_at_the_boundary_is_the_exact_one() -> None:
    for threshold in THRESHOLD_LIST[:2]:
        for attempt in (1, 2, 9):
            low, high = 0, 10**6
            while high - low > 1:
                middle = (low + high) // 2
                enough = EProcess.from_counts(threshold, middle, 0).reaches(attempt)
                low, high = (low, middle) if enough else (middle, high)
            assert EProcess.from_counts(threshold, high, 0).exact() >= needed(attempt)
            assert EProcess.from_counts(threshold, low, 0).exact() < needed(attempt)


@pytest.mark.parametrize(
    "mode, first, second, with_one_divergence",
    [
        (Mode.CANARY_DIRECT, 206, 225, 288),
        (Mode.DUAL_VERIFY, 10_814, 11_506, 14_786),
        (Mode.DIRECT_ONLY, 108_231, 115_109, 147_930),
    ],
)
def test_a_clean_node_pays_nothing_the_first_time(
    mode: Mode, first: int, second: int, with_one_divergence: int
) -> None:
    threshold = THRESHOLDS[mode]
    assert clean_runs_needed(threshold, 0, 1) == first
    assert clean_runs_needed(threshold, 0, 2) == second
    assert clean_runs_needed(threshold, 1, 1) == with_one_divergence
    for divergences, attempt, clean in ((0, 1, first), (0, 2, second), (1, 1, with_one_divergence)):
        assert supports(threshold, clean, divergences, attempt)
        assert not supports(threshold, clean - 1, divergences, attempt)


def test_continuous_monitoring_keeps_the_error_bound() -> None:
    """At a true rate of exactly q0, one history in twenty may ever see E >= 20."""
    threshold, rate, length, histories = THRESHOLDS[Mode.CANARY_DIRECT], 0.05, 1_500, 600
    fooled = 0
    for seed in range(histories):
        draw = random.Random(seed)
        process = EProcess(threshold)
        clean = 0
        for _ in range(length):
            if draw.random() >= rate:
                clean += 1
                continue
            process, clean = process.agree(clean), 0  # E is highest right before a divergence
            if process.log() >= math.log(20):
                fooled += 1
                break
            process = process.diverge()
    assert fooled <= histories * 0.05
    assert fooled > 0, "a bound that is never approached is not tested"


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot be"):
        EProcess.from_counts(THRESHOLD_LIST[0], 1, 2)
    with pytest.raises(ValueError, match="between 0 and 1"):
        EProcess.from_counts(Fraction(1), 1, 0)
