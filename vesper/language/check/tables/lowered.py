"""Rows of a table as IR, and their positions in the table of expressions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vesper.language.ir import nodes as ir
from vesper.language.ir.tables import RowSource, TableSource
from vesper.language.syntax import ast


@dataclass(frozen=True, slots=True)
class LoweredRow:
    """A row with its condition and its result. The default row has no condition."""

    source: ast.Row
    condition: ir.Expression | None
    value: ir.Expression


@dataclass(frozen=True, slots=True)
class LoweredTable:
    """A table whose rows are part of an expression. `columns` has the names of its columns."""

    name: str
    hit: str
    columns: tuple[str, ...]
    rows: tuple[LoweredRow, ...]


def literal_of(value: ir.Expression) -> ir.Literal | None:
    """Return the result if it is a literal, else None."""
    if isinstance(value, ir.Call) and value.op == "optional.some":
        value = value.args[0]
    return value if isinstance(value, ir.Literal) else None


def locate_tables(tables: Iterable[LoweredTable], expressions: Sequence[ir.Expression]) -> tuple[TableSource, ...]:
    """Return the tables in program order, with the indices of their rows.

    A table of a function occurs once for each call.
    """
    found: list[TableSource] = []
    rows = [row for table in tables for row in table.rows]
    places: dict[int, list[int]] = {id(part): [] for row in rows for part in (row.condition, row.value)}
    if not places:
        return ()
    for index, expression in enumerate(expressions):
        listed = places.get(id(expression))
        if listed is not None:
            listed.append(index)
    for table in tables:
        for number in range(len(places[id(table.rows[0].value)])):
            sources = tuple(_row_source(row, number, places, table.columns) for row in table.rows)
            found.append(TableSource(table.name, table.hit, table.columns, sources))
    return tuple(sorted(found, key=lambda table: min(row.then for row in table.rows)))


def _row_source(row: LoweredRow, number: int, places: dict[int, list[int]], columns: tuple[str, ...]) -> RowSource:
    when = [] if row.condition is None else places[id(row.condition)]
    source = row.source
    texts = {word.text: " ".join(cell.text.text.split()) for word, cell in source.cells}
    cells = tuple((column, texts[column]) for column in columns if column in texts)
    return RowSource(
        when[number] if when else None,
        places[id(row.value)][number],
        cells,
        source.line,
        source.annotation,
        source.reason,
    )
