"""A decision table as a sheet shows it: every part is the text of a cell."""

from __future__ import annotations

from dataclasses import dataclass, field

HITS = (
    "first", "unique", "any", "priority", "collect", "sum", "min", "max", "count", "rule_order", "output_order"
)  # fmt: skip


class SheetFormatError(Exception):
    """Lines that are no decision table: the line, 0 for the whole sheet, and what is wrong."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


@dataclass(slots=True)
class ColumnOfCells:
    """A column of conditions."""

    name: str
    type: str = ""
    """The text of its type; empty where the sheet does not state it."""
    allowed: list[str] = field(default_factory=list)
    expression: str = ""
    """The value of the column in its node, where that is more than a name."""


@dataclass(slots=True)
class ColumnOfResults:
    name: str
    type: str = ""
    values: list[str] = field(default_factory=list)


@dataclass(slots=True)
class SheetRow:
    line: int
    cells: dict[str, str]
    """Cells by column; a column that matches everything is left out."""
    results: dict[str, str]
    """Results by column: a literal of the type, or `=` and an expression. A column without result is left out."""
    when: str = ""
    annotation: str = ""
    reason: str = ""
    is_default: bool = False


@dataclass(slots=True)
class SheetTable:
    name: str
    hit: str = "first"
    columns: list[ColumnOfCells] = field(default_factory=list)
    outputs: list[ColumnOfResults] = field(default_factory=list)
    rows: list[SheetRow] = field(default_factory=list)

    def all_columns(self) -> list[ColumnOfCells | ColumnOfResults]:
        return [*self.columns, *self.outputs]
