"""The Rust Host writes and reads values of every type as `typed_json` does."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

import pytest

from tests.support.nodes import small_node
from vesper._direct import Program, typed_json_of, value_of_typed_json
from vesper.journal.errors import JournalError
from vesper.journal.typed_json import DIGESTED_IN_PYTHON, EXACT_IN_PYTHON, decode
from vesper.language.ir.encode import encode
from vesper.values.inputs import accept_inputs
from vesper.values.model import plain, same
from vesper.verify.inputs.generator import InputGenerator

_SCALARS = ["boolean", "integer", "decimal", "float", "string", "bytes", "timestamp", "date", "duration", "json"]
_KEYS = ("string", "integer", "boolean", "bytes", "date", "timestamp", "enum[b, a, Z]")
_TYPES = [
    *_SCALARS,
    "enum[b, a, Z]",
    *(f"optional<{each}>" for each in _SCALARS),
    *(f"array<{each}>" for each in _SCALARS),
    *(f"set<{each}>" for each in _KEYS),
    *(f"map<{each}, decimal>" for each in _KEYS),
    "map<string, json>",
    "map<integer, map<string, array<float>>>",
    "array<set<enum[b, a, Z]>>",
    "Row",
    "array<Row>",
    "map<date, Row>",
]
_ROW = """types:
  Row:
    fields: {z: decimal, a: "optional<json>", m: "map<enum[b, a, Z], set<date>>", b_2: "optional<timestamp>"}
"""
_NODE = small_node(
    "\n".join(f'i{place}: "{each}"' for place, each in enumerate(_TYPES)),
    "- {step: result, operation: compute, value: 1.0}\n- {operation: return, success: [result]}",
    rest=_ROW,
)
_PROGRAM = Program.load(encode(_NODE.node))
_DECLARED = [(each.name, each.type, each.default) for each in _NODE.node.inputs]
_DRAWS = 300
"""Times the number of types: 15,000 values."""


def _values() -> Any:
    generator = InputGenerator(_NODE.node, 7)
    for _ in range(_DRAWS):
        accepted, problems = accept_inputs(_DECLARED, generator.draw())
        if not problems:
            yield from accepted.items()


def test_values_of_every_type_have_the_text_of_their_python_form() -> None:
    count = 0
    for name, value in _values():
        form = plain(value)
        text = EXACT_IN_PYTHON(form)
        assert typed_json_of(_PROGRAM, name, form) == text == DIGESTED_IN_PYTHON(form)
        assert same(value_of_typed_json(_PROGRAM, name, text), form), (name, text)
        count += 1
    assert count > 5_000


@pytest.mark.parametrize(
    "type_, value",
    [
        ("decimal", Decimal("0.0000001")),
        ("decimal", Decimal("0E-8")),
        ("decimal", Decimal("-0.000000123")),
        ("decimal", Decimal("0.00000012345678901234567890123456789012345678901234567890")),
        ("json", {"$a": Decimal("1.10"), "b": [1, Decimal("1E-9"), 10**30]}),
        ("json", {"$decimal": "x"}),
        ("json", [[]] * 3),
        ("map<string, decimal>", {"$": Decimal(1), "": Decimal("2.0")}),
        ("map<integer, decimal>", {}),
        ("float", float("-inf")),
        ("float", float("nan")),
        ("float", 5e-324),
        ("float", -0.0),
        ("string", '\x00\x1f\x7f"\\/\b\f\n\r\t\u2028\U0010ffff'),
    ],
)
def test_edges(type_: str, value: object) -> None:
    name = f"i{_TYPES.index(type_)}"
    text = EXACT_IN_PYTHON(value)
    assert typed_json_of(_PROGRAM, name, value) == text
    assert same(value_of_typed_json(_PROGRAM, name, text), decode(text.encode()))


_PARTS = (
    *('"', ",", "[", "}", "$", "0", "1", " ", "\\", "e", ".", "-", "", ""),
    *("null", "true", "-0", "1.0", "1e5", '"a"', "[]", "{}", '{"$set":[]}', '{"$map":[]}', '{"$decimal":"1"}'),
    *('{"$duration":5}', '{"$date":"2020-01-01"}', '{"$time":"2020-01-01T00:00:00.000000Z"}', '{"$float":"nan"}'),
    *('{"$bytes":""}', "9223372036854775808", '"2020-01-01"', '"1.5"'),
)


def test_damaged_texts_are_read_or_refused_as_in_python() -> None:
    chance, accepted = Random(7), 0
    texts = [(name, EXACT_IN_PYTHON(plain(value))) for name, value in _values()]
    for name, text in chance.sample([each for each in texts if len(each[1]) < 300], 6_000):
        start = chance.randrange(len(text) + 1)
        damaged = text[:start] + chance.choice(_PARTS) + text[start + chance.choice((0, 1, 2, 5)) :]
        damaged = chance.choice((damaged, damaged, chance.choice(_PARTS)))
        expected, found = _through_python(name, damaged), _through_rust(name, damaged)
        assert found == expected, (name, damaged)
        accepted += found is not None
    assert accepted > 300


def _through_python(name: str, text: str) -> str | None:
    try:
        return typed_json_of(_PROGRAM, name, decode(text.encode()))
    except (JournalError, ValueError):
        return None


def _through_rust(name: str, text: str) -> str | None:
    try:
        return typed_json_of(_PROGRAM, name, value_of_typed_json(_PROGRAM, name, text))
    except ValueError:
        return None


def test_a_json_in_its_own_tag_is_read() -> None:
    name = f"i{_TYPES.index('json')}"
    assert same(value_of_typed_json(_PROGRAM, name, '{"$json":"{\\"a\\":1.10}"}'), {"a": Decimal("1.10")})


@pytest.mark.parametrize(
    "type_, text",
    [
        ("decimal", '{"$decimal":"1e3"}'),
        ("decimal", '{"$decimal":"NaN"}'),
        ("decimal", '{"$decimal":1}'),
        ("decimal", '{"$decimal":"1","a":1}'),
        ("decimal", "1.5"),
        ("integer", "1.0"),
        ("integer", "9223372036854775808"),
        ("integer", "true"),
        ("float", "1e999"),
        ("float", '{"$float":"1.5"}'),
        ("bytes", '{"$bytes":"AP8"}'),
        ("date", '{"$date":"2023-02-29"}'),
        ("timestamp", '{"$time":"2026-11-15T01:02:03Z"}'),
        ("timestamp", '{"$time":"2026-11-15T01:02:03.000000+00:00"}'),
        ("duration", '{"$duration":1.5}'),
        ("duration", '{"$duration":' + "9" * 60 + "}"),
        ("set<integer>", '{"$set":[1,1]}'),
        ("map<integer, decimal>", '{"$map":[[1,1],[1,1]]}'),
        ("map<integer, decimal>", '{"$map":[[1]]}'),
        ("map<string, decimal>", '{"a":1,"a":1}'),
        ("string", '"\\ud800"'),
        ("string", '"a'),
        ("string", "[" * 100_000),
        ("json", "[" * 129 + "]" * 129),
        ("json", '{"$what":1}'),
        ("enum[b, a, Z]", '"c"'),
        ("string", "null"),
    ],
)
def test_hostile_texts_are_refused(type_: str, text: str) -> None:
    with pytest.raises(ValueError, match="a value in the journal") as caught:
        value_of_typed_json(_PROGRAM, f"i{_TYPES.index(type_)}", text)
    assert len(str(caught.value)) < 300
