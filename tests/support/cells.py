"""The cells of a compiled node: an operation, the types of its operands and its position."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from vesper.language.ir.nodes import Call, Expression, Node, walk
from vesper.language.ir.statements import Branch, Loop, Request, Require, Statement, all_statements, expressions_of
from vesper.values.types import Enum, Record, Type

Cell: TypeAlias = tuple[str, tuple[str, ...], str]


def reached_cells(node: Node) -> set[Cell]:
    """Return the cells of a node; all enums count as one type, and so do all records."""
    return {
        (part.op, tuple(_kind(arg.type) for arg in part.args), position)
        for position, expression in _positions(node)
        for part in walk(expression)
        if isinstance(part, Call)
    }


def _positions(node: Node) -> Iterator[tuple[str, Expression]]:
    clauses = {
        "constraint": node.constraints,
        "precondition": node.preconditions,
        "postcondition": node.postconditions,
        "invariant": node.invariants,
    }
    for position, found in clauses.items():
        yield from ((position, clause.holds) for clause in found)
    for statement in all_statements(node.body):
        yield from _of_statement(statement)


def _of_statement(statement: Statement) -> Iterable[tuple[str, Expression]]:
    match statement:
        case Require(clause):
            return [("validation", clause.holds)]
        case Branch(arms=arms, otherwise_value=otherwise):
            values = [*(arm.value for arm in arms), otherwise]
            return [
                *(("condition", arm.when) for arm in arms),
                *(("branch value", each) for each in values if each is not None),
            ]
        case Loop(over=over, where=where, condition=condition, stop_when=stop, collect=collect):
            ends = [over, where, condition, stop, collect]
            rounds = [*(each.value for each in statement.state), *(value for _, value in statement.next)]
            return [
                *(("loop", each) for each in ends if each is not None),
                *(("loop state", each) for each in rounds),
            ]
        case Request(arguments=arguments):
            return [("effect argument", each) for _, each in arguments]
        case _:
            return [("flow value", each) for each in expressions_of((statement,))]


def _kind(type_: Type) -> str:
    match type_:
        case Enum():
            return "enum"
        case Record():
            return "record"
        case _:
            return str(type_)
