"""The model of a decision table: columns with types, cells as sets of values, outputs.

It is independent of YAML, so rows of a file and rows of a node share one meaning and one analysis. A cell that is an
expression has no model; the checker treats its row as undecided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vesper.values.model import Scalar, Value
from vesper.values.types import Type

HITS = (
    "first",
    "unique",
    "any",
    "priority",
    "collect",
    "sum",
    "min",
    "max",
    "count",
    "rule_order",
    "output_order",
)
"""Hit policies: the rows that count if several conditions hold, and how their results combine."""
SINGLE_HITS = frozenset({"first", "unique", "any", "priority"})
"""Hit policies whose value is the result of one row."""
LIST_HITS = frozenset({"collect", "rule_order", "output_order"})
"""Hit policies whose value is an array of results."""
RANKED_HITS = frozenset({"priority", "output_order"})
"""Hit policies that order rows by the `values` of their outputs."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Values from `low` to `high`; None is unbounded. A single value is the closed interval from it to itself."""

    low: Scalar | None
    high: Scalar | None
    is_low_open: bool = False
    is_high_open: bool = False


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Values that a cell matches: disjoint intervals in ascending order, and values outside the order.

    Members of an enum and booleans are single values in declared order, `false` before `true`.
    """

    intervals: tuple[Interval, ...]
    has_null: bool = False
    has_nan: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column of conditions. `allowed` are the values that the column may have; None for all of its type."""

    name: str
    type: Type
    allowed: ValueSet | None = None


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of results. `values` lists the allowed ones, the highest priority first; empty for all of its type."""

    name: str
    type: Type
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of literals: a set for each column and a result for each output. The set is None if every value matches."""

    cells: tuple[ValueSet | None, ...]
    results: tuple[Value, ...]
    line: int
    annotation: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class TableModel:
    """A table whose cells and results are literals."""

    name: str
    hit: str
    columns: tuple[Column, ...]
    outputs: tuple[OutputColumn, ...]
    rows: Sequence[TableRow]
    otherwise: tuple[Value, ...] | None = None
