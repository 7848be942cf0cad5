"""The decision tables of a text as grids: columns, rows, gaps and overlaps, and problems at their cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from vesper.compiler.callees import Collection, Neighbours, collection_folder
from vesper.compiler.check_result import check_bytes
from vesper.dashboard.play.grid.layout import DEFAULT, NOTES, Column, TableText, cell_of, find_tables
from vesper.language.check.tables.findings import Findings
from vesper.language.check.tables.from_files import FileTableChecker
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import CheckingStopped, Diagnostic, Severity
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.syntax import ast
from vesper.language.syntax.declared_id import declared_id
from vesper.language.syntax.yaml.edits import entry_of, is_flow
from vesper.language.syntax.yaml_tree import Scalar, Tree
from vesper.language.tables.axis import Range, axis_of
from vesper.language.tables.model import HITS, ValueSet
from vesper.language.tables.witness import show_value
from vesper.lsp.features.knowledge import Knowledge, analyse, read_tree
from vesper.values.types import BOOLEAN, STRING, Enum, OptionalOf, Type, without_null

MAX_GAPS = 5
MAX_FILE_ROWS = 1_000
"""Rows of a file that a grid shows."""
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_OF_TABLES = frozenset([Code.TABLE_GAP, Code.TABLE_OVERLAP, Code.UNREACHABLE_BRANCH])


@dataclass(frozen=True, slots=True)
class GridColumn:
    key: str
    name: str
    kind: str
    type: str
    """Empty where it is unknown."""
    choices: tuple[str, ...]
    """Members of an enum, and the booleans."""
    about: str
    """The expression of a column, where it is not its name."""


@dataclass(frozen=True, slots=True)
class GridRow:
    line: int
    last_line: int
    is_default: bool
    cells: tuple[str | None, ...]
    """One for each column; None where the row has none."""
    locked: tuple[str, ...] = ()
    """Keys of the cells that only the text can change."""


@dataclass(frozen=True, slots=True)
class GridProblem:
    """A diagnostic at a row and a column, or at the whole table."""

    severity: str
    message: str
    help: str
    row: int | None = None
    column: str | None = None
    also: int | None = None
    """The other row of an overlap."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Values that no row covers, and the cells of a row that would."""

    values: tuple[tuple[str, str], ...]
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Grid:
    index: int
    name: str
    place: str
    line: int
    hit: str
    file: str
    """Name of the file that has the rows; empty where the text has them."""
    columns: tuple[GridColumn, ...]
    rows: tuple[GridRow, ...]
    more_rows: int
    gaps: tuple[Gap, ...]
    problems: tuple[GridProblem, ...]


@dataclass(frozen=True, slots=True)
class Grids:
    tables: tuple[Grid, ...]
    elsewhere: tuple[GridProblem, ...]
    """Errors outside of tables."""
    hits: tuple[str, ...] = HITS


def read_grids(file: Path, text: str, is_checked: bool = True) -> Grids:
    """Return the tables of a text, also where other parts of it have errors.

    Without the check there are no types, gaps and problems: a large table is shown before it is checked.
    """
    source = SourceFile(file.as_posix(), text)
    tree = read_tree(source)[1]
    if not is_checked:
        return Grids(tuple(_Reader(source, each, None, []).read() for each in find_tables(tree)), ())
    found = declared_id(text)
    known = analyse(source, Neighbours(Collection(collection_folder(file)), () if found is None else (found[0],)))
    diagnostics = list(check_bytes(file.as_posix(), text.encode("utf-8", "replace")).diagnostics)
    tables = tuple(_Reader(source, each, known, diagnostics).read() for each in find_tables(tree))
    left = [each for each in diagnostics if each.severity is Severity.ERROR]
    return Grids(tables, tuple(_problem(each) for each in left))


def _problem(
    found: Diagnostic, row: int | None = None, column: str | None = None, also: int | None = None
) -> GridProblem:
    return GridProblem(found.severity.value, found.headline, found.help or "", row, column, also)


class _Reader:
    def __init__(
        self, source: SourceFile, table: TableText, known: Knowledge | None, diagnostics: list[Diagnostic]
    ) -> None:
        self._source = source
        self._table = table
        self._known = known
        self._diagnostics = diagnostics
        """Diagnostics of the text; those of this table are taken out."""
        self._columns = table.columns()
        tables = () if known is None else known.all(ast.DecisionTable)
        self._checked = next((each for each in tables if each.span == table.rows.span), None)

    def read(self) -> Grid:
        table, file, more = self._table, "", 0
        columns = [self._column(each) for each in self._columns]
        rows = [self._row(each) for each in table.listed]
        if not rows and isinstance(path := entry_of(table.rows, "file"), Scalar):
            file = path.text
            columns, rows, more = self._file_rows(columns)
        line = self._source.position(table.name.span.start)[0]
        problems = tuple(self._problems())
        gaps = tuple(self._gaps())
        return Grid(
            table.index, table.name.text, table.place, line, table.hit, file, tuple(columns), tuple(rows), more, gaps,
            problems,
        )  # fmt: skip

    # -- columns and rows -------------------------------------------------------------------------

    def _column(self, column: Column) -> GridColumn:
        type_ = self._type(column)
        choices = () if column.kind == "when" else _choices(type_)
        value = entry_of(column.declared, "value") or column.declared
        about = value.text if column.kind == "in" and isinstance(value, Scalar) and value.text != column.name else ""
        written = entry_of(column.declared, "type") or column.declared
        shown = str(type_) if type_ is not None else written.text if isinstance(written, Scalar) and not about else ""
        return GridColumn(column.key, column.name, column.kind, shown, choices, about)

    def _type(self, column: Column) -> Type | None:
        known, checked = self._known, self._checked
        if column.kind == "when":
            return BOOLEAN
        if known is None or checked is None or column.kind == "note":
            return None
        try:
            if column.kind == "in":
                expression = self._column_value(checked, column.name)
                fact = None if expression is None else known.fact(expression)
                return None if fact is None else fact.type
            output = next((each for each in checked.outputs if each.name.text == column.name), None)
            if output is not None and known.checker is not None:
                return known.checker.resolve(output.type)
        except CheckingStopped:
            return None
        results = [row.then for row in checked.rows if row.then] if isinstance(checked.rows, tuple) else []
        facts = [known.fact(each) for each in results if column.key == "then"]
        types = {fact.type for fact in facts if fact is not None and fact.type is not None}
        return types.pop() if len(types) == 1 else None

    @staticmethod
    def _column_value(table: ast.DecisionTable, name: str) -> ast.Expression | None:
        declared = next((each.value for each in table.columns if each.name.text == name), None)
        if declared is not None:
            return declared
        rows = table.rows if isinstance(table.rows, tuple) else ()
        words = (word for row in rows for word, _ in row.cells if word.text == name)
        return next((ast.Name(word.text, word.span) for word in words), None)

    def _row(self, row: Tree) -> GridRow:
        cells = [cell_of(row, each) for each in self._columns]
        locked = [
            column.key
            for column, cell in zip(self._columns, cells, strict=True)
            if cell is not None and self._is_locked(cell)
        ]
        first, _, last, _ = self._source.positions(row.span)
        is_default = entry_of(row, DEFAULT) is not None
        return GridRow(first, last, is_default, tuple(map(self._cell_text, cells)), tuple(locked))

    def _cell_text(self, cell: Tree | None) -> str | None:
        if cell is None:
            return None
        return " ".join((cell.text if isinstance(cell, Scalar) else self._source.slice(cell.span)).split())

    def _is_locked(self, cell: Tree) -> bool:
        if isinstance(cell, Scalar):
            return cell.style in ("|", ">")
        return not is_flow(self._source.text, cell) or "\n" in self._source.slice(cell.span)

    def _file_rows(self, columns: list[GridColumn]) -> tuple[list[GridColumn], list[GridRow], int]:
        """Return the rows of the file, as the check reads it."""
        checked, known = self._checked, self._known
        sheet = None
        if checked is not None and known is not None and known.checker is not None:
            assert isinstance(checked.rows, ast.TableFile)
            try:
                sheet = FileTableChecker(known.checker).read(checked.rows)
            except CheckingStopped:
                sheet = None
        if sheet is None or not sheet.lines:
            return columns, [], 0
        outputs = {each.name: each for each in columns if each.kind == "out"}
        header = [name.strip() for name in sheet.lines[0][1]]
        shown = [
            outputs.get(name) or GridColumn(name, name, "note" if name in NOTES else "in", "", (), "")
            for name in header
        ]
        listed = [GridRow(line, line, False, tuple(cells)) for line, cells in sheet.lines[1 : MAX_FILE_ROWS + 1]]
        return shown, listed, max(0, len(sheet.lines) - 1 - MAX_FILE_ROWS)

    # -- problems ---------------------------------------------------------------------------------

    def _problems(self) -> Iterator[GridProblem]:
        """Yield the diagnostics of this table and remove them from the list; gaps are listed apart."""
        table = self._table
        around = [table.name.span, table.holder.span]
        for found in [each for each in self._diagnostics if any(_holds(span, each.primary.span) for span in around)]:
            is_own = found.code in _OF_TABLES or _holds(table.rows.span, found.primary.span)
            if not is_own and not self._header(found.primary.span):
                continue  # about the step around the table
            self._diagnostics.remove(found)
            row = self._row_at(found.primary.span)
            column = self._header(found.primary.span) if row is None else self._column_at(row, found.primary.span)
            also = next((self._row_at(each.span) for each in found.secondary), None)
            yield _problem(found, row, column, also if found.code is Code.TABLE_OVERLAP else None)

    def _row_at(self, span: Span) -> int | None:
        return next((number for number, row in enumerate(self._table.listed) if _holds(row.span, span)), None)

    def _column_at(self, row: int, span: Span) -> str | None:
        cells = ((each.key, cell_of(self._table.listed[row], each)) for each in self._columns)
        return next((key for key, cell in cells if cell is not None and _holds(cell.span, span)), None)

    def _header(self, span: Span) -> str | None:
        return next(
            (each.key for each in self._columns if each.declared is not None and _holds(each.declared.span, span)), None
        )

    # -- gaps -------------------------------------------------------------------------------------

    def _gaps(self) -> Iterator[Gap]:
        checker = None if self._known is None else self._known.checker
        examined: list[Findings] = [] if checker is None else checker.examined
        found = next((each for each in examined if each.has_gap and each.name.span == self._table.name.span), None)
        if found is None or found.analysis is None:
            return
        names = {each.name: each.key for each in self._columns if each.kind == "in"}
        for gap in found.analysis.find_gaps(MAX_GAPS):
            cells: dict[str, str] = {}
            conditions: list[str] = []
            values: list[tuple[str, str]] = []
            for (label, type_), part in zip(found.columns, gap, strict=True):
                if part is None:
                    continue
                values.append((label, cell_of_range(type_, part)))
                if label in names:
                    cells[names[label]] = values[-1][1]
                else:
                    conditions.append(_condition(label, type_, part))
            yield Gap(tuple(values), cells | ({"when": " AND ".join(conditions)} if conditions else {}))


def _holds(around: Span, inside: Span) -> bool:
    return around.start <= inside.start and inside.end <= around.end


def _choices(type_: Type | None) -> tuple[str, ...]:
    inner = None if type_ is None else without_null(type_)
    known = inner.members if isinstance(inner, Enum) else ("true", "false") if inner == BOOLEAN else ()
    return (*known, "null") if known and isinstance(type_, OptionalOf) else tuple(known)


def _tests(type_: Type, part: Range, in_cell: bool = False) -> list[tuple[str, str]]:
    """Return the comparisons of a range: operator and literal."""
    values = axis_of(type_).values((part,))
    inner = without_null(type_)

    def literal(value: object, is_alone: bool = False) -> str:
        if is_alone and inner == STRING and _WORD.fullmatch(str(value)) and value != "null":
            return str(value)
        if inner == STRING:
            return "'" + str(value).replace("'", "''") + "'"
        return show_value(value, inner)  # type: ignore[arg-type]  # a value of this type

    if values.has_null:
        return [("==", "null")]
    tests: list[tuple[str, str]] = []
    if isinstance(inner, Enum):
        keys = [inner.members.index(str(each)) if each is not None else None for each in _ends(values)]
        members = inner.members[keys[0] or 0 : len(inner.members) if keys[1] is None else keys[1] + 1]
        return [("==", ", ".join(members))] if in_cell else [("IN", f"[{', '.join(members)}]")]
    for each in values.intervals:
        if each.low is not None and each.low == each.high:
            return [("==", literal(each.low, in_cell))]
        if each.low is not None:
            tests.append((">" if each.is_low_open else ">=", literal(each.low)))
        if each.high is not None:
            tests.append(("<" if each.is_high_open else "<=", literal(each.high)))
    return tests


def _ends(values: ValueSet) -> tuple[object, object]:
    (interval,) = values.intervals
    return interval.low, interval.high


def cell_of_range(type_: Type, part: Range) -> str:
    """Return the cell that matches the values of a range."""
    tests = _tests(type_, part, in_cell=True)
    match tests:
        case [("==", value)]:
            return value
        case [(low, first), (high, last)]:
            return f"{'(' if low == '>' else '['}{first}..{last}{')' if high == '<' else ']'}"
        case [(operator, value)]:
            return f"{operator} {value}"
        case _:
            return "-"


def _condition(label: str, type_: Type, part: Range) -> str:
    """Return the condition that holds for the values of a range of a name."""
    tests = _tests(type_, part)
    if tests == [("==", "null")]:
        return f"{label} IS NULL"
    if without_null(type_) == BOOLEAN and tests:
        return label if tests[0][1] == "true" else f"NOT {label}"
    return " AND ".join(f"{label} {operator} {value}" for operator, value in tests) or "true"
