"""Limits of an execution, from docs/spec/limits.md. Limits of values are defined with the values."""

from __future__ import annotations

from typing import Final

DEFAULT_FUEL: Final = 10_000_000
"""Fuel units of an execution by default."""
MAX_FUEL: Final = 2**63 - 1
UNITS_PER_CLOCK_CHECK: Final = 1_024
"""Fuel units between two checks of the clock."""
MAX_CALL_DEPTH: Final = 32
"""Maximum depth of nested node calls."""
