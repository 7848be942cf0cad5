"""Inputs that a planted fault once survived: the smallest each that tells it from the right engine.

They are written as expressions or as nodes, and asked of both engines like every other case (`test_corpus.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path

from tests.support.nodes import compiled, expression_node
from vesper.compiler import Compiled
from vesper.values.types import declared_type

NODES = Path(__file__).parent / "nodes"
"""Nodes whose cases belong to the corpus."""

WEEKEND = "set<enum[monday, tuesday, wednesday, thursday, friday, saturday, sunday]>"
TWO = {"a": "decimal", "b": "decimal"}
TIE = 2 * 10**33 + 1
"""Half of it has 35 digits, the last of which is a 5."""

EXPRESSIONS: dict[str, tuple[dict[str, str], str, list[dict[str, object]]]] = {
    # The types of the inputs, the expression over them, and the inputs.
    "long decimals compared": (
        TWO,
        "[a < b, a <= b, a > b, a >= b, a == b]",
        [
            {"a": Decimal(10) ** 40, "b": Decimal(10) ** 40},
            {"a": 2**72 - 1, "b": -(2**72)},
            {"a": -(Decimal(10) ** 60), "b": -(Decimal(10) ** 45)},
            {"a": Decimal(10) ** 45, "b": -(Decimal(10) ** 60)},
        ],
    ),
    "a product of one digit too many": (
        TWO,
        "a * b",
        [{"a": Decimal("1E+500"), "b": Decimal("1E+500")}, {"a": Decimal("1E+499"), "b": Decimal("1E+500")}],
    ),
    "a quotient between two": (
        TWO,
        "a / b",
        [{"a": sign * (TIE + more), "b": 2} for sign in (1, -1) for more in (0, 2)],
    ),
    "a float between two texts": ({"a": "float"}, "text(a)", [{"a": 1092419948044400.25}, {"a": 1092419948044400.75}]),
    "the longest text": ({"n": "integer"}, "length(repeat('a', n))", [{"n": 10_000_000}, {"n": 10_000_001}]),
    "the most items": ({"n": "integer"}, "length(range(0, n) + [1])", [{"n": 999_999}, {"n": 1_000_000}]),
    "a long input in code points": ({"x": "string"}, "length(x)", [{"x": "é" * 6_000_000}, {"x": "a" * 10_000_001}]),
    "the most entries": (
        {"x": "map<integer, integer>"},
        "length(x)",
        [{"x": dict.fromkeys(range(1_000_000), 1)}, {"x": dict.fromkeys(range(1_000_001), 1)}],
    ),
    "two problems of one json": (
        {"x": "json"},
        "text(x)",
        [{"x": [object(), float("nan")]}, {"x": [float("nan"), object()]}, {"x": [10**1001, {1: 2}]}],
    ),
    "powers of a negative": (
        {"a": "decimal", "n": "integer"},
        "[pow(a, 2), pow(a, 3), pow(0 - 1, n) * 1.0]",
        [{"a": Decimal("-2.5"), "n": 2**40}, {"a": Decimal("-2.5"), "n": 2**40 + 1}],
    ),
    "a quotient to places": (
        TWO,
        "[div(a, b, 0, floor), div(a, b, 2, half_up), div(a, b, 1000, down)]",
        [{"a": sign, "b": other} for sign in (1, -1) for other in (3, -3)],
    ),
    "a slice that ends before the start": ({"x": "string", "n": "integer"}, "slice(x, 1, n)", [{"x": "abc", "n": -1}]),
    "white space": ({"x": "string"}, "trim_end(x)", [{"x": "a\u3000\u2028"}, {"x": "a\x1c"}]),
    "a width in code points": ({"x": "string"}, "pad_start(x, 4, '*')", [{"x": "éé"}]),
    "a century": ({"x": "date"}, "days_in_month(x)", [{"x": date(2000, 2, 1)}, {"x": date(1900, 2, 1)}]),
    "a holiday on a weekend": (
        {"a": "date", "b": "date", "holidays": "set<date>", "weekend": WEEKEND},
        "business_days_between(a, b, holidays, weekend)",
        [{"a": date(2026, 11, 2), "b": date(2026, 11, 30), "holidays": [date(2026, 11, 15)], "weekend": ["sunday"]}],
    ),
    "a quotient by what is no power of two": (
        {"a": "float"},
        "[a / 49.0, a / 3.0, a / 0.1, a / 4.0]",
        [{"a": 49.0}, {"a": 5.0}, {"a": 1e308}],
    ),
    "the side that is taken overflows": (
        {"a": "integer", "b": "integer"},
        "IF a < b THEN a - 1 ELSE a + 1",
        [{"a": each, "b": other} for each in (-(2**63), 2**63 - 1) for other in (-(2**63), 0, 2**63 - 1)],
    ),
    "the side that is taken is too long a product": (
        {"a": "decimal", "b": "decimal"},
        "IF a < b THEN a * 3.0 ELSE a * 7.00",
        [{"a": each, "b": 5} for each in (2**62, -(2**62), 4)],
    ),
    "coefficients of which the sum is too long": (
        TWO,
        "[a + b, a - b]",
        [
            {"a": 2**63 - 1, "b": 1},
            {"a": -(2**63), "b": 1},
            {"a": Decimal("922337203685477580.8"), "b": Decimal("-0.1")},
            {"a": Decimal(2**62), "b": Decimal(2**62)},
        ],
    ),
    "zero beside a decimal": (
        {"a": "decimal"},
        "[0 < a, 0 <= a, 0 > a, 0 >= a, 0 == a, a < 0, a <= 0, a > 0, a >= 0, a != 0]",
        [{"a": Decimal("0.01")}, {"a": Decimal("-0.01")}, {"a": Decimal("0.00")}],
    ),
    "the same digits in another place": ({"a": "decimal"}, "[a * 1.5, a * 0.15, a + 15, a + 1.5]", [{"a": 2}]),
    "compared with itself": (
        {"a": "integer", "b": "integer"},
        "[a * b == a * b, quot(a, b) <= quot(a, b)]",
        [{"a": 2**62, "b": 2}, {"a": 2**62, "b": 0}, {"a": 2**62, "b": 1}],
    ),
    "a side that is false, behind one that fails": (
        {"n": "integer"},
        "[quot(1, n) > 0 AND false, false AND quot(1, n - 1) > 0]",
        [{"n": 0}, {"n": 1}],
    ),
    "a side that is true, behind one that fails": (
        {"n": "integer"},
        "[quot(1, n) > 0 OR true, true OR quot(1, n - 1) > 0]",
        [{"n": 0}, {"n": 1}],
    ),
    "an array that goes on": ({"a": "array<integer>", "b": "array<integer>"}, "a == b", [{"a": [1], "b": [1, 2]}]),
    "parts of a pointer": (
        {"x": "json"},
        "[has(x, '/~0a'), has(x, '/~1a'), has(x, '/l/01'), has(x, '/l/1'), has(x, '/l/0')]",
        [{"x": {"~a": 1, "l": [1, 2]}}, {"x": {"/a": 1}}],
    ),
    "an element twice": ({"x": "json"}, "length(CAST(x AS set<integer>))", [{"x": [1, 1]}, {"x": [1, 2]}]),
    "a control character": ({"x": "json"}, "text(x)", [{"x": "\x1f\x0b"}]),
    "sets given as lists": ({"x": "set<integer>"}, "length(x)", [{"x": [1, 1]}, {"x": [1, 2]}, {"x": [1, "a", 2]}]),
    "items that do not fit": (
        {"x": "array<integer>", "y": "map<string, decimal>"},
        "length(x)",
        [{"x": [1, "a", None, 2**63], "y": {"b": True, "a": "x", 1: 2}, "z": 1, "c": 2, "m": 3}],
    ),
}

RECORDS: list[dict[str, object]] = [
    {"xs": [], "amount": 1, "items": [{"count": 1, "zeta": 1, "alpha": 2}, {"note": None}, {"count": "x", "note": 5}]},
    {"xs": [], "amount": 12, "items": [{"note": "n", "count": 3}]},
]
"""Inputs of `planted_failures_v1`, which takes records."""

_LINE: dict[str, object] = {"qty": 1, "more": 2, "price": Decimal("0.5"), "tag": "ink", "kind": "a"}
FLAT: list[dict[str, object]] = [
    {"b": 1, "xs": []},
    {"d": Decimal("-0.000000001"), "b": True, "xs": [{"qty": 1, "more": 0, "price": 1, "tag": "", "kind": "c"}]},
    {"t": "long", "xs": [*([_LINE] * 4_100), {**_LINE, "tag": "ü"}, _LINE]},
]
"""Inputs of `planted_flat_v1`, which takes what goes into machine code without a frame."""


def edge_questions() -> Iterator[tuple[str, Compiled, dict[str, object]]]:
    for name, (types, text, rows) in EXPRESSIONS.items():
        node = expression_node(text, {each: declared_type(type_) for each, type_ in types.items()})
        for number, given in enumerate(rows):
            yield f"{name} {number}", node, given
    failures = compiled(NODES / "planted_failures_v1.vsp")
    for number, given in enumerate(RECORDS):
        yield f"records {number}", failures, given
    for number, given in enumerate(FLAT):
        yield f"flat {number}", flat(), given


def flat() -> Compiled:
    return compiled(NODES / "planted_flat_v1.vsp")


JSON_FLAT = [
    (
        '{"d":"-10.0500","e":"red","xs":[{"qty":2,"more":1,"price":"1.05","tag":"ü","kind":"b"}]}',
        '{"b":false,"d":"-10.0500","e":"red","f":0.5,"n":-5,"quantity":7,"t":"none","tagged":110,"worth":"2.10"}',
    ),
    (
        '{"n":-100,"d":0.001,"b":true,"t":"a","e":"green","f":1,"xs":[]}',
        '{"b":true,"d":"0.001","e":"green","f":1.0,"n":-100,"quantity":0,"t":"a","tagged":0,"worth":"0"}',
    ),
]
"""Texts of inputs of `planted_flat_v1`, and what it returns."""


JSON_TAKEN = [
    '{"price": 1.50, "pieces": -0}',
    '{"price": -0.0, "ratio": -0.0, "anything": -0.0}',
    '{"price": -0, "ratio": -0, "anything": [-0]}',
    '{"price": -0e5, "ratio": -1e-400}',
    '{"price": "1E+2", "ratio": 1e-7, "flag": true, "name": "\\u00e9\\u0001\\n\\ud83d\\ude00"}',
    '{"price": 1, "ratio": "Infinity", "moment": "2026-11-15T02:21:30.000500+02:00", "span": "-P1DT2H"}',
    '{"price": 1, "ratio": 1e400}',
    '{"price": 1, "ratio": 0.5, "blob": "aGk=", "day": "2024-02-29", "color": "a b"}',
    '{"price": 1, "words": ["b", "a"], "numbers": [3, 1, 3]}',
    '{"price": 1, "rates": {"b": 1.10, "a": "2"}, "stairs": [[2, "x"], [-1, "y"]]}',
    '{"price": 1, "anything": {"b": [1.50, null, {"z": true, "a": 1e2}], "a": "x"}}',
    '{"zeta": 1, "alpha": 2, "middle": 3, "pieces": "x"}',
    '{"price": 1, "numbers": [1, "x", 2, true], "rates": {"b": "x", "a": []}, "words": [1, "a"]}',
    '{"price": 1, "stairs": [["x", "y"], [1, 2]], "color": "blue", "day": "2023-02-29"}',
    '{"price": "1e1000", "pieces": 9223372036854775808, "span": "P9999999D"}',
]
"""Texts that come to what the objects come to that the Python API makes of them."""

JSON_REFUSED: list[tuple[bytes, str, str]] = [
    (b"", "malformed", ""),
    (b'{"price": 1, "price": 2}', "malformed", ""),
    (b'{"price": NaN}', "malformed", ""),
    (b'{"price": "\\ud800"}', "malformed", ""),
    (b'{"price": 1, "name": "\\ud800\\u0041"}', "malformed", ""),
    (b"[]", "wrong_type", ""),
    (b'{"price": 1, "pieces": 1.0}', "wrong_type", "pieces"),
    (b'{"price": 1, "pieces": 1e3}', "wrong_type", "pieces"),
    (b'{"price": 1, "anything": ' + b"[" * 129 + b"]" * 129 + b"}", "too_deep", "anything"),
    (b'{"price": 1, "anything": ' + b"[" * 256, "too_deep", ""),
    (b'{"price": 1e1001}', "out_of_range", "price"),
    (b'{"price": 1, "anything": [1e1001]}', "out_of_range", "anything"),
    (b'{"price": 1, "stairs": [[1, "a"], [1, "b"]]}', "duplicate", "stairs"),
    (b'{"price": 1, "words": ["a", "a"]}', "duplicate", "words"),
]
"""Texts that only JSON itself refuses, or that Python's reader takes for something else."""
