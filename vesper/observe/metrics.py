"""Counts, gauges and durations of this process, summed over the processes of a directory.

    count(RECOVERIES, (node_id, "finished"))
    content_type, text = render(request.headers.get("Accept", ""))

The constants are in `vesper/values/generated/metrics.py`; label values have the order of `MetricSpec.labels`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vesper._direct import (
    count_metric,
    metric_bounds,
    observe_metric,
    render_metrics,
    set_metric,
    snapshot_metrics,
    use_metrics_directory,
)
from vesper.values.generated.metrics import METRICS
from vesper.values.metric import MetricSpec

BOUNDS_MS: tuple[float, ...] = tuple(metric_bounds())
"""Upper bounds of the buckets of every histogram, in milliseconds. A last bucket has no bound."""


@dataclass(frozen=True, slots=True)
class Exemplar:
    """An observation and its trace."""

    trace_id: str
    value_ms: float
    time_ns: int
    """Time since the epoch of Unix."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """The value of a histogram."""

    counts: tuple[int, ...]
    """Number of observations in each bucket, not cumulative."""
    sum_ms: float
    exemplar: Exemplar | None


@dataclass(frozen=True, slots=True)
class Sample:
    """A series with its value."""

    metric: MetricSpec
    labels: tuple[str, ...]
    value: int | float | Distribution


def use_directory(directory: Path) -> None:
    """Count in a file of this directory from now on; `VESPER_METRICS_DIR` does so from the start.

    Raises `OSError` for a directory that cannot be written, and after a call with another one.
    """
    use_metrics_directory(directory)


def count(metric: MetricSpec, labels: Sequence[str] = (), by: int = 1) -> None:
    """Add to a counter."""
    count_metric(metric.place, labels, by)


def observe(metric: MetricSpec, labels: Sequence[str], seconds: float, trace_id: str | None = None) -> None:
    """Add a duration to a histogram. One with the id of its trace becomes the exemplar of its series."""
    observe_metric(metric.place, labels, seconds, trace_id)


def set_gauge(metric: MetricSpec, labels: Sequence[str], value: float) -> None:
    """Set a gauge."""
    set_metric(metric.place, labels, value)


def render(accept: str = "") -> tuple[str, bytes]:
    """Return the content type and text of all series in the accepted format.

    `accept` is an `Accept` header. Raises `OSError` if the directory cannot be read.
    """
    return render_metrics(accept)


def snapshot(*, is_own: bool = False) -> list[Sample]:
    """Return all series of this process, or the sums over its directory."""
    return [
        Sample(METRICS[place], tuple(labels), _distribution(*value) if isinstance(value, tuple) else value)
        for place, labels, value in snapshot_metrics(is_own)
    ]


def _distribution(counts: list[int], sum_ms: float, exemplar: tuple[str, float, int] | None) -> Distribution:
    return Distribution(tuple(counts), sum_ms, None if exemplar is None else Exemplar(*exemplar))
