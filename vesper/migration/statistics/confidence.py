"""Whether what was seen carries a mode: the Wilson bound and the e-process must both say so."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from vesper.migration.statistics import wilson
from vesper.migration.statistics.evalue import EProcess


def supports(threshold: Fraction, clean: int, divergences: int, attempt: int) -> bool:
    """Whether distinct clean runs and occurrences of divergences show the agreement, at the k-th attempt."""
    runs = clean + divergences
    if not wilson.is_at_least(runs, divergences, threshold):
        return False
    return EProcess.from_counts(threshold, runs, divergences).reaches(attempt)


@lru_cache(maxsize=65_536)
def clean_runs_needed(threshold: Fraction, divergences: int, attempt: int) -> int:
    """The smallest number of distinct clean runs that is enough. Both statistics grow with clean runs, without end."""
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
