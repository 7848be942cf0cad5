"""Simpler values of a type: they keep the type, and the search ends."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from vesper.migration.compare.simpler import simpler_of
from vesper.values.inputs import accept_inputs
from vesper.values.types import (
    BOOLEAN,
    DECIMAL,
    INTEGER,
    JSON,
    STRING,
    TIMESTAMP,
    ArrayOf,
    Enum,
    MapOf,
    OptionalOf,
    Record,
    SetOf,
    Type,
)

LINE = Record((("name", STRING), ("kind", Enum(("red", "green"))), ("part", OptionalOf(DECIMAL))))
SAMPLES: list[tuple[Type, object, object]] = [
    (INTEGER, -(2**63), 0),
    (INTEGER, 2**63 - 1, 0),
    (BOOLEAN, True, False),
    (DECIMAL, Decimal("734.56"), Decimal(0)),
    (STRING, "some words", ""),
    (Enum(("red", "green", "blue")), "blue", "red"),
    (OptionalOf(STRING), "x", None),
    (TIMESTAMP, datetime(2026, 11, 15, 12, 34, tzinfo=UTC), datetime(2000, 1, 1, tzinfo=UTC)),
    (LINE, {"name": "x", "kind": "green", "part": Decimal("1.50")}, {"name": "", "kind": "red", "part": None}),
    (ArrayOf(LINE), [{"name": "x", "kind": "green", "part": None}] * 3, []),
    (MapOf(STRING, INTEGER), {"a": 17, "b": 4}, {}),
    (SetOf(STRING), frozenset({"a", "b"}), frozenset()),
    (JSON, {"a": [1, {"b": "x"}]}, {}),
]


@pytest.mark.parametrize("number", range(len(SAMPLES)), ids=[str(each[0]) for each in SAMPLES])
def test_every_candidate_is_of_the_type_and_the_simplest_is_reached(number: int) -> None:
    type_, value, simplest = SAMPLES[number]
    for candidate in simpler_of(type_, value):
        assert accept_inputs([("x", type_, None)], {"x": candidate})[1] == [], candidate
    for _ in range(50):
        value = next(iter(simpler_of(type_, value)), value)
    assert value == simplest
    assert list(simpler_of(type_, simplest)) == []


@pytest.mark.parametrize("least", [1, 7, 1000, 4611686018427387904, 2**63 - 1])
def test_the_smallest_integer_of_many_is_found_in_few_steps(least: int) -> None:
    for sign in (1, -1):
        value, tries = sign * (2**63 - 1), 0
        while True:
            found = None
            for candidate in simpler_of(INTEGER, value):
                assert isinstance(candidate, int)
                tries += 1
                if candidate * sign >= least:
                    found = candidate
                    break
            if found is None:
                break
            value = found
        assert value == sign * least
        assert tries < 5_000


def test_a_value_of_another_type_keeps_its_form() -> None:
    assert next(iter(simpler_of(INTEGER, "12"))) == ""
    assert list(simpler_of(Enum(("red",)), "no member")) == []
    assert all(isinstance(each, str) for each in simpler_of(LINE, "text"))
