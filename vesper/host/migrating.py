"""`[migration]` of `vesper.toml`: how nodes are moved to the direct engine. Reading it opens nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Literal

from vesper.effects.settings import Table

MODES = ("python_only", "shadow_direct", "canary_direct", "dual_verify", "direct_only")


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far apart an output may be and still count as the same. It has a version, and ends."""

    field: str
    """`fee`, `lines[].total`."""
    absolute: str | None
    relative: str | None
    version: int
    until: date
    why: str


@dataclass(frozen=True, slots=True)
class NodeMigration:
    routing_key: tuple[str, ...] = ()
    """The inputs that keep a caller on one side of the canary; all inputs where none is named."""
    canary: float | None = None
    max_mode: str | None = None
    """The highest mode that the configuration allows."""
    tolerances: tuple[Tolerance, ...] = ()


@dataclass(frozen=True, slots=True)
class MigrationSettings:
    store: str
    canary: float = 0.05
    sample: float = 0.01
    approvals: tuple[str, ...] = ()
    """Modes that a node enters only after a person said so."""
    refresh: float = 0.25
    """Seconds between two looks at the store."""
    hold: float = 60.0
    """Seconds for which the last mode that is known holds where the store is away; then Python runs alone."""
    follow_cpu: float = 0.25
    """The share of one processor that followers may use."""
    follow_mib: int = 64
    """Memory for what waits to be followed."""
    isolation: Literal["none", "process"] = "none"
    deadline: float = 5.0
    """Seconds after which a direct execution that computes is given up, and Python takes over."""
    webhook: str | None = None
    nodes: Mapping[str, NodeMigration] = field(default_factory=dict)

    def of(self, node_id: str) -> NodeMigration:
        return self.nodes.get(node_id, _USUAL)


_USUAL = NodeMigration()


def read_migration(table: Table, folder: Path) -> MigrationSettings:
    """The settings of the table; raises `ConfigError`."""
    found = MigrationSettings(
        table.text("store", f"sqlite:{folder / '.vesper' / 'migration.db'}"),
    )
    table.done()
    return found
