"""YAML tree of a node: `Scalar`, `Sequence` and `Mapping` values with a span on each.

The meaning of a scalar is decided later from its source text and its slot; YAML's implicit types (`NO`, `0x1F`, `1e3`)
are not applied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from vesper.language.diagnostics.source import Span

UNREAD = "?"
"""Style of a scalar in the place of text that is not YAML; what it was is unknown."""


# Never changed, but not frozen, as `Span`: a frozen one takes three times as long to create.
@dataclass(slots=True, unsafe_hash=True)
class Scalar:
    """A scalar as text, with its quoting style."""

    text: str
    style: str
    """Quoting style: empty for plain, one of `'`, `"`, `|`, `>`, or UNREAD."""
    span: Span


@dataclass(slots=True, unsafe_hash=True)
class Sequence:
    """A list."""

    items: tuple[Tree, ...]
    span: Span


@dataclass(slots=True, unsafe_hash=True)
class Mapping:
    """A mapping with its entries in source order."""

    entries: tuple[tuple[Scalar, Tree], ...]
    span: Span


Tree: TypeAlias = Scalar | Sequence | Mapping


def describe(tree: Tree) -> str:
    """Return a tree's kind in the words of a message."""
    if isinstance(tree, Scalar):
        return "nothing" if tree.text == "" and tree.style == "" else "text"
    return "a list" if isinstance(tree, Sequence) else "a mapping"
