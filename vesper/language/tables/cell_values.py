"""Cells of literals as sets of values, by the type of their column."""

from __future__ import annotations

from functools import lru_cache

from vesper.language.tables.axis import NULL_RANGE, Range, Ranges, axis_of, complement, union
from vesper.language.tables.cells import Between, CellProblem, Compare, IsNull, Not, Operand, Test, parse_cell
from vesper.language.tables.model import Interval, ValueSet
from vesper.values.literal_text import value_from_text
from vesper.values.model import Scalar, ValueProblem
from vesper.values.types import (
    BOOLEAN,
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    INTEGER,
    STRING,
    TIMESTAMP,
    Enum,
    OptionalOf,
    Type,
    without_null,
)

_SCALARS = (BOOLEAN, INTEGER, DECIMAL, FLOAT, STRING, DATE, TIMESTAMP, DURATION)


def has_literals(type_: Type) -> bool:
    """Return whether cells of a column can have literals. Other columns have only `-`, `null` and conditions."""
    inner = without_null(type_)
    return isinstance(inner, Enum) or inner in _SCALARS


def literal_of(operand: Operand, type_: Type, is_bare: bool = False) -> Scalar | None:
    """Return the value of an operand if it is a literal of the column's type.

    In a column of strings, text after an operator and in a range is an expression unless it is quoted.
    """
    inner = without_null(type_)
    if not has_literals(inner) or (inner == STRING and not operand.is_quoted and not is_bare):
        return None
    if operand.is_quoted and not (inner == STRING or isinstance(inner, Enum)):
        return None
    try:
        return value_from_text(inner, operand.text)
    except ValueProblem:
        return None


@lru_cache(maxsize=65_536)
def read_cell(text: str, type_: Type) -> ValueSet | None:
    """Return the values that a cell of literals matches, None for all. Raises `CellProblem` for any other cell."""
    tests = parse_cell(text)
    if not tests:
        return None
    ranges = literal_ranges(tests, type_)
    if ranges is None:
        raise CellProblem(0, len(text), f"literals of type {without_null(type_)}", f"`{text}`")
    return axis_of(type_).values(ranges)


def literal_ranges(tests: tuple[Test, ...], type_: Type) -> Ranges | None:
    """Return the values that any of the tests matches. None if a test is an expression."""
    found: list[Range] = []
    for test in tests:
        ranges = _ranges_of(test, type_)
        if ranges is None:
            return None
        found += ranges
    return union(found)


def _ranges_of(test: Test, type_: Type) -> Ranges | None:
    axis = axis_of(type_)
    match test:
        case IsNull(start=start, end=end):
            if not isinstance(type_, OptionalOf):
                raise CellProblem(start, end, f"a test of {type_}", "`null`", "the column is never null")
            return (NULL_RANGE,)
        case Not(tests=tests):
            inner = literal_ranges(tests, type_)
            return None if inner is None else complement(inner, axis.domain)
        case Between(low=low, high=high):
            first, last = literal_of(low, type_), literal_of(high, type_)
            if first is None or last is None:
                return None
            interval = Interval(first, last, not test.is_low_closed, not test.is_high_closed)
            return axis.ranges(ValueSet((interval,)))
        case Compare(operator=operator, operand=operand):
            value = literal_of(operand, type_, test.is_bare)
            if value is None:
                return None
            if operator == "!=":
                return complement(axis.ranges(ValueSet((Interval(value, value),))), axis.domain)
            return axis.ranges(ValueSet((_compared_interval(operator, value),)))
        case _:
            return None


def _compared_interval(operator: str, value: Scalar) -> Interval:
    match operator:
        case "<" | "<=":
            return Interval(None, value, is_high_open=operator == "<")
        case ">" | ">=":
            return Interval(value, None, is_low_open=operator == ">")
        case _:
            return Interval(value, value)
