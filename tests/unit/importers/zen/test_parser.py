"""The grammar of zen's expressions: precedence, the unary form of cells, and limits."""

from __future__ import annotations

import pytest

from vesper.importers.zen.parser import parse_cell, parse_expression
from vesper.importers.zen.syntax import (
    Array,
    Assignments,
    Binary,
    Call,
    Conditional,
    Interval,
    Member,
    Method,
    Name,
    Number,
    Object,
    Pointer,
    Slice,
    String,
    Template,
    Unary,
    ZenSyntaxError,
)

A, B, C = Name("a"), Name("b"), Name("c")
COLUMN = Name("$")


@pytest.mark.parametrize(
    "text, tree",
    [
        ("a + b * c", Binary("+", A, Binary("*", B, C))),
        ("a - b - c", Binary("-", Binary("-", A, B), C)),
        ("a ^ b ^ c", Binary("^", A, Binary("^", B, C))),
        ("a ?? b > c", Binary(">", Binary("??", A, B), C)),
        ("not a == b", Binary("==", Unary("not", A), B)),
        ("!a.b", Unary("not", Member(A, String("b")))),
        ("a not in b", Binary("not in", A, B)),
        ("a ? b : b ? c : a", Conditional(A, B, Conditional(B, C, A))),
        ("-a * b", Binary("*", Unary("-", A), B)),
        ("a.b[0].in", Member(Member(Member(A, String("b")), Number("0")), String("in"))),
        ("a[1:2]", Slice(A, Number("1"), Number("2"))),
        ("a[:2]", Slice(A, None, Number("2"))),
        ("1_000.50", Number("1000.50")),
        ("(a..b]", Interval(A, B, False, True)),
        ("[a, b]", Array((A, B))),
        ("{x: a, 'y z': b}", Object(((String("x"), A), (String("y z"), B)))),
        ("map(a, # * 2)", Call("map", (A, Binary("*", Pointer(), Number("2"))))),
        ("some(a as x, x)", Call("some", (A, Name("x")), "x")),
        ("`n ${a + b}!`", Template((String("n "), Binary("+", A, B), String("!")))),
        ("d(a).add(1, 'day')", Method(Call("d", (A,)), "add", (Number("1"), String("day")))),
        ("x = a; y.z = b", Assignments((("x", A), ("y.z", B)), None)),
        ("x = a; x + b", Assignments((("x", A),), Binary("+", Name("x"), B))),
    ],
)
def test_an_expression_has_one_tree(text: str, tree: object) -> None:
    assert parse_expression(text) == tree


@pytest.mark.parametrize(
    "text, tree",
    [
        ("> 3", Binary(">", COLUMN, Number("3"))),
        ("'a', 'b'", Binary("or", Binary("==", COLUMN, String("a")), Binary("==", COLUMN, String("b")))),
        ("[1..5)", Binary("in", COLUMN, Interval(Number("1"), Number("5"), True, False))),
        ("> 2 and < 5", Binary("and", Binary(">", COLUMN, Number("2")), Binary("<", COLUMN, Number("5")))),
        ("['a', 'b']", Binary("in", COLUMN, Array((String("a"), String("b"))))),
        ("not in ['a']", Binary("not in", COLUMN, Array((String("a"),)))),
        ("a == b", Call("bool", (Binary("==", A, B),))),
        ("contains($, 'x')", Call("bool", (Call("contains", (COLUMN, String("x"))),))),
        ("-1", Binary("==", COLUMN, Unary("-", Number("1")))),
        ("a", Binary("==", COLUMN, A)),
        ("startsWith($, 'a') or 'b'", None),
    ],
)
def test_a_cell_is_a_condition_on_its_column(text: str, tree: object) -> None:
    found = parse_cell(text)
    assert tree is None or found == tree


@pytest.mark.parametrize(
    "text", ["", "a +", "a b", "f(", "'open", "`open ${a`", "a ? b", "[1..", "1 = 2", "{a b}", "§"]
)
def test_what_the_grammar_does_not_produce_is_refused(text: str) -> None:
    with pytest.raises(ZenSyntaxError):
        parse_expression(text)


@pytest.mark.parametrize("text", ["(" * 5000 + "a" + ")" * 5000, "[" * 3000, "-" * 9000 + "1", "a" * 40_000])
def test_hostile_expressions_end_at_a_limit(text: str) -> None:
    with pytest.raises(ZenSyntaxError):
        parse_expression(text)
