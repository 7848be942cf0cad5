"""The table `[observe]` of `vesper.toml`: spans, metrics and logs. Reading it connects to nothing."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from vesper.config.migration import read_share
from vesper.effects.settings import Table
from vesper.observe.settings import LOG_FORMATS, ObserveSettings

_LEVELS = ("debug", "info", "warning", "error", "critical")
_MAX_PUSH_SECONDS = 3600


def read_observe(table: Table, folder: Path) -> ObserveSettings:
    """Read the table. Raises `ConfigError`, also where it needs a package that is not installed."""
    usual = ObserveSettings()
    levels = table.table("levels")
    found = ObserveSettings(
        table.text("otlp") if "otlp" in table else None,
        read_share(table, "sample", usual.sample, 0.0, 1.0),
        table.text("service", usual.service),
        table.seconds("push", usual.push_seconds),
        folder / table.text("directory") if "directory" in table else None,
        table.choice("logs", LOG_FORMATS, usual.logs),
        {name: levels.choice(name, _LEVELS) for name in levels.names()},
    )
    levels.done()
    table.done()
    if not 1 <= found.push_seconds <= _MAX_PUSH_SECONDS:
        raise table.error("push", "metrics are pushed every second at most, and once an hour at least")
    if found.otlp is not None:
        parts = urlsplit(found.otlp)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise table.error("otlp", "the base URL of an OTLP/HTTP receiver is expected: `http://127.0.0.1:4318`")
        if not _has_exporter():
            raise table.error("otlp", "the export needs OpenTelemetry: pip install 'vesper[observe]'")
    return found


def _has_exporter() -> bool:
    try:
        return (
            find_spec("opentelemetry.exporter.otlp.proto.http") is not None
            and find_spec("opentelemetry.sdk") is not None
        )
    except ModuleNotFoundError:  # a parent package is missing
        return False
