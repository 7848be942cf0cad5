"""The layout of a decision table in a sheet, in both directions.

    first      amount      country    rate         label       annotation
               in decimal  in string  out decimal  out string  annotation
    values                 DE                      gold
    1          [0..100)    DE, FR     0.05         silver      small orders
    otherwise                         0            silver

The corner has the hit policy. The second line states what each column is: `in` and `out` with an optional type, `when`,
`annotation` or `reason`. A line `values` lists allowed values, one on each line of a cell; a line `expression` has the
expressions of columns. A sheet without the second line has names only: its last column is the result unless the caller
names the results, and it needs no corner.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from vesper.importers.sheets.model import (
    HITS,
    ColumnOfCells,
    ColumnOfResults,
    SheetFormatError,
    SheetRow,
    SheetTable,
)

Line = tuple[int, Sequence[str]]
_KIND = re.compile(r"(in|out)(?:\s+(.+))?|(when|annotation|reason)")
_NOTES = ("when", "annotation", "reason")


def table_of_lines(name: str, lines: Sequence[Line], outputs: Sequence[str] = ()) -> SheetTable:
    """Return the table of a sheet; `outputs` names the columns of results where the sheet does not mark them.

    Raises `SheetFormatError`.
    """
    if not lines:
        raise SheetFormatError(0, "the sheet is empty")
    number, first = lines[0]
    header = [text.strip() for text in first]
    is_marked = len(lines) > 1 and _is_marks(lines[1][1])
    corner = header[0].lower() if header else ""
    has_corner = corner in HITS or (is_marked and not header[0])
    names = header[1:] if has_corner else header
    if not names or any(not each for each in names):
        raise SheetFormatError(number, "a column has no name")
    twice = sorted({each for each in names if names.count(each) > 1})
    if twice:
        raise SheetFormatError(number, f"two columns are named `{twice[0]}`")
    reader = _Reader(SheetTable(name, corner if corner in HITS else "first"), names, has_corner)
    if is_marked:
        marks = list(lines[1][1])[1:] if has_corner else list(lines[1][1])
        reader.mark(lines[1][0], marks)
    else:
        reader.assume(number, outputs)
    for line, cells in lines[2 if is_marked else 1 :]:
        reader.line(line, cells)
    if not reader.table.rows:
        raise SheetFormatError(0, "the table has no rows")
    return reader.table


def _is_marks(cells: Sequence[str]) -> bool:
    texts = [text.strip() for text in cells]
    return any(texts) and all(not text or _KIND.fullmatch(text) for text in texts)


class _Reader:
    def __init__(self, table: SheetTable, names: list[str], has_corner: bool) -> None:
        self.table = table
        self.names = names
        self.has_corner = has_corner
        self.kinds: dict[str, str] = {}

    def mark(self, line: int, marks: list[str]) -> None:
        """Take the kinds of the columns from the second line."""
        marks += [""] * (len(self.names) - len(marks))
        for name, mark in zip(self.names, marks, strict=False):
            found = _KIND.fullmatch(mark.strip())
            if found is None:
                raise SheetFormatError(line, f"column `{name}` is not marked: in, out, when, annotation or reason")
            self._add(line, name, found[3] or found[1], found[2] or "")

    def assume(self, line: int, outputs: Sequence[str]) -> None:
        """Take the named columns, or the last one, as results. A named result may have the name of a note column."""
        for name in outputs:
            if name not in self.names:
                raise SheetFormatError(line, f"no column is named `{name}`; the columns are {', '.join(self.names)}")
        plain = [name for name in self.names if name not in _NOTES or name in outputs]
        results = list(outputs) or plain[-1:]
        for name in self.names:
            self._add(line, name, "out" if name in results else name if name not in plain else "in", "")

    def _add(self, line: int, name: str, kind: str, type_: str) -> None:
        if kind in _NOTES and kind in self.kinds.values():
            raise SheetFormatError(line, f"two columns are marked `{kind}`")
        self.kinds[name] = kind
        if kind == "in":
            self.table.columns.append(ColumnOfCells(name, type_.strip()))
        elif kind == "out":
            self.table.outputs.append(ColumnOfResults(name, type_.strip()))

    def line(self, line: int, cells: Sequence[str]) -> None:
        """Take a line of rows, of allowed values or of expressions."""
        texts = [text.strip() for text in cells]
        label = texts[0].lower() if self.has_corner else ""
        texts = texts[1:] if self.has_corner else texts
        if len(texts) > len(self.names):
            raise SheetFormatError(line, f"the line has {len(texts)} cells, the table {len(self.names)} columns")
        found = dict(zip(self.names, texts, strict=False))
        if label == "values":
            return self._values(line, found)
        if label == "expression":
            return self._expressions(line, found)
        if label and label != "otherwise" and not label.isdigit():
            raise SheetFormatError(line, f"`{label}` is neither a number nor `otherwise`, `values` or `expression`")
        if not any(texts) and label != "otherwise":
            return None
        self.table.rows.append(self._row(line, found, is_default=label == "otherwise"))
        return None

    def _row(self, line: int, found: dict[str, str], *, is_default: bool) -> SheetRow:
        row = SheetRow(line, {}, {}, is_default=is_default)
        for name, text in found.items():
            kind = self.kinds[name]
            if kind == "in":
                if text not in ("", "-"):
                    row.cells[name] = text
            elif kind == "out":
                if text:
                    row.results[name] = text
            else:
                setattr(row, kind, text)
        if is_default and (row.cells or row.when):
            raise SheetFormatError(line, "the row `otherwise` has a condition")
        if self.table.rows and self.table.rows[-1].is_default:
            raise SheetFormatError(line, "a row stands after `otherwise`")
        return row

    def _values(self, line: int, found: dict[str, str]) -> None:
        for column in self.table.all_columns():
            texts = [text.strip() for text in found.get(column.name, "").splitlines() if text.strip()]
            if isinstance(column, ColumnOfCells):
                column.allowed = texts
            else:
                column.values = texts
        self._refuse_notes(line, found)

    def _expressions(self, line: int, found: dict[str, str]) -> None:
        for column in self.table.columns:
            column.expression = found.get(column.name, "")
        for output in self.table.outputs:
            if found.get(output.name):
                raise SheetFormatError(line, f"the result `{output.name}` has an expression")
        self._refuse_notes(line, found)

    def _refuse_notes(self, line: int, found: dict[str, str]) -> None:
        for name, text in found.items():
            if text and self.kinds[name] in _NOTES:
                raise SheetFormatError(line, f"column `{name}` has neither values nor an expression")


def lines_of_table(table: SheetTable) -> list[list[str]]:
    """Return the lines of a table as `table_of_lines` reads them."""
    notes = [kind for kind in _NOTES if any(getattr(row, kind) for row in table.rows)]
    ins, outs = [each.name for each in table.columns], [each.name for each in table.outputs]
    taken = {*ins, *outs}
    titles = [kind if kind not in taken else f"{kind} (note)" for kind in notes]
    when = [title for title, kind in zip(titles, notes, strict=True) if kind == "when"]
    rest = [title for title, kind in zip(titles, notes, strict=True) if kind != "when"]
    lines = [[table.hit, *ins, *when, *outs, *rest]]
    marks = [f"in {each.type}".strip() for each in table.columns] + ["when"] * len(when)
    marks += [f"out {each.type}".strip() for each in table.outputs] + [kind for kind in notes if kind != "when"]
    lines.append(["", *marks])
    if any(each.allowed for each in table.columns) or any(each.values for each in table.outputs):
        allowed = ["\n".join(each.allowed) for each in table.columns] + [""] * len(when)
        lines.append(["values", *allowed, *("\n".join(each.values) for each in table.outputs), *("" for _ in rest)])
    if any(each.expression for each in table.columns):
        blank = [""] * (len(when) + len(outs) + len(rest))
        lines.append(["expression", *(each.expression for each in table.columns), *blank])
    for at, row in enumerate(table.rows, 1):
        label = "otherwise" if row.is_default else str(at)
        cells = [row.cells.get(name, "" if row.is_default else "-") for name in ins]
        written = [row.when] if when else []
        results = [row.results.get(name, "") for name in outs]
        lines.append([label, *cells, *written, *results, *(getattr(row, kind) for kind in notes if kind != "when")])
    return lines
