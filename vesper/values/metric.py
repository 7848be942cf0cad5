"""What the generated table of metrics is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MetricSpec:
    name: str
    kind: str
    unit: str
    labels: tuple[str, ...]
