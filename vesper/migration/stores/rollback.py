"""Capacity that Python needs to take over the traffic of the direct engine.

A demoted node's traffic returns to Python immediately. A service whose machines were reduced since then would be short
of processors, so `vesper status` shows the need in advance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from vesper.journal.moments import number, took_text
from vesper.migration.control.modes import Engine
from vesper.migration.control.state import NodeState
from vesper.migration.stores.traffic import HOUR_US, Traffic

MIN_TIMES = 20
"""Minimum number of times for a mean. A round starts empty, so that the mean is unknown for a moment."""


@dataclass(frozen=True, slots=True)
class Rollback:
    """The busiest hour of the direct engine within the last day."""

    requests: int
    """Requests with a direct outcome in that hour."""
    python_ns: float | None
    """Mean duration of a run on Python without the slowest twentieth; None where too few are known."""
    direct_ns: float | None

    @property
    def processors(self) -> float | None:
        """The number of processors that Python would need for these requests; None where its duration is unknown."""
        return None if self.python_ns is None else self.requests * self.python_ns / (HOUR_US * 1000)


def rollback_of(state: NodeState, traffic: Traffic, now_us: int, hours: int) -> Rollback | None:
    """Return the busiest hour; None where the direct engine returned no outcome within `hours`."""
    last = now_us // HOUR_US
    most = max(
        (_count_direct(counts) for hour, counts in traffic.hours.items() if last - hours < hour <= last),
        default=0,
    )
    times = state.latency
    return Rollback(most, _trimmed_mean(times.python), _trimmed_mean(times.direct)) if most else None


def _count_direct(counts: Mapping[str, int]) -> int:
    return sum(count for name, count in counts.items() if name.endswith(f"/{Engine.DIRECT.value}"))


def _trimmed_mean(times: tuple[int, ...]) -> float | None:
    """Return the mean without the slowest twentieth, in which the process mostly waited for a processor."""
    return fmean(sorted(times)[: len(times) * 19 // 20]) if len(times) >= MIN_TIMES else None


def rollback_text(back: Rollback) -> str:
    answered = f"{number(back.requests, 'request')} that the direct engine answered in the busiest hour"
    if back.python_ns is None or back.processors is None:
        return f"{answered}; the time of Python is unknown, because too few calls were timed recently"
    return f"Python takes {back.processors:.2g} processors for the {answered}, {_time_text(back.python_ns)} each"


def _time_text(ns: float) -> str:
    if ns < 1_000:
        return f"{ns:.0f} ns"
    return f"{ns / 1_000:.3g} µs" if ns < 1_000_000 else took_text(round(ns / 1_000))
