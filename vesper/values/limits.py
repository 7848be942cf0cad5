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
DEFAULT_MEMORY: Final = 256 * 1024 * 1024
"""Bytes of an execution by default."""
MAX_MEMORY: Final = 2**63 - 1
FREE_SIZE: Final = 4_096
"""Size of the values of a call up to which it costs nothing."""
SIZE_OF_ITEM: Final = 4
"""Size of an item of a collection; a code point or a byte has size 1."""
WORK_OF_ITEM: Final = 64
"""Work of an item of a collection."""
WORK_OF_SLOW_ITEM: Final = 512
"""Work of an item in operations that compare, sort or build for each."""
WORK_OF_PATTERN: Final = 8_192
"""Work of a code point in operations of regex."""
WORK_OF_JSON: Final = 192
"""Work of a byte of the price of a json that is read or made."""
WORK_PER_UNIT: Final = 4_096
"""Work that costs one unit of fuel."""
