"""Meaning of mark indices: the step, and whether it is a value, a condition or a clause."""

from __future__ import annotations

from dataclasses import dataclass

from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements, expressions_of
from vesper.trace.model import MarkKind


@dataclass(frozen=True, slots=True)
class MarkPlace:
    step: str
    """Author's name of the step; empty outside steps."""
    kind: MarkKind
    phase: str = ""
    """Phase of a clause."""
    number: int = 0
    """Index of a clause in its phase."""
    text: str = ""
    """Source text of a clause."""


def mark_places(node: ir.Node) -> dict[int, MarkPlace]:
    """Return the place of every expression that an execution can mark."""
    steps = steps_by_expression(node)
    conditions = _conditions(node)
    found = {
        index: MarkPlace(step, MarkKind.CONDITION if index in conditions else MarkKind.VALUE)
        for index, step in steps.items()
    }
    for index in conditions - found.keys():  # an IF in a clause
        found[index] = MarkPlace("", MarkKind.CONDITION)
    for phase, clauses in node.phases():
        for number, clause in enumerate(clauses):
            index = clause.holds.index
            found[index] = MarkPlace(steps.get(index, ""), MarkKind.CLAUSE, phase, number, clause.text)
    return found


def steps_by_expression(node: ir.Node) -> dict[int, str]:
    """Return the innermost step of each expression of the body."""
    found: dict[int, str] = {}
    for statement in all_statements(node.body):
        name = step_name(statement)
        for root in expressions_of((statement,)):
            for expression in ir.walk(root):
                found[expression.index] = found.get(expression.index, "") if name is None else name
    return found


def step_name(statement: ir.Statement) -> str | None:
    """Return the author's name of a statement; None for one without a name."""
    if isinstance(statement, ir.Return | ir.Raise | ir.Require):
        return None
    return statement.name.lstrip("_")


def _conditions(node: ir.Node) -> set[int]:
    """Return the expressions whose marks form the semantic path."""
    found: set[int] = set()
    for each in node.expressions():
        if isinstance(each, ir.If):
            found.add(each.condition.index)
        elif isinstance(each, ir.For) and each.where is not None:
            found.add(each.where.index)
    for statement in all_statements(node.body):
        match statement:
            case ir.Branch(arms=arms):
                found |= {arm.when.index for arm in arms}
            case ir.Loop(where=where, condition=condition, stop_when=stop_when):
                found |= {each.index for each in (where, condition, stop_when) if each is not None}
            case _:
                pass
    return found
