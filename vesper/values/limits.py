"""The limits of an execution, as docs/spec/limits.md gives them. Those of values stand with the values."""

from __future__ import annotations

from typing import Final

DEFAULT_FUEL: Final = 10_000_000
"""What an execution may spend where nobody says how much."""
MAX_FUEL: Final = 2**63 - 1
UNITS_A_LOOK: Final = 1_024
"""So many units are spent between two looks at the clock."""
MAX_CALL_DEPTH: Final = 32
"""So many nodes may call each other in a row."""
