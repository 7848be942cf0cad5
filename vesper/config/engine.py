"""The table `[engine]` of `vesper.toml`: when the direct engine makes machine code."""

from __future__ import annotations

from vesper.effects.settings import Table
from vesper.engines.tiering import MODES, Mode, Tiering


def read_engine(table: Table) -> Tiering:
    """Read the table. Raises `ConfigError`."""
    usual = Tiering()
    said = table.choice("jit", MODES, usual.jit)
    mode: Mode = next(each for each in MODES if each == said)
    found = Tiering(
        mode,
        table.integer("calls", usual.calls, least=1, most=1_000_000_000),
        table.integer("operations", usual.operations, least=1),
        table.integer("max_code_mb", usual.max_code_mb, least=1, most=1 << 20),
    )
    table.done()
    return found
