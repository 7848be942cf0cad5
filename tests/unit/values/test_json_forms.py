"""JSON forms of values: `to_json`, `CAST`, and inputs given as JSON."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from vesper.values.json_forms import input_of_json, json_form, value_of_form
from vesper.values.json_value import Json, exact_text, parse_json
from vesper.values.model import ValueProblem, same
from vesper.values.strict_json import forms_of_json
from vesper.values.types import FLOAT, declared_type, type_text

ROUND: list[tuple[str, Any, str]] = [
    ("boolean", True, "true"),
    ("integer", -5, "-5"),
    ("decimal", Decimal("1.50"), '"1.50"'),
    ("float", 1.0, "1.0"),
    ("float", 1e16, "10000000000000000"),
    ("float", 1e-7, "0.0000001"),
    ("float", -0.5, "-0.5"),
    ("float", math.inf, '"Infinity"'),
    ("float", math.nan, '"NaN"'),
    ("bytes", b"\x00\xff", '"AP8="'),
    ("timestamp", datetime(2024, 2, 29, 12, tzinfo=UTC), '"2024-02-29T12:00:00Z"'),
    ("date", date(2024, 2, 29), '"2024-02-29"'),
    ("duration", timedelta(minutes=90), '"PT1H30M"'),
    ("enum[a, 'two words']", "two words", '"two words"'),
    ("optional<integer>", None, "null"),
    ("array<float>", [1.5], "[1.5]"),
    ("set<date>", frozenset({date(2024, 1, 2), date(2024, 1, 1)}), '["2024-01-01","2024-01-02"]'),
    ("map<string, integer>", {"a": 1, "b": 2}, '{"a":1,"b":2}'),
    ("map<enum[b, a], integer>", {"b": 2, "a": 1}, '{"a":1,"b":2}'),
    ("map<integer, decimal>", {1: Decimal("0.1")}, '[[1,"0.1"]]'),
    ("map<integer, decimal>", {}, "[]"),
    ("{b: integer, a: optional<string>}", {"b": 1, "a": None}, '{"a":null,"b":1}'),
    ("json", Json(None), "null"),
]


@pytest.mark.parametrize("text, value, form", ROUND)
def test_json_form_round_trips(text: str, value: Any, form: str) -> None:
    type_ = declared_type(text)
    assert exact_text(Json(json_form(type_, value))) == form
    assert same(value_of_form(type_, parse_json(form).content), value)
    assert declared_type(type_text(type_)) == type_


def test_negative_zero_has_no_sign_in_json() -> None:
    assert exact_text(Json(json_form(FLOAT, -0.0))) == "0.0"


@pytest.mark.parametrize(
    "text, form",
    [
        ("integer", "true"),
        ("integer", "1.5"),
        ("integer", "9223372036854775808"),
        ("integer", '"1"'),
        ("boolean", "1"),
        ("float", "1e400"),
        ("float", '"1.5"'),
        ("string", "1"),
        ("string", "null"),
        ("decimal", '"x"'),
        ("date", '"2023-02-29"'),
        ("date", "20240229"),
        ("enum[a]", '"b"'),
        ("array<integer>", "{}"),
        ("array<integer>", '[1,"a"]'),
        ("set<integer>", "[1,1.0]"),
        ("map<string, integer>", '[["a",1]]'),
        ("map<integer, integer>", '{"1":1}'),
        ("map<integer, integer>", "[[1,1],[1.0,2]]"),
        ("map<integer, integer>", "[[1]]"),
        ("{a: integer}", "{}"),
        ("{a: integer}", '{"a":null}'),
    ],
)
def test_cast_rejects_other_forms(text: str, form: str) -> None:
    with pytest.raises(ValueProblem):
        value_of_form(declared_type(text), parse_json(form).content)


def test_cast_ignores_extra_fields_and_fills_optional_ones() -> None:
    type_ = declared_type("{a: integer, b: optional<date>}")
    assert value_of_form(type_, parse_json('{"a":1.0,"more":[]}').content) == {"a": 1, "b": None}


def test_json_inputs_become_python_objects() -> None:
    type_ = declared_type("{f: float, m: map<integer, float>, xs: array<float>, o: optional<float>, d: decimal}")
    given = {
        "f": 1,
        "m": [[1, Decimal("0.5")]],
        "xs": [Decimal("1e400"), "NaN"],
        "o": None,
        "d": Decimal("0.10"),
        "z": 1,
    }
    found = input_of_json(type_, given)
    assert found == {"f": 1.0, "m": {1: 0.5}, "xs": [10**400, "NaN"], "o": None, "d": Decimal("0.10"), "z": 1}
    assert isinstance(found, dict)
    assert type(found["f"]) is float
    with pytest.raises(ValueError, match="twice"):
        input_of_json(declared_type("map<integer, float>"), [[1, 1], [1, 2]])


@pytest.mark.parametrize("sign", ["", "-"])
def test_a_sign_is_no_digit_of_the_limit(sign: str) -> None:
    assert forms_of_json(sign + "1" + "0" * 999) == int(sign + "1") * 10**999
