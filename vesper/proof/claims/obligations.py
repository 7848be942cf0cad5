"""The claims of a node: its clauses, operations that may fail, decision tables and conditions.

Constraints and preconditions are assumptions and no claims.
"""

from __future__ import annotations

from collections.abc import Iterator

from vesper.compiler import Compiled
from vesper.engines.path import guards
from vesper.language.ir.nodes import Call, Expression, Node, Place, walk
from vesper.language.ir.tables import TableSource
from vesper.proof.claims.model import CLAUSE, COMPLETE, CONDITION, DISJOINT, OPERATION, ROW, Claim
from vesper.values.generated.operations import OPERATIONS
from vesper.verify.branches import condition_text, row_texts

_ASSUMED = ("constraint", "precondition")
_CHECKED = ("optional.unwrap",)
"""Operations that the checker inserts only where they cannot fail."""
_ONE_ROW_HITS = ("unique", "first", "any", "priority", "min", "max")
"""Hit policies that take one row, so that a gap leaves no value."""
_DISJOINT_HITS = ("unique", "first")
"""Hit policies of which overlapping rows are reported: those of `unique` as a defect."""


def claims_of(compiled: Compiled) -> list[Claim]:
    """Return the claims of a node: clauses, then operations, tables and conditions."""
    node = compiled.node
    found = [*_clauses(node), *_operations(node)]
    by_index = {each.index: each for each in node.expressions()}
    for table in node.tables:
        found += _table(table, by_index)
    return [*found, *_conditions(compiled, by_index)]


def _clauses(node: Node) -> Iterator[Claim]:
    for phase, clauses in node.phases():
        if phase not in _ASSUMED:
            for number, clause in enumerate(clauses):
                holds = clause.holds
                yield Claim(CLAUSE, phase, number, "", holds.index, clause.text, _place(holds.place))


def _operations(node: Node) -> Iterator[Claim]:
    assumed = {each.index for clause in (*node.constraints, *node.preconditions) for each in walk(clause.holds)}
    for expression in node.expressions():
        if isinstance(expression, Call) and expression.op not in _CHECKED and expression.index not in assumed:
            for code in OPERATIONS[expression.op].raises:
                index = expression.index
                yield Claim(OPERATION, "", index, str(code), index, expression.op, _place(expression.place))


def _table(table: TableSource, by_index: dict[int, Expression]) -> Iterator[Claim]:
    first = by_index[table.rows[0].when if table.rows[0].when is not None else table.rows[0].then]
    place = _place(first.place)
    if table.hit in _ONE_ROW_HITS:
        yield Claim(COMPLETE, table.name, 0, table.hit, first.index, f"table {table.name} is complete", place)
    if table.hit in _DISJOINT_HITS:
        text = f"rows of table {table.name} are disjoint"
        yield Claim(DISJOINT, table.name, 0, table.hit, first.index, text, place)
    for number, row in enumerate(table.rows):
        if row.when is not None:
            cells = ", ".join(f"{column} {cell}" for column, cell in row.cells)
            text = f"row {number + 1} of table {table.name}" + (f" ({cells})" if cells else "")
            yield Claim(ROW, table.name, number, "", row.when, text, (row.line, 1, row.line, 2))


def _conditions(compiled: Compiled, by_index: dict[int, Expression]) -> Iterator[Claim]:
    rows = row_texts(compiled.node)
    of_tables = {row.when for table in compiled.node.tables for row in table.rows}
    for index in sorted(guards(compiled.node) - of_tables):
        condition = by_index[index]
        text = rows.get(index) or condition_text(compiled.source, condition)
        for value in ("true", "false"):
            yield Claim(CONDITION, "", index, value, index, text, _place(condition.place))


def _place(place: Place) -> tuple[int, int, int, int]:
    return place.line, place.column, place.end_line, place.end_column
