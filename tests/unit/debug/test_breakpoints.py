"""Every kind of breakpoint stops at its place; an invalid one is rejected before the run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.debug.subjects import DRAWN, LOADER, PAYMENT, session, subject
from vesper.compiler import Compiled
from vesper.debug.breakpoints import BadBreakpoint
from vesper.debug.session import Session, StopReason
from vesper.debug.start import Subject
from vesper.debug.stops import Position
from vesper.debug.view import divergence_lines
from vesper.engines.engine import Blocked, Done, Limits, Observer, Program
from vesper.engines.registry import ENGINES
from vesper.trace.expressions import BadExpression
from vesper.values.model import Value

REFUND = "nodes/payments/refund_v1.vsp"


def stopped(of: Session, *texts: str) -> list[tuple[str, bool]]:
    """Return all stops until the end, and whether each statement was executed."""
    for text in texts:
        of.add_breakpoint(text)
    found = []
    moved = of.resume(from_start=True)
    while moved.why is StopReason.BREAKPOINT:
        found.append((of.stop_of(of.leader).path, of.position.is_after))
        moved = of.resume()
    return found


@pytest.mark.parametrize(
    "text, where",
    [
        ("step:call_stripe_api", [("call_stripe_api", False)]),
        ("step:re*", [("record", False)]),
        ("effect:http", [("call_stripe_api", False)]),
        ("effect:state_transition", [("begin", False), ("settle", False)]),
        ("effect:database", [("validate_request", False), ("record", False)]),
        ("state_transition:pending->processing", [("begin", True)]),
        ("state_transition:*->paid", [("settle", True)]),
        ("state_transition:*->*", [("begin", True), ("settle", True)]),
        ("state_transition:paid→refunded", []),
        ("payment_handler_v1.vsp:86", [("call_stripe_api", False)]),
        ("137", [("settle", False)]),
        ("input.amount > 10000", []),
        ("input.amount > 50", [("preconditions", False)]),
        ("begin == 'pending'", [("call_stripe_api", False)]),
        ("contract_violation", []),
        ("divergence", []),
        ("step:record if amount > 1000", []),
        ("step:record if call_stripe_api.id == 'ch_1'", [("record", False)]),
    ],
)
def test_each_kind_stops_where_it_says(text: str, where: list[tuple[str, bool]]) -> None:
    assert stopped(session(PAYMENT), text) == where


@pytest.mark.parametrize(
    "case, inputs, where",
    [
        ("half a cent", {}, "preconditions"),
        (None, {"amount": Decimal(60000)}, "preconditions"),
    ],
)
def test_a_contract_that_is_broken_stops_where_it_is(case: str | None, inputs: dict[str, object], where: str) -> None:
    found = session(PAYMENT, case, **inputs)
    assert stopped(found, "contract_violation") == [(where, True)]


def test_a_postcondition_that_is_broken_stops_at_the_promises() -> None:
    found = session(DRAWN, None, amount=Decimal("600.00"))
    assert stopped(found, "contract_violation") == [("postconditions", True)]
    assert [clause.text for clause in found.leader.stops[-2].clauses if not clause.holds] == ["left >= 0"]


def test_the_transition_of_the_founding_document() -> None:
    found = session(REFUND, "without an amount all that is left, and the order is refunded")
    hits = stopped(found, "state_transition:paid->refunded")
    assert len(hits) == 1
    assert hits[0][1], "the entity has moved"


def test_a_watch_stops_where_the_value_changes_and_backwards_finds_it_again() -> None:
    found = session(PAYMENT)
    found.add_watch("begin")
    moved = found.resume()
    assert (moved.why, found.stop_of(found.leader).path) == (StopReason.BREAKPOINT, "call_stripe_api")
    found.resume()
    found.reverse()
    assert found.stop_of(found.leader).path == "call_stripe_api"
    assert found.watched(found.leader) == {"begin": '"pending"'}


@pytest.mark.parametrize(
    "text, told",
    [
        ("step:call_strip_api", "did you mean `call_stripe_api`?"),
        ("effect:htp", "did you mean"),
        ("effect:cache", "payment_handler_v1 never requests `cache`; it requests database_query, database_write"),
        ("state_transition:paid", "write state_transition:paid->refunded"),
        ("state_transition:payd->refunded", "did you mean `paid`?"),
        ("other.vsp:10", "this session debugs payment_handler_v1.vsp"),
        ("payment_handler_v1.vsp:3", "is in no step"),
        ("9999", "is in no step"),
        ("divergance", "did you mean `divergence`?"),
    ],
)
def test_an_invalid_breakpoint_is_refused_with_valid_forms(text: str, told: str) -> None:
    found = session(PAYMENT)
    with pytest.raises(BadBreakpoint) as problem:
        found.add_breakpoint(text)
    assert told in str(problem.value)
    assert found.breakpoints == []


@pytest.mark.parametrize(
    "text, caret",
    [
        ("input.amount > 'x'", "             ^"),
        ("input.amont > 1", "      ^^^^^"),
        ("amount + 1", "^^^^^^^^^^"),
        ("step:record if amount", "^^^^^^"),
    ],
)
def test_an_expression_of_a_wrong_type_gets_a_caret_and_changes_nothing(text: str, caret: str) -> None:
    found = session(PAYMENT)
    with pytest.raises(BadExpression) as problem:
        found.add_breakpoint(text)
    assert any(line.partition("| ")[2].startswith(caret) for line in str(problem.value).splitlines()), problem.value
    assert found.breakpoints == []
    assert found.book.given == {}


# -- divergences ----------------------------------------------------------------------------------


class Lying:
    """The direct engine with one mark changed, or with another request."""

    name = "interp"

    def __init__(self, index: int | None, change: Any) -> None:
        self._index = index
        self._change = change

    def load(self, compiled: Compiled) -> Program:
        return _LyingProgram(ENGINES["interp"].load(compiled), self._index, self._change)


class _LyingProgram:
    def __init__(self, program: Program, index: int | None, change: Any) -> None:
        self._program = program
        self._index = index
        self._change = change
        self.semantic_hash = program.semantic_hash

    def call(self, *given: Any, **named: Any) -> Any:
        return self._program.call(*given, **named)

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> Any:
        def told(index: int, value: Value) -> None:
            if observe is not None:
                observe(index, self._change(value) if index == self._index else value)

        execution = self._program.start(inputs, now, limits, told, is_traced)
        return execution if self._index is not None else _Asking(execution, self._change)


class _Asking:
    def __init__(self, execution: Any, change: Any) -> None:
        self._execution = execution
        self._change = change

    def advance(self, completions: Any) -> Blocked | Done:
        step: Blocked | Done = self._execution.advance(completions)
        return Blocked((self._change(step.requests[0]),)) if isinstance(step, Blocked) else step


def lying(index: int | None, change: Any) -> Subject:
    asked = subject(PAYMENT)
    engines = (ENGINES["python"], Lying(index, change))
    return Subject(asked.compiled, engines, asked.inputs, asked.now, asked.manual, case=asked.case, loader=LOADER)


def marks_of_payment() -> list[tuple[int, Value]]:
    found = session(PAYMENT)
    found.resume()
    return found.leader.marks


@pytest.mark.parametrize("number", range(18))
def test_break_on_divergence_stops_at_exactly_the_first_mark_that_differs(number: int) -> None:
    marks = marks_of_payment()
    assert len(marks) == 18, "one test for each mark"
    index, value = marks[number]
    found = lying(index, lambda each: (not each) if isinstance(each, bool) else [each]).session()
    found.add_breakpoint("divergence")
    assert found.resume(from_start=True).why is StopReason.BREAKPOINT
    told = found.divergence()
    assert told is not None
    right = session(PAYMENT)
    right.resume()
    assert told.position == found.position == Position(right.leader.owner(number) or 0, True)
    assert told.index == index
    assert told.values[0] == value
    lines = divergence_lines(found)
    assert len(lines) == 3
    assert found.stop_of(found.leader).path in lines[0]


def test_a_request_that_differs_is_shown_before_anything_is_answered() -> None:
    from dataclasses import replace

    found = lying(None, lambda request: replace(request, key="other") if request.key else request).session()
    found.add_breakpoint("divergence")
    found.resume(from_start=True)
    told = found.divergence()
    assert told is not None
    assert (told.what, told.position.is_after) == ("the request", False)
    assert found.stop_of(found.leader).path == "call_stripe_api"
    assert "call_stripe_api" not in found.book.given
    found.resume()
    assert found.divergence() == told, "it stays the first, though the direct engine waits from then on"
    assert found.sides[1].waits_for is not None
    assert found.leader.is_over


def test_an_engine_that_breaks_is_a_divergence() -> None:
    def breaks(_: object) -> object:
        raise RuntimeError("boom")

    found = lying(None, breaks).session()
    found.add_breakpoint("divergence")
    found.resume(from_start=True)
    assert "engine fault: RuntimeError: boom" in "\n".join(divergence_lines(found))
