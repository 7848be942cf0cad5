"""The table `[traces]` of `vesper.toml`: traces of executions without a journal. Reading it opens nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vesper.config.migration import read_share
from vesper.effects.settings import Table

_CENTURY = 36_500 * 86_400


@dataclass(frozen=True, slots=True)
class TraceSettings:
    path: Path
    """A file of SQLite. Traces of journalled executions are in the journal."""
    retention: float = 30 * 86_400.0
    """Seconds that a trace is kept."""
    max_traces: int = 10_000
    max_size: int = 256 << 20
    """Bytes of all traces together; the oldest are deleted first."""
    sample: float = 0.0
    """The share of executions of nodes without effects that have a trace. Those with effects all have one."""
    per_second: int = 50
    """Limit of samples per second: a trace takes as long as hundreds of calls."""
    watch: bool = False
    """True where breakpoints of running services apply to nodes without effects too."""


def read_traces(table: Table, folder: Path) -> TraceSettings:
    """Read the table. Raises `ConfigError`."""
    usual = default_traces(folder)
    found = TraceSettings(
        folder / table.text("path", str(usual.path)),
        table.seconds("retention", usual.retention),
        table.integer("max_traces", usual.max_traces, least=1, most=10_000_000),
        table.size("max_size", usual.max_size),
        read_share(table, "sample", usual.sample, 0.0001, 1.0),
        table.integer("per_second", usual.per_second, least=1, most=1_000_000),
        table.boolean("watch", usual.watch),
    )
    table.done()
    if not 1 <= found.retention <= _CENTURY:
        raise table.error("retention", "traces are kept for a second at least and for 36,500 days at most")
    if found.max_size < 1 << 20:
        raise table.error("max_size", "traces take 1 MiB at least")
    return found


def default_traces(folder: Path) -> TraceSettings:
    """Return the default settings: a file beside that of the journal."""
    return TraceSettings(folder / ".vesper" / "traces.db")
