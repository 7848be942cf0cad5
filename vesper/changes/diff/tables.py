"""Entities of decision tables: hit policy, columns, outputs and rows, of the node's text or of a file beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from vesper.changes.diff.forms import form_of
from vesper.changes.diff.model import Entity, Group, Part
from vesper.language.diagnostics.source import Span
from vesper.language.syntax import ast
from vesper.language.syntax.scalar_text import PlacedText
from vesper.language.tables.cells import CellProblem, parse_cell
from vesper.language.tables.files import NOTES

if TYPE_CHECKING:
    from vesper.changes.diff.declared import Outline

_ORDERED = {
    "first": "with `hit: first` the first matching row decides",
    "collect": "with `hit: collect` results are in the order of rows",
    "rule_order": "with `hit: rule_order` results are in the order of rows",
    "priority": "with `hit: priority` the first of equally ranked rows decides",
    "output_order": "with `hit: output_order` equally ranked results are in the order of rows",
}
"""Hit policies under which the order of rows matters, and why."""
_MAX_SHOWN_CELLS = 4


def table_parts(outline: Outline, table: ast.DecisionTable) -> dict[str, Part]:
    """Return the parts of a table that are not lists."""
    hit = "first" if table.hit is None else table.hit.text
    parts = {"hit policy": Part(hit, hit, outline.texts.line((table.hit or table).span))}
    if table.type is not None:
        parts["type"] = outline.type(table.type)
    if table.otherwise is not None:
        for label, part in _results(outline, table.otherwise.then, ()).items():
            parts[label.replace("result", "otherwise", 1)] = replace(part, kind="otherwise")
    if isinstance(table.rows, ast.TableFile):
        shown = table.rows.path.text if table.rows.sheet is None else f"{table.rows.path.text}, {table.rows.sheet.text}"
        parts["file"] = Part(shown, shown, outline.texts.line(table.rows.span), level="text")
    return parts


def table_groups(outline: Outline, table: ast.DecisionTable, bound: Sequence[str]) -> dict[str, Group]:
    """Return the columns, outputs and rows of a table; `bound` are the parameters of its function."""
    hit = "first" if table.hit is None else table.hit.text
    why = _ORDERED.get(hit, f"with `hit: {hit}` the order of rows has no effect")
    columns = tuple(_column(outline, each, bound) for each in table.columns)
    if isinstance(table.rows, ast.TableFile):
        rows: tuple[Entity, ...] = tuple(_file_rows(outline, table))
    else:
        names = {each.name.text: _column_name(outline, each) for each in table.columns}
        rows = tuple(_row(outline, each, number, bound, names) for number, each in enumerate(table.rows, start=1))
    outputs = tuple(_output(outline, each) for each in table.outputs)
    is_ranked = hit in ("priority", "output_order")
    ranked = "the outputs rank the rows, the first one before the others" if is_ranked else "outputs are named"
    return {
        "columns": Group(columns, "text", "columns are named"),
        "outputs": Group(outputs, "meaning" if is_ranked else "text", ranked),
        "rows": Group(rows, "meaning" if hit in _ORDERED else "text", why),
    }


def _column(outline: Outline, column: ast.Column, bound: Sequence[str]) -> Entity:
    parts: dict[str, Part] = {}
    value = ast.Name(column.name.text, column.name.span) if column.value is None else column.value
    parts["value"] = outline.expression(value, bound=bound)
    if column.allowed:
        text = " | ".join(outline.texts.text(each.span) for each in column.allowed)
        parts["allowed values"] = Part(form_of(column.allowed, outline.names), text, parts["value"].line)
    name = _column_name(outline, column)
    return Entity(
        "column", name, f"column `{column.name.text}`", parts, line=parts["value"].line, text=parts["value"].text
    )


def _output(outline: Outline, output: ast.TableOutput) -> Entity:
    parts = {"type": outline.type(output.type)}
    if output.values:
        text = ", ".join(outline.texts.text(each.span) for each in output.values)
        parts["values"] = Part(form_of(output.values, outline.names), text, parts["type"].line)
    name = output.name.text
    return Entity("table_output", name, f"output `{name}`", parts, line=parts["type"].line, text=parts["type"].text)


def _column_name(outline: Outline, column: ast.Column) -> str:
    """Return the name that the other version has for a column; one without a value is the name in scope."""
    name = column.name.text
    return outline.names.of_value(name) if column.value is None else outline.names.of("column", name)


def _row(outline: Outline, row: ast.Row, number: int, bound: Sequence[str], columns: Mapping[str, str]) -> Entity:
    parts: dict[str, Part] = {}
    for name, cell in row.cells:
        form = form_of(cell, outline.names, {each: place for place, each in enumerate(bound)})
        if form is not None:
            column = columns.get(name.text) or outline.names.of_value(name.text)
            parts[f"cell {column}"] = Part(form, cell.text.text.strip(), outline.texts.line(cell.span), "cell")
    if row.when is not None:
        parts["when"] = outline.expression(row.when, bound=bound)
    conditions = dict(parts)
    parts |= _results(outline, row.then, bound)
    parts |= _notes(row.annotation, row.reason, row.line)
    return _row_entity(number, row.line, conditions, parts)


def _results(outline: Outline, then: ast.Expression | None, bound: Sequence[str]) -> dict[str, Part]:
    """Return the result of a row, field by field where it is a record."""
    if then is None:
        return {}
    if isinstance(then, ast.RecordLiteral):
        return {f"result {name.text}": _result(outline, value, bound) for name, value in then.entries}
    return {"result": _result(outline, then, bound)}


def _result(outline: Outline, value: ast.Expression, bound: Sequence[str]) -> Part:
    part = outline.expression(value, "result", bound)
    match value:  # as a file writes them
        case ast.String(text=text) | ast.Number(text=text) | ast.Name(text=text) if text not in bound:
            return Part(("value", outline.names.of_value(text)), part.text, part.line, "result", expression=value)
        case ast.Boolean(value=is_true):
            return Part(("value", str(is_true).lower()), part.text, part.line, "result", expression=value)
        case _:
            return part


def _notes(annotation: str | None, reason: str | None, line: int) -> dict[str, Part]:
    given = {"annotation": annotation, "reason": reason}
    return {label: Part(text, text, line, level="text") for label, text in given.items() if text is not None}


def _row_entity(number: int, line: int, conditions: dict[str, Part], parts: dict[str, Part]) -> Entity:
    shown = [f"{label.removeprefix('cell ')}: {part.text}" for label, part in conditions.items()]
    if len(shown) > _MAX_SHOWN_CELLS:
        shown = [*shown[:_MAX_SHOWN_CELLS], "…"]
    title = f"row {number} ({', '.join(shown) or 'every value'})"
    results = [f"{label.removeprefix('result').strip()} {part.text}".strip()
               for label, part in parts.items() if part.kind == "result"]  # fmt: skip
    return Entity("row", None, title, parts, line=line, text=f"result {', '.join(results)}" if results else "")


def _file_rows(outline: Outline, table: ast.DecisionTable) -> Iterator[Entity]:
    """Yield the rows of a CSV or XLSX file. Lines are those of the file."""
    assert isinstance(table.rows, ast.TableFile)
    lines = outline.texts.sheet(table.rows).lines
    header = [name.strip() for name in lines[0][1]]
    outputs = {each.name.text for each in table.outputs}
    for number, (line, texts) in enumerate(lines[1:], start=1):
        cells = [(name, text.strip()) for name, text in zip(header, texts, strict=False)]
        conditions = dict(_file_cells(outline, cells, outputs, line))
        results = {
            f"result {name}": Part(("value", text), text, line, "result") for name, text in cells if name in outputs
        }
        notes = {name: text or None for name, text in cells if name in NOTES}
        parts = conditions | results | _notes(notes.get("annotation"), notes.get("reason"), line)
        yield _row_entity(number, line, conditions, parts)


def _file_cells(
    outline: Outline, cells: Iterable[tuple[str, str]], outputs: set[str], line: int
) -> Iterator[tuple[str, Part]]:
    for name, text in cells:
        if name in outputs or name in NOTES or text in ("", "-"):
            continue
        try:
            tests = parse_cell(text)
        except CellProblem:  # a plain literal, such as a text with a bracket
            form: object = ("value", text)
        else:
            place = Span(0, 0)
            form = form_of(ast.Cell(tests, PlacedText(text, range(len(text)), len(text)), place), outline.names)
        yield f"cell {name}", Part(form, text, line, "cell")
