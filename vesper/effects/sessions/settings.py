"""The settings of `[sessions.NAME]`."""

from __future__ import annotations

from dataclasses import dataclass

from vesper.effects.settings import Table
from vesper.sessions.store import SessionLimits


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """`[sessions.NAME]`."""

    name: str
    dsn: str | None
    """None: a file beside that of the journal, or the journal's database on a server."""
    limits: SessionLimits
    retention: float | None
    """Seconds after its last change that a session is kept; None is for ever."""
    stores_sensitive: bool

    @classmethod
    def from_table(cls, name: str, table: Table) -> SessionSettings:
        compaction = table.choice("compaction", ("drop", "summary"), "drop")
        found = cls(
            name,
            table.text("dsn") if "dsn" in table else None,
            SessionLimits(
                table.integer("max_messages", 200, least=2, most=10_000),
                table.size("max_bytes", 256 << 10),
                "summary" if compaction == "summary" else "drop",
                table.size("max_value", 256 << 10),
            ),
            table.seconds("retention") if "retention" in table else None,
            table.boolean("stores_sensitive", False),
        )
        table.done()
        if found.dsn is not None and not found.dsn.startswith(("sqlite:", "postgresql://", "postgres://")):
            raise table.error("dsn", "sessions are at `sqlite:PATH` or `postgresql://…`")
        if not 1 << 10 <= found.limits.max_bytes <= 64 << 20:
            raise table.error("max_bytes", "a history has 1 KiB at least and 64 MiB at most")
        return found
