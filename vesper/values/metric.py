"""Row types of the generated tables of metrics and alert rules."""

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


@dataclass(frozen=True, slots=True)
class AlertRule:
    """An alert rule of Prometheus."""

    name: str
    expression: str
    after: str
    """How long the expression holds before the alert fires."""
    severity: str
    doc: str
    """What has happened; `{{ $labels.node }}` and `{{ $value }}` are Prometheus's."""
    action: str
    """What to do."""
