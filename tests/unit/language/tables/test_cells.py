"""The grammar of cells, and the values that cells of literals match."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from random import Random

import pytest

from vesper.language.tables import cells
from vesper.language.tables.axis import axis_of, contains
from vesper.language.tables.cell_values import read_cell
from vesper.language.tables.cells import Between, CellProblem, Compare, Condition, IsNull, Not, parse_cell
from vesper.values.types import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    FLOAT,
    INTEGER,
    STRING,
    Enum,
    OptionalOf,
    Type,
)

COLOR = Enum(("red", "green"))


def kinds(text: str) -> list[str]:
    return [type(test).__name__ for test in parse_cell(text)]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("-", []),
        (" - ", []),
        ("DE", ["Compare"]),
        ("DE, FR", ["Compare", "Compare"]),
        ("[0..100)", ["Between"]),
        ("[ 0 .. 100 ), >= 5", ["Between", "Compare"]),
        ("not(DE, [1..2])", ["Not"]),
        ("null, 3", ["IsNull", "Compare"]),
        ("{value > 3 AND f({a: '}'})}, 5", ["Condition", "Compare"]),
        ("== f(a, b)", ["Compare"]),
    ],
)
def test_kinds_of_tests(text: str, expected: list[str]) -> None:
    assert kinds(text) == expected


def test_operands_have_their_place() -> None:
    (first, second) = parse_cell('"a, b", <= x + 1')
    assert isinstance(first, Compare)
    assert (first.operand.text, first.operand.is_quoted, first.is_bare) == ("a, b", True, True)
    assert isinstance(second, Compare)
    assert (second.operator, second.operand.text, second.operand.start) == ("<=", "x + 1", 11)
    (between,) = parse_cell("(1.5..n[0]]")
    assert isinstance(between, Between)
    assert (between.low.text, between.high.text) == ("1.5", "n[0]")
    assert (between.is_low_closed, between.is_high_closed) == (False, True)
    (condition,) = parse_cell("{ value }")
    assert condition == Condition(1, 8)
    assert parse_cell("not(null)") == (Not((IsNull(4, 8),)),)


@pytest.mark.parametrize(
    "text, start, expected",
    [
        ("", 0, "a test"),
        ("a,,b", 2, "a literal or an expression"),
        ("a,", 2, "a test"),
        ("[1", 2, "`..` of a range"),
        ("[1..2", 5, "`]` or `)` that ends the range"),
        ("not(a", 5, "`)`"),
        ("'a", 0, "a closing '"),
        ("{a", 0, "`}` that ends this condition"),
        ("{ }", 0, "a condition over `value`"),
        ("a, -", 3, "a test"),
        ("[1..2] x", 7, "`,` or the end of the cell"),
        (",".join("1" * 1_001), 2_000, "at most 1,000 tests in one cell"),
    ],
)
def test_malformed_cells(text: str, start: int, expected: str) -> None:
    with pytest.raises(CellProblem) as problem:
        parse_cell(text)
    assert (problem.value.start, problem.value.expected) == (start, expected)


def test_simple_cells_are_read_as_the_parser_reads_them() -> None:
    random, compared = Random(1), 0
    pieces = ("a", "1", ".", "..", "-", "<", "=", " ", "[", ")", "(", "]", "null", "!=", ":", "+", ">=", ",")
    for _ in range(20_000):
        text = "".join(random.choice(pieces) for _ in range(random.randint(1, 6)))
        simple = None if text.strip() == "-" else cells._simple_cell(text)
        if simple is not None:
            compared += 1
            assert simple == cells._CellParser(text).cell(), text
    assert compared > 1_000


@pytest.mark.parametrize(
    "text, type_, inside, outside",
    [
        ("[0..100)", DECIMAL, [Decimal(0), Decimal("99.99")], [Decimal("-0.01"), Decimal(100)]),
        ("(0..2)", INTEGER, [1], [0, 2]),
        ("not(DE, FR)", STRING, ["", "DEa", "US"], ["DE", "FR"]),
        ("'a'", STRING, ["a"], ["", "a\0"]),
        ("> 'a'", STRING, ["a\0", "b"], ["a", ""]),
        ("2024-01-01, > 2025-01-01", DATE, [date(2024, 1, 1), date(2025, 1, 2)], [date(2025, 1, 1)]),
        ("red", COLOR, ["red"], ["green"]),
        ("!= red", COLOR, ["green"], ["red"]),
        ("true", BOOLEAN, [True], [False]),
        ("null, > 3", OptionalOf(INTEGER), [None, 4], [3]),
        ("!= 3", OptionalOf(INTEGER), [None, 4], [3]),
        ("not(> 3)", OptionalOf(INTEGER), [None, 3], [4]),
        ("<= 0", FLOAT, [-0.0, 0.0, -math.inf], [math.nan, 5e-324]),
        ("!= 0", FLOAT, [math.nan, math.inf], [-0.0]),
    ],
)
def test_values_of_cells(text: str, type_: Type, inside: list[object], outside: list[object]) -> None:
    values = read_cell(text, type_)
    assert values is not None
    assert [contains(values, each, type_) for each in (*inside, *outside)] == [True] * len(inside) + [False] * len(  # type: ignore[arg-type]
        outside
    )
    axis = axis_of(type_)
    assert axis.ranges(axis.values(axis.ranges(values))) == axis.ranges(values)


@pytest.mark.parametrize(
    "text, type_",
    [("== DE", STRING), ("'1'", INTEGER), ("1.5", INTEGER), ("{value}", BOOLEAN), ("blue", COLOR), ("x", BYTES)],
)
def test_cells_that_are_no_literals(text: str, type_: Type) -> None:
    with pytest.raises(CellProblem):
        read_cell(text, type_)


def test_a_column_that_is_never_null_has_no_null() -> None:
    with pytest.raises(CellProblem, match="expected a test of integer, found `null`"):
        read_cell("null", INTEGER)


def test_long_cells_take_linear_time() -> None:
    assert len(parse_cell(", ".join(f"'{number}'" for number in range(1_000)))) == 1_000
    with pytest.raises(CellProblem):
        parse_cell("[" * 200_000)
    with pytest.raises(CellProblem):
        parse_cell("a " * 200_000 + ",")
