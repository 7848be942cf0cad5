"""The OpenAPI document: valid by the rules of 3.1, and neither narrower nor wider than the service."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

import vesper
from tests.support.nodes import ROOT
from vesper.compiler import Compiled, compile_file
from vesper.compiler.load_cache import restore_from_bytes
from vesper.config.serve import JwtSettings, KeySettings, ServeSettings
from vesper.serve.openapi.document import build_document, openapi_json
from vesper.serve.openapi.page import page

HANDLERS = [
    ROOT / "nodes" / each
    for each in (
        "access/api_key_issue_v1.vsp",
        "finance/exchange_rates_v1.vsp",
        "payments/payment_handler_v1.vsp",
        "payments/refund_v1.vsp",
        "shop/stock_reservation_v1.vsp",
        "support/ticket_triage_v1.vsp",
    )
]
WIDE = r"""node_id: wide_v1
type: http_handler
intent: Every type
types:
  Qty: {type: integer, constraints: [{min: 1}, {max: 9}]}
  Unit: {type: "enum[piece, box]", as: {piece: pc}}
  Line:
    fields:
      qty: Qty
      unit: Unit
      note: optional<string>
      gone: {type: optional<integer>, absent: has_no_gone, as: goneAt}
  Open: {fields: {a: integer}, open: true}
  Tree: {fields: {name: string, children: array<Tree>}}
inputs:
  text: {type: string, constraints: [{min_length: 2}, {max_length: 5}, {pattern: '^\w+.$'}], as: theText}
  amount: {type: decimal, constraints: [positive, {max: 100}]}
  rate: optional<decimal>
  ratio: {type: float, default: 0.5}
  day: {type: date, default: 2026-11-15}
  at: {type: optional<timestamp>}
  wait: {type: optional<duration>}
  clock: {type: optional<time_of_day>}
  term: {type: optional<period>}
  data: {type: optional<bytes>}
  flags: {type: "set<enum[a, b]>", default: []}
  counts: {type: "map<string, Qty>", default: {}}
  days: {type: "map<date, boolean>", default: {}}
  lines: {type: array<Line>, default: []}
  open: optional<Open>
  free: optional<json>
  tree: optional<Tree>
outputs:
  success:
    amount: decimal
    lines: array<Line>
    tree: optional<Tree>
  error: {error_code: "enum[too_late]", message: string}
contracts:
  preconditions:
    - rate IS NULL OR rate >= -1.5
    - length(lines) <= 2
flow:
  - operation: raise
    when: day > date('2030-01-01')
    error: {error_code: too_late, message: too late}
  - operation: return
    success: {amount: amount, lines: lines, tree: tree}
http: {method: POST, path: /wide, status: 201, errors: {too_late: 409}}
testing:
  test_cases:
    - name: a small one
      inputs: {text: ab1, amount: 1.5, lines: [{qty: 1, unit: piece, note: null, gone: null, has_no_gone: true}]}
      now: 2026-11-15T12:00:00Z
      expect:
        amount: 1.5
        lines: [{qty: 1, unit: piece, note: null, gone: null, has_no_gone: true}]
        tree: null
"""
LINE: dict[str, Any] = {"qty": 1, "unit": "pc"}


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wide") / "wide_v1.vsp"
    path.write_text(WIDE, encoding="utf-8")
    return path


def compiled_of(path: Path) -> Compiled:
    found, bag = compile_file(path)
    assert found is not None, [each.headline for each in bag.sorted()]
    return found


def validator(document: dict[str, Any], schema: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator({**schema, "components": document["components"]})


def body_schema(operation: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = operation["requestBody"]["content"]["application/json"]["schema"]
    return found


@pytest.mark.parametrize("decimals", ["text", "number"])
def test_documents_follow_the_rules_of_openapi(wide: Path, decimals: Any) -> None:
    settings = replace(ServeSettings(), decimals=decimals)
    nodes = [compiled_of(path) for path in (*HANDLERS, wide)]
    function = compiled_of(ROOT / "nodes" / "payments" / "payment_decision_v1.vsp")
    document = build_document([*nodes, function], settings, "Shop")
    validate(document)
    assert f"/nodes/{function.node.node_id}" in document["paths"]
    assert document["paths"]["/rates/{base}"].keys() == {"get"}
    for methods in document["paths"].values():
        for operation in methods.values():
            check_examples(document, operation)


def check_examples(document: dict[str, Any], operation: dict[str, Any]) -> None:
    contents = [each.get("content", {}) for each in operation["responses"].values()]
    for content in (operation.get("requestBody", {}).get("content", {}), *contents):
        for media in content.values():
            for each in media.get("examples", {}).values():
                validator(document, media["schema"]).validate(each["value"])
    for each in operation.get("parameters", ()):
        if "example" in each:
            validator(document, each["schema"]).validate(each["example"])


CHANGES: dict[str, list[Any]] = {
    "theText": ["a", "ab1", "abcdef", "a é", "é1", 5, None],
    "amount": ["0", 0, "0.01", "100.00", "100.01", 99.5, 101, "-1", "abc", "", None],
    "rate": ["-1.5", "-1.50", "-1.51", "-2", "0", "7.25", "123456", -1.5, -1.6, None, True],
    "ratio": [1, 1.5, "NaN", "nan", "1.5", None],
    "wait": ["PT1S", "P1D", "P1DT", "PT", "P", "1h30m", "90s", "1.5s", "-PT2M", "P1Y", "1w", ""],
    "clock": ["12:30:00", "24:00:00", "12:30", "12:30:00.5", "12:30:00.123456000"],
    "term": ["P1Y", "P2M", "P1Y2M", "P", "P1D", "-P1Y", "P2M1Y"],
    "data": ["", "aGk=", "aGk", "aGl=", "YQ==", "YR==", "a b="],
    "flags": [[], ["a"], ["a", "b"], ["a", "a"], ["c"], "a", {}],
    "counts": [{}, {"x": 1}, {"x": 0}, {"x": "1"}, [], [["x", 1]]],
    "days": [[], [["2026-11-15", True]], [["2026-11-15", 1]], [["2026-11-15"]], {}, {"2026-11-15": True}, [[]]],
    "lines": [[LINE], [LINE] * 2, [LINE] * 3, [{"qty": 10, "unit": "pc"}], [{"qty": 1, "unit": "piece"}], [{"qty": 1}]]
    + [[LINE | more] for more in ({"note": None}, {"x": 1}, {"goneAt": 1}, {"goneAt": None}, {"goneAt": "1"})],
    "open": [{"a": 1}, {"a": 1, "b": [2]}, {"b": 1}, None, []],
    "free": [None, 1, {"a": [1, "x"]}],
    "tree": [{"name": "a", "children": [{"name": "b", "children": []}]}, None, {}, 5],
    "unknown": [1],
    "text": ["ab1"],
}
"""Members of a body on which the document and the service must agree."""


@pytest.mark.parametrize("engine", ["python", "interp"])
def test_document_accepts_what_the_service_accepts(wide: Path, engine: str) -> None:
    document = build_document([compiled_of(wide)], ServeSettings(), "Wide")
    operation = document["paths"]["/wide"]["post"]
    asked = validator(document, body_schema(operation))
    answer = validator(document, operation["responses"]["201"]["content"]["application/json"]["schema"])
    node = vesper.load(wide, engine=engine)
    for name, value in ((name, value) for name, values in CHANGES.items() for value in values):
        body = {"theText": "ab1", "amount": "1.5"} | {name: value}
        outcome = json.loads(node.run_json(json.dumps(body).encode(), now="2026-11-15T12:00:00Z"))
        is_accepted = outcome["kind"] == "returned"
        assert asked.is_valid(body) == is_accepted, (name, value, outcome)
        if is_accepted:
            answer.validate(outcome["value"])


def test_recursive_types_survive_the_cache(wide: Path) -> None:
    compiled = compiled_of(wide)
    cold = openapi_json([compiled], ServeSettings())
    assert openapi_json([restore_from_bytes(compiled)], ServeSettings()) == cold
    tree = json.loads(cold)["components"]["schemas"]["Tree"]
    shape = {"anyOf": [{"$ref": "#/components/schemas/Tree"}, {}]}
    assert tree["properties"]["children"] == {"type": "array", "items": shape}


def test_inputs_and_outputs_of_a_record_differ_where_the_service_does(wide: Path) -> None:
    schemas = build_document([compiled_of(wide)], ServeSettings(), "Wide")["components"]["schemas"]
    assert schemas["Line"]["required"] == ["qty", "unit"]
    assert schemas["LineOutput"]["required"] == ["qty", "unit", "note"]
    assert schemas["Line"]["properties"]["qty"] == {"type": "integer", "format": "int64", "minimum": 1, "maximum": 9}


def test_parameters_have_their_forms() -> None:
    document = build_document([compiled_of(path) for path in HANDLERS], ServeSettings(), "Shop")
    rate = document["paths"]["/rates/{base}"]["get"]
    assert [(each["name"], each["in"], each["required"]) for each in rate["parameters"][:3]] == [
        ("base", "path", True),
        ("to", "query", True),
        ("amount", "query", False),
    ]
    assert rate["parameters"][2]["schema"]["type"] == "string"
    assert rate["parameters"][2]["schema"]["default"] == "1"
    pay = document["paths"]["/payments"]["post"]
    (key,) = [each for each in pay["parameters"] if each["name"] == "Idempotency-Key"]
    assert key["schema"]["maxLength"] == 255
    ticket = document["paths"]["/tickets/{ticket_id}/triage"]["post"]["parameters"][0]
    assert (ticket["schema"]["minLength"], ticket["schema"]["maxLength"]) == (1, 64)
    assert set(pay["responses"]) == {"201", "402", "409", "422", "503", "default"}


def test_security_follows_the_settings() -> None:
    settings = replace(
        ServeSettings(),
        keys=(KeySettings("shop", "shop_key"),),
        jwt=(JwtSettings("https://issuer.example", "shop", "/keys.json"),),
        scopes={"refund*": ("refunds.write",)},
    )
    document = build_document([compiled_of(path) for path in HANDLERS], settings, "Shop")
    validate(document)
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    refund = document["paths"]["/refunds"]["post"]
    assert refund["security"] == [{"key": ["refunds.write"]}, {"token": ["refunds.write"]}]
    assert {"401", "403"} <= set(refund["responses"])
    assert document["paths"]["/payments"]["post"]["security"] == [{"key": []}, {"token": []}]


def test_page_needs_no_network_and_shows_no_markup_of_a_node(wide: Path) -> None:
    compiled = compiled_of(wide)
    source = replace(compiled.node.source, intent="<script>alert(1)</script>")
    compiled.node = replace(compiled.node, source=source)
    shown = page(openapi_json([compiled], ServeSettings(), "A & B")).decode()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert "A &amp; B" in shown
    for word in ("http://", "https://", "src=", "@import", "url("):
        assert word not in shown
