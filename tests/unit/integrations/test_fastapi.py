"""Nodes in a FastAPI application: the answers of `vesper serve`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest
from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, Query
from openapi_spec_validator import OpenAPIV31SpecValidator

import vesper
import vesper.serve
from tests.unit.api.given import NODES, written
from vesper.integrations.fastapi import ExactRoute, NodeResponse, add_nodes
from vesper.integrations.pydantic import models

PAYMENT = '{"amount": %s, "balance": 100, "currency": "%s", "country": "DE", "user_age_days": 400}'
EXACT = "0.1234567890123456789012345"
ORDER = """\
node_id: order_v1
type: http_handler
intent: Read a line of an order
inputs:
  order_id: integer
  page: optional<integer>
  request_id: {type: string, default: none}
outputs:
  success: {line: string, price: decimal}
  error:
    error_code: enum[unknown_order]
    message: string
http:
  method: GET
  path: /orders/{order_id}
  query: [page]
  headers: {request_id: X-Request-Id}
  errors: {unknown_order: 404}
  scopes: [orders.read]
flow:
  - operation: raise
    when: order_id == 7
    error: {error_code: unknown_order, message: "there is no order {order_id}"}
  - operation: return
    success: {line: "text(order_id) + request_id", price: "1.10"}
"""


@pytest.fixture(scope="module")
def payment() -> vesper.Node:
    return vesper.load("payment_decision", nodes=NODES)


def send(app: Any, method: str, path: str, body: str = "", **headers: str) -> httpx.Response:
    async def request() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop") as client:
            head = {
                "content-type": "application/json",
                **{name.replace("_", "-"): each for name, each in headers.items()},
            }
            return await client.request(method, path, content=body, headers=head)

    return asyncio.run(request())


def without_trace(response: httpx.Response) -> tuple[int, str, Any]:
    found = response.json()
    return response.status_code, response.headers["content-type"], {
        name: each for name, each in found.items() if name not in ("trace_id", "instance")
    }  # fmt: skip


@pytest.mark.parametrize(
    "body", [PAYMENT % (EXACT, "USD"), PAYMENT % ("0", "USD"), PAYMENT % ("1", "USX"), "{", "", '{"amount": 1e999999}']
)
def test_answers_are_those_of_the_server(payment: vesper.Node, body: str) -> None:
    app = FastAPI()
    add_nodes(app, payment, prefix="/rules")
    served = vesper.serve.app(
        str(NODES / "payments/payment_decision_v1.vsp"), expose=["payment_decision"], engine="python"
    )
    try:
        expected = without_trace(send(served, "POST", "/nodes/payment_decision_v1", body))
    finally:
        served.close()
    assert without_trace(send(app, "POST", "/rules/nodes/payment_decision_v1", body)) == expected


def test_decimals_are_texts_or_exact_numbers(payment: vesper.Node) -> None:
    for decimals, expected in (
        ("text", '"fee":"0.3035802468813580246881358005"'),
        ("number", ":0.3035802468813580246881358005"),
    ):
        app = FastAPI()
        add_nodes(app, payment, decimals=decimals)  # type: ignore[arg-type]  # both are
        assert expected in send(app, "POST", "/nodes/payment_decision_v1", PAYMENT % (EXACT, "USD")).text


def test_a_handler_has_its_own_request_and_access_is_checked(tmp_path: Path) -> None:
    node = vesper.load(written(tmp_path, ORDER))

    def authorize(token: Annotated[str, Header()] = "") -> None:
        if token != "known":
            raise HTTPException(401)

    app = FastAPI()
    with pytest.raises(ValueError, match=r"order_v1 needs the scopes orders\.read"):
        add_nodes(app, node)
    add_nodes(app, node, dependencies=[Depends(authorize)], tags=["orders"])
    assert send(app, "GET", "/orders/5").status_code == 401
    found = send(app, "GET", "/orders/5?page=2", token="known", x_request_id="r1")
    assert (found.status_code, found.json()) == (200, {"line": "5r1", "price": "1.10"})
    missing = send(app, "GET", "/orders/7", token="known")
    assert (missing.status_code, missing.json()["error"]["error_code"]) == (404, "unknown_order")
    assert send(app, "GET", "/orders/x", token="known").status_code == 422


def test_the_openapi_document_is_valid_and_has_real_schemas(payment: vesper.Node, tmp_path: Path) -> None:
    app = FastAPI()
    add_nodes(app, payment)
    add_nodes(app, vesper.load(written(tmp_path, ORDER)), dependencies=[Depends(lambda: None)])
    document = send(app, "GET", "/openapi.json").json()
    OpenAPIV31SpecValidator(document).validate()
    request = document["paths"]["/nodes/payment_decision_v1"]["post"]["requestBody"]["content"]["application/json"]
    assert request["schema"] == {"$ref": "#/components/schemas/nodes.PaymentDecisionV1Request"}
    assert document["components"]["schemas"]["nodes.PaymentDecisionV1Request"]["properties"]["currency"]["enum"]
    assert [each["name"] for each in document["paths"]["/orders/{order_id}"]["get"]["parameters"]] == [
        "order_id", "page", "X-Request-Id",
    ]  # fmt: skip


def own_endpoint(payment: vesper.Node) -> FastAPI:
    made = models(payment)
    router = APIRouter(route_class=ExactRoute)

    async def pay(body: made.Input, scale: Annotated[int, Query()] = 1) -> Any:  # type: ignore[name-defined]  # made at run time
        return NodeResponse(await payment.arun(body))

    pay.__annotations__ |= {"body": made.Input, "scale": Annotated[int, Query()]}
    router.add_api_route("/pay", pay, methods=["POST"], response_model=made.Output)
    app = FastAPI()
    app.include_router(router)
    return app


def test_an_endpoint_of_the_application_is_exact(payment: vesper.Node) -> None:
    app = own_endpoint(payment)
    found = send(app, "POST", "/pay", PAYMENT % (EXACT, "USD"))
    assert (
        found.text
        == payment.run_json((PAYMENT % (EXACT, "USD")).encode()).decode()[len('{"kind":"returned","value":') : -1]
    )
    refused = send(app, "POST", "/pay", PAYMENT % ("1", "USX"))
    assert (refused.status_code, refused.headers["content-type"]) == (422, "application/problem+json")
    assert refused.json()["problems"][0]["path"] == "currency"
    assert send(app, "POST", "/pay", "{").json()["type"] == "urn:vesper:problem:bad_json"
    assert "detail" in send(app, "POST", "/pay?scale=x", PAYMENT % ("1", "USD")).json(), "the answer of FastAPI itself"


def test_an_outcome_without_outputs_is_a_problem(payment: vesper.Node, tmp_path: Path) -> None:
    broken = NodeResponse(payment(json.loads(PAYMENT % ("0", "USD"))))
    assert (broken.status_code, json.loads(bytes(broken.body))["type"]) == (422, "urn:vesper:problem:precondition")
    refused = NodeResponse(payment(amount=1))
    assert json.loads(bytes(refused.body))["problems"][0]["path"] == "balance"
    declared = NodeResponse(vesper.load(written(tmp_path, ORDER))(order_id=7))
    assert (declared.status_code, json.loads(bytes(declared.body))["error"]["error_code"]) == (404, "unknown_order")
