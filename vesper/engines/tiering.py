"""When the direct engine makes machine code of a node (docs/how-to/use-machine-code.md).

The environment variable VESPER_JIT (for the mode alone) takes precedence over the table `[engine]` of `vesper.toml`,
which takes precedence over the defaults here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from vesper.engines.engine import EngineUnavailable

Mode: TypeAlias = Literal["off", "auto", "always"]
ProofSource: TypeAlias = Literal["off", "cache", "file"]
PROOF_SOURCES: tuple[ProofSource, ...] = ("off", "cache", "file")
MODES: tuple[Mode, ...] = ("off", "auto", "always")
VARIABLE = "VESPER_JIT"


@dataclass(frozen=True, slots=True)
class Tiering:
    """The rules by which forms of a node get machine code."""

    jit: Mode = "auto"
    """`off`: never.

    `auto`: hot nodes, in a background thread. `always`: when a node is loaded, synchronously and for good.
    """
    calls: int = 100
    """Calls that make a node hot."""
    operations: int = 20_000
    """Units of fuel that make a node hot."""
    max_code_mb: int = 64
    """Limit of machine code of a process, in mebibytes; a node beyond it is interpreted."""
    fail_guard: int | None = None
    """For tests: the guard of this number always fails, and the interpreter continues."""
    is_optimised: bool = True
    """For tests: without it, the bytecode is that of the checked node."""
    proofs: ProofSource = "off"
    """Proven checks that are left out: none, those proven on this machine, or also those of the committed file."""


INTERPRETED = Tiering("off")
ALWAYS = Tiering("always")


def tiering(configured: Tiering | None = None) -> Tiering:
    """Return the tiering of this process: `configured` is the table of `vesper.toml`."""
    found = configured or Tiering()
    said = os.environ.get(VARIABLE)
    if not said:
        return found
    for mode in MODES:
        if said == mode:
            return replace(found, jit=mode)
    raise EngineUnavailable(f"{VARIABLE} is {', '.join(MODES[:-1])} or {MODES[-1]}, not `{said}`")
