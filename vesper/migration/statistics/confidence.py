"""Sufficiency of evidence for a mode.

The Wilson bound and the e-process must both reach its threshold.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from vesper.migration.statistics import wilson
from vesper.migration.statistics.evalue import EProcess


def supports(threshold: Fraction, clean: int, divergences: int, attempt: int) -> bool:
    """Return True where the runs show the agreement `threshold`, at the k-th attempt.

    `clean` counts distinct inputs, `divergences` counts occurrences.
    """
    runs = clean + divergences
    if not wilson.is_at_least(runs, divergences, threshold):
        return False
    return EProcess.from_counts(threshold, runs, divergences).reaches(attempt)


@lru_cache(maxsize=65_536)
def clean_runs_needed(threshold: Fraction, divergences: int, attempt: int) -> int:
    """Return the smallest number of distinct clean runs that suffices.

    The search ends because both statistics grow without bound with clean runs.
    """
    low, high = 0, 256
    while not supports(threshold, high, divergences, attempt):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        if supports(threshold, middle, divergences, attempt):
            high = middle
        else:
            low = middle
    return high
