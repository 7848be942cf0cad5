"""Median and 99th percentile of the runs of a node by engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from vesper.migration.control.modes import Engine
from vesper.migration.control.state import NodeState
from vesper.observe.metrics import BOUNDS_MS, Distribution, Sample
from vesper.values.generated.metrics import EXECUTION_DURATION

MIN_TIMES = 20
"""Minimum number of times for quantiles."""


@dataclass(frozen=True, slots=True)
class Times:
    """Quantiles of the durations on one engine."""

    p50_us: float
    p99_us: float
    runs: int


Durations = Mapping[tuple[str, Engine], Times]


def durations_of(samples: Iterable[Sample]) -> dict[tuple[str, Engine], Times]:
    """Return quantiles by node and engine. A quantile is the upper bound of its bucket."""
    found = {}
    for each in samples:
        if each.metric is EXECUTION_DURATION and isinstance(each.value, Distribution):
            node, path = each.labels
            runs = sum(each.value.counts)
            if runs >= MIN_TIMES:
                p50, p99 = (_of_buckets(each.value.counts, share) for share in (0.5, 0.99))
                found[node, Engine(path)] = Times(p50, p99, runs)
    return found


def _of_buckets(counts: Sequence[int], share: float) -> float:
    left = share * sum(counts)
    for count, bound_ms in zip(counts, (*BOUNDS_MS, BOUNDS_MS[-1]), strict=True):
        left -= count
        if left <= 0:
            return bound_ms * 1000
    return BOUNDS_MS[-1] * 1000


def times_of_state(state: NodeState, engine: Engine) -> Times | None:
    """Return quantiles of the runs that the latency guard timed last; None where they are too few."""
    times = sorted(state.latency.python if engine is Engine.PYTHON else state.latency.direct)
    if len(times) < MIN_TIMES:
        return None
    p50, p99 = (times[int(share * len(times))] / 1000 for share in (0.5, 0.99))
    return Times(p50, p99, len(times))
