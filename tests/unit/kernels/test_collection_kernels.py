"""Arrays, maps, sets and ordered values: order, stability, limits, no changes in place."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.nodes import operation_node
from tests.support.waiting import processor_seconds
from vesper.codegen.module import generate_module
from vesper.codegen.spelling import BY_ORDER
from vesper.engines.outcome import Returned
from vesper.engines.python_engine import PythonEngine
from vesper.kernels import array, boolean, enum, optional, value
from vesper.kernels import map as map_
from vesper.kernels import set as set_
from vesper.kernels.raised import Raised
from vesper.values.generated.errors import ErrorCode
from vesper.values.generated.operations import OPERATIONS
from vesper.values.model import MAX_INTEGER, MIN_INTEGER, same
from vesper.values.types import STRING, ArrayOf, Enum, MapOf, Record, SetOf, Type, declared_type

LEVEL = Enum(("low", "mid", "high"))
ORDERS = declared_type("enum[ascending, descending]")
DECIMALS = st.builds(lambda n, zeros: Decimal(f"{n}.{'0' * zeros}"), st.integers(-3, 3), st.integers(1, 3))
VALUES = DECIMALS | st.lists(DECIMALS) | st.dictionaries(st.sampled_from("ab"), DECIMALS) | st.none()
POSITIONS = st.integers(-2, 6) | st.sampled_from([MIN_INTEGER, MAX_INTEGER])
FULL = list(range(1_000_000))
TOO_LARGE, INVALID = ErrorCode.TOO_LARGE, ErrorCode.INVALID_ARGUMENT


def result(function: Callable[..., object], *arguments: object) -> object:
    try:
        return function(*arguments)
    except Raised as raised:
        return raised.code


# -- arrays ---------------------------------------------------------------------------------------


@given(st.lists(DECIMALS), st.sampled_from(["ascending", "descending"]))
def test_sort_is_stable_in_both_orders(values: list[Decimal], order: str) -> None:
    direction = 1 if order == "ascending" else -1
    places = sorted(range(len(values)), key=lambda place: (direction * int(values[place]), place))
    before = list(values)
    found = array.sort(values, order)
    assert same(found, [values[place] for place in places])
    assert same(values, before)


@given(st.lists(VALUES), VALUES)
def test_equality_follows_the_type(values: list[Any], wanted: Any) -> None:
    firsts: list[Any] = []
    for each in values:
        if not any(each == other for other in firsts):
            firsts.append(each)
    found = array.distinct(values)
    assert len(found) == len(firsts)
    assert all(ours is theirs for ours, theirs in zip(found, firsts, strict=True))
    position = array.index_of(values, wanted)
    assert (position is not None) == array.contains(values, wanted)
    assert position is None or (values[position] == wanted and wanted not in values[:position])


@given(st.lists(st.integers(), max_size=5), POSITIONS, POSITIONS)
def test_index_bounds(values: list[int], start: int, end: int) -> None:
    is_inside = 0 <= start < len(values)
    assert array.get(values, start) == (values[start] if is_inside else None)
    assert result(array.take, values, start) == (INVALID if start < 0 else values[: min(start, 5)])
    assert result(array.drop, values, start) == (INVALID if start < 0 else values[min(start, 5) :])
    inside = [each for index, each in enumerate(values) if start <= index < end]
    assert result(array.slice, values, start, end) == (INVALID if min(start, end) < 0 else inside)
    replaced = [0 if index == start else each for index, each in enumerate(values)]
    assert result(array.replace_at, values, start, 0) == (replaced if is_inside else ErrorCode.INDEX_OUT_OF_RANGE)
    if start >= 1:
        chunks = array.chunks(values, start)
        assert array.flatten(chunks) == values
        assert all(len(chunk) == start for chunk in chunks[:-1])
    else:
        assert result(array.chunks, values, start) == INVALID


@given(POSITIONS, POSITIONS, st.integers(-3, 3) | st.sampled_from([MIN_INTEGER, MAX_INTEGER]))
def test_ranges(start: int, end: int, step: int) -> None:
    if step == 0:
        assert result(array.range, start, end, step) == INVALID
        return
    count = max(math.ceil(Fraction(end - start, step)), 0)
    expected = [start + index * step for index in range(count)] if count <= 1_000_000 else TOO_LARGE
    assert result(array.range, start, end, step) == expected


def test_results_share_no_list_with_arguments() -> None:
    values = [1, 2]
    for found in (
        array.take(values, 5), array.drop(values, 0), array.slice(values, 0, 9), array.concat(values, []),
        array.sort(values, "ascending"), array.distinct(values), array.flatten([values]), array.reverse([2, 1]),
        array.chunks(values, 9)[0],
    ):  # fmt: skip
        assert found == values
        assert found is not values


def test_array_limit_is_a_million_items() -> None:
    assert result(array.append, FULL, 0) == TOO_LARGE
    assert result(array.concat, FULL, [0]) == TOO_LARGE
    assert result(array.flatten, [FULL] * 1000) == TOO_LARGE
    assert len(array.append(FULL[1:], 0)) == len(array.range(0, 1_000_000, 1)) == 1_000_000


def test_distinct_of_a_million_items_is_fast() -> None:
    modulus = 2**61 - 1  # equal numbers have equal hashes in Python
    with processor_seconds(20):
        assert len(array.distinct([[each] for each in FULL])) == len(FULL)
        assert len(array.distinct([Decimal(each * modulus) for each in FULL[:50_000]])) == 50_000


# -- maps and sets --------------------------------------------------------------------------------

KEYS = st.integers(-3, 3)
MAPS = st.dictionaries(KEYS, st.integers(0, 9)).map(lambda entries: dict(sorted(entries.items())))
SETS = st.frozensets(KEYS)


@given(MAPS, MAPS, KEYS, st.integers(10, 19))
def test_maps_stay_in_key_order(left: dict[int, int], right: dict[int, int], key: int, new: int) -> None:
    before = dict(left)
    merged, added, fewer = map_.merge(left, right), map_.put(left, key, new), map_.remove(left, key)
    assert same(merged, dict(sorted({**left, **right}.items())))
    assert same(added, dict(sorted({**left, key: new}.items())))
    assert same(fewer, {each: left[each] for each in left if each != key})
    assert same(left, before)
    assert all(found is not left for found in (merged, added, fewer))
    assert map_.keys(left) == sorted(left)
    assert map_.values(left) == [left[each] for each in sorted(left)]
    assert map_.get(left, key) == left.get(key)


def test_map_and_set_limit_is_a_million_entries() -> None:
    full = dict.fromkeys(FULL, 0)
    assert result(map_.put, full, -1, 0) == TOO_LARGE
    assert result(map_.merge, full, {-1: 0}) == TOO_LARGE
    assert len(map_.merge(full, full)) == len(map_.put(full, 5, 1)) == 1_000_000
    assert result(set_.put, frozenset(FULL), -1) == TOO_LARGE
    assert result(set_.union, frozenset(FULL), frozenset([-1])) == TOO_LARGE
    assert len(set_.put(frozenset(FULL), 5)) == 1_000_000


@given(SETS, SETS, KEYS)
def test_set_operations(left: frozenset[int], right: frozenset[int], key: int) -> None:
    everything = range(-3, 4)
    assert set_.union(left, right) == frozenset(x for x in everything if x in left or x in right)
    assert set_.intersection(left, right) == frozenset(x for x in everything if x in left and x in right)
    assert set_.difference(left, right) == frozenset(x for x in everything if x in left and x not in right)
    assert set_.is_subset(left, right) == all(x in right for x in left)
    assert set_.is_disjoint(left, right) == (not any(x in right for x in left))
    assert set_.put(left, key) == frozenset([*left, key])
    assert set_.remove(left, key) == frozenset(x for x in left if x != key)
    assert set_.to_array(left) == [x for x in everything if x in left]


# -- order ----------------------------------------------------------------------------------------


def test_min_and_max_prefer_the_left_of_equal_values() -> None:
    one, also_one, half = Decimal("1.0"), Decimal("1.00"), Decimal("0.5")
    assert value.min(one, also_one) is one
    assert value.max(one, also_one) is one
    assert value.clamp(one, also_one, also_one) is one
    assert value.clamp(half, also_one, one) is also_one
    assert result(value.clamp, one, also_one, half) == INVALID
    assert value.min(True, False) is False
    assert value.max("\uffff", "\U00010000") == "\U00010000"


def test_small_kernels() -> None:
    assert [boolean.text(True), boolean.text(False), enum.text("low")] == ["true", "false", "low"]
    assert result(optional.require, None) == ErrorCode.NULL_VALUE
    assert optional.require(0) == 0


ENUM_CALLS: list[tuple[str, list[Any], list[Any], Any]] = [
    ("value.min", [LEVEL, LEVEL], ["high", "low"], "low"),
    ("value.max", [LEVEL, LEVEL], ["low", "high"], "high"),
    ("value.clamp", [LEVEL] * 3, ["high", "low", "mid"], "mid"),
    ("array.sort", [ArrayOf(LEVEL), ORDERS], [["high", "mid", "low"], "ascending"], ["low", "mid", "high"]),
    ("array.sort", [ArrayOf(LEVEL), ORDERS], [["mid", "low", "high"], "descending"], ["high", "mid", "low"]),
    ("set.to_array", [SetOf(LEVEL)], [frozenset(LEVEL.members)], ["low", "mid", "high"]),
    ("map.put", [MapOf(LEVEL, STRING), LEVEL, STRING], [{"high": "x"}, "low", "y"], {"low": "y", "high": "x"}),
    ("array.min", [ArrayOf(LEVEL)], [["mid", "low", "high"]], "low"),
    ("array.max", [ArrayOf(LEVEL)], [["mid", "high", "low"]], "high"),
    (
        "map.from_entries",
        [ArrayOf(Record((("key", LEVEL), ("value", STRING))))],
        [[{"key": "high", "value": "x"}, {"key": "low", "value": "y"}]],
        {"low": "y", "high": "x"},
    ),
    ("map.merge", [MapOf(LEVEL, STRING)] * 2, [{"high": "x"}, {"mid": "y"}], {"mid": "y", "high": "x"}),
]


def test_every_ordered_operation_is_covered() -> None:
    assert {op for op, *_ in ENUM_CALLS} == BY_ORDER


@pytest.mark.parametrize("op, types, arguments, expected", ENUM_CALLS, ids=[op for op, *_ in ENUM_CALLS])
def test_enum_members_sort_in_declared_order(op: str, types: list[Any], arguments: list[Any], expected: Any) -> None:
    both: list[Type] = [LEVEL, STRING]
    of = both[: len(OPERATIONS[op].type_params)]
    compiled = operation_node(op, of, list(zip(types, arguments, strict=True)))
    assert '("low", "mid", "high")' in "".join(generate_module(compiled.node).text.split("\n    "))
    inputs = dict(zip((each.name for each in compiled.node.inputs), arguments, strict=True))
    outcome = PythonEngine().load(compiled).call(inputs)
    assert isinstance(outcome, Returned)
    assert same(outcome.value["result"], expected)


def test_enum_with_one_member_sorts() -> None:
    compiled = operation_node("value.max", [Enum(("only",))], [(Enum(("only",)), "only")] * 2)
    outcome = PythonEngine().load(compiled).call({"left": "only", "right": "only"})
    assert outcome == Returned({"result": "only"})


@given(st.permutations(LEVEL.members))
def test_enum_order_does_not_depend_on_member_names(declared: list[str]) -> None:
    for members in permutations(declared):
        assert array.sort(members, "ascending", declared) == declared
        assert set_.to_array(frozenset(members), declared) == declared
        assert list(map_.merge(dict.fromkeys(declared[1:], 0), {declared[0]: 1}, declared)) == declared
