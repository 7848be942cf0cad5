"""Rows of a file as a table of the IR. Lookups name the table by its hash."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from vesper.language.ir.lookup_tables import Table, canonical_text, table_of
from vesper.language.tables.axis import axis_of
from vesper.language.tables.model import Column, Interval, OutputColumn, TableRow, ValueSet
from vesper.values.model import JsonForm, to_json
from vesper.values.types import OptionalOf, Record, Type, without_null

_Part = TypeVar("_Part")
_ALL = (Interval(None, None),)


def lookup_table(columns: Sequence[Column], outputs: Sequence[OutputColumn], rows: Sequence[TableRow]) -> Table:
    """Return the table of the IR with these rows."""
    cells = [
        _texts([row.cells[place] for row in rows], partial(_cell_form, each.type)) for place, each in enumerate(columns)
    ]
    values = [
        _texts([row.results[place] for row in rows], partial(to_json, each.type)) for place, each in enumerate(outputs)
    ]
    return table_of(
        Record(tuple((each.name, each.type) for each in columns)),
        Record(tuple((each.name, each.type) for each in outputs)),
        [
            f"[[{','.join(row[: len(cells)])}],[{','.join(row[len(cells) :])}]]"
            for row in zip(*cells, *values, strict=True)
        ],
    )


def _texts(column: list[_Part], form: Callable[[_Part], object]) -> list[str]:
    """Return the canonical texts of a column. Equal values are one object, whose text is computed once."""
    written = {id(value): canonical_text(form(value)) for value in {id(each): each for each in column}.values()}
    return [written[id(value)] for value in column]


def _cell_form(type_: Type, cell: ValueSet | None) -> object:
    if cell is None or (cell.intervals == _ALL and (cell.has_null or not isinstance(type_, OptionalOf))):
        return None
    inner = without_null(type_)
    intervals = _half_ranges(inner) if cell.intervals == _ALL else cell.intervals
    tests: list[dict[str, JsonForm]] = [_test_form(inner, each) for each in intervals]
    if cell.has_null:
        tests.append({"is": None})
    return tests[0] if len(tests) == 1 else tests


def _half_ranges(type_: Type) -> tuple[Interval, ...]:
    """Return every value but null as two ranges. One range would have no end, and a test needs at least one."""
    axis = axis_of(type_)
    _, middle = axis.example(axis.order)
    return Interval(None, middle), Interval(middle, None, is_low_open=True)


def _test_form(type_: Type, interval: Interval) -> dict[str, JsonForm]:
    low, high = interval.low, interval.high
    if low is not None and low == high:
        return {"is": to_json(type_, low)}
    found = {}
    if low is not None:
        found["above" if interval.is_low_open else "from"] = to_json(type_, low)
    if high is not None:
        found["below" if interval.is_high_open else "to"] = to_json(type_, high)
    return found
