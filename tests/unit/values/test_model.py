"""The value model: texts, limits, and conversion of callers' objects."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.waiting import processor_seconds
from vesper.values.model import (
    ProblemKind,
    Value,
    ValueProblem,
    accept,
    decimal_text,
    from_json,
    parse_decimal,
    same,
    to_json,
)
from vesper.values.types import BOOLEAN, DECIMAL, INTEGER, STRING, Enum, SetOf, Type

COLOUR = Enum(("red", "green"))


@pytest.mark.parametrize(
    "text, expected",
    [
        ("1.10", "1.10"),
        ("+1.", "1"),
        (".5", "0.5"),
        ("1E+3", "1000"),
        ("1.5e1", "15"),
        ("1.50E1", "15.0"),
        ("12E-1", "1.2"),
        ("-0.00", "0.00"),
        ("0E+999999999999999999999", "0"),
        ("0." + "0" * 1000, "0." + "0" * 1000),
        ("9" * 1000, "9" * 1000),
        ("0" * 5000 + "1", "1"),
        ("1E+999", "1" + "0" * 999),
    ],
)
def test_decimal_text_is_parsed(text: str, expected: str) -> None:
    assert decimal_text(parse_decimal(text)) == expected


@pytest.mark.parametrize(
    "text, kind",
    [
        ("", "malformed"),
        (".", "malformed"),
        ("1,5", "malformed"),
        (" 1", "malformed"),
        ("1_000", "malformed"),
        ("NaN", "malformed"),
        ("Infinity", "malformed"),
        ("0x1F", "malformed"),
        ("١", "malformed"),
        ("1e", "malformed"),
        ("9" * 1001, "out_of_range"),
        ("1E+1000", "out_of_range"),
        ("1E-1001", "out_of_range"),
        ("0E-1001", "out_of_range"),
        ("1e999999999", "out_of_range"),
        ("1e-999999999999999999999999", "out_of_range"),
    ],
)
def test_invalid_decimal_text_is_rejected(text: str, kind: str) -> None:
    with pytest.raises(ValueProblem) as caught:
        parse_decimal(text)
    assert caught.value.kind == ProblemKind(kind)


def test_huge_texts_are_rejected_quickly() -> None:
    with processor_seconds(5):
        for text in ("9" * 10_000_000, "0." + "0" * 10_000_000, "1e" + "9" * 10_000_000):
            with pytest.raises(ValueProblem):
                parse_decimal(text)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6))
def test_decimal_text_round_trips(number: Decimal) -> None:
    text = decimal_text(parse_decimal(format(number, "f")))
    assert parse_decimal(text) == number
    assert decimal_text(parse_decimal(text)) == text


VALUES: list[tuple[Type, Value]] = [
    (BOOLEAN, True),
    (INTEGER, -(2**63)),
    (DECIMAL, Decimal("0.10")),
    (STRING, "é\U0001f600\x00"),
    (COLOUR, "green"),
    (SetOf(STRING), frozenset({"b", "a"})),
    (SetOf(INTEGER), frozenset({10, 9})),
    (SetOf(COLOUR), frozenset({"green", "red"})),
]


@pytest.mark.parametrize("type_, value", VALUES, ids=[f"{type_}-{number}" for number, (type_, _) in enumerate(VALUES)])
def test_json_form_round_trips(type_: Type, value: Value) -> None:
    assert same(from_json(type_, to_json(type_, value)), value)


def test_set_members_are_sorted() -> None:
    assert to_json(SetOf(INTEGER), frozenset({10, 9})) == [9, 10]
    assert to_json(SetOf(COLOUR), frozenset({"green", "red"})) == ["red", "green"]
    with pytest.raises(ValueProblem):
        from_json(SetOf(INTEGER), [10, 9])


def test_values_of_different_types_are_never_the_same() -> None:
    assert not same(1, True)
    assert not same(Decimal("1.0"), Decimal("1.00"))
    assert not same(Decimal(0), Decimal("-0"))
    assert not same({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert same({"a": Decimal("1.0")}, {"a": Decimal("1.0")})


class LyingText(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("red")

    def __str__(self) -> str:
        return "red"


def test_overridden_methods_are_never_called() -> None:
    with pytest.raises(ValueProblem):
        accept(COLOUR, LyingText("blue"))
    assert type(accept(STRING, LyingText("blue"))) is str
