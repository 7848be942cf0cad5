"""The table of endpoints, from nodes and settings."""

from __future__ import annotations

import json
from typing import Any

import vesper
from tests.support.nodes import ROOT
from vesper._direct import Exchange, ExchangeCall
from vesper.config.serve import CorsSettings, ServeSettings
from vesper.serve.table import _decimals, build_table
from vesper.values.types import DECIMAL, INTEGER, STRING, ArrayOf, MapOf, OptionalOf, Record, SetOf

NODES = ROOT / "nodes"
NO_AUTH = {"keys": [], "jwt": [], "mtls": False, "is_required": False}


def table_of(settings: ServeSettings, *names: str) -> tuple[bytes, list[dict[str, Any]]]:
    table = build_table([vesper.load(each, nodes=NODES) for each in names], settings, NO_AUTH)
    Exchange(table)
    return table, json.loads(table)["endpoints"]


def test_handlers_have_their_routes_and_functions_a_common_one() -> None:
    _, (payment, rates, decision) = table_of(ServeSettings(), "payment_handler", "exchange_rates", "payment_decision")
    assert (payment["method"], payment["path"], payment["success_status"]) == ("POST", "/payments", 201)
    assert payment["statuses"]["card_declined"] == 402
    assert payment["response_headers"] == {"Location": "/payments/{transaction_id}"}
    assert [each["from"] for each in payment["inputs"]] == ["header"]
    assert (payment["is_pure"], payment["body"]) == (False, "object")
    assert {each["name"]: each["from"] for each in rates["inputs"]} == {
        "base": "path",
        "quote": "query",
        "amount": "query",
    }
    assert (decision["method"], decision["path"], decision["body"]) == ("POST", "/nodes/payment_decision_v1", "object")
    assert decision["is_pure"]
    assert "outputs" not in decision


def test_scopes_and_origins_come_from_the_settings() -> None:
    scopes = {"payment_*": ("pay", "read"), "other": ("x",), "/metrics": ("watch",)}
    cors = CorsSettings(("https://shop.example",), ("x-a",), True, 60.0)
    table, (decision,) = table_of(ServeSettings(scopes=scopes, cors=cors), "payment_decision")
    assert decision["scopes"] == ["pay", "read"]
    whole = json.loads(table)
    assert {each["path"]: each["scopes"] for each in whole["builtins"]}["/metrics"] == ["watch"]
    assert whole["cors"] == {
        "origins": ["https://shop.example"],
        "headers": ["x-a"],
        "has_credentials": True,
        "max_age": 60,
    }


def test_decimals_of_outputs_become_numbers() -> None:
    order = json.dumps({"amount": 9.99, "balance": 100, "currency": "USD", "country": "DE", "user_age_days": 400})
    answers = []
    for settings in (ServeSettings(), ServeSettings(decimals="number")):
        node = vesper.load("payment_decision", nodes=NODES)
        exchange = Exchange(build_table([node], settings, NO_AUTH))
        call = exchange.route("POST", "/nodes/payment_decision_v1", [])
        assert isinstance(call, ExchangeCall)
        inputs = call.inputs(order.encode())
        assert isinstance(inputs, bytes)
        answers.append(call.answer(node.run_json(inputs))[2])
    assert answers == [
        b'{"decision":"approve","fee":"0.58971","new_balance":"89.42029","risk":0}',
        b'{"decision":"approve","fee":0.58971,"new_balance":89.42029,"risk":0}',
    ]


def test_places_of_decimals_follow_the_forms_of_types() -> None:
    assert _decimals(OptionalOf(ArrayOf(DECIMAL))) == {"array": "number"}
    assert _decimals(SetOf(STRING)) is None
    assert _decimals(MapOf(STRING, DECIMAL)) == {"values": "number"}
    assert _decimals(MapOf(INTEGER, DECIMAL)) == {"pairs": [None, "number"]}
    assert _decimals(Record((("a", DECIMAL), ("b", STRING)))) == {"fields": {"a": "number"}}
