"""The tables `[queues.NAME]` of `vesper.toml`: limits of a queue over all processes, threads of one process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vesper.effects.settings import Table

_MAX_CONCURRENCY = 10_000
_MAX_RATE = 1_000_000
_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `limit` starts in `per_us`, evenly spaced."""

    limit: int
    per_us: int


@dataclass(frozen=True, slots=True)
class QueueSettings:
    concurrency: int | None = None
    """Runs of the queue at the same time, in all processes together."""
    rate: Rate | None = None
    """Starts of the queue, in all processes together."""
    threads: int = 8
    """Runs at the same time in one process."""
    poll: float = 0.1
    """Seconds between two looks for work of a worker without any."""


def read_queues(top: Table) -> Mapping[str, QueueSettings]:
    """Read the tables. Raises `ConfigError`."""
    return {name: _read_queue(table) for name, table in top.table("queues").tables().items()}


def _read_queue(table: Table) -> QueueSettings:
    found = QueueSettings(
        table.integer("concurrency", least=1, most=_MAX_CONCURRENCY) if "concurrency" in table else None,
        _read_rate(table.table("rate")) if "rate" in table else None,
        table.integer("threads", 8, least=1, most=1000),
        table.seconds("poll", 0.1),
    )
    table.done()
    if not 0.005 <= found.poll <= 60:
        raise table.error("poll", "a worker looks for work every 5ms at most, and every 60s at least")
    return found


def _read_rate(table: Table) -> Rate:
    limit, per = table.integer("limit", least=1, most=_MAX_RATE), table.seconds("per")
    table.done()
    if not 0.001 <= per <= _DAY_SECONDS:
        raise table.error("per", "a rate is per 1ms at least, and per 1d at most")
    return Rate(limit, round(per * 1_000_000))
