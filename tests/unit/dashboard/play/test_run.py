"""A run compares both engines on the editor's text, and performs no effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from vesper.compiler import Compiled
from vesper.dashboard.play import run
from vesper.dashboard.play.editor_text import Faulty, compile_text
from vesper.dashboard.play.run import run_text
from vesper.dashboard.problem import BadRequest

FEE = """\
node_id: fee_v1
type: function
intent: Price a payment
inputs:
  amount: decimal
outputs:
  success:
    fee: decimal
contracts:
  preconditions:
    - amount > 0
flow:
  - step: rate
    operation: conditional
    condition: amount > 100
    then: 0.01
    else: 0.02
  - step: fee
    operation: compute
    value: amount * rate
  - operation: return
    success: [fee]
"""
NOTICE = """\
node_id: notice_v1
type: http_handler
intent: Publish that an order was paid
inputs:
  order: string
  card: string
outputs:
  success:
    event: string
  error:
    error_code: enum[late]
    message: string
flow:
  - step: event
    operation: event_publish
    topic: orders
    payload: {order: "{order}", card: "{card}"}
    effect: keyed
    key: order
    on_error:
      timeout:
        return_error: {error_code: late, message: too late}
  - operation: return
    success: [event]
security:
  capabilities_required: [events.publish.orders]
  sensitive_data: [card]
testing:
  test_cases:
    - name: published
      inputs: {order: o1, card: "4111"}
      effects:
        - {step: event, returns: e1}
      expect: {event: e1}
"""


def compiled(text: str, name: str = "fee_v1.vsp", folder: Path = Path("nodes")) -> Compiled:
    return compile_text(folder / name, text)


def test_both_engines_run_and_are_timed() -> None:
    result = run_text(compiled(FEE), {"amount": "150.00"}, {})
    assert [each.engine for each in result.engines] == ["python", "direct"]
    assert [each.outcome for each in result.engines] == [{"kind": "returned", "value": {"fee": "1.5000"}}] * 2
    assert all(each.median_us is not None and each.calls > 0 for each in result.engines)
    assert result.is_compared
    assert result.difference is None
    assert [(each.path, each.line, each.values) for each in result.steps] == [
        ("rate", 15, ("0.01", "0.01")),
        ("fee", 20, ("1.5000", "1.5000")),
    ]
    assert [(each.phase, each.text, each.holds, each.line) for each in result.contracts] == [
        ("precondition", "amount > 0", True, 11)
    ]


def test_the_flow_shows_the_path_taken() -> None:
    high, low = (run_text(compiled(FEE), {"amount": each}, {}).flow or "" for each in ("150", "50"))
    assert "has-path" in high
    assert high != low


def test_refused_inputs_name_each_problem_and_are_not_timed() -> None:
    result = run_text(compiled(FEE), {"amount": "x", "other": 1}, {})
    outcome = result.engines[0].outcome
    assert outcome is not None
    assert (outcome["kind"], outcome["code"]) == ("failed", "bad_input")
    assert {each["path"] for each in outcome["problems"]} == {"amount", "other"}
    assert result.engines[0].median_us is None
    assert result.flow is None


def test_a_broken_contract_shows_its_values() -> None:
    result = run_text(compiled(FEE), {"amount": 0}, {})
    (clause,) = result.contracts
    assert (clause.holds, clause.values) == (False, {"amount": "0"})


LOOP = """\
  - step: total
    operation: loop
    over: i IN range(0, rounds)
    state: {sum: 0}
    steps:
      - step: more
        operation: compute
        value: sum + 1
    next: {sum: more}
  - operation: return
"""


def test_a_long_run_has_no_trace_and_ends_by_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MAX_SECONDS", 0.01)
    monkeypatch.setattr(run, "_TRACED_SECONDS", 0.0)
    text = FEE.replace("  - operation: return\n", LOOP).replace("amount: decimal", "amount: decimal\n  rounds: integer")
    result = run_text(compiled(text), {"amount": 1, "rounds": 900_000}, {})
    assert [each.outcome and each.outcome["kind"] for each in result.engines] == ["limit_hit", "limit_hit"]
    assert [each.median_us for each in result.engines] == [None, None]
    assert not result.is_traced
    assert not result.is_compared


def test_a_run_with_many_steps_shows_the_first_ones() -> None:
    text = FEE.replace("  - operation: return\n", LOOP).replace("amount: decimal", "amount: decimal\n  rounds: integer")
    result = run_text(compiled(text), {"amount": 1, "rounds": 600}, {})
    assert len(result.steps) == run.MAX_ROWS
    assert result.omitted > 0
    assert result.difference is None


def test_a_faulty_text_is_a_problem_with_its_line() -> None:
    with pytest.raises(Faulty, match="line 20: "):
        compiled(FEE.replace("amount * rate", "amount * rates"))


def test_answers_come_from_cases_and_nothing_is_timed() -> None:
    inputs = {"order": "o9", "card": "4111"}
    result = run_text(compiled(NOTICE, "notice_v1.vsp"), inputs, {})
    assert result.has_effects
    assert [each.outcome for each in result.engines] == [{"kind": "returned", "value": {"event": "e1"}}] * 2
    assert [each.median_us for each in result.engines] == [None, None]
    (request,) = result.requests
    assert (request.path, request.origin, request.answer) == ("event", "case published", '"e1"')
    assert "4111" not in repr(result.requests)
    assert request.json is None
    plain = run_text(compiled(NOTICE.replace("  sensitive_data: [card]\n", ""), "notice_v1.vsp"), inputs, {})
    assert plain.requests[0].json == '"e1"'


def test_typed_answers_come_first_and_can_fail() -> None:
    node = compiled(NOTICE, "notice_v1.vsp")
    inputs = {"order": "o9", "card": "4111"}
    typed = run_text(node, inputs, {"event": {"returns": "mine"}})
    assert typed.requests[0].origin == "typed"
    assert typed.engines[1].outcome == {"kind": "returned", "value": {"event": "mine"}}
    failed = run_text(node, inputs, {"event": {"fails": "timeout"}})
    assert failed.engines[1].outcome is not None
    assert failed.engines[1].outcome["code"] == "late"
    with pytest.raises(BadRequest, match="the answer to `event` is not of its type"):
        run_text(node, inputs, {"event": {"returns": 5}})


def test_a_request_without_an_answer_waits_with_its_masked_arguments() -> None:
    result = run_text(compiled(NOTICE, "notice_v1.vsp"), {"order": "o9", "card": "4111"}, {}, case="no such case")
    assert [each.outcome for each in result.engines] == [None, None]
    assert result.waits is not None
    assert (result.waits.path, result.waits.effect, result.waits.type) == ("event", "event_publish", "string")
    assert "4111" not in repr(result.waits)
