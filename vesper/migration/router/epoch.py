"""What evidence holds for: the hash of what a node means, and of all that runs and compares it.

Prose, spans and layout are no part of it. What is part of it begins the evidence anew when it changes.
"""

from __future__ import annotations

import hashlib

from vesper import __version__
from vesper.compiler import Compiled
from vesper.engines.direct_engine import build


def epoch_of(compiled: Compiled, compares: str) -> str:
    """`compares` is the version of the comparator, and of whatever else leads."""
    parts = (compiled.semantic_hash, __version__, build(), compares)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
