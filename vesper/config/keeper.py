"""The table `[keeper]` of `vesper.toml`: the thread that wakes waiting runs, and those that resume them."""

from __future__ import annotations

from dataclasses import dataclass

from vesper.effects.settings import Table


@dataclass(frozen=True, slots=True)
class KeeperSettings:
    enabled: bool = True
    """False: this process wakes and resumes nothing. Without `[recovery] enabled` it does not either."""
    threads: int = 8
    """Limit of runs that are resumed at the same time."""


def read_keeper(table: Table) -> KeeperSettings:
    """Read the table. Raises `ConfigError`."""
    usual = KeeperSettings()
    found = KeeperSettings(
        table.boolean("enabled", usual.enabled), table.integer("threads", usual.threads, least=1, most=1_000)
    )
    table.done()
    return found
