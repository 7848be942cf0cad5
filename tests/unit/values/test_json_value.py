"""JSON texts, their json values, and the plain objects of callers."""

from __future__ import annotations

import json
import math
import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.values.json_value import (
    Json,
    canonical_text,
    depth_of,
    exact_text,
    json_of,
    parse_json,
    plain_json,
)
from vesper.values.model import ValueProblem
from vesper.values.strict_json import forms_of_json

TOO_DEEP = "[" * 129 + "]" * 129


@pytest.mark.parametrize(
    "text, canonical",
    [
        ("1", "1"),
        (" [ 1 , 2.50 ] ", "[1,2.5]"),
        ('{"b":1,"a":[]}', '{"a":[],"b":1}'),
        ("-0", "0"),
        ("-0.0", "0"),
        ("1E+3", "1000"),
        ("100.00", "100"),
        ('"\\ud83d\\ude00\\u0041\\/\\u007f"', '"😀A/\x7f"'),
        ('"\\u0001\\n"', '"\\u0001\\n"'),
        ("[[],{},[[]]]", "[[],{},[[]]]"),
        ("[" * 128 + "]" * 128, "[" * 128 + "]" * 128),
    ],
)
def test_valid_text_is_parsed(text: str, canonical: str) -> None:
    assert canonical_text(parse_json(text)) == canonical


@pytest.mark.parametrize(
    "text, kind",
    [
        *((text, "malformed") for text in (
            "", " ", "nul", "NaN", "Infinity", "01", "1.", ".5", "+1", "1e", "0x1", "'a'", "[1,]", "[,1]", "[1 2]",
            "{a:1}", '{"a"}', '{"a":}', '{"a":1,}', '{"a":1,"a":2}', '{"a":1,"\\u0061":2}', "[", "]", "[}", "{]", "1 2",
            "\ufeff1", '"\n"', '"\\x"', '"\\ud800"', '"\\udc00\\ud800"', '"', "1e1000", "1e-1001", "9" * 1001,
            "[" * 128, '{"a":1,"a":' + "[" * 129, "\xa01", "// a\n1",
        )),
        (TOO_DEEP, "too_deep"),
        ("[" * 129, "too_deep"),
        (TOO_DEEP + "]", "too_deep"),
        ('{"a":' * 129 + "1" + "}" * 129, "too_deep"),
    ],
)  # fmt: skip
def test_invalid_text_is_rejected(text: str, kind: str) -> None:
    with pytest.raises(ValueProblem) as raised:
        parse_json(text)
    assert raised.value.kind == kind


@pytest.mark.parametrize("text", ["[" * 10_000_000, '{"a":' * 2_000_000, "[" * 129 + "x" * 10_000_000])
def test_reading_stops_at_the_depth_limit(text: str) -> None:
    start = time.process_time()
    with pytest.raises(ValueProblem, match="nested deeper"):
        parse_json(text)
    assert time.process_time() - start < 0.5


def test_an_object_of_many_names_is_read_quickly() -> None:
    text = json.dumps({f"name{place}": place for place in range(160_000)})
    start = time.process_time()
    assert len(forms_of_json(text)) == len(parse_json(text).content) == 160_000  # type: ignore[arg-type]  # an object
    assert time.process_time() - start < 2.5  # 0.5 s on an idle machine; token by token it is 5 s


def test_equality_depends_on_value_and_kind() -> None:
    assert parse_json("1") == parse_json("1.0")
    assert hash(parse_json("1")) == hash(parse_json("1.00"))
    assert parse_json('{"a":1,"b":2}') == parse_json('{"b":2,"a":1}')
    assert parse_json("1") != parse_json("true")
    assert parse_json("0") != parse_json("false")
    assert parse_json("null") != parse_json("false")
    assert parse_json("null") != None  # noqa: E711  # a JSON null is a value


def test_numbers_keep_their_places() -> None:
    assert exact_text(parse_json("[1.50,1e3,-0.0]")) == "[1.50,1000,0.0]"
    assert plain_json(parse_json("[1.50,1e3]")) == [Decimal("1.50"), 1000]
    assert type(plain_json(parse_json("1e3"))) is int


def test_plain_objects_have_sorted_keys() -> None:
    found = plain_json(json_of({"b": 1, "é": 2, "a": (1.5, True)}))
    assert isinstance(found, dict)
    assert list(found) == ["a", "b", "é"]
    assert found["a"] == [Decimal("1.5"), True]
    assert found["a"][1] is True


def _itself() -> list[object]:
    found: list[object] = []
    found += [found, found]
    return found


@pytest.mark.parametrize(
    "given, kind",
    [
        (b"x", "wrong_type"),
        ({1: 2}, "wrong_type"),
        ([math.nan], "malformed"),
        ([math.inf, b"x"], "wrong_type"),
        ([math.nan, 10**1001], "out_of_range"),
        ("\ud800", "malformed"),
        ({"\ud800": 1}, "malformed"),
        (Decimal("NaN"), "malformed"),
        (_itself(), "too_deep"),
    ],
)
def test_first_problem_of_the_list_is_raised(given: object, kind: str) -> None:
    with pytest.raises(ValueProblem) as raised:
        json_of(given)
    assert raised.value.kind == kind


def test_depth() -> None:
    assert [depth_of(parse_json(text).content) for text in ("1", "[]", '{"a":[1]}')] == [0, 1, 2]


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.decimals(-(10**6), 10**6, places=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(JSONS)
def test_text_round_trips(given: object) -> None:
    value = json_of(given)
    assert exact_text(parse_json(exact_text(value))) == exact_text(value)
    assert Json(parse_json(canonical_text(value)).content) == value
    assert canonical_text(json_of(plain_json(value))) == canonical_text(value)
