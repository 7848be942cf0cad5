"""Order of arrays, records and optionals: the same on every engine."""

from __future__ import annotations

import pytest

from tests.support.nodes import compiled_text
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.outcome import Outcome, Returned
from vesper.engines.python_engine import PythonEngine

_NODE = """
node_id: test_v1
type: function
intent: Test
types:
  Level: {{type: "enum[low, mid, high]"}}
  Item: {{fields: {{level: Level, size: optional<float>, tags: array<string>}}}}
inputs: {{items: array<Item>, lists: array<array<integer>>}}
outputs: {{success: {{r: {returns}}}}}
flow:
  - {{step: r, operation: compute, value: "{value}"}}
  - {{operation: return, success: [r]}}
"""
_ITEMS = [
    {"level": "high", "size": 1.0, "tags": []},
    {"level": "low", "size": None, "tags": ["b"]},
    {"level": "low", "size": float("-inf"), "tags": ["a"]},
    {"level": "low", "size": None, "tags": ["a", "b"]},
    {"level": "mid", "size": 0.0, "tags": ["a"]},
    {"level": "mid", "size": -0.0, "tags": ["z"]},
    {"level": "low", "size": None, "tags": ["a"]},
]
_LISTS = [[2], [1, 5], [], [1], [1, -1], [2]]
_SORTED = [6, 3, 1, 2, 5, 4, 0]
"""Places of the items in their order."""


def _run(value: str, returns: str) -> object:
    node = compiled_text(_NODE.format(value=value, returns=returns))
    outcomes: list[Outcome] = []
    for engine in (PythonEngine(), DirectEngine()):
        program = engine.load(node)
        outcomes.append(program.call({"items": _ITEMS, "lists": _LISTS}))
        assert program.start({"items": _ITEMS, "lists": _LISTS}).advance(()).outcome == outcomes[0]  # type: ignore[union-attr]
    assert outcomes[0] == outcomes[1]
    assert isinstance(outcomes[0], Returned), outcomes[0]
    return outcomes[0].value["r"]


def test_records_are_sorted_field_by_field() -> None:
    expected = [_ITEMS[place] for place in _SORTED]
    assert _run("sort(items)", "array<Item>") == expected
    assert _run("sort(items, descending)", "array<Item>") == expected[::-1]
    assert _run("sort_by(i FOR i IN items)", "array<Item>") == expected


@pytest.mark.parametrize(
    "value, expected",
    [
        ("min(items)", _ITEMS[6]),
        ("MAX(i FOR i IN items)", _ITEMS[0]),
        ("MIN(i FOR i IN items WHERE i.level != 'low')", _ITEMS[5]),
        ("require(min_by(i FOR i IN items))", _ITEMS[6]),
        ("max(items[3], items[6])", _ITEMS[3]),
        ("clamp(items[0], items[1], items[4])", _ITEMS[4]),
    ],
)
def test_the_smallest_and_the_largest_record(value: str, expected: object) -> None:
    assert _run(value, "Item") == expected


def test_arrays_are_sorted_item_by_item() -> None:
    assert _run("sort(lists)", "array<array<integer>>") == sorted(_LISTS)
    assert _run("sort_by(l FOR l IN lists, descending)", "array<array<integer>>") == sorted(_LISTS, reverse=True)
    assert _run("max(lists)", "array<integer>") == [2]


def test_null_comes_first_in_a_sort_and_equal_keys_keep_their_order() -> None:
    found = _run("sort_by(i.size FOR i IN items)", "array<Item>")
    assert found == [_ITEMS[place] for place in (1, 3, 6, 2, 5, 4, 0)]


@pytest.mark.parametrize(
    "value, message",
    [
        ("MIN(i.size FOR i IN items)", "has an order"),
        ("sort([{1}, {2}])", "sort"),
        ("group_by(i.tags FOR i IN items)", "as a key"),
        ("lists[0] < lists[1]", "<"),
    ],
)
def test_other_places_want_scalars(value: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        _run(value, "integer")
