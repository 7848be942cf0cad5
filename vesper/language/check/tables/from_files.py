"""Check of a decision table with rows in a file. Its lookups name the rows by the hash of their table."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from vesper.language.check.tables.cells import CheckedColumn
from vesper.language.check.tables.findings import NEEDS_HIT, TableFacts
from vesper.language.check.tables.hits import Combiner
from vesper.language.check.tables.lookups import lookup_table
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.source import Span
from vesper.language.ir import nodes as ir
from vesper.language.ir.lookup_tables import Table
from vesper.language.syntax import ast
from vesper.language.tables.analysis import EXCLUDED, Analysis, Box, Decision
from vesper.language.tables.axis import axis_of, intersection
from vesper.language.tables.files import FileProblem, Sheet, is_searchable, read_rows, read_sheet
from vesper.language.tables.model import RANKED_HITS, Column, OutputColumn, TableRow
from vesper.language.tables.witness import show_point
from vesper.values.model import Value
from vesper.values.types import STRING, ArrayOf, Enum, Record, Type, optional, without_null

if TYPE_CHECKING:
    from vesper.language.check.expressions.checker import ExpressionChecker


class FileRows(Combiner):
    """The rows of a file, and the lookups in them."""

    def __init__(
        self,
        checker: ExpressionChecker,
        hit: str,
        span: Span,
        columns: Sequence[CheckedColumn],
        outputs: Sequence[OutputColumn],
        table: Table,
        facts: TableFacts,
    ) -> None:
        self._keys = Record(tuple((each.name.text, each.type) for each in columns))
        self._record = Record(tuple((each.name, each.type) for each in outputs))
        self._columns = columns
        self._table = table
        type_ = outputs[0].type if len(outputs) == 1 else self._record
        super().__init__(checker, hit, span, [], None, facts, type_)

    def _first_result(self) -> ir.Expression:
        found = self._lookup("lookup.find", optional(self._record))
        if self._facts.is_complete:
            return self._result(ir.Call("optional.unwrap", (self._record,), (found,), self._record, self._place))
        if self._type == self._record:
            return found
        type_ = optional(self._type)
        number = self._checker.fresh_local()
        local = ir.Local(number, "found", found.type, self._place)
        row = ir.Call("optional.unwrap", (self._record,), (local,), self._record, self._place)
        body = ir.If(
            self._is_null(local, self._record),
            ir.Literal(type_, None, self._place),
            self._convert(self._result(row), type_),
            type_,
            self._place,
        )
        return ir.Let(number, "found", found, body, self._place)

    def _matching_results(self) -> ir.Expression:
        rows = self._lookup("lookup.find_all", ArrayOf(self._record))
        if self._type == self._record:
            return rows
        number = self._checker.fresh_local()
        value = self._result(ir.Local(number, "row", self._record, self._place))
        return ir.For(
            "array", (number,), ("row",), rows, None, None, value, ArrayOf(self._type), self._place
        )  # fmt: skip

    def _result(self, row: ir.Expression) -> ir.Expression:
        if self._type == self._record:
            return row
        ((name, type_),) = self._record.fields
        return ir.Field(row, name, type_, self._place)

    def _lookup(self, op: str, type_: Type) -> ir.Expression:
        keys = ir.RecordValue(tuple((each.name.text, each.value) for each in self._columns), self._place)
        hash_ = ir.Literal(STRING, self._table.hash, self._place)
        return ir.Call(op, (self._keys, self._record), (hash_, keys), type_, self._place)


class FileTableChecker:
    """Checks the tables of one node whose rows are in files."""

    def __init__(self, checker: ExpressionChecker) -> None:
        self._checker = checker
        self._bag = checker.bag

    def read(self, file: ast.TableFile) -> Sheet | None:
        """Return the lines of a file beside the node, or None after reporting an error."""
        self._bag.reads_others = True
        path = PurePosixPath(file.path.text)
        if path.is_absolute() or ".." in path.parts or "\0" in file.path.text or not path.parts:
            help_ = "write its path from the folder of the node, without `..`"
            self._bag.error(
                Code.WRONG_KIND, file.path.span, key="file", expected="a file beside the node", found=f"`{path}`",
                help=help_,
            )  # fmt: skip
            return None
        folder = Path(self._bag.source.path).parent
        found = folder / path
        is_beside = found.resolve().is_relative_to(folder.resolve())
        if not is_beside or path.suffix.lower() not in (".csv", ".xlsx"):
            help_ = "the file is in the folder of the node, or below it, and no link leads out of there"
            self._bag.error(
                Code.WRONG_KIND, file.path.span, key="file", expected="a `.csv` or `.xlsx` file beside the node",
                found=f"`{path}`", help=help_,
            )  # fmt: skip
            return None
        try:
            sheet, content = read_sheet(found, None if file.sheet is None else file.sheet.text)
        except FileProblem as problem:
            self._report(file, problem)
            return None
        self._checker.files.append((found.as_posix(), hashlib.sha256(content).hexdigest()))
        return sheet

    def combine(
        self,
        table: ast.DecisionTable,
        sheet: Sheet,
        name: ast.Word,
        hit: str,
        columns: Sequence[CheckedColumn],
        outputs: Sequence[OutputColumn],
    ) -> ir.Expression | None:
        """Return the value of a table, or None after reporting an error."""
        file = table.rows
        assert isinstance(file, ast.TableFile)
        for column in columns:
            if not is_searchable(column.type):
                expected = "a boolean, number, text, date, timestamp, duration or enum in a table with a file"
                self._bag.error(Code.TYPE_MISMATCH, column.name.span, expected=expected, found=column.type)
                return None
        model = [Column(each.name.text, each.type) for each in columns]
        try:
            rows = read_rows(sheet, model, outputs)
        except FileProblem as problem:
            self._report(file, problem)
            return None
        if not rows:
            self._bag.error(Code.WRONG_KIND, file.span, key="file", expected="at least one row", found="none")
            return None
        if hit in RANKED_HITS:
            orders = [each.values or _members(each.type) for each in outputs]
            if not any(orders):
                expected = f"outputs with `values`, or an enum, under `{hit}`"
                self._bag.error(Code.WRONG_KIND, name.span, key="hit", expected=expected, found="none")
                return None
            rows.sort(key=lambda row: _rank(row, orders))
        facts = self._examine(table, name, hit, columns, rows)
        made = lookup_table(model, outputs, rows)
        self._checker.lookup_tables[made.hash] = made
        span = name.span if table.hit is None else table.hit.span
        return FileRows(self._checker, hit, span, columns, outputs, made, facts).combine()

    def _examine(
        self,
        table: ast.DecisionTable,
        name: ast.Word,
        hit: str,
        columns: Sequence[CheckedColumn],
        rows: Sequence[TableRow],
    ) -> TableFacts:
        """Return the proven facts about the rows, and report gaps and overlaps."""
        if hit not in NEEDS_HIT:
            return TableFacts()
        axes = [axis_of(each.type) for each in columns]
        domains = [
            axis.domain if each.allowed is None else intersection(axis.domain, each.allowed)
            for axis, each in zip(axes, columns, strict=True)
        ]
        known: list[dict[int, object]] = [{} for _ in axes]
        boxes = []
        for number, row in enumerate(rows):
            spans = []
            for axis, cell, seen in zip(axes, row.cells, known, strict=True):
                if cell is not None and id(cell) not in seen:
                    seen[id(cell)] = axis.ranges(cell)
                spans.append(None if cell is None else seen[id(cell)])
            boxes.append(Box(number, tuple(spans), True))  # type: ignore[arg-type]
        analysis = Analysis(domains, boxes)
        labels, types = [each.name.text for each in columns], [each.type for each in columns]
        gap = analysis.find_gap()
        if not isinstance(gap, Decision) and (witness := show_point(labels, types, gap)) is not None:
            report = self._bag.error if hit in ("unique", "any") else self._bag.warning
            report(Code.TABLE_GAP, name.span, witness=witness, help="add a row; a row of `-` matches everything")
        is_single = False
        if hit in ("unique", "any"):
            classes: list[Hashable | None] = [
                number if hit == "unique" else row.results for number, row in enumerate(rows)
            ]
            overlap = analysis.find_overlap(classes)
            is_single = overlap is EXCLUDED
            if not isinstance(overlap, Decision) and (witness := show_point(labels, types, overlap.point)) is not None:
                first, second = rows[overlap.first].line, rows[overlap.second].line
                assert isinstance(table.rows, ast.TableFile)
                help_ = f"these are the lines of `{table.rows.path.text}`; change a cell, or use `hit: first`"
                self._bag.error(
                    Code.TABLE_OVERLAP, table.rows.path.span, help=help_, first=first, second=second, witness=witness
                )
        return TableFacts(gap is EXCLUDED, is_single)

    def _report(self, file: ast.TableFile, problem: FileProblem) -> None:
        where = f"{file.path.text}:{problem.line}: " if problem.line else ""
        found = f"{where}{problem.what}"
        self._bag.error(
            Code.WRONG_KIND, file.path.span, key="file", expected="rows of this table", found=found, help=problem.help
        )


def _members(type_: Type) -> tuple[Value, ...]:
    inner = without_null(type_)
    return inner.members if isinstance(inner, Enum) else ()


def _rank(row: TableRow, orders: list[tuple[Value, ...]]) -> tuple[int, ...]:
    return tuple(
        len(order) if value is None else order.index(value)
        for value, order in zip(row.results, orders, strict=True)
        if order
    )
