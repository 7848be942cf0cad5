"""A node from the sheet of a decision table."""

from __future__ import annotations

import csv
import io
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vesper.compiler.pipeline import compile_source
from vesper.importers.sheets.model import ColumnOfCells, ColumnOfResults, SheetFormatError, SheetRow, SheetTable
from vesper.importers.sheets.types import guess_cell_type, guess_result_type
from vesper.importers.writer import InlineValue, node_name, string_literal, write_node
from vesper.language.diagnostics.source import SourceFile

MAX_INLINE_ROWS = 100
_SINGLE = frozenset({"first", "unique", "any", "priority"})
_LISTS = frozenset({"collect", "rule_order", "output_order"})


@dataclass(frozen=True, slots=True)
class NodeOfSheet:
    """The text of a node, and of the file of its rows if they have one."""

    node_id: str
    text: str
    rows_file: tuple[str, str] | None
    types: dict[str, str]
    """Types of the columns by their names in the sheet, stated or guessed."""
    errors: tuple[str, ...]
    """Errors of the node, as `vesper check` reports them."""


def node_of_table(table: SheetTable, types: dict[str, str] | None = None, intent: str = "") -> NodeOfSheet:
    """Return the node of a table; `types` states types of columns by name. Raises `SheetFormatError`."""
    writer = _Writer(table, types or {}, intent)
    # Whether every input has a row follows from the analysis of the table, so the value may be null or not.
    found = [writer.node(is_optional=is_optional) for is_optional in (False, True)]
    return min(found, key=lambda node: len(node.errors))


class _Writer:
    def __init__(self, table: SheetTable, types: dict[str, str], intent: str) -> None:
        self.table = table
        self.intent = intent or f"Decide by the table {table.name}"
        unknown = [name for name in types if name not in {each.name for each in table.all_columns()}]
        if unknown:
            raise SheetFormatError(0, f"no column is named `{unknown[0]}`")
        taken: set[str] = set()
        self.names: dict[str, str] = {}
        for each in table.all_columns():
            self.names[each.name] = node_name(each.name, taken)
            taken.add(self.names[each.name])
        self.step = node_name(table.name, taken)
        self.types = {each.name: types.get(each.name) or each.type or self._cell_type(each) for each in table.columns}
        self.types |= {
            each.name: types.get(each.name) or each.type or self._result_type(each) for each in table.outputs
        }

    def _cell_type(self, column: ColumnOfCells) -> str:
        cells = [row.cells[column.name] for row in self.table.rows if column.name in row.cells]
        return guess_cell_type([*cells, *column.allowed])

    def _result_type(self, column: ColumnOfResults) -> str:
        texts = [row.results.get(column.name, "") for row in self.table.rows]
        return guess_result_type(column.name, texts)

    def node(self, *, is_optional: bool) -> NodeOfSheet:
        """Return the node with a value that may be null, or not."""
        table = self.table
        name = node_name(table.name)
        node_id = f"{name}_v1"
        rows_file = None
        rows: Any = [self._row(row) for row in table.rows]
        if len(table.rows) > MAX_INLINE_ROWS:
            rows_file = (f"{node_id}.csv", self._csv())
            rows = InlineValue({"file": rows_file[0]})
        step: dict[str, Any] = {"step": self.step, "operation": "decision_table"}
        if table.hit != "first":
            step["hit"] = table.hit
        used = {name for row in table.rows for name in row.cells} if rows_file is None else set(self.names)
        columns = {
            self.names[each.name]: self._column(each) for each in table.columns if each.allowed or each.name not in used
        }
        if columns:
            step["columns"] = columns
        if table.outputs:
            step["outputs"] = {self.names[each.name]: self._output(each) for each in table.outputs}
        step["rows"] = rows
        document: dict[str, Any] = {"node_id": node_id, "type": "function", "intent": self.intent}
        result = self._result(is_optional=is_optional)
        if self._is_record():
            document["types"] = {
                "Result": {"fields": {self.names[each.name]: self._declared(each.name) for each in table.outputs}}
            }
        document["inputs"] = {self.names[each.name]: self._declared(each.name) for each in table.columns}
        output = self.names[table.outputs[0].name] if len(table.outputs) == 1 else "result"
        outside = table.outputs[0].name if len(table.outputs) == 1 else "result"
        document["outputs"] = {
            "success": {output: result if output == outside else InlineValue({"type": result, "as": outside})}
        }
        document["flow"] = [step, {"operation": "return", "success": {output: self.step}}]
        header = [f"column {each.name}: {each.expression}" for each in table.columns if each.expression]
        if header:
            header.insert(0, "Values of the columns in the node of the sheet:")
        text = write_node(document, tuple(header))
        return NodeOfSheet(node_id, text, rows_file, self.types, _errors(node_id, text, rows_file))

    def _is_record(self) -> bool:
        return len(self.table.outputs) > 1 and self.table.hit != "count"

    def _result(self, *, is_optional: bool) -> str:
        hit = self.table.hit
        type_ = "Result" if self._is_record() else self.types[self.table.outputs[0].name] if self.table.outputs else ""
        if hit == "count":
            return "integer"
        if hit in _LISTS:
            return f"array<{type_}>"
        return f"optional<{type_}>" if is_optional and not type_.startswith("optional<") else type_

    def _declared(self, name: str) -> Any:
        type_ = self.types[name]
        return type_ if self.names[name] == name else InlineValue({"type": type_, "as": name})

    def _column(self, column: ColumnOfCells) -> Any:
        """Return the entry of a column: its allowed values if it has any, else its name."""
        return InlineValue({"allowed": list(column.allowed)}) if column.allowed else self.names[column.name]

    def _output(self, column: ColumnOfResults) -> Any:
        type_ = self.types[column.name]
        return InlineValue({"type": type_, "values": list(column.values)}) if column.values else type_

    def _row(self, row: SheetRow) -> Any:
        entry: dict[str, Any] = {}
        results = {self.names[each.name]: self._expression(row, each) for each in self.table.outputs}
        value: Any = results if len(results) > 1 else next(iter(results.values()), None)
        if row.is_default:
            entry["otherwise"] = value
        else:
            cells = {self.names[name]: text for name, text in row.cells.items()}
            if cells:
                entry["in"] = cells
            if row.when or not cells:
                entry["when"] = row.when or "true"
            if value is not None and self.table.hit != "count":
                entry["then"] = value
        if row.annotation:
            entry["annotation"] = row.annotation
        if row.reason:
            entry["reason"] = row.reason
        return InlineValue(entry)

    def _expression(self, row: SheetRow, column: ColumnOfResults) -> Any:
        """Return a result as an expression: a literal of the column's type, or the text after `=`."""
        text = row.results.get(column.name, "")
        if text.startswith("="):
            return text[1:].strip()
        type_ = self.types[column.name]
        if not text and type_.startswith("optional<"):
            return "null"
        inner = type_.removeprefix("optional<").removesuffix(">") if type_.startswith("optional<") else type_
        if inner == "string":
            return string_literal(text)
        if inner in ("date", "timestamp", "duration"):
            return f"{inner}({string_literal(text)})"
        if not text:
            raise SheetFormatError(row.line, f"the result `{column.name}` is empty; mark it `out optional<{type_}>`")
        return text

    def _csv(self) -> str:
        """Return the file of the rows: one line of names, then cells and literals."""
        table = self.table
        notes = [kind for kind in ("annotation", "reason") if any(getattr(row, kind) for row in table.rows)]
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        columns = [*(self.names[each.name] for each in table.all_columns()), *notes]
        writer.writerow(columns)
        for row in table.rows:
            if row.when or any(text.startswith("=") for text in row.results.values()):
                raise SheetFormatError(
                    row.line, f"a table of more than {MAX_INLINE_ROWS} rows has cells and literals only"
                )
            if row.is_default and table.hit != "first":
                raise SheetFormatError(
                    row.line, f"a table of more than {MAX_INLINE_ROWS} rows has `otherwise` only with `first`"
                )
            cells = [row.cells.get(each.name, "-") for each in table.columns]
            results = [row.results.get(each.name, "") for each in table.outputs]
            writer.writerow([*cells, *results, *(getattr(row, kind) for kind in notes)])
        return buffer.getvalue()


def _errors(node_id: str, text: str, rows_file: tuple[str, str] | None) -> tuple[str, ...]:
    """Return the errors of a node, which is checked beside the file of its rows."""
    with tempfile.TemporaryDirectory() as folder:
        if rows_file is not None:
            (Path(folder) / rows_file[0]).write_text(rows_file[1], encoding="utf-8")
        _, bag = compile_source(SourceFile(str(Path(folder) / f"{node_id}.vsp"), text))
    return tuple(each.headline for each in bag.sorted()) if bag.has_errors else ()
