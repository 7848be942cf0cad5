"""The table `[migration]` of `vesper.toml`: how nodes are moved to the direct engine. Reading it opens nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Literal, TypeAlias, cast, get_args

from vesper.effects.settings import Table
from vesper.values.node_id import split_node_id

Isolation: TypeAlias = Literal["none", "process", "sandbox"]
"""Where the direct engine runs: in this process, in worker processes, in confined worker processes."""
MODES = ("python_only", "shadow_direct", "canary_direct", "dual_verify", "direct_only")


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The largest difference at which two outputs are still equal. It has a version and an end date."""

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
    """The inputs that keep a caller on one side of the canary; by default all inputs."""
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
    """Modes that a node enters only after an approval."""
    refresh: float = 0.25
    """Seconds between two reads of the store."""
    hold: float = 60.0
    """Seconds for which the last known mode holds while the store is unavailable; then Python runs alone."""
    follow_cpu: float = 0.05
    """The share of one processor for followers."""
    follow_memory: int = 64 << 20
    """Bytes of queued executions."""
    isolation: Isolation = "none"
    retention: float = 90 * 86_400.0
    """Seconds for which the evidence of an old definition stays after its last use."""
    deadline: float = 5.0
    """Seconds of computing after which a direct execution is abandoned and Python takes over."""
    webhook: str | None = None
    nodes: Mapping[str, NodeMigration] = field(default_factory=dict)

    def of(self, node_id: str) -> NodeMigration:
        """Return the settings of this version of the node, or else of its name without a version."""
        split = split_node_id(node_id)
        by_name = _DEFAULT if split is None else self.nodes.get(split[0], _DEFAULT)
        return self.nodes.get(node_id, by_name)


_DEFAULT = NodeMigration()
_EXACT = 'a positive number as a text, such as "0.01",'
"""A TOML number is a float, and not exactly what is written."""


def read_migration(table: Table, folder: Path) -> MigrationSettings:
    """Read the table. Raises `ConfigError`."""
    usual = MigrationSettings("")
    alerts = table.table("alerts")
    webhook = alerts.text("webhook") if "webhook" in alerts else None
    alerts.done()
    if webhook is not None and not webhook.startswith(("http://", "https://")):
        raise alerts.error("webhook", "a URL that begins with `http://` or `https://` is expected")
    nodes = {name: _node(each) for name, each in table.table("nodes").tables().items()}
    found = MigrationSettings(
        table.text("store", f"sqlite:{folder / '.vesper' / 'migration.db'}"),
        read_share(table, "canary", usual.canary, 0.01, 0.05),
        read_share(table, "sample", usual.sample, 0.0001, 1.0),
        tuple(_check_mode(table, "approvals", each) for each in table.texts("approvals", ())),
        table.seconds("refresh", usual.refresh),
        table.seconds("hold", usual.hold),
        read_share(table, "follow_cpu", usual.follow_cpu, 0.001, 64.0),
        table.size("follow_memory", usual.follow_memory),
        cast(Isolation, table.choice("isolation", get_args(Isolation), usual.isolation)),
        table.seconds("retention", usual.retention),
        table.seconds("deadline", usual.deadline),
        webhook,
        nodes,
    )
    table.done()
    if not found.store.startswith(("sqlite:", "postgresql://", "postgres://", "redis://", "rediss://", "unix://")):
        raise table.error("store", "a store is at `sqlite:PATH`, `postgresql://…` or `redis://…`")
    if not 0.05 <= found.refresh <= 10:
        raise table.error("refresh", "from 50ms to 10s is expected")
    if not 1 <= found.hold <= 86_400:
        raise table.error("hold", "from 1s to 1d is expected")
    if not 86_400 <= found.retention <= 10 * 366 * 86_400:
        raise table.error("retention", "from 1d to 3660d is expected")
    if not 0.01 <= found.deadline <= 3600:
        raise table.error("deadline", "from 10ms to 1h is expected")
    return found


def _node(table: Table) -> NodeMigration:
    found = NodeMigration(
        table.texts("routing_key", ()),
        read_share(table, "canary", 0.05, 0.01, 0.05) if "canary" in table else None,
        table.choice("max_mode", MODES) if "max_mode" in table else None,
        tuple(_tolerance(name, each) for name, each in table.table("tolerances").tables().items()),
    )
    table.done()
    return found


def _tolerance(name: str, table: Table) -> Tolerance:
    absolute, relative = (
        table.text(each, expected=_EXACT) if each in table else None for each in ("absolute", "relative")
    )
    until = table.day("until")
    found = Tolerance(name, absolute, relative, table.integer("version", least=1), until, table.text("why"))
    table.done()
    for key, text in (("absolute", absolute), ("relative", relative)):
        if text is not None and not _is_positive(text):
            raise table.error(key, f"{_EXACT} is expected, not `{text}`")
    if absolute is None and relative is None:
        raise table.error("absolute", "say how far apart the two may be: `absolute`, `relative`, or both")
    return found


def _is_positive(text: str) -> bool:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return False
    return number.is_finite() and number > 0


def read_share(table: Table, name: str, default: float, least: float, most: float) -> float:
    """Read a share written as a text, such as `5 %` or `0.5 %`."""
    if name not in table:
        return default
    expected = f'a share as a text, from "{least * 100:g} %" to "{most * 100:g} %",'
    text = table.text(name, expected=expected)
    number = text.removesuffix("%").rstrip()
    found = float(Decimal(number) / 100) if text.endswith("%") and _is_positive(number) else None
    if found is None or not least <= found <= most:
        raise table.error(name, f"{expected} is expected, not `{text}`")
    return found


def _check_mode(table: Table, name: str, mode: str) -> str:
    if mode not in MODES[2:]:
        raise table.error(name, f"one of {', '.join(MODES[2:])} is expected, not `{mode}`")
    return mode
