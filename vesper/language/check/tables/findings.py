"""Findings of the analysis of a table: gaps, overlaps and unreachable rows, with a witness.

The analysis treats columns as independent of each other, within their types, their `allowed` values, the constraints of
inputs and the preconditions. Its results also decide how the table is lowered.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vesper.language.check.tables.cells import CheckedColumn
from vesper.language.check.tables.conditions import ConditionReader, Key
from vesper.language.check.tables.lowered import LoweredRow, literal_of
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import Label
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.language.tables.analysis import EXCLUDED, Analysis, Box, Decision, Overlap, Point
from vesper.language.tables.axis import Ranges, axis_of, intersection
from vesper.language.tables.witness import show_point
from vesper.values.types import Type

if TYPE_CHECKING:
    from vesper.language.check.expressions.checker import ExpressionChecker

NEEDS_HIT = frozenset({"first", "unique", "any", "priority", "min", "max"})
"""Hit policies without a value where no row matches."""


@dataclass(frozen=True, slots=True)
class TableFacts:
    """The proven facts about a table."""

    is_complete: bool = False
    """Every value of the columns matches a row."""
    is_single: bool = False
    """No values match two rows whose results could differ, and no condition can fail."""
    is_refused: bool = False
    """An error was reported, so the type of the value is unknown."""


class Findings:
    """Examines one table and reports what it finds."""

    def __init__(self, checker: ExpressionChecker, name: ast.Word) -> None:
        self._checker = checker
        self._bag = checker.bag
        self._name = name
        self.name = name
        self.analysis: Analysis | None = None
        """The searches over the rows, for editors that show more than the first gap."""
        self.has_gap = False
        self._labels: list[str] = []
        self._keys: list[Key] = []
        self._reader = ConditionReader()
        self._is_sharp = True
        """Whether every clause about the columns is part of their domains. Otherwise a witness may be impossible."""

    def examine(
        self, table: ast.DecisionTable, hit: str, columns: list[CheckedColumn], rows: list[LoweredRow]
    ) -> TableFacts:
        """Return the proven facts, and report gaps, overlaps and unreachable rows."""
        has_cells = any(row.source.cells for row in rows)
        has_default = table.otherwise is not None
        conditional = [row for row in rows if row.condition is not None]
        if not conditional or (hit == "first" and has_default and not has_cells):
            return TableFacts()  # the reachability of conditions reports rows without cells
        analysis, is_exact = self._analysis(columns, conditional)
        self.analysis = analysis
        self._checker.examined.append(self)
        self._checker.analysed += [cell.span for row in rows for _, cell in row.source.cells]
        self._checker.analysed += [row.source.span for row in rows if row.source.cells]
        errors = self._bag.error_count
        is_complete = False
        if not has_default and hit in NEEDS_HIT:
            is_complete = self._examine_gap(hit, analysis.find_gap())
        is_single = False
        if hit in ("unique", "any"):
            is_single = self._examine_overlap(hit, analysis.find_overlap(_classes(hit, conditional)), conditional)
        if hit == "first" and has_cells:
            self._report_unreached(analysis.find_unreached(len(conditional)), conditional)
        self._checker.analysis_budget = max(0, analysis.budget)
        return TableFacts(is_complete, is_single and is_exact, self._bag.error_count > errors)

    @property
    def columns(self) -> list[tuple[str, Type]]:
        """Return the labels and types of the analysed columns."""
        return [(label, self._reader.types[key]) for label, key in zip(self._labels, self._keys, strict=True)]

    # -- boxes ------------------------------------------------------------------------------------

    def _analysis(self, columns: list[CheckedColumn], rows: list[LoweredRow]) -> tuple[Analysis, bool]:
        reader = self._reader
        allowed: dict[Key, Ranges] = {}
        names: dict[Key, str] = {}
        for column in columns:
            for number, value in column.bound:
                reader.alias(number, value)
            key = reader.key(column.value)
            assert key is not None
            names[key] = column.name.text
            if column.allowed is not None:
                allowed[key] = column.allowed
        read = [reader.read(row.condition) for row in rows if row.condition is not None]
        used = {key for boxes in read for box in boxes.boxes for key in box}
        self._keys = [key for key in dict.fromkeys([*names, *reader.types]) if key in used]
        self._labels = [names.get(key) or _label(key) for key in self._keys]
        domains = self._domains(allowed)
        boxes = [
            Box(number, tuple(sets.get(key) for key in self._keys), found.is_exact)
            for number, found in enumerate(read)
            for sets in found.boxes
        ]
        return Analysis(domains, boxes, self._checker.analysis_budget), all(found.is_exact for found in read)

    def _domains(self, allowed: dict[Key, Ranges]) -> list[Ranges]:
        """Return the possible values of each name. Its type, its allowed values and clauses restrict them."""
        types = dict(self._reader.types)
        domains = {key: axis_of(types[key]).domain for key in self._keys}
        for key in self._keys:
            if key in allowed:
                domains[key] = intersection(domains[key], allowed[key])
        for clause in self._checker.assumptions:
            reader = ConditionReader()
            found = reader.read(clause)
            mentioned = {_root(key) for key in _mentioned_keys(clause)} & {_root(key) for key in self._keys}
            if not mentioned:
                continue
            if len(found.boxes) != 1 or not found.is_exact or not set(found.boxes[0]) <= set(self._keys):
                self._is_sharp = False
            if len(found.boxes) == 1:
                for key, ranges in found.boxes[0].items():
                    if key in domains:
                        domains[key] = intersection(domains[key], ranges)
        return [domains[key] for key in self._keys]

    # -- reports ----------------------------------------------------------------------------------

    def _examine_gap(self, hit: str, found: Point | Decision) -> bool:
        """Report a gap; return whether every value matches a row."""
        if isinstance(found, Decision):
            return found is EXCLUDED
        witness = self._witness(found)
        if witness is not None:
            self.has_gap = True
            help_ = "add a row, or end the table with `otherwise`; `otherwise: null` says that nothing follows"
            report = self._bag.error if hit in ("unique", "any") and self._is_sharp else self._bag.warning
            report(Code.TABLE_GAP, self._name.span, witness=witness, help=help_)
        return False

    def _examine_overlap(self, hit: str, found: Overlap | Decision, rows: list[LoweredRow]) -> bool:
        """Report an overlap; return whether none is possible."""
        if isinstance(found, Decision):
            return found is EXCLUDED
        witness = self._witness(found.point)
        if witness is not None:
            first, second = rows[found.first].source, rows[found.second].source
            also = (Label(first.span, "this row matches them too"),)
            help_ = "change a cell, or use `hit: first`, under which the upper row decides"
            if hit == "any":
                help_ = "make the results equal, change a cell, or use `hit: first`"
            report = self._bag.error if self._is_sharp else self._bag.warning
            numbers = (found.first + 1, found.second + 1)
            report(
                Code.TABLE_OVERLAP, second.span, also=also, help=help_,
                first=numbers[0], second=numbers[1], witness=witness,
            )  # fmt: skip
        return False

    def _report_unreached(self, found: tuple[int, ...] | Decision, rows: list[LoweredRow]) -> None:
        for number in () if isinstance(found, Decision) else found:
            source = rows[number].source
            if source.cells:
                help_ = "the rows above match all of its values; remove it or move it up"
                label = "no value that gets here matches"
                self._bag.warning(Code.UNREACHABLE_BRANCH, source.span, label, what="this row", help=help_)

    def _witness(self, point: Point) -> str | None:
        """Return the values of a point as text. None if no value is known in one of its ranges."""
        return show_point(self._labels, [self._reader.types[key] for key in self._keys], point)


def _classes(hit: str, rows: list[LoweredRow]) -> list[Hashable | None]:
    """Return the class of each row; rows of one class may overlap.

    Under `any` the class is the row's literal result, under `unique` every row has its own.
    """
    if hit == "unique":
        return list(range(len(rows)))
    return [_result_class(row.value) for row in rows]


def _result_class(value: ir.Expression) -> Hashable | None:
    if isinstance(value, ir.RecordValue):
        parts = tuple(_result_class(part) for _, part in value.fields)
        return None if None in parts else parts
    literal = literal_of(value)
    if literal is None or isinstance(literal.value, list | dict):
        return None
    return "value", literal.value


def _mentioned_keys(clause: ir.Expression) -> set[Key]:
    return {(part.kind, part.name) for part in ir.walk(clause) if isinstance(part, ir.Ref)}


def _root(key: Key) -> Key:
    """Return the first name of a key: `(("input", "order"), "total")` begins with `("input", "order")`."""
    while isinstance(key, tuple) and isinstance(key[0], tuple):
        key = key[0]
    return key


def _label(key: Key) -> str:
    if isinstance(key, tuple) and isinstance(key[0], tuple):
        return f"{_label(key[0])}.{key[1]}"
    assert isinstance(key, tuple)
    return str(key[1])
