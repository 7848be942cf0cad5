"""The settings of telemetry, as `[observe]` of `vesper.toml` has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

LOG_FORMATS = ("text", "json")


@dataclass(frozen=True, slots=True)
class ObserveSettings:
    otlp: str | None = None
    """Base URL of an OTLP/HTTP receiver, to which spans and metrics are sent; None sends nothing."""
    sample: float = 1.0
    """Share of runs with spans, among those whose caller has no trace. A caller's trace decides for itself."""
    service: str = "vesper"
    """`service.name` of spans and metrics."""
    push_seconds: float = 15.0
    """Seconds between two exports of metrics by OTLP."""
    directory: Path | None = None
    """Folder of the counters that processes share; None keeps them in the memory of each process."""
    logs: str = "text"
    """Format of log lines of `vesper serve`: one of `LOG_FORMATS`."""
    levels: Mapping[str, str] = field(default_factory=dict)
    """Level of each package by its logger: `vesper.host` to `debug`."""
