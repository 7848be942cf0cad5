"""A store with the migration settings that apply to its nodes."""

from __future__ import annotations

from dataclasses import dataclass

from vesper.config.migration import MigrationSettings
from vesper.effects.settings import close_to
from vesper.migration.control.modes import THRESHOLDS, Mode
from vesper.migration.control.state import Settings
from vesper.migration.stores.store import Store, keys_of
from vesper.values.model import printable
from vesper.values.node_id import split_node_id

_SHORT = 12
"""Characters of an epoch that are shown."""


@dataclass(frozen=True, slots=True)
class OpenStore:
    """An open store, with the migration settings."""

    store: Store
    migration: MigrationSettings
    is_configured: bool
    """Whether it is the store of the configuration. The settings of any other store are unknown."""

    @property
    def settings(self) -> Settings:
        return Settings(frozenset(Mode(each) for each in self.migration.approvals))

    @property
    def rules(self) -> Settings:
        """Settings that decide a command. For another store every promotion needs approval, because its settings
        are unknown here; the processes that run the node promote it."""
        return self.settings if self.is_configured else Settings(frozenset(THRESHOLDS))

    def highest(self, node: str) -> Mode | None:
        """Return the highest mode that the configuration allows; None without a limit, or for another store."""
        named = self.migration.of(node).max_mode if self.is_configured else None
        return None if named is None else Mode(named)

    def unknown_names(self) -> list[str]:
        """Return warnings about configured nodes that were never routed, often misspelt names."""
        ids = sorted({each.node for each in keys_of(self.store)})
        names = {split[0] for split in map(split_node_id, ids) if split is not None}
        return [
            f"[migration.nodes.{name}]: no node of this name was routed here{close_to(name, ids)}"
            for name in self.migration.nodes
            if name not in ids and name not in names
        ]


def short_epoch(epoch: str) -> str:
    return printable(epoch[:_SHORT])
