"""The epoch: a hash of a node's semantics and of everything that executes and compares it.

Prose, spans and layout are no part of it. A change of any part starts the evidence from zero.
"""

from __future__ import annotations

import hashlib

from vesper import __version__
from vesper.compiler import Compiled
from vesper.engines.direct_engine import build


def epoch_of(compiled: Compiled, compares: str) -> str:
    """Return the epoch. `compares` is the version of the comparator, and of the function that leads, if any."""
    parts = (compiled.semantic_hash, __version__, build(), compares)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
