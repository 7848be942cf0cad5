"""Requests as both engines make them, performed: a node's step on the wire, and its answer in the node."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

import vesper
from tests.support.web import says
from tests.unit.effects.http.helpers import SECRETS, Side, ask_of
from vesper.effects.performer import Ask, EffectFailed
from vesper.values.types import DECIMAL, STRING, Enum, OptionalOf, Record

NODE = """\
node_id: pay_v1
type: event_handler
intent: Charge an order and say what became of it

inputs:
  event_id: string
  order_id: string
  amount: decimal
  note: optional<string>

outputs:
  success:
    charge: string
    fee: decimal

flow:
  - step: token
    operation: secret
    name: api_key
  - step: charge
    operation: external_api_call
    provider: shop
    method: POST
    endpoint: /orders/{order_id}/charges
    query: {expand: "'fee'", note: note, all: "[1, 2]"}
    headers: {Authorization: "Bearer {token}", X-Event: "{event_id}"}
    body: {amount: "{amount}", lines: [{id: "{order_id}", paid: "{false}"}]}
    effect: keyed
    expect: {id: string, fee: optional<decimal>, status: "enum[succeeded, pending]"}
    on_error:
      http_402: {value: "{id: 'declined', fee: null, status: pending}"}
  - operation: return
    success:
      charge: charge.id
      fee: charge.fee ?? 0

security:
  capabilities_required: [secrets.read.api_key, network.http_client.shop]
"""
GIVES = Record((("id", STRING), ("fee", OptionalOf(DECIMAL)), ("status", Enum(("succeeded", "pending")))))
INPUTS = {"event_id": "ev 1", "order_id": "o/1 ü", "amount": Decimal("9.90")}


@pytest.fixture(scope="module", params=["python", "interp"])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> vesper.Node:
    path = tmp_path_factory.mktemp("nodes") / "pay_v1.vsp"
    path.write_text(NODE, encoding="utf-8")
    return vesper.load(path, engine=request.param)


def run(node: vesper.Node, side: Side, **inputs: object) -> vesper.Outcome[Any]:
    performer = side.performer()
    execution = node.start(INPUTS | inputs)
    while (request := execution.request) is not None:
        if request.effect == "secret_read":
            execution.answer(f"secret:{request.fixed['name']}")
            continue
        like = ask_of()
        ask = Ask(
            "run_1", request.path, request.effect, request.effect_class, request.fixed, request.arguments, GIVES,
            request.key, like.timeout, secret=like.secret, references={"secret:api_key": "api_key"},
        )  # fmt: skip
        try:
            execution.answer(performer.perform(ask))
        except EffectFailed as failed:
            execution.fail(failed.code)
    assert execution.outcome is not None
    return execution.outcome


PATH = "/orders/o%2F1%20%C3%BC/charges"


def code_of(outcome: vesper.Outcome[Any]) -> str | None:
    return None if outcome.error is None else outcome.error.code


def test_a_step_on_the_wire_and_its_answer_in_the_node(side: Side, node: vesper.Node) -> None:
    side.web.on(PATH, says({"id": "ch_1", "fee": 0.30, "status": "succeeded", "more": [1]}))
    outcome = run(node, side)
    assert outcome.value == {"charge": "ch_1", "fee": Decimal("0.3")}
    (got,) = side.web.got
    assert got.target == f"{PATH}?expand=fee&all=1&all=2"
    assert got.headers["authorization"] == f"Bearer {SECRETS['api_key']}"
    assert (got.headers["x-event"], got.headers["idempotency-key"]) == ("ev 1", "ev 1")
    assert json.loads(got.body) == {"amount": "9.90", "lines": [{"id": "o/1 ü", "paid": False}]}


def test_a_status_is_what_the_node_handles(side: Side, node: vesper.Node) -> None:
    side.web.on(PATH, says({"error": "no"}, 402))
    assert run(node, side).value == {"charge": "declined", "fee": Decimal(0)}


@pytest.mark.parametrize("order_id", ["..", ".", "../../admin", "..\\admin", "%2e%2e", "a\r\nb", ""])
def test_an_input_cannot_lead_the_request_elsewhere(side: Side, node: vesper.Node, order_id: str) -> None:
    assert code_of(run(node, side, order_id=order_id)) == "invalid_argument"
    assert side.web.connections == 0


def test_a_slash_in_an_input_is_a_character_like_any_other(side: Side, node: vesper.Node) -> None:
    assert code_of(run(node, side, order_id="/")) == "http_404"
    assert [got.path for got in side.web.got] == ["/orders/%2F/charges"]


def test_an_answer_that_does_not_fit(side: Side, node: vesper.Node) -> None:
    side.web.on(PATH, says({"id": 1, "status": "succeeded"}))
    assert code_of(run(node, side)) == "bad_response"
