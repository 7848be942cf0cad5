"""The e-process against the hypothesis that the rate of divergences is at least 1 - threshold.

E(n, d) = Σ wⱼ rⱼ^d ((1 - rⱼ q₀) / (1 - q₀))^(n - d), with q₀ = 1 - threshold. Each term is the likelihood ratio of the
rate rⱼ q₀ against q₀. Their mixture starts at 1 and, where the true rate is q₀ or higher, its expectation does not
grow. So the chance that it ever reaches 1/α is at most α, however often it is evaluated. The ratio r = 0 gives most of
the evidence of a node without divergences; the others let a node with a rate well below q₀ pass too.

The logarithms are integers in units of 10⁻³⁰, rounded down. Their sums are exact, so counting run by run and counting
at once give the same number, and the evidence is never overstated. `reaches` decides in floating point with a margin
far above the error of any libm, and inside the margin in decimals of 50 digits, which are the same on every machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

ALPHA = Fraction(1, 10_000)
"""Chance of a false promotion in an epoch, over all its attempts."""
RATIOS = tuple(Fraction(each) for each in ("0", "0.02", "0.05", "0.1", "0.2", "0.35", "0.5", "0.65", "0.8"))
WEIGHTS = tuple(Fraction(each) for each in ("0.5", "0.1", "0.08", "0.08", "0.08", "0.06", "0.05", "0.03", "0.02"))

_DIGITS = 30
_EXACT = Context(prec=50, rounding=ROUND_FLOOR, Emax=10**15, Emin=-(10**15))
_UNIT = Decimal(10) ** _DIGITS
_PI = Decimal("3.14159265358979323846264338327950288419716939937511")
_MARGIN = 1e-6


@dataclass(frozen=True, slots=True)
class Steps:
    """Summands of one run for the logarithm of each term."""

    agreement: tuple[int, ...]
    divergence: tuple[int | None, ...]
    """None for the ratio 0: the first divergence makes its term zero."""


@lru_cache(maxsize=64)
def steps(threshold: Fraction) -> Steps:
    q0 = 1 - threshold
    if not 0 < q0 < 1:
        raise ValueError(f"a threshold lies between 0 and 1, and {threshold} does not")
    return Steps(
        tuple(_log((1 - ratio * q0) / (1 - q0)) for ratio in RATIOS),
        tuple(None if ratio == 0 else _log(ratio) for ratio in RATIOS),
    )


def _log(value: Fraction) -> int:
    """Return the natural logarithm in units of 10⁻³⁰, rounded down."""
    exact = _EXACT.divide(Decimal(value.numerator), Decimal(value.denominator))
    return int(_EXACT.multiply(_EXACT.ln(exact), _UNIT).to_integral_value(rounding=ROUND_FLOOR))


@dataclass(frozen=True, slots=True)
class EProcess:
    """The e-process for one threshold after some runs."""

    threshold: Fraction
    logs: tuple[int | None, ...] = (0,) * len(RATIOS)
    """Logarithm of each term without its weight; None where the term is zero."""

    @staticmethod
    def from_counts(threshold: Fraction, runs: int, divergences: int) -> EProcess:
        if not 0 <= divergences <= runs:
            raise ValueError(f"{divergences} divergences in {runs} runs cannot be")
        return EProcess(threshold).agree(runs - divergences).diverge(divergences)

    def agree(self, runs: int = 1) -> EProcess:
        gains = steps(self.threshold).agreement
        return EProcess(
            self.threshold,
            tuple(None if log is None else log + runs * gain for log, gain in zip(self.logs, gains, strict=True)),
        )

    def diverge(self, runs: int = 1) -> EProcess:
        if runs == 0:
            return self
        losses = steps(self.threshold).divergence
        return EProcess(
            self.threshold,
            tuple(
                None if log is None or loss is None else log + runs * loss
                for log, loss in zip(self.logs, losses, strict=True)
            ),
        )

    def log(self) -> float:
        """Return the natural logarithm of E in floating point, for display."""
        terms = [
            log / 10**_DIGITS + math.log(weight)
            for log, weight in zip(self.logs, WEIGHTS, strict=True)
            if log is not None
        ]
        most: float = max(terms)
        return most + math.log(math.fsum(math.exp(term - most) for term in terms))

    def reaches(self, attempt: int) -> bool:
        """Return True where E is at least 1/α of this attempt."""
        distance = self.log() - log_needed(attempt)
        if abs(distance) > _MARGIN * max(1.0, abs(self.log())):
            return distance > 0
        return self.exact() >= needed(attempt)

    def exact(self) -> Decimal:
        total = Decimal(0)
        for log, weight in zip(self.logs, WEIGHTS, strict=True):
            if log is not None:
                term = _EXACT.exp(_EXACT.divide(Decimal(log), _UNIT))
                total = _EXACT.add(
                    total,
                    _EXACT.multiply(_EXACT.divide(Decimal(weight.numerator), Decimal(weight.denominator)), term),
                )
        return total


@lru_cache(maxsize=4096)
def needed(attempt: int) -> Decimal:
    """Return 1/α for the k-th attempt of an epoch.

    The shares α·6/(π²k²) of all attempts sum to α.
    """
    if attempt < 1:
        raise ValueError(f"attempts are counted from 1, and {attempt} is none")
    squares = _EXACT.multiply(_EXACT.multiply(_PI, _PI), Decimal(attempt * attempt * ALPHA.denominator))
    return _EXACT.divide(squares, Decimal(6 * ALPHA.numerator))


@lru_cache(maxsize=4096)
def log_needed(attempt: int) -> float:
    return float(_EXACT.ln(needed(attempt)))
