"""The Wilson lower bound of a share of agreements, z = 3.29.

Decisions use integers and are the same on every machine. The bound L of s agreements in n runs is where (s/n - L)² = z²
L (1 - L) / n on the lower side, so L >= t means s/n >= t and (s/n - t)² n >= z² t (1 - t); with t = a/b and z² = u/v
both sides are integers. In floating point the boundary would depend on how the formula is written.
"""

from __future__ import annotations

import math
from fractions import Fraction

Z = Fraction(329, 100)
_Z_SQUARED = Z * Z
_SCALE = 10**30


def is_at_least(runs: int, divergences: int, threshold: Fraction) -> bool:
    """Return True where the lower bound reaches the threshold. The comparison is exact."""
    agreements = _agreements(runs, divergences)
    a, b = threshold.numerator, threshold.denominator
    if not 0 < a < b:
        raise ValueError(f"a threshold lies between 0 and 1, and {threshold} does not")
    distance = agreements * b - a * runs
    if runs == 0 or distance < 0:
        return False
    return distance * distance * _Z_SQUARED.denominator >= _Z_SQUARED.numerator * a * (b - a) * runs


def lower_bound(runs: int, divergences: int) -> float:
    """Return the bound rounded from thirty exact digits, for display; decisions use `is_at_least`."""
    agreements = _agreements(runs, divergences)
    if runs == 0:
        return 0.0
    # L = (2s + z² - z sqrt(z² + 4 s d / n)) / (2 (n + z²)), with an integer root that is rounded up.
    inside = _Z_SQUARED * (_Z_SQUARED + Fraction(4 * agreements * divergences, runs))
    root = Fraction(_root_up(inside), _SCALE)
    return max(0.0, float((2 * agreements + _Z_SQUARED - root) / (2 * (runs + _Z_SQUARED))))


def _root_up(square: Fraction) -> int:
    """Return the square root in units of the scale, rounded up."""
    scaled = -(-square.numerator * _SCALE * _SCALE // square.denominator)
    root = math.isqrt(scaled)
    return root if root * root == scaled else root + 1


def _agreements(runs: int, divergences: int) -> int:
    if not 0 <= divergences <= runs:
        raise ValueError(
            f"{divergences} divergences in {runs} runs: there are never more of them, and never fewer than 0"
        )
    return runs - divergences
