"""The table `[dashboard]` of `vesper.toml`: address and roles of a dashboard. Reading it opens nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from vesper.effects.settings import Table

DEFAULT_SCOPES: Final[Mapping[str, tuple[str, ...]]] = {
    "viewer": ("vesper:view",),
    "operator": ("vesper:operate",),
    "author": ("vesper:author",),
}
"""Scopes that a caller needs for each role."""
_ORIGIN: Final = re.compile(r"https?://[^/\s*@?#]+")


@dataclass(frozen=True, slots=True)
class DashboardSettings:
    """`[dashboard]`."""

    host: str = "127.0.0.1"
    port: int = 8001
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: DEFAULT_SCOPES)
    """Scopes of each role, all of which a caller needs."""
    origins: tuple[str, ...] = ()
    """Addresses by which browsers reach a dashboard behind a proxy or under a name."""


def read_dashboard(table: Table) -> DashboardSettings:
    """Read `[dashboard]`. Raises `ConfigError`."""
    usual = DashboardSettings()
    roles = table.table("roles")
    found = DashboardSettings(
        table.text("host", usual.host),
        table.integer("port", usual.port, most=65_535),
        {name: roles.texts(name, scopes) for name, scopes in DEFAULT_SCOPES.items()},
        table.texts("origins", ()),
    )
    roles.done()
    table.done()
    for name in ("operator", "author"):
        if not found.roles[name]:
            raise roles.error(name, "every caller could change things: name a scope")
    for each in found.origins:
        if not _ORIGIN.fullmatch(each):
            raise table.error("origins", f'an origin such as "https://ops.example" is expected, not `{each}`')
    return found
