"""The clauses that the values of a node's own record types must meet."""

from __future__ import annotations

from vesper.check.expressions import ExpressionChecker, place_of
from vesper.check.named_types import TypeResolver
from vesper.ir import nodes as ir
from vesper.spec.types import BOOLEAN, ArrayOf, MapOf, Record, Type
from vesper.syntax import ast


def record_clauses(
    input_: ast.Input, type_: Type, types: TypeResolver, checker: ExpressionChecker
) -> list[ir.Clause | None]:
    """The clauses of the record types that an input is made of: `FORALL line IN items SATISFIES line.qty > 0`."""
    place = place_of(checker.bag.source, input_.name.span)
    root = ir.Ref("input", input_.name.text, type_, place)
    return _clauses_in(root, type_, input_.name, types, checker)


def _clauses_in(
    value: ir.Expression, type_: Type, name: ast.Word, types: TypeResolver, checker: ExpressionChecker
) -> list[ir.Clause | None]:
    match type_:
        case Record(fields, record_name):
            found = [_over_fields(value, type_, each, name, checker) for each in types.constraints(record_name)]
            for field, field_type in fields:
                inner = ir.Field(value, field, field_type, value.place)
                found += _clauses_in(inner, field_type, name, types, checker)
            return found
        case ArrayOf(element) | MapOf(_, element):
            return _quantified(value, type_, element, name, types, checker)
        case _:
            return []  # a set holds no records; what an optional holds is checked where it is used


def _quantified(
    value: ir.Expression, type_: Type, element: Type, name: ast.Word, types: TypeResolver, checker: ExpressionChecker
) -> list[ir.Clause | None]:
    """Each clause of the items as one over all of them."""
    names = ("item",) if isinstance(type_, ArrayOf) else ("key", "item")
    numbers = tuple(range(checker.scope.local_count, checker.scope.local_count + len(names)))
    checker.scope.local_count += len(names)
    found: list[ir.Clause | None] = []
    for clause in _clauses_in(ir.Local(numbers[-1], "item", element, value.place), element, name, types, checker):
        if clause is None:
            return [None]
        # The same numbers in every clause: each `for` binds its own when the node is numbered.
        holds = ir.For("forall", numbers, names, value, None, None, clause.holds, BOOLEAN, clause.holds.place)
        found.append(ir.Clause(holds, clause.text, name.text))
    return found


def _over_fields(
    value: ir.Expression, record: Record, clause: ast.Clause, name: ast.Word, checker: ExpressionChecker
) -> ir.Clause | None:
    """One clause of a record type, its names taken as the fields of this value."""
    holds = checker.over_fields(clause.holds, value, record)
    return None if holds is None else ir.Clause(holds, clause.text, name.text)
