"""What it would take to go back: how much of a processor Python needs for what the direct engine answers now.

A node that falls gives its traffic back to Python at once. Whoever has taken away the machines that Python needed finds
out then, unless somebody says it before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from vesper.migration.control.modes import Engine
from vesper.migration.control.state import State
from vesper.migration.stores.traffic import HOUR_US, Traffic

FEWEST = 20
"""Times that a mean is taken of. A round of times begins with none: for a moment nothing is known."""


@dataclass(frozen=True, slots=True)
class Rollback:
    """In the hour of the last day in which the direct engine answered the most."""

    requests: int
    """That it answered in that hour."""
    python_ns: float | None
    """A run on Python, on average (the longest twentieth aside); None where too few were timed lately."""
    direct_ns: float | None

    @property
    def processors(self) -> float | None:
        """How many of them Python would have taken for these requests; None where nobody knows how long it takes."""
        return None if self.python_ns is None else self.requests * self.python_ns / (HOUR_US * 1000)


def rollback_of(state: State, traffic: Traffic, now_us: int, hours: int) -> Rollback | None:
    """None where the direct engine answered nothing within so many hours."""
    last = now_us // HOUR_US
    most = max(
        (_by_direct(counts) for hour, counts in traffic.hours.items() if last - hours < hour <= last),
        default=0,
    )
    times = state.latency
    return Rollback(most, _mean(times.python), _mean(times.direct)) if most else None


def _by_direct(counts: Mapping[str, int]) -> int:
    return sum(count for name, count in counts.items() if name.endswith(f"/{Engine.DIRECT.value}"))


def _mean(times: tuple[int, ...]) -> float | None:
    """Without the longest twentieth: in these the process mostly waited for its turn, which takes no processor."""
    return fmean(sorted(times)[: len(times) * 19 // 20]) if len(times) >= FEWEST else None
