"""Alternating timing rounds of several ways to do the same thing, so that other load affects all alike.

Compare the ratio of best rounds within one measurement, never times of two measurements. `vesper bench` and `make
bench` share this module.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SECONDS_A_ROUND = 0.0015
MIN_ROUNDS = 5
Clock = Callable[[], float]


@dataclass(frozen=True)
class Way:
    """A function and the inputs of its calls."""

    call: Callable[[Any], Any]
    inputs: Sequence[Any]


@dataclass(frozen=True)
class Timing:
    """Seconds of one call: statistics over the means of the rounds."""

    best: float
    median: float
    worst: float
    rounds: int

    @property
    def spread(self) -> float:
        """Median round over best round: 1.02 on a quiet machine; far above, the times are unreliable."""
        return self.median / self.best if self.best else 1.0


def timing_of(samples: Sequence[float]) -> Timing:
    return Timing(min(samples), statistics.median(samples), max(samples), len(samples))


def seconds_for(way: Way, times: int, clock: Clock = time.perf_counter) -> float:
    """Return the seconds of `times` calls with each of the inputs."""
    call, inputs = way.call, way.inputs
    turns = range(times)
    start = clock()
    for _ in turns:
        for each in inputs:
            call(each)
    return clock() - start


def times_for(way: Way, seconds: float, clock: Clock = time.perf_counter) -> int:
    """Return how many passes over the inputs take about this time; at least one."""
    times = 1
    while True:
        taken = seconds_for(way, times, clock)
        if taken >= seconds / 4 or times >= 1 << 22:
            return max(1, round(times * seconds / taken)) if taken > 0 else times
        times *= 4


def interleaved(
    ways: Mapping[str, Way],
    *,
    rounds: int | None = None,
    seconds: float | None = None,
    seconds_a_round: float = SECONDS_A_ROUND,
    clock: Clock = time.perf_counter,
) -> dict[str, Timing]:
    """Time all ways for `rounds` rounds, or for as many as fit into `seconds`, at least five."""
    if (rounds is None) == (seconds is None):
        raise ValueError("give rounds or seconds, not both")
    times = {name: times_for(way, seconds_a_round, clock) for name, way in ways.items()}
    samples: dict[str, list[float]] = {name: [] for name in ways}
    order = list(ways.items())
    had_collector = gc.isenabled()
    gc.collect()
    gc.disable()  # as `timeit` does: a collection would slow one way alone
    try:
        start, done = clock(), 0
        while done < (MIN_ROUNDS if rounds is None else rounds) or (seconds is not None and clock() - start < seconds):
            # The order alternates, so that no way always runs after the same predecessor.
            for name, way in order if done % 2 == 0 else reversed(order):
                samples[name].append(seconds_for(way, times[name], clock) / (times[name] * len(way.inputs)))
            done += 1
    finally:
        if had_collector:
            gc.enable()
    return {name: timing_of(found) for name, found in samples.items()}


def ratio(timings: Mapping[str, Timing], name: str, base: str) -> float:
    """Return the time of one way as a fraction of another, by their best rounds."""
    return timings[name].best / timings[base].best


def time_text(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"
