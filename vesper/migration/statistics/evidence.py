"""What counts as evidence, and how much of it is kept.

Agreement is counted in distinct fingerprints, divergence in occurrences: a million copies of one input are one piece of
evidence, and a fault that one input shows a hundred times is a hundred divergences. The sets are in the store, and
`stores.ledger` does the counting.
"""

from __future__ import annotations

MAX_PATHS = 4096
"""So many semantic paths have evidence of their own. On others nothing is agreement, so they are always compared."""
MAX_ENUMERATED = 10**6
"""A finite input domain up to this size is run through completely."""
MAX_FINGERPRINTS = 2**20
"""Of one set. Ten times what `direct_only` needs, so that a few divergences can be outweighed; a full one counts no
more. A collision of 64 bits makes two pieces of evidence one, so it can only understate."""


def is_too_unknown(compared: int, unknown: int) -> bool:
    """Whether more than 0.1 % of the admitted comparisons came to nothing."""
    return unknown * 1000 > compared + unknown
