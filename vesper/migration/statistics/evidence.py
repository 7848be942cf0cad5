"""Bounds on the evidence of a node.

Agreement is counted in distinct fingerprints, divergence in occurrences: a million copies of one input are one piece of
evidence, and a fault that one input shows a hundred times is a hundred divergences. The sets are in the store, and
`stores.ledger` counts them.
"""

from __future__ import annotations

MAX_PATHS = 4096
"""Maximum number of paths with evidence. Requests on further paths are always compared."""
MAX_ENUMERATED = 10**6
"""Maximum size of an input domain that is enumerated."""
MAX_FINGERPRINTS = 2**20
"""Maximum size of one set: ten times what `direct_only` needs, so that a few divergences can be outweighed. A full set
grows no more. A collision of 64 bits merges two pieces of evidence, which only understates."""


def is_too_unknown(compared: int, unknown: int) -> bool:
    """Return True where over 0.1 % of the admitted comparisons ended without a verdict."""
    return unknown * 1000 > compared + unknown
