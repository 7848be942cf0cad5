"""Bodies and answers of requests with outside names and literal JSON values, on the wire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.support.web import Web, says
from tests.unit.effects.http.helpers import Side, ask_of
from vesper.effects.performer import Ask, EffectFailed
from vesper.values.types import BOOLEAN, DATE, JSON, STRING, Enum, MapOf, OptionalOf, Outside, Record

NODE = """\
node_id: send_v1
type: event_handler
intent: Send an order to a service with names of its own
types:
  Status: {type: "enum[done, waiting]", as: {done: OK}}
  Customer: {fields: {full_name: {type: string, as: "Full Name"}}}
  Answer:
    fields:
      order_status: {type: Status, as: orderStatus}
      eta: {type: optional<date>, absent: no_eta}
    open: true
inputs:
  event_id: string
  customer: Customer
  status: Status
outputs:
  success:
    answer: Answer
flow:
  - step: sent
    operation: external_api_call
    provider: shop
    method: POST
    endpoint: /orders
    effect: unsafe
    body:
      x: 1
      half: 0.50
      on: true
      none: null
      text: "1"
      "Customer": "{customer}"
      key_7: "{status}"
      list: [{A: 1}, {B: two}, 3, "{event_id}"]
      empty: {}
      zip: 01234
    expect: Answer
  - operation: return
    success: {answer: sent}
security:
  capabilities_required: [network.http_client.shop]
"""
GIVES = Record(
    (
        ("order_status", Enum(("done", "waiting"), ("OK", "waiting"))),
        ("eta", OptionalOf(DATE)),
        ("no_eta", BOOLEAN),
        ("rest", MapOf(STRING, JSON)),
    ),
    "Answer",
    Outside((("order_status", "orderStatus"),), (("eta", "no_eta"),), "rest"),
)


@pytest.fixture(scope="module", params=["python", "interp"])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> vesper.Node:
    path = tmp_path_factory.mktemp("nodes") / "send_v1.vsp"
    path.write_text(NODE, encoding="utf-8")
    return vesper.load(path, engine=request.param)


def run(node: vesper.Node, side: Side) -> vesper.Outcome[Any]:
    execution = node.start({"event_id": "e1", "customer": {"full_name": "Ada"}, "status": "done"})
    request = execution.request
    assert request is not None
    like = ask_of()
    ask = Ask(
        "run_1", request.path, request.effect, request.effect_class, request.fixed, request.arguments, GIVES,
        request.key, like.timeout, secret=like.secret,
    )  # fmt: skip
    execution.answer(side.performer().perform(ask))
    assert execution.outcome is not None
    return execution.outcome


def test_a_body_has_outside_names_and_literal_values(side: Side, node: vesper.Node) -> None:
    side.web.on("/orders", says({"orderStatus": "OK", "more": [1]}))
    outcome = run(node, side)
    (got,) = side.web.got
    assert json.loads(got.body) == {
        "x": 1,
        "half": 0.5,
        "on": True,
        "none": None,
        "text": "1",
        "Customer": {"Full Name": "Ada"},
        "key_7": "OK",
        "list": [{"A": 1}, {"B": "two"}, 3, "e1"],
        "empty": {},
        "zip": "01234",
    }
    assert outcome.value == {"answer": {"order_status": "done", "eta": None, "no_eta": True, "rest": {"more": [1]}}}


def test_an_answer_that_does_not_fit_names_what_the_service_sent(side: Side, node: vesper.Node) -> None:
    side.web.on("/orders", says({"orderStatus": "done", "eta": None}))
    with pytest.raises(EffectFailed, match=r"body\.orderStatus"):
        run(node, side)


@pytest.mark.parametrize("engine", ["python", "interp"])
def test_the_host_sends_and_casts_with_outside_names(
    engine: str, web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.on("/orders", says({"orderStatus": "OK", "eta": None, "more": 1.50}))
    (tmp_path / "send_v1.vsp").write_text(NODE, encoding="utf-8")
    (tmp_path / "vesper.toml").write_text(
        f'[[grants]]\nnodes = ["*"]\nallow = ["*"]\n[providers.shop]\nbase_url = "{web.url}"\n'
        'allow_private_addresses = true\n[journal]\ndsn = "sqlite:journal.db"\n[recovery]\nenabled = false\n',
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    node = vesper.load(tmp_path / "send_v1.vsp", engine=engine)
    answer = node.run_json(b'{"event_id": "e1", "customer": {"Full Name": "Ada"}, "status": "OK"}')
    assert json.loads(answer)["value"] == {"answer": {"orderStatus": "OK", "eta": None, "more": 1.5}}
    (got,) = web.got
    assert json.loads(got.body)["Customer"] == {"Full Name": "Ada"}
