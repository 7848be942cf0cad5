"""Syntax tree of steps within a budget, and of calls of agents within one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vesper.language.syntax.yaml_tree import Tree

if TYPE_CHECKING:
    from vesper.language.syntax.ast import Block, Expression


@dataclass(frozen=True, slots=True)
class AskedAgent:
    """The additional parts of a call of an agent: message, timeout and budget."""

    message: Expression | None
    timeout: Tree | None
    budget: Tree | None


@dataclass(frozen=True, slots=True)
class BudgetBlock:
    """Steps within a budget."""

    budget: Tree
    block: Block
