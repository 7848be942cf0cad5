"""The Wilson bound against the formula in decimals of sixty digits, and the promised numbers of runs."""

from __future__ import annotations

import random
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from vesper.migration.control.modes import THRESHOLDS, Mode
from vesper.migration.statistics.wilson import is_at_least, lower_bound


def by_formula(runs: int, divergences: int) -> Decimal:
    """Return the bound by the textbook formula, with far more digits than a decision needs."""
    with localcontext() as context:
        context.prec = 60
        n, z = Decimal(runs), Decimal("3.29")
        p = (n - divergences) / n
        centre = (p + z * z / (2 * n)) / (1 + z * z / n)
        margin = z * (p * (1 - p) / n + z * z / (4 * n * n)).sqrt() / (1 + z * z / n)
        return centre - margin


@pytest.mark.parametrize(
    "mode, runs",
    [(Mode.CANARY_DIRECT, 206), (Mode.DUAL_VERIFY, 10_814), (Mode.DIRECT_ONLY, 108_231)],
)
def test_clean_runs_cross_exactly_where_promised(mode: Mode, runs: int) -> None:
    assert is_at_least(runs, 0, THRESHOLDS[mode])
    assert not is_at_least(runs - 1, 0, THRESHOLDS[mode])
    assert by_formula(runs, 0) >= Decimal(str(float(THRESHOLDS[mode]))) > by_formula(runs - 1, 0)


@pytest.mark.parametrize("divergences", [1, 2, 3, 10, 100])
@pytest.mark.parametrize("threshold", THRESHOLDS.values(), ids=str)
def test_the_boundary_with_divergences_is_that_of_the_formula(threshold: Fraction, divergences: int) -> None:
    low, high = divergences, 10**8
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_at_least(middle, divergences, threshold) else (middle, high)
    wanted = Decimal(threshold.numerator) / Decimal(threshold.denominator)
    assert by_formula(high, divergences) >= wanted > by_formula(high - 1, divergences)


def test_any_counts_agree_with_the_formula() -> None:
    draw = random.Random(1)
    for _ in range(2_000):
        runs = draw.choice([draw.randint(1, 30), draw.randint(1, 10**6)])
        divergences = draw.choice([0, 1, draw.randint(0, runs), runs])
        exact = by_formula(runs, min(divergences, runs))
        divergences = min(divergences, runs)
        threshold = Fraction(draw.randint(1, 9_999), 10_000)
        wanted = Decimal(threshold.numerator) / Decimal(threshold.denominator)
        assert is_at_least(runs, divergences, threshold) == (exact >= wanted), (runs, divergences, threshold)
        assert abs(Decimal(lower_bound(runs, divergences)) - exact) < Decimal("1e-15")


def test_a_bound_that_meets_the_threshold_exactly_counts() -> None:
    # z² = 10.8241: with 108,241 clean runs of z² more, the bound is 108241 / (108241 + 10.8241) = 10000/10001.
    assert is_at_least(108_241, 0, Fraction(10_000, 10_001))
    assert not is_at_least(108_240, 0, Fraction(10_000, 10_001))


def test_nothing_seen_is_nothing_known() -> None:
    assert lower_bound(0, 0) == 0.0
    assert not is_at_least(0, 0, Fraction(1, 100))
    assert lower_bound(5, 5) == 0.0


@pytest.mark.parametrize("runs, divergences", [(1, 2), (-1, 0), (3, -1)])
def test_impossible_counts_are_refused(runs: int, divergences: int) -> None:
    with pytest.raises(ValueError, match="divergences in"):
        lower_bound(runs, divergences)
    with pytest.raises(ValueError, match="divergences in"):
        is_at_least(runs, divergences, Fraction(1, 2))


@pytest.mark.parametrize("threshold", [Fraction(0), Fraction(1), Fraction(3, 2)])
def test_a_threshold_out_of_range_is_refused(threshold: Fraction) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        is_at_least(10, 0, threshold)
