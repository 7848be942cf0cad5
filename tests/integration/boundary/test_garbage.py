"""No call leaves reference cycles behind.

Python searches for cycles the more rarely the more objects exist, so the memory of a service that rejects many calls
would grow for hours.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

import vesper
from tests.proofs.robustness.calls import BAD, KINDS, PAYMENTS, Kind
from tests.support.nodes import PAYMENT_DECISION
from vesper.values.vesper_error import VesperError

CALLS = 32
TEXTS = ["", "{", "[]", '{"amount": 1e9999}', '{"amount": "x", "zz": {}}', b"\xff", '{"a": 1, "a": 2}', "[" * 500]


def left_behind(make: Callable[[int], object]) -> Counter[str]:
    """Return the types of objects that only the cycle collector frees after some calls."""
    for number in range(CALLS):
        make(number)  # allocates what is cached once
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for number in range(CALLS):
            make(number)
        gc.collect()
        return Counter(type(each).__name__ for each in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


@pytest.fixture(autouse=True, scope="module")
def without_what_other_tests_left() -> None:
    """Each collection looks at the objects of these tests alone, and not at those of thousands before them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def without_the_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()
    gc.collect()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_call_of_the_engine_leaves_nothing_behind(kind: Kind) -> None:
    assert left_behind(kind.make) == Counter()


def calls_of(node: vesper.Node) -> dict[str, Callable[[int], object]]:
    def call(number: int) -> object:
        try:
            return node.call(BAD[number % len(BAD)])
        except VesperError as problem:
            return str(problem)

    return {
        "good": lambda number: node(**PAYMENTS[number % 64]),
        "bad": lambda number: str(node(BAD[number % len(BAD)])),
        "bad keywords": lambda number: str(node(**BAD[number % len(BAD)])),
        "text": lambda number: str(node(TEXTS[number % len(TEXTS)])),
        "call": call,
    }


@pytest.mark.parametrize("engine", ["python", "interp"])
@pytest.mark.parametrize("way", ["good", "bad", "bad keywords", "text", "call"])
def test_a_call_of_a_node_leaves_nothing_behind(engine: str, way: str) -> None:
    assert left_behind(calls_of(vesper.load(PAYMENT_DECISION, engine=engine))[way]) == Counter()


def test_a_ring_is_noticed() -> None:
    def ring(_: int) -> None:
        held: list[object] = []
        held.append(held)

    assert left_behind(ring) == Counter({"list": CALLS})
