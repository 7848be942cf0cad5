"""When the direct engine makes machine code of a node. Docs: docs/how-to/use-machine-code.md.

What decides, the first that says something: the environment variable VESPER_JIT (for the mode alone), the table
`[engine]` of `vesper.toml`, and what stands here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, TypeAlias

from vesper.engines.engine import EngineUnavailable

Mode: TypeAlias = Literal["off", "auto", "always"]
MODES: tuple[Mode, ...] = ("off", "auto", "always")
VARIABLE = "VESPER_JIT"


@dataclass(frozen=True, slots=True)
class Tiering:
    """How the forms of a node come to machine code."""

    jit: Mode = "auto"
    """`off`: never. `auto`: what is hot, by a thread in the background. `always`: when a node is loaded, by who loads
    it; it is then never left again."""
    calls: int = 100
    """So many calls make a node hot,"""
    operations: int = 20_000
    """or so many units of fuel."""
    max_code_mb: int = 64
    """How many mebibytes of machine code a process holds at most; a node that finds no room is interpreted."""
    fail_guard: int | None = None
    """For tests: the guard of this number always fails, and the interpreter goes on from there."""
    is_optimised: bool = True
    """For tests: without, the bytecode is that of the node as it was checked."""


INTERPRETED = Tiering("off")
ALWAYS = Tiering("always")


def tiering(configured: Tiering | None = None) -> Tiering:
    """What holds in this process: `configured` is what `vesper.toml` says."""
    found = configured or Tiering()
    said = os.environ.get(VARIABLE)
    if not said:
        return found
    for mode in MODES:
        if said == mode:
            return Tiering(mode, found.calls, found.operations, found.max_code_mb, found.fail_guard, found.is_optimised)
    raise EngineUnavailable(f"{VARIABLE} is {', '.join(MODES[:-1])} or {MODES[-1]}, not `{said}`")
