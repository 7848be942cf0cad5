"""What is stored comes back as it was, or is refused as what it is not."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.effects.performer import EffectFailed
from vesper.effects.stored_json import TooLong, stored_text, stored_value
from vesper.values.json_value import Json, parse_json
from vesper.values.model import Value, plain, same
from vesper.values.types import BOOLEAN, DATE, DECIMAL, FLOAT, INTEGER, JSON, STRING, Type, declared_type

MOMENT = datetime(2026, 11, 15, 12, 30, 0, 1, UTC)

ROUND_TRIPS: list[tuple[str, Any, str]] = [
    ("boolean", True, "true"),
    ("integer", -(2**63), "-9223372036854775808"),
    ("decimal", Decimal("1.4500"), '"1.4500"'),
    ("decimal", Decimal("0." + "1" * 1000), '"0.' + "1" * 1000 + '"'),
    ("float", 0.1, "0.1"),
    ("float", -0.0, "-0.0"),
    ("float", 5e-324, "5e-324"),
    ("float", 1.7976931348623157e308, "1.7976931348623157e+308"),
    ("float", math.inf, '"Infinity"'),
    ("string", 'a"\\\n\u2028é😀', '"a\\"\\\\\\n\u2028é😀"'),
    ("bytes", b"\x00\xff", '"AP8="'),
    ("timestamp", MOMENT, '"2026-11-15T12:30:00.000001Z"'),
    ("date", date(2026, 11, 15), '"2026-11-15"'),
    ("duration", timedelta(days=1, hours=2), '"P1DT2H"'),
    ("enum[a, b]", "b", '"b"'),
    ("array<decimal>", [Decimal("1.0"), Decimal("1.00")], '["1.0","1.00"]'),
    ("set<integer>", frozenset({3, -1, 2}), "[-1,2,3]"),
    ("map<string, integer>", {"a": 1, "b": 2}, '{"a":1,"b":2}'),
    ("map<integer, string>", {-1: "x", 7: "y"}, '[[-1,"x"],[7,"y"]]'),
    ("map<integer, string>", {}, "{}"),
    ("array<map<date, float>>", [{}, {date(2026, 1, 1): 1.0}], '[{},[["2026-01-01",1.0]]]'),
    ("optional<integer>", None, "null"),
    ("{name: string, at: optional<date>}", {"name": "n", "at": None}, '{"at":null,"name":"n"}'),
    ("json", parse_json('{"b": [1.50, null, true, "x"], "a": 1e3}'), '{"a":1000,"b":[1.50,null,true,"x"]}'),
]


@pytest.mark.parametrize("type_, value, text", ROUND_TRIPS, ids=[f"{each[0]}-{each[2][:20]}" for each in ROUND_TRIPS])
def test_a_value_has_one_text_and_comes_back(type_: str, value: Value, text: str) -> None:
    assert stored_text(value, 10_000) == text
    assert same(stored_value(declared_type(type_), text, "it"), plain(value))


@given(st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab\"\\é\n", max_size=3), inner, max_size=4),
    max_leaves=20,
))  # fmt: skip
def test_every_json_comes_back(content: object) -> None:
    from vesper.values.json_value import json_of

    value = json_of(content)
    back = stored_value(JSON, stored_text(value, 1 << 20), "it")
    assert same(back, plain(value))


@given(st.floats())
def test_every_float_comes_back(number: float) -> None:
    assert same(stored_value(FLOAT, stored_text(number, 100), "it"), number)


@pytest.mark.parametrize(
    "type_, text, says",
    [
        (INTEGER, '"7"', "it is no integer: wrong_type"),
        (INTEGER, "7.0", "it is no integer: wrong_type"),
        (INTEGER, str(2**63), "it is no integer: out_of_range"),
        (INTEGER, "7 8", "it is not JSON"),
        (INTEGER, "", "it is not JSON"),
        (INTEGER, "1" * 5000, "it is not JSON"),
        (FLOAT, "NaN", "it is not JSON"),
        (FLOAT, "1e999", "it is no float: out_of_range"),
        (BOOLEAN, "1", "it is no boolean: wrong_type"),
        (DECIMAL, "1e999999999", "it is no decimal: out_of_range"),
        (DATE, '"2026-02-30"', "it is no date: malformed"),
        (STRING, "null", "it is no string: wrong_type"),
        (STRING, '"\\ud800"', "it is no string: malformed"),
        (JSON, '{"a": 1, "a": 2}', "it is not JSON"),
        (JSON, "[" * 100_000 + "]" * 100_000, "it is not JSON"),
        (JSON, "[" * 200 + "]" * 200, "it is no json: too_deep"),
        (
            declared_type("array<{qty: integer}>"),
            '[{"qty": 1}, {}]',
            "it has no `[1].qty`, which is declared as integer",
        ),
        (declared_type("map<integer, string>"), '[[1, "a"], [1, "b"]]', "wrong_type"),
        (declared_type("set<string>"), '["a", "a"]', "duplicate"),
    ],
)
def test_what_does_not_fit_is_refused(type_: Type, text: str, says: str) -> None:
    with pytest.raises(EffectFailed) as failed:
        stored_value(type_, text, "it")
    assert failed.value.code == "bad_response"
    assert says in failed.value.message


def test_fields_that_nobody_declares_are_let_be() -> None:
    assert stored_value(declared_type("{a: integer, b: optional<string>}"), '{"a": 1, "c": 2}', "it") == {
        "a": 1,
        "b": None,
    }


def test_a_text_that_would_be_too_long_is_never_made() -> None:
    shared = Json(("x" * 100,))
    for _ in range(60):  # 2**60 times a hundred characters
        shared = Json((shared.content, shared.content))
    with pytest.raises(TooLong):
        stored_text(shared, 1 << 20)
    assert stored_text("é", 4) == '"é"'
    with pytest.raises(TooLong):
        stored_text("é", 3)
