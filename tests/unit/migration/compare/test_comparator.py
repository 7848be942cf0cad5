"""The comparator: equality, locations of differences, incomparable outcomes, tolerances."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.nodes import compiled_text
from vesper.compiler import Compiled
from vesper.config.migration import Tolerance
from vesper.effects.settings import ConfigError
from vesper.engines.compare import same_outcome
from vesper.engines.engine import Request
from vesper.engines.outcome import (
    ContractBroken,
    DeclaredError,
    Denied,
    EngineFault,
    Failed,
    LimitHit,
    Outcome,
    Returned,
)
from vesper.migration.compare.comparator import Comparator, Incomparable, Same, fold_rounds, odd_one_out
from vesper.migration.compare.reports import Difference
from vesper.migration.compare.tolerances import BadTolerance
from vesper.migration.compare.transcript import Exchange, Transcript
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import Json
from vesper.values.problem import Problem, ProblemKind

TODAY = date(2026, 11, 15)
TEXT = """node_id: all_types_v1
type: function
intent: One output of every type
types:
  Line: {fields: {name: string, total: decimal, part: optional<decimal>}}
inputs:
  flag: boolean
  count: integer
  fee: decimal
  rate: float
  name: string
  raw: bytes
  at: timestamp
  day: date
  length: duration
  data: json
  colour: enum[red, green]
  maybe: optional<decimal>
  lines: array<Line>
  names: set<string>
  prices: map<string, decimal>
outputs:
  success:
    flag: boolean
    count: integer
    fee: decimal
    rate: float
    name: string
    raw: bytes
    at: timestamp
    day: date
    length: duration
    data: json
    colour: enum[red, green]
    maybe: optional<decimal>
    lines: array<Line>
    names: set<string>
    prices: map<string, decimal>
  error:
    error_code: enum[none_left, too_many]
    message: string
flow:
  - {operation: raise, when: count < 0, error: {error_code: none_left, message: none}}
  - {operation: raise, when: count > 9, error: {error_code: too_many, message: many}}
  - operation: return
    success: [flag, count, fee, rate, name, raw, at, day, length, data, colour, maybe, lines, names, prices]
"""
NOON = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


def line(total: str = "1.50", part: object = None) -> dict[str, object]:
    return {"name": "x", "total": Decimal(total), "part": part}


SECOND = line("2.00", Decimal(1))
VALUES: dict[str, object] = {
    "flag": True,
    "count": 3,
    "fee": Decimal("1.50"),
    "rate": 0.0,
    "name": "ann",
    "raw": b"ab",
    "at": NOON,
    "day": TODAY,
    "length": timedelta(seconds=90),
    "data": Json({"a": Decimal("1.0")}),
    "colour": "red",
    "maybe": Decimal("2.0"),
    "lines": [line(), SECOND],
    "names": frozenset({"a", "b"}),
    "prices": {"k1": Decimal("1.0"), "k2": Decimal("2.0")},
}


@cache
def node() -> Compiled:
    return compiled_text(TEXT)


def returned(**changes: object) -> Returned:
    return Returned({**VALUES, **changes})  # type: ignore[dict-item]  # a lying engine may give anything


def comparator(*tolerances: Tolerance, today: date = TODAY) -> Comparator:
    return Comparator(node(), tolerances, lambda: today)


def allowed(field: str, absolute: str | None = None, relative: str | None = None, until: date = TODAY) -> Tolerance:
    return Tolerance(field, absolute, relative, 1, until, "known rounding")


DIFFERS: list[tuple[str, dict[str, object]]] = [
    ("outputs.flag", {"flag": False}),
    ("outputs.flag", {"flag": 1}),
    ("outputs.count", {"count": 4}),
    ("outputs.count", {"count": True}),
    ("outputs.fee", {"fee": Decimal("1.5")}),
    ("outputs.fee", {"fee": Decimal("1.51")}),
    ("outputs.fee", {"fee": 1.5}),
    ("outputs.fee", {"fee": None}),
    ("outputs.rate", {"rate": -0.0}),
    ("outputs.rate", {"rate": float("nan")}),
    ("outputs.rate", {"rate": 5e-324}),
    ("outputs.name", {"name": "ann "}),
    ("outputs.raw", {"raw": b"ac"}),
    ("outputs.at", {"at": NOON + timedelta(microseconds=1)}),
    ("outputs.at", {"at": NOON.replace(tzinfo=None)}),
    ("outputs.day", {"day": date(2026, 11, 16)}),
    ("outputs.length", {"length": timedelta(seconds=91)}),
    ("outputs.data", {"data": Json({"a": Decimal("1.00")})}),
    ("outputs.colour", {"colour": "green"}),
    ("outputs.maybe", {"maybe": None}),
    ("outputs.maybe", {"maybe": Decimal("2.00")}),
    ("outputs.lines[1].total", {"lines": [line(), line("2.01", Decimal(1))]}),
    ("outputs.lines[1].part", {"lines": [line(), line("2.00", Decimal("1.0"))]}),
    ("outputs.lines", {"lines": [line()]}),
    ("outputs.lines[0].total", {"lines": [line("9"), line("2.00", Decimal(1)), line()]}),
    ("outputs.lines[0].part", {"lines": [{"name": "x", "total": Decimal("1.50")}, SECOND]}),
    ("outputs.lines[0]", {"lines": [{**line(), "ann@example.com": 1}, SECOND]}),
    ("outputs.names", {"names": frozenset({"a"})}),
    ("outputs.prices[1]", {"prices": {"k1": Decimal("1.0"), "k2": Decimal("2.00")}}),
    ("outputs.prices", {"prices": {"k1": Decimal("1.0"), "k3": Decimal("2.0")}}),
    ("outputs.prices", {"prices": {"k2": Decimal("2.0"), "k1": Decimal("1.0")}}),
    ("outputs.count", {"colour": "green", "count": 0}),
    ("outputs", {"ann@example.com": 1}),
]


@pytest.mark.parametrize("number", range(len(DIFFERS)), ids=[f"{n}-{each[0]}" for n, each in enumerate(DIFFERS)])
def test_the_first_field_that_differs_is_named(number: int) -> None:
    where, changes = DIFFERS[number]
    for leader, follower in ((returned(), returned(**changes)), (returned(**changes), returned())):
        found = comparator().compare_outcomes(leader, follower)
        assert found == Difference("outcome", where, "returned", "returned")
        assert not same_outcome(leader, follower)


def test_indistinguishable_values_are_equal() -> None:
    assert comparator().compare_outcomes(returned(), returned()) == Same()
    one, other = returned(rate=float("nan")), returned(rate=-float("nan"))
    assert comparator().compare_outcomes(one, other) == Same()


def test_an_output_that_is_missing() -> None:
    without = Returned({name: value for name, value in returned().value.items() if name != "fee"})
    assert comparator().compare_outcomes(returned(), without) == Difference(
        "outcome", "outputs.fee", "returned", "returned"
    )


def turned(values: Mapping[str, Any]) -> dict[str, Any]:
    return dict(reversed([*values.items()]))


def test_stored_records_compare_without_field_order() -> None:
    """Canonical JSON orders the fields of records, which are declared in another order."""
    inner = {"b": [{"d": Decimal("1.0"), "c": None}], "a": 1}
    outcomes: list[Outcome] = [
        returned(lines=[turned(line()), SECOND]),
        DeclaredError({"message": "x", "error_code": "none_left"}),
        ContractBroken("invariant", 0, {"y": inner, "x": 1}),  # type: ignore[dict-item]  # a json as plain objects
        Failed(ErrorCode.BAD_INPUT, None, BAD),
        returned(data=inner),
    ]
    for outcome in outcomes:
        text = Transcript({}, NOON, (), outcome).to_text()
        read = Transcript.from_text(text).outcome
        assert comparator().compare_outcomes(outcome, read) == Same()
    assert comparator().compare_outcomes(returned(), Returned(turned(returned().value))) == Same()
    inside: Any = {"y": 1, "x": 2}
    asked = replace(ASKED, arguments={"b": inside, "a": 1}, fixed={"m": "1", "l": "2"})
    (read_again,) = Transcript.from_text(Transcript({}, None, (Exchange(asked),), returned()).to_text()).exchanges
    assert comparator().compare_requests(asked, read_again.request) == Same()


BAD = (Problem("fee", ProblemKind.MALFORMED),)
ENDINGS: dict[str, Outcome] = {
    "returned": returned(),
    "failed integer_overflow at 3": Failed(ErrorCode.INTEGER_OVERFLOW, 3),
    "failed integer_overflow at 4": Failed(ErrorCode.INTEGER_OVERFLOW, 4),
    "failed http_402 at 3": Failed("http_402", 3),
    "failed error at inputs": Failed("ValueError: ann@example.com", None),
    "failed bad_input at inputs": Failed(ErrorCode.BAD_INPUT, None, BAD),
    "broken precondition 1": ContractBroken("precondition", 0, {}),
    "broken precondition 2": ContractBroken("precondition", 1, {}),
    "broken postcondition 1": ContractBroken("postcondition", 0, {}),
    "error none_left": DeclaredError({"error_code": "none_left", "message": "x"}),
    "error too_many": DeclaredError({"error_code": "too_many", "message": "x"}),
    "denied network.http_client.x": Denied("network.http_client.x"),
    "denied network.http_client.y": Denied("network.http_client.y"),
    "limit fuel": LimitHit("fuel"),
}


def named(outcome: Outcome) -> str:
    """Return a test id. Not `str`, whose text of a set differs between processes."""
    return next((name for name, ending in ENDINGS.items() if ending is outcome), type(outcome).__name__)


@pytest.mark.parametrize("leader", ENDINGS)
@pytest.mark.parametrize("follower", ENDINGS)
def test_endings_differ_by_kind_code_clause_and_place(leader: str, follower: str) -> None:
    found = comparator().compare_outcomes(ENDINGS[leader], ENDINGS[follower])
    if leader == follower:
        assert found == Same()
        return
    where = "error.error_code" if leader.startswith("error") and follower.startswith("error") else "outcome"
    assert found == Difference("outcome", where, leader, follower)


@pytest.mark.parametrize(
    "leader, follower, where",
    [
        (Failed(ErrorCode.BAD_INPUT, None, BAD), Failed(ErrorCode.BAD_INPUT, None), "outcome"),
        (ContractBroken("invariant", 1, {"a": 1}), ContractBroken("invariant", 1, {"a": 2}), "invariant 2: a"),
        (ContractBroken("invariant", 1, {"a": 1}), ContractBroken("invariant", 1, {}), "invariant 2: a"),
        (
            DeclaredError({"error_code": "none_left", "message": "x"}),
            DeclaredError({"error_code": "none_left", "message": "y"}),
            "error.message",
        ),
    ],
)
def test_endings_of_one_kind_differ_in_what_they_hold(leader: Outcome, follower: Outcome, where: str) -> None:
    found = comparator().compare_outcomes(leader, follower)
    assert isinstance(found, Difference)
    assert (found.kind, found.where) == ("outcome", where)


def test_messages_are_not_compared() -> None:
    assert comparator().compare_outcomes(Denied("a", "no grant"), Denied("a", "denied")) == Same()


@pytest.mark.parametrize("other", [*ENDINGS.values(), EngineFault("x"), LimitHit("time")], ids=named)
def test_an_engine_fault_equals_nothing(other: Outcome) -> None:
    for leader, follower in ((EngineFault("x"), other), (other, EngineFault("x"))):
        found = comparator().compare_outcomes(leader, follower)
        assert isinstance(found, Difference)
        assert (found.kind, found.where) == ("fault", "engine")


@pytest.mark.parametrize("other", [*ENDINGS.values(), LimitHit("time")], ids=named)
def test_a_machine_dependent_limit_is_incomparable(other: Outcome) -> None:
    for leader, follower in ((LimitHit("time"), other), (other, LimitHit("time"))):
        assert isinstance(comparator().compare_outcomes(leader, follower), Incomparable)


# -- requests -------------------------------------------------------------------------------------

ASKED = Request(0, "lines[2]/charge", "external_api_call", "keyed", {"method": "POST"}, {"amount": Decimal("1.0")}, "k")


@pytest.mark.parametrize(
    "changed, where",
    [
        ({"path": "lines[2]/refund"}, "lines[2]/charge or lines[2]/refund"),
        ({"effect": "database_write"}, "lines[2]/charge: the effect"),
        ({"effect_class": "read"}, "lines[2]/charge: the effect"),
        ({"key": "l"}, "lines[2]/charge: key"),
        ({"key": None}, "lines[2]/charge: key"),
        ({"fixed": {"method": "PUT"}}, "lines[2]/charge: method"),
        ({"fixed": {}}, "lines[2]/charge: method"),
        ({"arguments": {"amount": Decimal("1.00")}}, "lines[2]/charge: amount"),
        ({"arguments": {"amount": Decimal("1.0"), "to": None}}, "lines[2]/charge: to"),
    ],
)
def test_requests_are_compared_in_every_part(changed: Mapping[str, Any], where: str) -> None:
    other = replace(ASKED, **changed)
    for leader, follower in ((ASKED, other), (other, ASKED)):
        found = comparator(allowed("fee", "10")).compare_requests(leader, follower)
        assert isinstance(found, Difference)
        assert (found.kind, found.where, found.is_effect) == ("request", where, True)


def test_the_same_request_and_none_at_all() -> None:
    assert comparator().compare_requests(ASKED, replace(ASKED, id=9)) == Same()
    assert comparator().compare_requests(None, None) == Same()
    found = comparator().compare_requests(ASKED, None)
    asks = "asks for lines[2]/charge (external_api_call)"
    texts = (f'{asks}\nkey = "k"\nmethod = "POST"\namount = 1.0', "asks for nothing")
    assert found == Difference("request", "lines[2]/charge", asks, "asks for nothing", is_effect=True, requests=texts)
    read = replace(ASKED, effect_class="read")
    for leader, follower in ((read, None), (None, read), (read, replace(read, key="l"))):
        found = comparator().compare_requests(leader, follower)
        assert isinstance(found, Difference)
        assert not found.is_effect


BODY_NODE = """node_id: asks_v1
type: function
intent: Send a body
types: {Line: {fields: {label: string, parts: array<integer>}}}
inputs: {line: Line}
outputs: {success: {line: Line}}
flow:
  - {operation: return, success: {line: line}}
"""


@pytest.mark.parametrize(
    "left, right, where, ends",
    [
        ({"label": "a", "parts": [1]}, {"label": "b", "parts": [1]}, "body.label", ('"a"', '"b"')),
        ({"label": "a", "parts": [1, 2]}, {"label": "a", "parts": [1, 3]}, "body.parts[1]", ("2", "3")),
        ({"label": "a", "parts": [1, 2]}, {"label": "a", "parts": [1]}, "body.parts[1]", ("2", None)),
        ({"label": "a"}, {}, "body.label", ('"a"', None)),
        (Json({"label": "a"}), Json({"label": "b"}), "body.label", ('"a"', '"b"')),
        (Json({"ann@x": "a"}), Json({"ann@x": "b"}), "body[0]", ('"a"', '"b"')),
        (Json((Decimal("1.0"),)), Json((Decimal("1.00"),)), "body[0]", ("1.0", "1.00")),
    ],
)
def test_the_first_differing_field_of_a_request_is_named(
    left: Any, right: Any, where: str, ends: tuple[str | None, str | None]
) -> None:
    one, other = (replace(ASKED, arguments={"body": each}) for each in (left, right))
    found = Comparator(compiled_text(BODY_NODE)).compare_requests(one, other)
    assert isinstance(found, Difference)
    assert found.where == f"{ASKED.path}: {where}"
    assert found.requests is not None
    for text, end in zip(found.requests, ends, strict=True):
        lines = dict(line.partition(" = ")[::2] for line in text.split("\n"))
        assert lines.get(where) == end
        assert lines["key"] == '"k"'


def test_rounds_are_folded() -> None:
    assert fold_rounds("outputs.lines[12].parts[0].total") == "outputs.lines[].parts[].total"


# -- tolerances -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tolerance, changes, is_close",
    [
        (allowed("fee", "0.01"), {"fee": Decimal("1.51")}, True),
        (allowed("fee", "0.01"), {"fee": Decimal("1.49")}, True),
        (allowed("fee", "0.01"), {"fee": Decimal("1.5100000000000000000000000000001")}, False),
        (allowed("fee", "0.01"), {"fee": Decimal("1.5000")}, True),
        (allowed("fee", "0"), {"fee": Decimal("1.5")}, True),
        (allowed("fee", "0"), {"fee": Decimal("1.50000001")}, False),
        (allowed("fee", "9"), {"fee": 1.5}, False),
        (allowed("fee", "9"), {"fee": None}, False),
        (allowed("fee", "9"), {"fee": Decimal("NaN")}, False),
        (allowed("fee", "9"), {"count": 4}, False),
        (allowed("fee", "9"), {"fee": Decimal(2), "count": 4}, False),
        (allowed("fee", relative="0.25"), {"fee": Decimal(2)}, True),
        (allowed("fee", relative="0.25"), {"fee": Decimal("2.01")}, False),
        (allowed("fee", relative="0.01"), {"fee": Decimal("-1.50")}, False),
        (allowed("fee", "0.5", "0.001"), {"fee": Decimal(2)}, True),
        (allowed("fee", "0.001", "0.25"), {"fee": Decimal(2)}, True),
        (allowed("fee", "0.499", "0.2"), {"fee": Decimal(2)}, False),
        (allowed("count", "1"), {"count": 4}, True),
        (allowed("count", "1"), {"count": 5}, False),
        (allowed("count", "1"), {"count": True}, False),
        (allowed("rate", "1e-9"), {"rate": 1e-9}, False),  # the double is a little more than 10⁻⁹
        (allowed("rate", "1e-9"), {"rate": -1e-10}, True),
        (allowed("rate", "0"), {"rate": -0.0}, True),
        (allowed("rate", "9"), {"rate": float("nan")}, False),
        (allowed("rate", "9"), {"rate": float("inf")}, False),
        (allowed("maybe", "1"), {"maybe": Decimal("2.5")}, True),
        (allowed("maybe", "9"), {"maybe": None}, False),
        (allowed("lines[].total", "0.01"), {"lines": [line("1.51"), line("1.99", Decimal(1))]}, True),
        (allowed("lines[].total", "0.01"), {"lines": [line("1.51"), line("1.98", Decimal(1))]}, False),
        (allowed("lines[].total", "9"), {"lines": [line("1.51")]}, False),
        (allowed("lines[].part", "0.5"), {"lines": [line(), line("2.00", Decimal("1.5"))]}, True),
        (allowed("prices[]", "0.5"), {"prices": {"k1": Decimal("1.5"), "k2": Decimal("2.0")}}, True),
        (allowed("prices[]", "0.5"), {"prices": {"k1": Decimal("1.5"), "k3": Decimal("2.0")}}, False),
    ],
)
def test_a_tolerance_is_exact_at_its_bound(tolerance: Tolerance, changes: dict[str, object], is_close: bool) -> None:
    judge = comparator(tolerance)
    for leader, follower in ((returned(), returned(**changes)), (returned(**changes), returned())):
        found = judge.compare_outcomes(leader, follower)
        assert found == Same(is_within_tolerance=True) if is_close else isinstance(found, Difference)


def test_a_tolerance_ends_after_its_last_day() -> None:
    tolerance = allowed("fee", "0.01")
    close = returned(fee=Decimal("1.51"))
    days: list[date] = [TODAY]
    judge = Comparator(node(), [tolerance], lambda: days[-1])
    assert judge.compare_outcomes(returned(), close) == Same(is_within_tolerance=True)
    assert judge.expired() == []
    while_it_holds = judge.version
    days.append(TODAY + timedelta(days=1))
    assert isinstance(judge.compare_outcomes(returned(), close), Difference)
    assert judge.expired() == [tolerance]
    assert judge.version == comparator().version != while_it_holds


def test_the_version_depends_on_the_tolerances() -> None:
    base = comparator(allowed("fee", "0.01")).version
    assert base == comparator(allowed("fee", "0.010")).version
    assert base == comparator(replace(allowed("fee", "0.01"), why="another")).version
    others = [
        comparator().version,
        comparator(allowed("fee", "0.02")).version,
        comparator(allowed("fee", relative="0.01")).version,
        comparator(replace(allowed("fee", "0.01"), version=2)).version,
        comparator(allowed("count", "0.01")).version,
        comparator(allowed("fee", "0.01"), allowed("count", "1")).version,
    ]
    assert len({base, *others}) == 1 + len(others)
    two = [allowed("fee", "0.01"), allowed("count", "1")]
    assert comparator(*two).version == comparator(*reversed(two)).version


@pytest.mark.parametrize(
    "tolerance, said",
    [
        (allowed("cost", "1"), "there is no `cost`; there are flag, count, fee"),
        (allowed("lines[].cost", "1"), "there is no `cost`; there are name, total, part"),
        (allowed("lines.total", "1"), "write `[]` for what it holds"),
        (allowed("lines", "1"), "only an integer, a decimal or a float"),
        (allowed("fee[]", "1"), "`[]` stands for what an array or a map holds, and this is decimal"),
        (allowed("fee.total", "1"), "which has no fields"),
        (allowed("name", "1"), "it is string, and only"),
        (allowed("lines[2].total", "1"), "names no output"),
        (allowed("", "1"), "names no output"),
        (allowed("fee"), "allows nothing"),
        (allowed("fee", "-1"), "`-1` is no number that is 0 or more"),
        (allowed("fee", "NaN"), "`NaN` is no number"),
        (allowed("fee", "1/3"), "`1/3` is no number"),
        (allowed("fee", relative="1"), "less than 1"),
        (replace(allowed("fee", "1"), version=0), "versions count from 1"),
    ],
)
def test_a_tolerance_that_does_not_fit_is_refused(tolerance: Tolerance, said: str) -> None:
    with pytest.raises(BadTolerance) as refused:
        comparator(tolerance)
    assert said in str(refused.value)
    assert isinstance(refused.value, ConfigError)
    assert str(refused.value).startswith("vesper.toml, [migration.nodes]: all_types_v1: ")


def test_two_tolerances_for_one_field_are_refused() -> None:
    with pytest.raises(BadTolerance, match="two tolerances for `fee`"):
        comparator(allowed("fee", "1"), allowed("fee", "2"))


# -- against the exact comparison -----------------------------------------------------------------

NUMBERS = st.one_of(st.decimals(allow_nan=False, allow_infinity=False, places=2), st.integers(-3, 3), st.booleans())
LEAVES = st.one_of(NUMBERS, st.floats(), st.sampled_from(["", "a", None, b"", NOON, TODAY, timedelta(0)]))
ITEMS = st.builds(lambda name, total, part: {"name": name, "total": total, "part": part}, st.just("x"), NUMBERS, LEAVES)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "fee": LEAVES,
        "rate": st.floats(),
        "maybe": LEAVES,
        "lines": st.lists(ITEMS, max_size=2),
        "names": st.frozensets(st.sampled_from(["a", "b"])),
        "prices": st.dictionaries(st.sampled_from(["k1", "k2"]), NUMBERS),
        "colour": st.sampled_from(["red", "green"]),
    },
)
OUTCOMES: st.SearchStrategy[Outcome] = st.one_of(
    CHANGES.map(lambda changes: returned(**changes)),
    LEAVES.map(lambda message: DeclaredError({"error_code": "none_left", "message": message})),
    st.builds(
        Failed,
        st.sampled_from([ErrorCode.INTEGER_OVERFLOW, "http_402"]),
        st.sampled_from([None, 1]),
        st.sampled_from([(), BAD]),
    ),
    st.builds(ContractBroken, st.just("invariant"), st.sampled_from([0, 1]), st.fixed_dictionaries({"a": LEAVES})),
    st.builds(Denied, st.sampled_from(["a", "b"]), st.sampled_from(["", "x"])),
    st.just(LimitHit("fuel")),
)


@settings(max_examples=150, deadline=None)
@given(OUTCOMES, OUTCOMES)
def test_without_tolerances_it_is_the_exact_comparison(leader: Outcome, follower: Outcome) -> None:
    found = comparator().compare_outcomes(leader, follower)
    assert found == Same() if same_outcome(leader, follower) else isinstance(found, Difference)
    turned = comparator().compare_outcomes(follower, leader)
    if isinstance(found, Difference):
        assert isinstance(turned, Difference)
        assert (turned.kind, turned.where) == (found.kind, found.where)
        assert (turned.leader, turned.follower) == (found.follower, found.leader)


# -- three ----------------------------------------------------------------------------------------

A, B, C = (Returned({**returned().value, "count": number}) for number in (1, 2, 3))


@pytest.mark.parametrize(
    "answers, odd",
    [
        ({"function": A, "python": A, "interp": A}, None),
        ({"function": A, "python": A, "interp": B}, "interp"),
        ({"function": A, "python": B, "interp": A}, "python"),
        ({"function": B, "python": A, "interp": A}, "function"),
        ({"function": A, "python": B, "interp": C}, None),
        ({"python": A, "interp": B}, None),
        ({"function": A, "python": A, "interp": EngineFault("x")}, "interp"),
        ({"function": EngineFault("x"), "python": EngineFault("x"), "interp": A}, None),
        ({"function": A, "python": A, "interp": LimitHit("time")}, None),
        ({"function": A, "python": A, "interp": A, "jit": B}, "jit"),
        ({"function": A, "python": B, "interp": A, "jit": B}, None),
    ],
)
def test_the_odd_one_out(answers: dict[str, Outcome], odd: str | None) -> None:
    assert odd_one_out(answers, comparator()) == odd


def test_the_clock_is_read_only_with_tolerances() -> None:
    """Comparing agreeing traffic does not read the clock."""

    def never() -> date:
        raise AssertionError("nobody needs to know")

    judge: Callable[[Outcome, Outcome], object] = Comparator(node(), (), never).compare_outcomes
    assert judge(returned(), returned()) == Same()
    assert isinstance(judge(returned(), returned(count=9)), Difference)
