"""The table `[engine]` of `vesper.toml`: when the direct engine makes machine code."""

from __future__ import annotations

from vesper.effects.settings import Table
from vesper.engines.tiering import MODES, PROOF_SOURCES, Mode, ProofSource, Tiering


def read_engine(table: Table) -> Tiering:
    """Read the table. Raises `ConfigError`."""
    usual = Tiering()
    said = table.choice("jit", MODES, usual.jit)
    mode: Mode = next(each for each in MODES if each == said)
    from_where = table.choice("proofs", PROOF_SOURCES, usual.proofs)
    proofs: ProofSource = next(each for each in PROOF_SOURCES if each == from_where)
    found = Tiering(
        mode,
        table.integer("calls", usual.calls, least=1, most=1_000_000_000),
        table.integer("operations", usual.operations, least=1),
        table.integer("max_code_mb", usual.max_code_mb, least=1, most=1 << 20),
        proofs=proofs,
    )
    table.done()
    return found
