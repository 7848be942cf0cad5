"""The encoding of a state: every field is restored, and no other text is accepted."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.migration.support.stories import MAIN, at, told
from vesper.migration.control import cusum
from vesper.migration.control.modes import Mode, Reason
from vesper.migration.control.state import Diverged, Kill, Latch, NodeState, PathState, Pin, Settings, Timed
from vesper.migration.statistics import latency
from vesper.migration.stores.codec import BadState, state_from_text, state_text

counts = st.integers(0, 2**70)
attempts = st.integers(1, 2**70)
texts = st.text(max_size=8)
names = st.text("abcdef:ü\ud800\x00", max_size=5)
SETTINGS = Settings(frozenset({Mode.DIRECT_ONLY}))
STATES = st.builds(
    NodeState,
    node=texts,
    epoch=texts,
    settings=st.just(SETTINGS),
    mode=st.sampled_from(Mode),
    attempt=attempts,
    clean=counts,
    divergences=counts,
    compared=counts,
    unknown=counts,
    is_complete=st.booleans(),
    paths=st.dictionaries(names, st.builds(PathState, counts, counts, attempts, counts), max_size=3),
    open=st.dictionaries(names, names, max_size=3),
    lost=st.lists(names, max_size=2).map(tuple),
    latches=st.lists(st.builds(Latch, st.sampled_from(Reason), texts, names, counts), max_size=2).map(tuple),
    pin=st.none() | st.builds(Pin, st.sampled_from(Mode), counts, names, texts),
    rate=st.builds(cusum.RateState, st.integers(0, 10**40)),
    latency=st.builds(
        latency.LatencyState, st.lists(counts, max_size=3).map(tuple), st.lists(counts, max_size=3).map(tuple), counts
    ),
)


@settings(max_examples=100)
@given(STATES)
def test_every_field_comes_back(state: NodeState) -> None:
    text = state_text(state)
    text.encode("ascii")  # whatever stands in it, a store can write it
    read = state_from_text(text, SETTINGS)
    assert read == state
    assert state_text(read) == text
    assert state_from_text(text.encode(), SETTINGS) == state


def test_a_field_that_is_new_has_to_be_written() -> None:
    written = set(json.loads(state_text(NodeState("a", "b")))) - {"format"}
    assert written == {each.name for each in fields(NodeState)} - {"settings"}


def test_equal_states_have_equal_texts() -> None:
    one, two = PathState(1), PathState(2)
    first = NodeState("a", "b", paths={"x": one, "y": two}, open={"k": "x", "j": "y"})
    assert state_text(first) == state_text(NodeState("a", "b", paths={"y": two, "x": one}, open={"j": "y", "k": "x"}))


def a_state() -> NodeState:
    state, _ = told(at(Mode.CANARY_DIRECT), [Diverged(MAIN, "f1"), Timed(5, 6), Kill("ann", "for a test")], 77)
    return state


def changed(name: str, value: Any) -> str:
    document = json.loads(state_text(a_state()))
    document[name] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "7", '"x"', "{}", "{", "\x00", '{"format": 1}', '{"format": "1"}', "[" * 100_000, b"\xff\xfe{",
     '{"format": 2, "node": "a"}', "NaN", "1" * 5000],
)  # fmt: skip
def test_texts_that_are_no_state(text: str | bytes) -> None:
    with pytest.raises(BadState):
        state_from_text(text, SETTINGS)


@pytest.mark.parametrize(
    "name,value",
    [
        ("format", 2), ("node", 7), ("node", None), ("epoch", ["x"]), ("mode", "fast"), ("mode", ["direct_only"]),
        ("attempt", 0), ("attempt", True), ("attempt", 1.0), ("clean", -1), ("clean", "7"), ("clean", 1e3),
        ("clean", None), ("divergences", [1]), ("compared", False), ("unknown", -5), ("is_complete", 1),
        ("paths", []), ("paths", {"a": [1, 2, 3]}), ("paths", {"a": [1, 2, 1, 4, 5]}), ("paths", {"a": [1, 2, 0, 0]}),
        ("paths", {"a": {"clean": 1}}), ("paths", {"a": "1111"}), ("open", {"f": 1}), ("open", ["f"]), ("lost", "ab"),
        ("lost", {"a": 1}), ("latches", [["kill", "a", "b"]]), ("latches", [["nothing", "a", "b", 1]]),
        ("latches", [["kill", "a", "b", -1]]), ("latches", "kill"), ("pin", []), ("pin", ["direct_only", 1, "a"]),
        ("pin", ["direct_only", 1, "a", "b", "c"]), ("pin", {"mode": "direct_only"}), ("rate", 5), ("rate", "-5"),
        ("rate", " 5"), ("rate", "1_0"), ("rate", "x"), ("latency", [[], []]), ("latency", [[], [], 0, 0]),
        ("latency", [["1"], [], 0]), ("latency", ["", "", 0]), ("something_else", 1),
    ],
)  # fmt: skip
def test_a_changed_document_is_refused(name: str, value: Any) -> None:
    document = json.loads(state_text(a_state()))
    assert state_from_text(json.dumps(document), a_state().settings) == a_state()
    with pytest.raises(BadState):
        state_from_text(changed(name, value), SETTINGS)


@pytest.mark.parametrize("name", sorted({each.name for each in fields(NodeState)} - {"settings"}))
def test_a_field_that_is_missing(name: str) -> None:
    document = json.loads(state_text(a_state()))
    del document[name]
    with pytest.raises(BadState):
        state_from_text(json.dumps(document), SETTINGS)
