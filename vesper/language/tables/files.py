"""Rows of a decision table from a CSV or XLSX file."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import TypeVar

from vesper.language.tables.cell_values import read_cell
from vesper.language.tables.cells import CellProblem
from vesper.language.tables.model import Column, Interval, OutputColumn, TableRow, ValueSet
from vesper.storage.file_access import read_regular
from vesper.values.literal_text import value_from_text
from vesper.values.model import ProblemKind, Value, ValueProblem
from vesper.values.types import (
    BOOLEAN,
    DATE,
    DECIMAL,
    DURATION,
    INTEGER,
    STRING,
    TIMESTAMP,
    Enum,
    OptionalOf,
    Type,
    without_null,
)

MAX_ROWS = 100_000
MAX_COLUMNS = 64
MAX_FILE = 64 * 1024 * 1024
"""Maximum size in bytes of a file of rows."""
_Read = TypeVar("_Read")
NOTES = ("annotation", "reason")
"""Columns of a file that no condition and no result is."""
_SEARCHABLE = (BOOLEAN, INTEGER, DECIMAL, STRING, DATE, TIMESTAMP, DURATION)


class FileProblem(Exception):
    """A file that cannot be read as rows: the line, the problem and a repair. Line 0 means the whole file."""

    def __init__(self, line: int, what: str, help_: str | None = None) -> None:
        super().__init__(what)
        self.line = line
        self.what = what
        self.help = help_


@dataclass(frozen=True, slots=True)
class Sheet:
    """The lines of a sheet: line numbers and cells. The first line has the names of the columns."""

    lines: Sequence[tuple[int, list[str]]]


def is_searchable(type_: Type) -> bool:
    """Return whether a column of a file may have this type. Lookups search the rows by its order."""
    inner = without_null(type_)
    return isinstance(inner, Enum) or inner in _SEARCHABLE


def read_sheet(path: Path, sheet: str | None) -> tuple[Sheet, bytes]:
    """Return the lines of a CSV or XLSX file, and its bytes. Raises `FileProblem` for an unreadable file."""
    try:
        content = read_regular(path, MAX_FILE)
    except OSError as error:
        raise FileProblem(0, f"`{path.name}` cannot be read: {error.strerror}") from error
    if path.suffix.lower() == ".xlsx":
        return _read_workbook(content, sheet), content
    if sheet is not None:
        raise FileProblem(0, "a CSV file has no sheets", "remove `sheet`")
    return _read_csv(path.name, content), content


def _read_workbook(content: bytes, name: str | None) -> Sheet:
    """Return the lines of a sheet. Missing cells at the end of a line become empty ones."""
    from vesper.storage.sheets.model import SheetProblem
    from vesper.storage.sheets.xlsx_reader import read_sheet as read_xlsx

    try:
        lines = read_xlsx(content, name).lines
    except SheetProblem as problem:
        raise FileProblem(problem.line, str(problem)) from problem
    width = len(lines[0][1]) if lines else 0
    return Sheet([(line, [*cells, *[""] * (width - len(cells))]) for line, cells in lines])


def _read_csv(name: str, content: bytes) -> Sheet:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FileProblem(line, f"`{name}` is not UTF-8", "save it as UTF-8") from error
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(text), strict=True)
    lines: list[tuple[int, list[str]]] = []
    try:
        for cells in reader:
            if cells:  # not a blank line
                lines.append((reader.line_num, cells))
    except csv.Error as error:
        raise FileProblem(reader.line_num, f"this line is no CSV: {error}") from error
    return Sheet(lines)


def delimiter_of(text: str) -> str:
    """Return the character that separates the cells of a CSV text, by its first line."""
    first = text.partition("\n")[0]
    return ";" if first.count(";") > first.count(",") else "\t" if "\t" in first and "," not in first else ","


def condition_names(sheet: Sheet, outputs: Sequence[OutputColumn]) -> list[str]:
    """Return the names of the columns of conditions. They are in the first line, and are not outputs or notes."""
    names = [name.strip() for name in sheet.lines[0][1]] if sheet.lines else []
    others = {*NOTES, *(each.name for each in outputs)}
    return [name for name in dict.fromkeys(names) if name not in others]


def read_rows(sheet: Sheet, columns: Sequence[Column], outputs: Sequence[OutputColumn]) -> list[TableRow]:
    """Return the rows of a sheet, or raise `FileProblem`. An empty cell of a condition matches everything."""
    if not sheet.lines:
        raise FileProblem(1, "the file has no line with the names of its columns")
    header = [name.strip() for name in sheet.lines[0][1]]
    places = _places(sheet.lines[0][0], header, [each.name for each in columns], [each.name for each in outputs])
    if len(sheet.lines) - 1 > MAX_ROWS:
        raise FileProblem(0, f"the file has more than {MAX_ROWS:,} rows")
    width = len(header)
    for line, cells in sheet.lines[1:]:
        if len(cells) != width:
            raise FileProblem(line, f"this line has {len(cells)} cells, the first line {width}")
    conditions = [_read_column(sheet, places[each.name], each.name, _condition_reader(each.type)) for each in columns]
    results = [_read_column(sheet, places[each.name], each.name, _result_reader(each)) for each in outputs]
    annotations, reasons = (
        _read_column(sheet, places[name], name, _note) if name in places else repeat(None) for name in NOTES
    )
    lines = [line for line, _ in sheet.lines[1:]]
    cells_of_rows = zip(*conditions, strict=True) if conditions else repeat((), len(lines))
    return list(map(TableRow, cells_of_rows, zip(*results, strict=True), lines, annotations, reasons))


def _places(line: int, header: list[str], columns: list[str], outputs: list[str]) -> dict[str, int]:
    expected = [*columns, *outputs]
    if len(columns) > MAX_COLUMNS:
        raise FileProblem(line, f"a table has at most {MAX_COLUMNS} columns")
    for name in expected:
        if header.count(name) != 1:
            times = "no column" if name not in header else "several columns"
            raise FileProblem(line, f"the file has {times} `{name}`", f"it has: {', '.join(header)}")
    for name in header:
        if name not in expected and name not in NOTES:
            help_ = f"the table has the columns {', '.join(columns)} and the outputs {', '.join(outputs)}"
            raise FileProblem(line, f"the table has no column or output `{name}`", help_)
    return {name: place for place, name in enumerate(header)}


def _read_column(sheet: Sheet, place: int, name: str, read: Callable[[str], _Read]) -> list[_Read]:
    """Return the values of a column. Each text is read once, so that equal cells are one object."""
    texts = [cells[place] for _, cells in sheet.lines[1:]]
    values: dict[str, _Read] = {}
    for text in dict.fromkeys(texts):
        try:
            values[text] = read(text.strip())
        except (CellProblem, ValueProblem) as problem:
            line = sheet.lines[1 + texts.index(text)][0]
            if isinstance(problem, CellProblem):
                raise FileProblem(line, f"column `{name}`: {problem}", problem.help) from problem
            raise FileProblem(line, f"column `{name}`: `{text}` is no value of its type") from problem
    return [values[text] for text in texts]


def _condition_reader(type_: Type) -> Callable[[str], ValueSet | None]:
    inner = without_null(type_)

    def read(text: str) -> ValueSet | None:
        if text in ("", "-"):
            return None
        # Most cells are plain literals, for which the grammar of cells takes ten times as long.
        if inner in (INTEGER, DECIMAL, STRING) and text.replace(".", "", 1).isalnum() and text != "null":
            value = value_from_text(inner, text)
            return ValueSet((Interval(value, value),))
        found = read_cell(text, type_)
        if found is not None and not found.intervals and not found.has_null:
            raise CellProblem(0, len(text), "values, and ranges from a lower to a higher one", f"`{text}`")
        return found

    return read


def _result_reader(output: OutputColumn) -> Callable[[str], Value]:
    type_ = output.type

    def read(text: str) -> Value:
        # The word is a text where texts are possible, as `vesper export` writes it.
        nulls = ("",) if without_null(type_) == STRING else ("", "null")
        is_null = isinstance(type_, OptionalOf) and text in nulls
        value = None if is_null else value_from_text(without_null(type_), text)
        if output.values and value not in output.values:
            raise ValueProblem(ProblemKind.NOT_A_MEMBER)
        return value

    return read


def _note(text: str) -> str | None:
    return text or None
