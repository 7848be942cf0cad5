"""Locations of decision tables in the expressions of a node, for explanations.

They belong to the source, so they are not hashed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RowSource:
    """A row: the indices of its condition and its result, and its text."""

    when: int | None
    """Index of the condition; None for the default row, and for a last row that the rows above imply."""
    then: int
    cells: tuple[tuple[str, str], ...]
    """Texts of the cells by column."""
    line: int
    annotation: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class TableSource:
    """A table, with the name of its step, table or function."""

    name: str
    hit: str
    columns: tuple[str, ...]
    rows: tuple[RowSource, ...]


def table_to_json(table: TableSource) -> dict[str, Any]:
    """Return the JSON form of a table."""
    rows = [_row_to_json(row) for row in table.rows]
    return {"name": table.name, "hit": table.hit, "columns": list(table.columns), "rows": rows}


def _row_to_json(row: RowSource) -> dict[str, Any]:
    form: dict[str, Any] = {"then": row.then, "cells": dict(row.cells), "line": row.line}
    optional = {"when": row.when, "annotation": row.annotation, "reason": row.reason}
    return form | {name: value for name, value in optional.items() if value is not None}


def table_from_json(form: dict[str, Any]) -> TableSource:
    """Return the table of a JSON form."""
    columns = tuple(form["columns"])
    rows = tuple(_row_from_json(row, columns) for row in form["rows"])
    return TableSource(form["name"], form["hit"], columns, rows)


def _row_from_json(form: dict[str, Any], columns: tuple[str, ...]) -> RowSource:
    given = form["cells"]
    ordered = dict.fromkeys([*(column for column in columns if column in given), *given])
    cells = tuple((column, given[column]) for column in ordered)
    return RowSource(form.get("when"), form["then"], cells, form["line"], form.get("annotation"), form.get("reason"))
