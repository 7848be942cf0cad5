"""The one spelling of values in the journal."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.journal.journal import JournalError
from vesper.journal.typed_json import decode, digest_of, encode
from vesper.values.json_value import Json, exact_text, parse_json

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_keys = st.one_of(
    _texts, st.integers(), st.booleans(), st.binary(max_size=8), st.dates(), st.datetimes(timezones=st.just(UTC))
)
_scalars = st.one_of(
    st.none(),
    st.floats(),
    _keys,
    st.decimals(),
    st.timedeltas(),
    st.integers(-(10**40), 10**40),
    st.sampled_from(["1", "1.0", "1.50", '{"a":[null,true,"x"]}', "null"]).map(parse_json),
)
_values = st.recursive(
    _scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(_keys, inner, max_size=4),
        st.dictionaries(st.sampled_from(["$decimal", "$map", "$", "a"]), inner, max_size=3),
        st.frozensets(_keys, max_size=4),
    ),
    max_leaves=12,
)


def seen(value: Any) -> Any:
    """Everything that can be seen of a value, with its types: NaN and -0.0, the scale of a decimal, True beside 1."""
    match value:
        case float():
            return "float", "nan" if math.isnan(value) else struct.pack(">d", value)
        case Decimal():
            return "decimal", str(value)
        case Json():
            return "json", exact_text(value)
        case list():
            return [seen(item) for item in value]
        case dict():
            return {(type(key).__name__, key): seen(item) for key, item in value.items()}
        case frozenset():
            return frozenset((type(item).__name__, item) for item in value)
        case _:
            return type(value).__name__, value


def reordered(value: Any) -> Any:
    """An equal value whose dicts were filled the other way round."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(list(value))}
    return [reordered(item) for item in value] if isinstance(value, list) else value


@given(_values)
def test_values_come_back_exactly(value: Any) -> None:
    data = encode(value)
    assert seen(decode(data)) == seen(value)
    assert encode(decode(data)) == data
    assert encode(reordered(value)) == data
    assert b"\n" not in data


@given(_values, _values)
def test_different_values_have_different_bytes(one: Any, other: Any) -> None:
    assert (encode(one) == encode(other)) == (seen(one) == seen(other))


@pytest.mark.parametrize(
    "value,text",
    [
        ({"b": 1, "a": [True, None, 1.5]}, '{"a":[true,null,1.5],"b":1}'),
        (Decimal("1.10"), '{"$decimal":"1.10"}'),
        (Decimal("-0E+3"), '{"$decimal":"-0E+3"}'),
        ([1.0, -0.0, 1e16, 5e-324], "[1.0,-0.0,1e+16,5e-324]"),
        ([math.nan, math.inf, -math.inf], '[{"$float":"nan"},{"$float":"inf"},{"$float":"-inf"}]'),
        (b"\x00\xff", '{"$bytes":"AP8="}'),
        (date(2026, 11, 15), '{"$date":"2026-11-15"}'),
        (datetime(2026, 11, 15, 1, 2, 3, 4, UTC), '{"$time":"2026-11-15T01:02:03.000004Z"}'),
        (datetime(2026, 11, 15, 3, 0, tzinfo=timezone(timedelta(hours=2))), '{"$time":"2026-11-15T01:00:00.000000Z"}'),
        (timedelta(days=-1, microseconds=3), '{"$duration":-86399999997}'),
        (frozenset({10, 9}), '{"$set":[9,10]}'),
        ({10: "b", 9: "a"}, '{"$map":[[9,"a"],[10,"b"]]}'),
        ({1: "b", "a": 1}, '{"$map":[["a",1],[1,"b"]]}'),
        ({"$decimal": "1"}, '{"$map":[["$decimal","1"]]}'),
        (parse_json('{"b": 1.50, "a": null}'), r'{"$json":"{\"a\":null,\"b\":1.50}"}'),
        ("\x00\"\\é\u2028😀", '"\\u0000\\"\\\\é\u2028😀"'),
        ("lone \udc80", '"lone \\udc80"'),
    ],
)  # fmt: skip
def test_how_values_are_written(value: object, text: str) -> None:
    """Never changed: what stands in journals is read by these rules for ever."""
    assert encode(value).decode() == text
    assert seen(decode(text.encode())) == seen(value)


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    BIG = 3


@pytest.mark.parametrize(
    "given_,as_",
    [
        ((1, 2), [1, 2]),
        (Colour.RED, "red"),
        (Size.BIG, 3),
        ({1}, frozenset({1})),
        (bytearray(b"a"), b"a"),
        (MappingProxyType({"a": (1,)}), {"a": [1]}),
        ({Colour.RED: 1}, {"red": 1}),
    ],
)
def test_what_is_one_of_them_is_written_as_that(given_: object, as_: object) -> None:
    assert decode(encode(given_)) == as_
    assert type(decode(encode(given_))) is type(as_)


def _nested() -> object:
    value: list[object] = []
    value.append(value)
    return value


def _bomb() -> object:
    """Few objects; their text would have 2 ** 60 signs."""
    value: list[object] = []
    for _ in range(60):
        value = [value, value]
    return value


def _json_bomb() -> object:
    content: Any = ("x",)
    for _ in range(60):
        content = (content, content)
    return Json(content)


@pytest.mark.parametrize(
    "make,why",
    [
        (object, "type `object`"),
        (lambda: {"a": [lambda: 1]}, "type `function`"),
        (lambda: datetime(2026, 1, 1), "no time zone"),  # noqa: DTZ001
        (lambda: datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2))), "out of range"),
        (_nested, "nested too deeply"),
        (lambda: 10**5000, "too large"),
        (_json_bomb, "too large"),
        (lambda: 1j, "type `complex`"),
    ],
)
def test_what_is_no_value(make: Callable[[], object], why: str) -> None:
    with pytest.raises(JournalError, match=why):
        encode(make())


def test_a_value_whose_parts_are_shared_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vesper.journal.typed_json.MAX_TEXT", 100_000)
    with pytest.raises(JournalError, match="more than 100,000 characters"):
        encode(_bomb())


@pytest.mark.parametrize(
    "data",
    [
        b"", b"nul", b"\xff", b'"a', b"[1,]", b"NaN", b"-Infinity", b"1e999", b"[" * 100_000, b'{"a":1,"a":1}',
        b'{"$decimal":"x"}', b'{"$decimal":1}', b'{"$decimal":"1_0"}', b'{"$decimal":" 1"}', b'{"$unknown":1}',
        b'{"$decimal":"1","a":2}', b'{"$time":"2026-11-15T01:02:03.000004+00:00"}', b'{"$time":"2026-11-15T01:02:03Z"}',
        b'{"$date":"20261115"}', b'{"$date":"2026-13-01"}', b'{"$bytes":"AP8"}', b'{"$bytes":"A P8="}',
        b'{"$duration":"1"}', b'{"$duration":99999999999999999999999999}', b'{"$set":[1,1]}', b'{"$set":[[1]]}',
        b'{"$set":1}', b'{"$map":[[1]]}', b'{"$map":[[1,2],[1,3]]}', b'{"$map":[[[],2]]}', b'{"$float":"1.0"}',
        b'{"$json":"{"}', b'{"$json":1}', b"1" * 5000, b'{"$set":[{"$decimal":"sNaN"}]}', b'{"$time":"9999999"}',
    ],
)  # fmt: skip
def test_bytes_that_no_value_has(data: bytes) -> None:
    with pytest.raises(JournalError, match=r"cannot be read|nested too deeply"):
        decode(data)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_an_error(data: bytes) -> None:
    try:
        decode(data)
    except JournalError:
        return


def test_digests() -> None:
    """Never changed, as what is written: a run that waits is compared with what stands in the journal."""
    asked = ("external_api_call", "keyed", {"method": "POST"}, {"body": parse_json('{"amount": 1.50}')}, "key-1")
    assert digest_of(*asked) == "282c9a44c3522b66b9ca25a6b4169d63e00661e8eaa391b96423e1e11def6c98"
    same = ("external_api_call", "keyed", {"method": "POST"}, {"body": parse_json('{"amount":1.5}')}, "key-1")
    assert digest_of(*same) == digest_of(*asked)
    others = [
        ("custom", *asked[1:]),
        (asked[0], "unsafe", *asked[2:]),
        (*asked[:2], {"method": "GET"}, *asked[3:]),
        (*asked[:3], {"body": parse_json('{"amount":1.51}')}, "key-1"),
        (*asked[:4], None),
    ]
    assert len({digest_of(*each) for each in [asked, *others]}) == 6
