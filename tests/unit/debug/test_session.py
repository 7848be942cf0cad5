"""Sessions: stops and visible values, forwards and backwards, on both engines."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.unit.debug.subjects import DRAWN, PAYMENT, compiled_node, session, subject
from vesper.debug.responses import Unanswered
from vesper.debug.session import Session, StopReason
from vesper.debug.statement_walk import Walk
from vesper.debug.stops import Position
from vesper.debug.view import rows
from vesper.engines.outcome import DeclaredError, Failed, Returned
from vesper.trace.expressions import BadExpression

CHECKOUT = "nodes/orders/checkout_v1.vsp"
LOOPS = "nodes/orders/invoice_lines_v1.vsp"


def paths(of: Session) -> list[str]:
    return [stop.path for stop in of.leader.stops]


def test_the_stops_of_a_payment_are_its_steps_in_order() -> None:
    found = session(PAYMENT)
    found.resume()
    assert paths(found) == [
        "preconditions", "validation:52", "validate_request", "raise:62", "return:66", "begin", "call_stripe_api",
        "record", "settle", "return:146", "postconditions", "end",
    ]  # fmt: skip
    assert paths(found) == [stop.path for stop in found.sides[1].stops]
    assert found.divergence() is None


@pytest.mark.parametrize(
    "case, last",
    [
        ("a declined card", ["call_stripe_api", "mark_declined", "raise:105", "end"]),
        ("a charge that cannot be recorded is given back", ["record", "refund", "mark_unrecorded", "end"]),
        ("half a cent", ["preconditions", "end"]),
        ("no order", ["validation:52", "end"]),
    ],
)
def test_handlers_and_early_ends_are_followed(case: str, last: list[str]) -> None:
    found = session(PAYMENT, case)
    found.resume()
    assert paths(found)[-len(last) :] == last


def test_every_mark_belongs_to_a_stop_on_every_case_of_nodes_with_loops_calls_and_handlers() -> None:
    for path in (CHECKOUT, LOOPS, "nodes/payments/dunning_v1.vsp"):
        for case in compiled_node(path).cases[:6]:
            found = session(path, case.name)
            found.resume()
            assert "lost" not in paths(found), (path, case.name)
            for side in found.sides:
                assert [side.owner(mark) is not None for mark in range(len(side.marks))].count(False) == 0
            assert found.divergence() is None


def test_names_of_a_loop_are_seen_inside_it_and_its_value_after_it() -> None:
    found = session(LOOPS)
    while not found.stop_of(found.leader).path.startswith("amount["):
        found.step()
    inside = {name.name: name.value for name in found.stop_of(found.leader).names.values()}
    assert {"place", "net", "here", "counted", "status"} <= set(inside)
    found.out()
    after = {name.name for name in found.stop_of(found.leader).names.values()}
    assert "billed" in after
    assert "place" not in after


def test_moving_to_the_end_and_back_shows_the_same_without_requests() -> None:
    found = session(PAYMENT)
    seen = {found.position: rows(found)}
    while not found.is_at_end:
        found.step()
        seen[found.position] = rows(found)
    asked = len(found.book.given)
    while found.position.stop > 1:
        found.back()
        assert rows(found) == seen[found.position]
    assert len(found.book.given) == asked
    assert found.back().why is StopReason.STEP
    assert found.back().why is StopReason.START


def test_stepping_over_and_out_of_blocks() -> None:
    found = session(LOOPS)
    while found.stop_of(found.leader).path != "billed":
        found.next()
    found.next()
    assert found.stop_of(found.leader).path == "rate"
    found.back()
    assert "[" in found.stop_of(found.leader).path, "backwards is one statement, inside the loop too"
    found.goto(Position(found.position.stop - 1))
    found.out()
    assert found.stop_of(found.leader).path == "rate"


def test_into_a_called_node_with_what_it_was_given_and_answered() -> None:
    found = session(CHECKOUT)
    while found.stop_of(found.leader).path != "paid":
        found.step()
    inner = found.into()
    assert inner is not None
    assert inner.compiled.node.node_id == "payment_handler_v1"
    assert inner.prefix == "paid/"
    inner.resume()
    assert isinstance(inner.leader.outcome, Returned)
    assert inner.divergence() is None
    assert found.stop_of(found.leader).path == "paid", "looking into it moves nothing"


def test_a_step_without_a_call_cannot_be_entered() -> None:
    assert session(PAYMENT).into() is None


def test_contracts_are_shown_with_their_values() -> None:
    found = session(DRAWN)
    found.back()
    clauses = found.stop_of(found.leader).clauses
    assert [(each.phase, each.text, each.holds) for each in clauses] == [
        ("constraint", "amount > 0", True),
        ("precondition", "scale(amount) <= 2", True),
    ]
    assert clauses[0].values["amount"] == found.inputs["amount"]


def test_an_expression_is_computed_by_each_engine_from_its_own_values() -> None:
    found = session(PAYMENT)
    found.resume()
    found.goto(Position(6))
    outcomes = found.evaluate("amount * 2 + scale(amount)")
    assert {name: show(each) for name, each in outcomes.items()} == {"python": "201.98", "interp": "201.98"}
    assert show(found.evaluate("begin == 'pending'")["python"]) == "True"
    assert isinstance(found.evaluate("1 / 0")["interp"], Failed)


def show(outcome: object) -> str:
    assert isinstance(outcome, Returned)
    return str(outcome.value["value"])


def test_a_non_null_optional_can_be_inspected() -> None:
    found = session(PAYMENT, "a repeat charges nothing")
    found.step()
    found.step()
    assert show(found.evaluate("validate_request.amount")["interp"]) == "99.990"


@pytest.mark.parametrize(
    "text, told",
    [
        ("amont * 2", "did you mean `amount`?"),
        ("amount + user_id", "^"),
        ("amount *", "the end"),
        ("order_id.x", "a record"),
        ("null", "has no type"),
    ],
)
def test_an_expression_that_is_wrong_is_pointed_at(text: str, told: str) -> None:
    found = session(PAYMENT)
    before = found.position
    with pytest.raises(BadExpression) as problem:
        found.evaluate(text)
    assert told in str(problem.value)
    assert found.position == before


def test_a_request_without_an_answer_waits_for_one() -> None:
    asked = subject(PAYMENT, order_id="ord_1")
    bare = type(asked)(asked.compiled, asked.engines, asked.inputs, asked.now, asked.manual, loader=asked.loader)
    found = bare.session()
    found.step()
    with pytest.raises(Unanswered, match=r"`validate_request` \(database_query\) has no answer"):
        found.step()
    assert found.stop_of(found.leader).path == "validate_request"
    bare.manual.set_answer("validate_request", "null")
    bare.manual.fail("call_stripe_api", "http_402")
    found.resume()
    assert isinstance(found.leader.outcome, DeclaredError)
    assert found.divergence() is None


def test_one_engine_alone() -> None:
    from vesper.engines.registry import ENGINES

    found = subject(PAYMENT, None, [ENGINES["interp"]]).session()
    found.resume()
    assert [side.name for side in found.sides] == ["interp"]
    assert found.divergence() is None
    assert isinstance(found.leader.outcome, Returned)


def test_inputs_that_do_not_fit_end_before_the_flow() -> None:
    found = session(PAYMENT, None, amount="much")
    found.resume()
    assert paths(found) == ["preconditions", "end"]
    assert isinstance(found.leader.outcome, Failed)


def test_a_walk_with_impossible_events_is_lost() -> None:
    from vesper.debug.stops import EndEvent, MarkEvent

    asked = subject(PAYMENT)
    found = asked.session()
    engine = found.engines[0]
    assert isinstance(asked.now, datetime)
    walk = Walk(asked.compiled, engine, found.expressions, asked.inputs, asked.now, lambda *_: Returned({}))
    walk.feed([MarkEvent(129, "processing"), EndEvent(Returned({}))])
    assert [stop.path for stop in walk.stops] == ["preconditions", "lost", "end"]
