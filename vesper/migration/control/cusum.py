"""A CUSUM of divergences: the log-likelihood of a tenfold rate against the rate that the mode allows.

The sum rises by ln 10 with a divergence, falls a little with an agreement, and never below zero, so that a long good
past does not hide a bad hour. Three divergences close together raise the alarm, on whatever paths they are. The numbers
are integers in units of 10⁻³⁰, so that counting at once and one by one give the same sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from vesper.migration.control.modes import THRESHOLDS, Mode

RATE_MULTIPLE = 10
"""Rate to detect, in multiples of the rate that the mode allows."""
_UNIT = 10**30
ALARM = Fraction(13, 2) * _UNIT
"""Sum that raises the alarm, between two and three times ln 10."""
_EXACT = Context(prec=50)


@dataclass(frozen=True, slots=True)
class RateState:
    sum: int = 0


@lru_cache(maxsize=8)
def _increments(mode: Mode) -> tuple[int, int] | None:
    """Return the decrement of an agreement and the increment of a divergence; None in modes without a threshold."""
    if mode not in THRESHOLDS:
        return None
    allowed = 1 - THRESHOLDS[mode]
    feared = min(allowed * RATE_MULTIPLE, Fraction(1, 2))
    return -_log((1 - feared) / (1 - allowed)), _log(feared / allowed)


def _log(value: Fraction) -> int:
    exact = _EXACT.ln(_EXACT.divide(Decimal(value.numerator), Decimal(value.denominator)))
    return int(_EXACT.multiply(exact, Decimal(_UNIT)).to_integral_value(rounding=ROUND_FLOOR))


def add_agreements(state: RateState, mode: Mode, runs: int) -> RateState:
    by = _increments(mode)
    return state if by is None or state.sum == 0 else RateState(max(0, state.sum - runs * by[0]))


def add_divergence(state: RateState, mode: Mode) -> RateState:
    by = _increments(mode)
    return state if by is None else RateState(state.sum + by[1])


def is_alarm(state: RateState) -> bool:
    return state.sum >= ALARM
