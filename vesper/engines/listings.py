"""Listings of a node for reading: generated Python, IR, and the forms of the direct engine."""

from __future__ import annotations

from vesper.compiler import Compiled
from vesper.compiler.generated import module_text

LOOKS = ("ir-optimized", "bytecode", "clif", "asm")
"""Intermediate forms of the direct engine, for reading only."""
FORMS = ("python", "python-traced", "ir", *LOOKS)


class NoListing(Exception):
    """The node has no such form; the message has the reason."""


def listing(compiled: Compiled, form: str) -> str:
    """Return one of `FORMS` of a node. Raises `NoListing`."""
    if form == "ir":
        return compiled.ir.decode("utf-8")
    if form not in LOOKS:
        return module_text(compiled, traced=form == "python-traced")
    from vesper.engines.direct_engine import DirectEngine, NotCompiled
    from vesper.engines.tiering import ALWAYS, INTERPRETED

    try:
        return DirectEngine(ALWAYS if form in ("clif", "asm") else INTERPRETED).load(compiled).look(form)
    except NotCompiled as problem:
        raise NoListing(f"{compiled.node.node_id} has no machine code: {problem}") from None
