"""Shrinking of divergences of faulty engines: inputs, completions, and the resulting case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance import test_regressions as conformance
from tests.support.nodes import PAYMENT_DECISION, ROOT, compiled
from tests.unit.migration.support.wrong_engine import DoneLie, Failure, Inputs, RequestLie, WrongEngine, recorded
from vesper.compiler import Compiled
from vesper.engines.compare import Agree
from vesper.engines.engine import Done, Engine, Program, Request
from vesper.engines.outcome import DeclaredError, EngineFault, Outcome, Returned
from vesper.engines.path import conditions_of_marks
from vesper.engines.registry import ENGINES
from vesper.language.ir.encode import canonical_json
from vesper.migration.compare.comparator import Comparator
from vesper.migration.compare.divergence import Divergence
from vesper.migration.compare.divergence_record import divergence_of
from vesper.migration.compare.reports import Difference, Disagreement, Fault
from vesper.migration.compare.shrinking import CannotShrink, Shrunk, shrink_divergence
from vesper.migration.compare.transcript import Transcript
from vesper.verify.differential.regressions import typed_value

NOW = datetime(2026, 11, 15, 12, 34, 56, tzinfo=UTC)
PAYMENT_HANDLER = ROOT / "nodes" / "payments" / "payment_handler_v1.vsp"
LARGE: Inputs = {
    "amount": Decimal("734.56"),
    "balance": Decimal("9876.54"),
    "currency": "GBP",
    "country": "FR",
    "user_age_days": 812,
    "flagged": True,
}
ORDER: Inputs = {
    "order_id": "ord_0123456789abcdef",
    "user_id": "cus_7",
    "amount": Decimal("99.99"),
    "idempotency_key": "k-1",
}
PAID = {
    "validate_request": None,
    "begin": "payment_failed",
    "call_stripe_api": {"id": "ch_12345", "status": "pending"},
    "record": 1,
    "settle": "processing",
}
UNRECORDED = PAID | {"record": Failure("timeout"), "refund": {"id": "re_1"}, "mark_unrecorded": "processing"}
DECLINED = {
    "validate_request": None,
    "begin": "payment_failed",
    "call_stripe_api": Failure("http_402"),
    "mark_declined": "processing",
}


@cache
def node_at(path: Path) -> Compiled:
    return compiled(path)


@cache
def program(path: Path, engine: str) -> Program:
    return ENGINES[engine].load(node_at(path))


# -- lies -----------------------------------------------------------------------------------------


def returning(change: Callable[[dict[str, Any]], dict[str, Any]]) -> DoneLie:
    """Return a fault that changes the outcome."""

    def lie(inputs: Inputs, done: Done) -> Done:
        if not isinstance(done.outcome, Returned):
            return done
        return replace(done, outcome=Returned({**done.outcome.value, **change({**inputs, **done.outcome.value})}))

    return lie


def a_cent_more(seen: dict[str, Any]) -> dict[str, Any]:
    return {"fee": seen["fee"] + Decimal("0.01")} if seen["amount"] > 100 else {}


def always_completed(seen: dict[str, Any]) -> dict[str, Any]:
    return {} if seen["is_repeat"] else {"status": "completed"}


def value_on_the_way(_inputs: Inputs, done: Done) -> Done:
    """Return a fault that changes the first decimal over 100."""
    for number, (index, value) in enumerate(done.marks):
        if isinstance(value, Decimal) and value > 100:
            return replace(done, marks=(*done.marks[:number], (index, value + 1), *done.marks[number + 1 :]))
    return done


def other_words(_inputs: Inputs, done: Done) -> Done:
    outcome = done.outcome
    if not isinstance(outcome, DeclaredError) or outcome.value["error_code"] != "card_declined":
        return done
    return replace(done, outcome=DeclaredError({**outcome.value, "message": "no"}))


def breaks_when_flagged(inputs: Inputs, done: Done) -> Done:
    return replace(done, outcome=EngineFault("panicked: index 5 of 3")) if inputs.get("flagged") else done


def raises_when_flagged(inputs: Inputs, done: Done) -> Done:
    if inputs.get("flagged"):
        raise RuntimeError("index 5 of 3")
    return done


def records_more(request: Request) -> Request:
    if request.path != "record":
        return request
    bind: Any = request.arguments["bind"]
    return replace(request, arguments={**request.arguments, "bind": {**bind, "amount": bind["amount"] + 1}})


def refunds_elsewhere(request: Request) -> Request:
    return replace(request, key="another") if request.path == "refund" else request


@dataclass(frozen=True)
class Story:
    """A faulty engine, an execution that shows the fault, and the expected result."""

    path: Path
    inputs: Inputs
    answers: Mapping[str, object]
    left: dict[str, Any]
    where: tuple[str, str]
    at_end: DoneLie | None = None
    asking: RequestLie | None = None

    def programs(self) -> dict[str, Program]:
        wrong = WrongEngine(ENGINES["interp"], self.at_end, self.asking).load(node_at(self.path))
        return {"python": program(self.path, "python"), "interp": wrong}

    def transcript(self) -> Transcript:
        now = None if self.path == PAYMENT_DECISION else NOW
        return recorded(program(self.path, "python"), self.inputs, now, self.answers)

    def shrunk(self, seconds: float = 60) -> Shrunk:
        return shrink_divergence(
            node_at(self.path), self.transcript(), self.programs(), Comparator(node_at(self.path)), seconds
        )


def decision(amount: str, balance: str = "0") -> dict[str, Any]:
    """Return the smallest inputs of payment_decision_v1 with an amount and a balance."""
    given: dict[str, Any] = {
        "amount": {"decimal": amount},
        "balance": {"decimal": balance},
        "currency": {"string": "USD"},
        "country": {"string": "aa"},
        "user_age_days": {"integer": 0},
    }
    return {"inputs": given}


def order(*effects: dict[str, Any]) -> dict[str, Any]:
    """Return the smallest inputs of payment_handler_v1 with these completions."""
    given = {"order_id": {"string": "a"}, "user_id": {"string": "a"}, "amount": {"decimal": "1"}}
    return {"inputs": given, "now": "2000-01-01T00:00:00Z", "effects": list(effects)}


def answer(path: str, form: dict[str, Any]) -> dict[str, Any]:
    return {"path": path, "returns": form}


def charge(status: str) -> dict[str, Any]:
    return answer("call_stripe_api", {"dict": {"id": {"string": ""}, "status": {"string": status}}})


BEGUN = answer("begin", {"string": "pending"})
SETTLED = answer("settle", {"string": "processing"})
STORIES: dict[str, Story] = {
    "an output": Story(
        PAYMENT_DECISION, LARGE, {}, decision("101"), ("outcome", "outputs.fee"), returning(a_cent_more)
    ),
    "a value on the way": Story(
        PAYMENT_DECISION, LARGE, {}, decision("1", "102"), ("value", "step new_balance"), value_on_the_way
    ),
    "a fault": Story(PAYMENT_DECISION, LARGE, {}, {}, ("fault", "engine"), breaks_when_flagged),
    "an exception": Story(PAYMENT_DECISION, LARGE, {}, {}, ("fault", "engine"), raises_when_flagged),
    "an output after effects": Story(
        PAYMENT_HANDLER,
        ORDER,
        PAID,
        order(BEGUN, charge("pending"), answer("record", {"integer": 0}), SETTLED),
        ("outcome", "outputs.status"),
        returning(always_completed),
    ),
    "a declared error": Story(
        PAYMENT_HANDLER,
        ORDER,
        DECLINED,
        order(
            BEGUN,
            {"path": "call_stripe_api", "fails": "http_402"},
            answer("mark_declined", {"string": "processing"}),
        ),
        ("outcome", "error.message"),
        other_words,
    ),
    "a request": Story(
        PAYMENT_HANDLER,
        ORDER,
        PAID,
        order(BEGUN, charge("succeeded")),
        ("request", "record: bind.amount"),
        asking=records_more,
    ),
    "a request after a failure": Story(
        PAYMENT_HANDLER,
        ORDER,
        UNRECORDED,
        order(BEGUN, charge("succeeded")),
        ("request", "refund: key"),
        asking=refunds_elsewhere,
    ),
}


@cache
def small(name: str) -> Shrunk:
    return STORIES[name].shrunk()


@pytest.mark.parametrize("name", STORIES)
def test_the_result_is_minimal(name: str) -> None:
    story = STORIES[name]
    found = small(name)
    (case,) = yaml.safe_load(found.case)
    for part, form in story.left.items():
        assert case.get(part) == form, part
    assert (found.difference.kind, found.difference.where) == story.where
    assert found.is_finished
    assert found.size < found.size_before


def test_the_same_execution_becomes_the_same_case() -> None:
    assert STORIES["a request"].shrunk().case == small("a request").case


@pytest.mark.parametrize("name", STORIES)
def test_the_case_fails_on_the_wrong_engine_and_passes_on_right_ones(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = STORIES[name]
    (case,) = yaml.safe_load(small(name).save(tmp_path / "kept").read_text(encoding="utf-8"))
    assert all(isinstance(each, Agree) for each in conformance.agreement(case))
    wrong = WrongEngine(ENGINES["interp"], story.at_end, story.asking)
    engines: dict[str, Engine] = {"python": ENGINES["python"], "interp": wrong}
    monkeypatch.setattr(conformance, "ENGINES", engines)
    if name == "an exception":
        with pytest.raises(RuntimeError, match="index 5 of 3"):
            conformance.agreement(case)
        return
    assert not all(isinstance(each, Agree) for each in conformance.agreement(case))


def test_a_fault_needs_only_what_breaks_it() -> None:
    (case,) = yaml.safe_load(small("a fault").case)
    assert case["inputs"] == {"flagged": {"boolean": True}}


def test_the_time_limit_returns_the_smallest_form_so_far() -> None:
    story = STORIES["an output"]
    found = story.shrunk(seconds=0)
    assert not found.is_finished
    assert found.tries == 0
    assert found.found.inputs == LARGE
    assert all(isinstance(each, Agree) for each in conformance.agreement(yaml.safe_load(found.case)[0]))


def test_progress_is_reported() -> None:
    told: list[tuple[int, int]] = []
    story = STORIES["an output"]
    node = node_at(story.path)
    shrink_divergence(node, story.transcript(), story.programs(), Comparator(node), 60, lambda *each: told.append(each))
    sizes = [size for _, size in told]
    assert sizes[-1] < sizes[0]
    assert [tries for tries, _ in told] == sorted(tries for tries, _ in told)


# -- from what was kept ---------------------------------------------------------------------------


def kept(story: Story, difference: Difference, follower: Outcome | None = None, sensitive: bool = False) -> Divergence:
    report = Disagreement(difference, None, None, story.transcript(), follower, "run-1")
    return divergence_of(report, node_at(story.path), sensitive, 7)


def shrunk(story: Story, divergence: Divergence) -> Shrunk:
    node = node_at(story.path)
    return shrink_divergence(node, divergence, story.programs(), Comparator(node), 60)


@pytest.mark.parametrize("name", ["an output", "an output after effects", "a request"])
def test_a_stored_divergence_is_shrunk(name: str) -> None:
    story = STORIES[name]
    seen = small(name).difference
    divergence = Divergence.from_text(kept(story, seen).to_text())
    found = shrunk(story, divergence)
    assert found.place == divergence.place
    assert found.case == small(name).case


def test_the_leader_does_not_change_the_divergence() -> None:
    story = STORIES["an output after effects"]
    seen = small("an output after effects").difference
    report = Disagreement(
        replace(seen, leader=seen.follower, follower=seen.leader), None, None, story.transcript(), None
    )
    turned = divergence_of(report, node_at(story.path), False, 7, engines=("interp", "python"))
    assert turned.fingerprint == kept(story, seen).fingerprint
    assert shrunk(story, turned).place == turned.place


def test_a_difference_in_the_path_is_shrunk_by_its_marks() -> None:
    story = STORIES["a value on the way"]
    found = shrunk(story, kept(story, Difference("path", "step fee", "returned", "returned")))
    assert found.difference.kind == "value"
    assert found.case == small("a value on the way").case


def test_a_fault_is_shrunk() -> None:
    story = STORIES["a fault"]
    report = Fault("panicked: index 17 of 4", story.transcript(), "run-1")
    divergence = divergence_of(report, node_at(story.path), False, 7)
    assert shrunk(story, divergence).place == divergence.place


def test_an_engine_that_is_right_again_leaves_nothing_to_shrink() -> None:
    story = STORIES["an output"]
    divergence = kept(story, small("an output").difference)
    right = replace(story, at_end=None)
    with pytest.raises(CannotShrink, match="ran again on what was kept, and they agree"):
        shrunk(right, divergence)
    other = replace(story, at_end=breaks_when_flagged)
    with pytest.raises(CannotShrink, match="they differ in another way"):
        shrunk(other, divergence)


def test_without_inputs_there_is_nothing_to_shrink() -> None:
    story = STORIES["an output"]
    with pytest.raises(CannotShrink, match="the node is sensitive, or they were too large"):
        shrunk(story, kept(story, small("an output").difference, sensitive=True))


def test_missing_engines_are_named() -> None:
    story = STORIES["an output"]
    divergence = replace(kept(story, small("an output").difference), engines=("legacy_fee", "interp"))
    with pytest.raises(CannotShrink, match="there is no legacy_fee here to ask"):
        shrunk(story, divergence)


def test_the_start_of_the_execution_must_be_known() -> None:
    story = STORIES["a request"]
    node = node_at(story.path)
    without = replace(story.transcript(), now=None)
    with pytest.raises(CannotShrink, match="may ask for the time"):
        shrink_divergence(node, without, story.programs(), Comparator(node))


def test_of_three_engines_the_odd_one_is_named() -> None:
    story = STORIES["an output"]
    node = node_at(story.path)
    three = {**story.programs(), "jit": program(story.path, "interp")}
    found = shrink_divergence(node, story.transcript(), three, Comparator(node), 60)
    assert found.odd == "interp"
    assert set(found.found.answers) == {"python", "interp", "jit"}


def test_a_timestamp_completion_is_saved_as_data() -> None:
    moment = datetime(2026, 11, 15, 12, 34, 56, 789, tzinfo=UTC)
    value = [moment, moment.date(), timedelta(seconds=5), b"\x00\xff", frozenset({"b", "a"})]
    form = typed_value(value)
    assert "python" not in str(form)
    assert conformance.read_value(yaml.safe_load(canonical_json(form))) == value


def test_a_smaller_case_stays_on_its_path_where_others_differ() -> None:
    """Two faults in one field: without the path, shrinking the second ends at the first."""

    def both_wrong(inputs: Inputs, done: Done) -> Done:
        assert isinstance(done.outcome, Returned)
        fee = done.outcome.value["fee"]
        assert isinstance(fee, Decimal)
        return replace(done, outcome=Returned({**done.outcome.value, "fee": fee + Decimal("0.01")}))

    node = node_at(PAYMENT_DECISION)
    wrong = WrongEngine(ENGINES["interp"], both_wrong, None).load(node)
    programs: dict[str, Program] = {"python": program(PAYMENT_DECISION, "python"), "interp": wrong}
    transcript = recorded(programs["python"], LARGE, None, {})
    free = shrink_divergence(node, transcript, programs, Comparator(node), 60)
    kept_there = shrink_divergence(node, transcript, programs, Comparator(node), 60, keeps_path=True)
    conditions = [
        conditions_of_marks(programs["python"].start(inputs, None).advance(()).marks, node.node)  # type: ignore[union-attr]
        for inputs in (LARGE, free.found.inputs, kept_there.found.inputs)
    ]
    assert conditions[0] != conditions[1]
    assert conditions[0] == conditions[2]
    assert kept_there.size < kept_there.size_before
