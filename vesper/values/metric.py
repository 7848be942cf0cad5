"""Row type of the generated table of metrics."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """Declaration of one metric."""

    place: int
    """Its number in the native table of metrics."""
    name: str
    kind: str
    unit: str
    labels: tuple[str, ...]
