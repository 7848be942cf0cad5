"""Latencies of callers in one mode beside Python alone.

The two sides take turns every second or so; a turn of each is a round. The cost of a mode is given over all requests
together, which the bar applies to, and as the median of the rounds: a machine that stalls for a tenth of a second
delays every request of that time on either side, and a few stalls determine the 99th percentile of all requests. Each
ratio has an interval, from resampled rounds.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

_RESAMPLED = 500
_INTERVAL = (0.05, 0.95)


@dataclass
class Measured:
    """One turn. Latencies are from the due time of a request, by leader."""

    by_python_us: list[int] = field(default_factory=list)
    by_direct_us: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    core: float = 0.0
    """Share of one core that the process of the service used."""

    def rate_for(self, core: float, rate: float) -> float:
        """Return the rate that would use `core`, by the use in this turn.

        It moves half-way, because a turn is short.
        """
        return rate * math.sqrt(core / self.core)

    @property
    def all_us(self) -> list[int]:
        return self.by_python_us + self.by_direct_us

    @property
    def done(self) -> int:
        return len(self.by_python_us) + len(self.by_direct_us)


Turn = tuple[Measured, Measured]
"""Turn of Python alone, and turn of the mode beside it."""


def quantile(latencies_us: Sequence[int], share: float) -> int:
    ordered = sorted(latencies_us)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0


def compared(turns: Sequence[Turn]) -> dict[str, Any]:
    """Return medians and 99th percentiles of the mode by leader, as shares of Python alone."""
    said: dict[str, Any] = {
        "rounds": len(turns),
        "requests": sum(routed.done for _, routed in turns),
        "wrong": sum(len(each.wrong) for turn in turns for each in turn),
        "alone_core": round(statistics.mean(alone.core for alone, _ in turns), 3),
        "mode_core": round(statistics.mean(routed.core for _, routed in turns), 3),
    }
    leaders: dict[str, Callable[[Measured], list[int]]] = {
        "python": lambda routed: routed.by_python_us,
        "direct": lambda routed: routed.by_direct_us,
    }
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        said[f"alone_{name}_us"] = quantile(_pooled([alone.all_us for alone, _ in turns]), share)
        for who, of in leaders.items():
            led = [of(routed) for _, routed in turns]
            if not any(led):
                continue  # nobody leads so in this mode
            pairs = [(alone.all_us, mine) for (alone, _), mine in zip(turns, led, strict=True)]
            said[f"by_{who}_{name}_us"] = quantile(_pooled(led), share)
            for ratio, of_pairs in ((f"by_{who}_{name}_ratio", _median), (f"by_{who}_{name}_of_all", _pooled_ratio)):
                said[ratio] = round(of_pairs(pairs, share), 3)
                said[f"{ratio}_from_to"] = [round(each, 3) for each in _interval(pairs, share, of_pairs)]
    return said


def is_decided(turns: Sequence[Turn], bar: float) -> bool:
    """Return True where the bar is outside of the interval, so that the rounds decide the comparison."""
    pairs = [(alone.all_us, routed.by_python_us) for alone, routed in turns]
    low, high = _interval(pairs, 0.99, _pooled_ratio)
    return not low <= bar <= high


Pair = tuple[list[int], list[int]]


def _median(pairs: Sequence[Pair], share: float) -> float:
    """Return the median of the rounds; a round without requests of this leader is left out."""
    ratios = [quantile(mine, share) / max(1, quantile(alone, share)) for alone, mine in pairs if mine]
    return statistics.median(ratios) if ratios else 0.0


def _pooled_ratio(pairs: Sequence[Pair], share: float) -> float:
    alone, routed = (_pooled(side) for side in zip(*pairs, strict=True))
    return quantile(routed, share) / max(1, quantile(alone, share))


def _interval(pairs: Sequence[Pair], share: float, of_pairs: Callable[[Sequence[Pair], float], float]) -> list[float]:
    """Return the interval of nine in ten ratios of resampled rounds."""
    draw = random.Random(7)
    found = sorted(of_pairs(draw.choices(pairs, k=len(pairs)), share) for _ in range(_RESAMPLED))
    return [found[int(each * (len(found) - 1))] for each in _INTERVAL]


def _pooled(parts: Sequence[list[int]]) -> list[int]:
    return [each for part in parts for each in part]
