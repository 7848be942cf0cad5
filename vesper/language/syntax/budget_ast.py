"""Syntax tree of steps within a budget, and of questions to an agent's node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vesper.language.syntax.yaml_tree import Tree

if TYPE_CHECKING:
    from vesper.language.syntax.ast import Block, Expression


@dataclass(frozen=True, slots=True)
class AskedAgent:
    """Parts of a question to an agent's node beside those of a call."""

    message: Expression | None
    timeout: Tree | None
    budget: Tree | None


@dataclass(frozen=True, slots=True)
class BudgetBlock:
    """Steps within a budget."""

    budget: Tree
    block: Block
