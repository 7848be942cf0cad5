"""The rule of sameness for two versions of a node, on outcomes as engines return them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.support.nodes import compiled_text
from vesper.engines.compare import Agree, NotComparable
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
from vesper.engines.version_outcomes import ChangedOutcome, VersionOutcomes, common_type, compare_requests
from vesper.language.ir.nodes import Node
from vesper.values.generated.errors import ErrorCode
from vesper.values.problem import Problem, ProblemKind
from vesper.values.types import DECIMAL, INTEGER, STRING, ArrayOf, Enum, OptionalOf, Record

BEFORE = """node_id: quote_v1
type: function
intent: Price of one line
inputs: {count: integer}
outputs:
  success: {total: decimal, kind: "enum[low, high]", note: string}
flow:
  - {operation: return, success: {total: 1.00, kind: "'low'", note: "'a'"}}
"""
AFTER = """node_id: quote_v2
type: function
intent: Price of one line, and its tax
inputs: {count: integer, area: string}
outputs:
  success: {total: decimal, kind: "enum[low, middle, high]", tax: decimal}
flow:
  - {operation: return, success: {total: 1.00, kind: "'low'", tax: 0.10}}
"""


def nodes() -> tuple[Node, Node]:
    return compiled_text(BEFORE).node, compiled_text(AFTER).node


def returned(**values: object) -> Returned:
    return Returned(values)  # type: ignore[arg-type]


REFUSED = Failed(ErrorCode.BAD_INPUT, None, (Problem("count", ProblemKind.MISSING),))
OTHER_REFUSED = Failed(ErrorCode.BAD_INPUT, None, (Problem("area", ProblemKind.WRONG_TYPE),))


def test_outputs_are_compared_over_the_fields_of_both_versions() -> None:
    rule = VersionOutcomes(*nodes())
    before = returned(total=Decimal("1.00"), kind="low", note="a")
    assert list(rule.outputs) == ["total", "kind"]
    assert rule.compare(before, returned(total=Decimal("1.00"), kind="low", tax=Decimal(1))) == Agree()
    scaled = rule.compare(before, returned(total=Decimal("1.0"), kind="low", tax=Decimal(1)))
    assert scaled == ChangedOutcome("outputs.total", Decimal("1.00"), Decimal("1.0"))
    kind = rule.compare(before, returned(total=Decimal("1.00"), kind="middle", tax=Decimal(1)))
    assert kind == ChangedOutcome("outputs.kind", "low", "middle")


def test_changes_of_the_interface_are_reported_with_whether_they_are_compared() -> None:
    found = {each.name: (each.text, each.is_compared) for each in VersionOutcomes(*nodes()).interface}
    assert found == {
        "area": ("input `area` added (string)", False),
        "kind": ("output `kind` is enum[low, middle, high], was enum[low, high]", True),
        "note": ("output `note` removed (was string)", False),
        "tax": ("output `tax` added (decimal)", False),
    }


@pytest.mark.parametrize(
    "before, after",
    [
        (Failed(ErrorCode.INTEGER_OVERFLOW, 3), Failed(ErrorCode.INTEGER_OVERFLOW, 9)),
        (REFUSED, OTHER_REFUSED),
        (ContractBroken("precondition", 0, {"count": 1}), ContractBroken("precondition", 2, {})),
        (DeclaredError({}), DeclaredError({"code": "x"})),
        (Denied("http:a"), Denied("http:a", "a rule")),
    ],
)
def test_places_clauses_and_messages_never_count(before: Outcome, after: Outcome) -> None:
    assert VersionOutcomes(*nodes()).compare(before, after) == Agree()


@pytest.mark.parametrize(
    "before, after, words",
    [
        (Failed(ErrorCode.INTEGER_OVERFLOW, 3), Failed(ErrorCode.DIVISION_BY_ZERO, 3), "failed: division_by_zero"),
        (REFUSED, Failed(ErrorCode.BAD_INPUT, 4), "failed: bad_input"),
        (REFUSED, ContractBroken("constraint", 0, {}), "constraint broken"),
        (ContractBroken("constraint", 0, {}), ContractBroken("precondition", 0, {}), "precondition broken"),
        (REFUSED, returned(total=Decimal(1), kind="low"), "returned"),
        (Denied("http:a"), Denied("http:b"), "denied: http:b"),
    ],
)
def test_another_ending_is_a_changed_outcome(before: Outcome, after: Outcome, words: str) -> None:
    found = VersionOutcomes(*nodes()).compare(before, after)
    assert isinstance(found, ChangedOutcome)
    assert found.is_ending
    assert found.after == words


@pytest.mark.parametrize("stopped", [LimitHit("fuel"), LimitHit("time"), EngineFault("a bug")])
def test_a_limit_or_a_fault_is_not_comparable(stopped: Outcome) -> None:
    rule = VersionOutcomes(*nodes())
    for pair in ((stopped, stopped), (stopped, REFUSED), (REFUSED, stopped)):
        assert isinstance(rule.compare(*pair), NotComparable)


def test_types_have_a_common_type_where_their_values_can_be_equal() -> None:
    line, longer = Record((("a", INTEGER), ("b", STRING))), Record((("b", STRING), ("c", INTEGER)))
    assert common_type(INTEGER, DECIMAL) is None
    assert common_type(INTEGER, OptionalOf(INTEGER)) == OptionalOf(INTEGER)
    assert common_type(Enum(("a",)), STRING) == STRING
    assert common_type(ArrayOf(line), ArrayOf(longer)) == ArrayOf(Record((("b", STRING),)))
    assert common_type(line, Record((("z", STRING),))) is None


def test_records_with_new_fields_are_compared_over_the_common_ones() -> None:
    declared = "types: {Line: {fields: {net: decimal}}}\ninputs"
    text = BEFORE.replace("total: decimal", "total: Line").replace("total: 1.00", 'total: "{net: 1.00}"')
    text = text.replace("inputs", declared)
    wider = text.replace("{net: decimal}", "{tax: decimal, net: decimal}").replace("{net: 1", "{tax: 1, net: 1")
    rule = VersionOutcomes(compiled_text(text).node, compiled_text(wider).node)
    before = returned(total={"net": Decimal(1)}, kind="low", note="a")
    after = {"tax": Decimal(2), "net": Decimal(1)}
    assert rule.compare(before, returned(total=after, kind="low", note="a")) == Agree()
    found = rule.compare(before, returned(total={**after, "net": Decimal(3)}, kind="low", note="a"))
    assert found == ChangedOutcome("outputs.total.net", Decimal(1), Decimal(3))


def request(path: str = "pay", effect: str = "http", **arguments: object) -> Request:
    return Request(1, path, effect, "keyed", {"provider": "bank"}, arguments, "k1")  # type: ignore[arg-type]


def test_requests_are_compared_by_what_they_ask_for_and_not_by_their_step() -> None:
    assert compare_requests([request(amount=1)], [request("charge", amount=1)]) is None
    changed = compare_requests([request(amount=1)], [request(amount=2)])
    assert changed == ChangedOutcome("requests[0].amount", 1, 2)
    missing = compare_requests([request(amount=1)], [])
    assert missing is not None
    assert (missing.where, missing.after) == ("requests[0]", "no request")
    other = compare_requests([request(amount=1)], [request(effect="event_publish", amount=1)])
    assert other is not None
    assert str(other.after).startswith("event_publish(provider=")
