"""`value AS type`: the type of a place, stated beside the value."""

from __future__ import annotations

import pytest

from tests.support.nodes import compiled_text
from tests.unit.language.check.test_functions import codes, node
from vesper.engines.outcome import Returned
from vesper.engines.registry import ENGINES


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "value, expected",
    [
        ("length([] AS array<integer>)", 0),
        ("length(append([] AS array<integer>, n))", 1),
        ("length([1, n, n] AS array<integer>) + 1 AS integer", 4),
        ("(null AS optional<integer>) ?? n", 7),
        ("LET a = low AS enum[low, high] IN IF a == low THEN 1 ELSE 2", 1),
        ("CAST((to_json(n) AS json) AS integer)", 7),
        ("CAST(IF n > 1 THEN to_json(n) AS json ELSE to_json(2) AS integer)", 7),
        ("[1, 2] AS array<integer>[1]", 2),
        ("length([{} AS map<string, array<integer>>])", 1),
    ],
)
def test_place_of_the_stated_type(value: str, expected: int, engine: str) -> None:
    outcome = ENGINES[engine].load(compiled_text(node("", value.replace("'", "''")))).call({"n": 7})
    assert outcome == Returned({"r": expected})


@pytest.mark.parametrize(
    "value, expected",
    [
        ("n AS string", ["type-mismatch"]),
        ("n AS Unknown", ["unknown-type"]),
        ("1.5 AS integer", ["type-mismatch"]),
        ("n AS", ["expression-syntax"]),
        ("CAST(to_json(n) AS json AS integer)", ["expression-syntax"]),
    ],
)
def test_refused(value: str, expected: list[str]) -> None:
    assert codes(node("", value)) == expected
