"""The field `http`: sources of inputs, forms of parameters, and what is refused."""

from __future__ import annotations

import pytest

from vesper.compiler import Compiled, compile_source
from vesper.compiler.load_cache import restore_from_bytes
from vesper.language.diagnostics.source import SourceFile
from vesper.language.http_binding import HttpBinding

NODE = """node_id: orders_v1
type: http_handler
intent: Test
types:
  Line: {fields: {sku: string}}
inputs:
  order_id: {type: string, as: orderId}
  page: {type: integer, default: 1}
  tags: {type: "set<enum[new, old]>", default: []}
  ratio: optional<float>
  note: {type: optional<string>, absent: has_no_note}
  lines: {type: array<Line>, default: []}
outputs:
  success:
    id: {type: string, as: orderNumber}
    count: integer
    parts: array<string>
  error: {error_code: "enum[gone]", message: string}
flow:
  - operation: raise
    when: order_id == ''
    error: {error_code: gone, message: gone}
  - operation: return
    success: {id: order_id, count: page, parts: []}
"""
HTTP = """http:
  method: POST
  path: /orders/{order_id}
  query: {page: p, tags: tag, ratio: ratio}
  headers: {note: X-Note}
  status: 201
  errors: {gone: 410}
  response_headers: {Location: "/orders/{id}?page={count}"}
  scopes: [orders.write, "orders:read"]
"""


def compile_http(http: str, node: str = NODE) -> tuple[Compiled | None, list[str]]:
    found, bag = compile_source(SourceFile("orders_v1.vsp", node + http))
    return found, [f"{each.code.number} {each.headline}" for each in bag.sorted()]


def binding(http: str) -> HttpBinding:
    found, problems = compile_http(http)
    assert found is not None, problems
    assert found.http is not None
    return found.http


def test_each_input_has_its_source() -> None:
    found = binding(HTTP)
    assert [(each.name, each.field, each.source, each.key, each.form) for each in found.inputs] == [
        ("order_id", "orderId", "path", "order_id", "text"),
        ("page", "page", "query", "p", "bare"),
        ("tags", "tags", "query", "tag", "array_text"),
        ("ratio", "ratio", "query", "ratio", "bare"),
        ("note", "note", "header", "X-Note", "text"),
        ("lines", "lines", "body", "lines", "json"),
    ]
    assert (found.body, found.status, found.errors) == ("object", 201, (("gone", 410),))
    assert found.response_headers == (("Location", "/orders/{orderNumber}?page={count}"),)
    assert found.scopes == ("orders.write", "orders:read")
    assert found.route == "POST /orders/{}"


def test_without_a_body_other_inputs_come_from_the_query() -> None:
    node = NODE.replace("  lines: {type: array<Line>, default: []}\n", "").replace("types:\n", "").replace(
        "  Line: {fields: {sku: string}}\n", ""
    )  # fmt: skip
    found, problems = compile_http("http: {method: GET, path: /orders}\n", node)
    assert found is not None, problems
    assert found.http is not None
    assert {each.source for each in found.http.inputs} == {"query"}
    assert [each.key for each in found.http.inputs] == ["orderId", "page", "tags", "ratio", "note"]
    assert found.http.body == "none"


def test_input_can_be_the_whole_body() -> None:
    whole = HTTP + "  body: lines\n"
    assert binding(whole).body == "lines"
    found, problems = compile_http(whole.replace("  headers: {note: X-Note}\n", ""))
    assert found is None
    assert problems == [
        "VSP1107 `lines` cannot come from the body: it is the whole body, and `note` has no other source"
    ]


def test_field_stands_beside_the_semantics() -> None:
    with_http, _ = compile_http(HTTP)
    without, _ = compile_http("")
    assert with_http is not None
    assert without is not None
    assert with_http.semantic_hash == without.semantic_hash
    assert b"orders.write" not in with_http.ir
    assert without.http is None
    warm = restore_from_bytes(with_http)
    assert warm.http == with_http.http
    assert restore_from_bytes(without).http is None


@pytest.mark.parametrize(
    "old, new, problem",
    [
        ("/orders/{order_id}", "orders", "VSP0104 `orders` is no path that a service has: it begins with `/`"),
        ("/orders/{order_id}", "/a//b", "VSP0104 `/a//b` is no path that a service has: it has an empty segment"),
        ("/orders/{order_id}", "/a/../b", "VSP0104 `/a/../b` is no path that a service has: it has the segment `..`"),
        ("/orders/{order_id}", "/docs/x", "`/docs` is a path of the server itself"),
        ("/orders/{order_id}", "/nodes", "`/nodes` is a path of the server itself"),
        ("/orders/{order_id}", "/a/x{order_id}", "the segment `x{order_id}` is neither"),
        ("/orders/{order_id}", "/{order_id}/{order_id}", "`{order_id}` occurs twice"),
        ("/orders/{order_id}", "/orders/{order}", "no input"),
        ("/orders/{order_id}", "/orders/{has_no_note}", "no input"),
        ("/orders/{order_id}", "/orders/{lines}", "VSP1107 `lines` cannot come from the path: it has the type"),
        ("/orders/{order_id}", "/{ratio}", "VSP1107 `ratio` cannot come from the path: a part of the path cannot be"),
        ("page: p", "page: tag", "the parameter `tag` is that of `page`"),
        ("note: X-Note", "note: Authorization", "`note` cannot come from `Authorization`: the server itself"),
        ("note: X-Note", "note: X Note", "it is no name of a header"),
        ("note: X-Note", "note: X-A, lines: X-B", "`lines` cannot come from a header"),
        ("method: POST", "method: HEAD", "VSP0007 `method` must be `GET`"),
        ("method: POST", "method: GET", "VSP1107 `lines` cannot come from the query"),
        ("status: 201", "status: 204", "VSP0007 `status` must be 200, 201, 202 or 203, not `204`"),
        ("gone: 410", "gone: 302", "VSP0007 `gone` must be a status from 400 to 599, not `302`"),
        ("gone: 410", "lost: 410", "no error code"),
        ("{id}", "{parts}", "a scalar output that is never null"),
        ("{id}", "{idd}", "no output"),
        ("orders:read", "a b", "VSP0007 `scopes` must be"),
        ("  method: POST\n", "", "VSP0008 `http` needs `method`"),
        ("scopes", "scope", "`http` has no field `scope`"),
    ],
)
def test_what_no_service_can_answer_is_refused(old: str, new: str, problem: str) -> None:
    found, problems = compile_http(HTTP.replace(old, new))
    assert found is None
    assert any(problem in each for each in problems), problems


def test_only_handlers_have_the_field() -> None:
    found, problems = compile_http(HTTP, NODE.replace("type: http_handler", "type: scheduled_job"))
    assert found is None
    assert any("answers no requests" in each for each in problems), problems
