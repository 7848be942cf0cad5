"""Syntax tree of properties: claims over runs of the node, which only tests check."""

from __future__ import annotations

from dataclasses import dataclass

from vesper.language.syntax.ast import Expression, Word
from vesper.language.syntax.yaml_tree import Tree


@dataclass(frozen=True, slots=True)
class Property:
    """A claim over one or two runs of the node."""

    name: Word
    given: tuple[tuple[Word, Tree], ...]
    varied: tuple[Word, ...] | None
    """Inputs that differ between two runs; None for a claim over one run."""
    where: Expression | None
    holds: Expression
