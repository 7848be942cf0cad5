"""Walk a tree of departments: depth, total cost, and the names above a limit."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Department:
    name: str
    cost: int
    parts: list[Department] = field(default_factory=list)


def depth(tree: Department) -> int:
    return 1 + max((depth(part) for part in tree.parts), default=0)


def total(tree: Department) -> int:
    return tree.cost + sum(total(part) for part in tree.parts)


def names_above(tree: Department, limit: int) -> list[str]:
    own = [tree.name] if total(tree) > limit else []
    return own + [name for part in tree.parts for name in names_above(part, limit)]


def tree_totals(tree: Department, limit: int) -> dict:
    return {"depth": depth(tree), "total": total(tree), "above": names_above(tree, limit)}
