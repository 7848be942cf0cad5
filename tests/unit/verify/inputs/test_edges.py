"""Interesting values of inputs: edges, pairs, texts that are parsed, JSON that is cast."""

from __future__ import annotations

import random
from collections import Counter
from datetime import date, timedelta
from decimal import Decimal
from itertools import product

import pytest

from tests.support.nodes import small_node
from vesper.engines.outcome import Failed, Returned
from vesper.engines.registry import ENGINES
from vesper.values.generated.operations import IMPLEMENTED
from vesper.values.model import MAX_INTEGER, MIN_INTEGER
from vesper.values.types import (
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    INTEGER,
    STRING,
    ArrayOf,
    Enum,
    MapOf,
    OptionalOf,
    Record,
    SetOf,
    Type,
)
from vesper.verify.inputs.boundaries import BoundarySeeker
from vesper.verify.inputs.edges import decimal_neighbours, find_edges
from vesper.verify.inputs.formats import PARSED, draw_format
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.inputs.json_shapes import JsonShapes, json_text
from vesper.verify.inputs.pairs import InputPairs
from vesper.verify.solve.evaluation import Evaluator

_RETURNED = '- {{operation: return, success: {{result: "{}"}}}}'


def _draws(inputs: str, result: str, count: int, output: str = "boolean") -> list[dict[str, object]]:
    node = small_node(inputs, _RETURNED.format(result), f"result: {output}").node
    generator = InputGenerator(node, 1)
    return [generator.draw() for _ in range(count)]


# -- edges ----------------------------------------------------------------------------------------


def test_edges_are_the_literals_with_their_neighbours() -> None:
    result = "n < 40 AND d > 1.50 AND t > date('2024-02-29') AND l < duration('90s') AND f > 0.5"
    node = small_node(
        "n: integer\nd: decimal\nt: date\nl: duration\nf: float", _RETURNED.format(result), "result: boolean"
    ).node
    edges = find_edges(node)
    assert {39, 40, 41, MIN_INTEGER, MAX_INTEGER} <= {*edges.values(INTEGER)}
    assert {Decimal("1.49"), Decimal("1.50"), Decimal("1.51")} <= {*edges.values(DECIMAL)}
    assert {date(2024, 2, 28), date(2024, 3, 1)} <= {*edges.values(DATE)}
    assert timedelta(seconds=89, microseconds=999_999) in edges.values(DURATION)
    assert {0.5, 0.5000000000000001} <= {*edges.values(FLOAT)}
    assert edges.values(OptionalOf(INTEGER))[0] is None
    assert edges.values(Enum(("a", "b", "c"))) == ["a", "c"]
    assert edges.values(ArrayOf(INTEGER)) == []


def test_a_decimal_of_the_largest_scale_has_neighbours_within_the_limits() -> None:
    edge = Decimal("1." + "0" * 999)
    assert len({*decimal_neighbours(edge)}) == 3
    assert decimal_neighbours(Decimal("9" * 1000)).count(Decimal("9" * 1000)) == 2


def test_drawn_values_meet_the_limits_of_machine_numbers() -> None:
    drawn = _draws("n: integer\nd: decimal", "n > 7 AND d > 2.5", 1500)
    integers = {each.get("n") for each in drawn}
    assert {6, 7, 8, MIN_INTEGER, MAX_INTEGER, 2**53 + 1, -(2**31) - 1} <= integers
    assert {Decimal("2.4"), Decimal("2.5"), Decimal("2.6")} <= {each.get("d") for each in drawn}
    decimals = [found for each in drawn if isinstance(found := each.get("d"), Decimal)]
    scales = {exponent for each in decimals if isinstance(exponent := each.as_tuple().exponent, int)}
    assert {0, -1, -18, -19, -28} <= scales


def test_lengths_lie_at_and_beside_the_declared_ones() -> None:
    node = small_node(
        "s: {type: string, constraints: [{min_length: 5}, {max_length: 9}]}",
        _RETURNED.format("true"),
        "result: boolean",
    ).node
    generator = InputGenerator(node, 1)
    lengths = Counter(len(drawn) for _ in range(800) if isinstance(drawn := generator.draw().get("s"), str))
    assert {4, 5, 9, 10} <= lengths.keys(), lengths


# -- pairs ----------------------------------------------------------------------------------------


def test_every_pair_of_values_is_drawn_before_one_is_repeated() -> None:
    pairs = InputPairs({"a": [0, 1, 2], "b": ["x", "y"], "c": []}, seed=5)
    found = [pairs.next() for _ in range(6)]
    assert {(each["a"], each["b"]) for each in found} == {*product([0, 1, 2], ["x", "y"])}


def test_three_inputs_have_three_pairs() -> None:
    pairs = InputPairs({"a": [0, 1], "b": [0, 1], "c": [0, 1]}, seed=0)
    found = {(*each.items(),) for each in (pairs.next() for _ in range(12))}
    assert len(found) == 12


def test_one_input_has_its_values_and_none_has_nothing() -> None:
    pairs = InputPairs({"a": [1, 2]}, seed=0)
    assert {pairs.next()["a"] for _ in range(2)} == {1, 2}
    assert InputPairs({}, seed=3).next() == {}


def test_inputs_meet_at_two_edges_at_once() -> None:
    drawn = _draws("a: integer\nb: integer", "a > 40 AND b > 50", 600)
    met = {(each.get("a"), each.get("b")) for each in drawn}
    assert len(met & {*product((39, 40, 41), (49, 50, 51))}) >= 3


# -- boundaries -----------------------------------------------------------------------------------


def test_a_boundary_is_met_and_missed_by_one_unit() -> None:
    node = small_node("a: integer\nb: integer", _RETURNED.format("a < b"), "result: boolean").node
    seeker = BoundarySeeker(Evaluator(node), random.Random(1))
    gaps: Counter[int] = Counter()
    for _ in range(60):
        found = seeker.seek({"a": 5, "b": 900})
        assert found is not None
        gaps[int(str(found["a"])) - int(str(found["b"]))] += 1
    assert {-1, 0, 1} == gaps.keys()


# -- formats --------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", PARSED)
def test_formats_are_accepted_and_refused(operation: str) -> None:
    spec = IMPLEMENTED[operation]
    shown = "hex" if operation.startswith("bytes.") else "text"
    node = small_node("s: string", _RETURNED.format(f"{shown}({spec.function}(s)) == ''"), "result: boolean")
    program, source = ENGINES["python"].load(node), random.Random(1)
    outcomes = Counter(type(program.call({"s": draw_format(source, operation)})) for _ in range(120))
    assert min(outcomes[Returned], outcomes[Failed]) >= 12, outcomes


def test_inputs_have_the_formats_that_a_node_parses() -> None:
    drawn = _draws("s: string", "parse_integer(s) > 0", 200)
    assert sum(str(each.get("s", "")).strip("+-").isdigit() for each in drawn) >= 30


# -- JSON -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "type_",
    [
        MapOf(STRING, DECIMAL),
        MapOf(INTEGER, ArrayOf(STRING)),
        MapOf(DATE, OptionalOf(DECIMAL)),
        SetOf(INTEGER),
        ArrayOf(OptionalOf(DATE)),
        INTEGER,
    ],
    ids=str,
)
def test_json_inputs_have_the_shape_of_a_cast(type_: Type) -> None:
    cast = f"to_json(CAST(j AS {type_})) == j"
    node = small_node("j: json", _RETURNED.format(cast), "result: boolean")
    program, generator = ENGINES["python"].load(node), InputGenerator(node.node, 1)
    outcomes = Counter(type(program.call(generator.draw())) for _ in range(150))
    assert outcomes[Returned] >= 40, f"{type_}: {outcomes}"
    assert outcomes[Failed] >= 15, f"{type_}: {outcomes}"


def test_shapes_of_records_lack_fields_and_have_others() -> None:
    record = Record((("a", INTEGER), ("b", OptionalOf(STRING))), "Line")
    shapes = JsonShapes(random.Random(1))
    keys = {(*found,) for _ in range(200) if isinstance(found := shapes.draw(record), dict)}
    assert {("a", "b"), ("b", "a"), ("a",), ("b",), ("a", "b", "no_such_field")} <= keys


def test_json_text_keeps_the_places_of_numbers() -> None:
    content = {"a": [Decimal("1.50"), None, True], "é": '"'}
    assert json_text(content) == '{"a":[1.50,null,true],"é":"\\""}'
