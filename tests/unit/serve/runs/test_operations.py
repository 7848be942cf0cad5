"""Runs over HTTP: started, followed, signalled, answered, cancelled and listed, with the rights of their callers."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

import vesper.serve
from tests.support.waiting import eventually
from vesper.effects.settings import ConfigError
from vesper.serve.asgi import Application
from vesper.serve.runs import operations

ORDER = """node_id: order_v1
type: http_handler
intent: Ship an order once a person approved it and its payment settled

inputs:
  order_id: string
  card: string

outputs:
  success: {order_id: string, card: string, note: optional<string>, amount: decimal}
  error: {error_code: "enum[refused]", message: string}

flow:
  - step: approval
    operation: interrupt
    kind: confirmation
    message: "Ship {order_id}?"
    ttl: 2h
    returns: {approved: boolean, note: optional<string>}
    on_error:
      expired, cancelled:
        return_error: {error_code: refused, message: "nobody approved it"}

  - step: settled
    operation: wait_for
    signal: payment_settled
    timeout: 7d
    returns: {amount: decimal}
    on_error:
      timeout, cancelled:
        return_error: {error_code: refused, message: "it was not paid"}

  - operation: return
    success: {order_id: order_id, card: card, note: approval.note, amount: settled.amount}

security:
  sensitive_data: [card]
  capabilities_required: [interrupts.raise.confirmation, signals.receive.payment_settled]

http:
  method: POST
  path: /orders
  scopes: [orders]
"""
CONFIG = """[journal]
dsn = "sqlite:journal.db"

[[grants]]
nodes = ["order_v1", "hook_v1", "once_v1"]
allow = ["interrupts.raise.confirmation", "signals.receive.payment_settled"]

[serve]
runs = true
reveal_scope = "cards"

[serve.scopes]
"/runs/{id}/cancel" = ["cancel"]
"/runs/{id}/interrupt" = ["approve"]

[serve.webhooks.hook_v1]
extends = "stripe"
secrets = ["hook"]
"""
ONCE = ORDER.replace("order_v1", "once_v1").replace("path: /orders", "path: /once") + "queue: {singleton: true}\n"
HOOK = ORDER.replace("order_v1", "hook_v1").replace("path: /orders", "path: /hook").replace("  scopes: [orders]\n", "")
CALLERS = {
    "ann": ("acme", ["orders", "cancel"]),
    "bob": ("acme", ["orders", "approve"]),
    "eve": ("other", ["orders", "cancel", "cards", "approve"]),
    "joe": (None, ["orders", "cards", "approve"]),
    "max": (None, ["cancel"]),
    "tim": ("acme", []),
}
SIGNING = "whsec_current"
INPUTS = {"order_id": "o-17", "card": "4111"}


class Api:
    """The application, asked by one of the callers."""

    def __init__(self, app: Application) -> None:
        self._app = app

    def ask(self, name: str, method: str, url: str, **how: Any) -> httpx.Response:
        key = {"X-API-Key": f"the key of {name}, long enough"} if name else {}
        headers = {**key, **how.pop("headers", {})}
        transport = httpx.ASGITransport(self._app, root_path=how.pop("root", ""))

        async def send() -> httpx.Response:
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.request(method, url, headers=headers, **how)

        return asyncio.run(send())

    def start(self, name: str = "ann", **members: Any) -> str:
        found = self.ask(name, "POST", "/runs", json={"node": "order_v1", "inputs": INPUTS, **members})
        assert found.status_code == 202, found.text
        assert found.headers["location"] == f"/runs/{found.json()['execution']}"
        return str(found.json()["execution"])

    def run(self, execution: str, name: str = "ann") -> dict[str, Any]:
        found: dict[str, Any] = self.ask(name, "GET", f"/runs/{execution}").json()
        return found

    def until(self, execution: str, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        eventually(lambda: wanted(self.run(execution)))
        return self.run(execution)


def waits_at(step: str) -> Callable[[dict[str, Any]], bool]:
    return lambda run: run["waits_for"] is not None and run["waits_for"]["step"] == step


def problem(found: httpx.Response) -> tuple[int, str]:
    assert found.headers["content-type"] == "application/problem+json"
    return found.status_code, found.json()["type"].removeprefix("urn:vesper:problem:")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "nodes").mkdir()
    (folder / "nodes" / "order_v1.vsp").write_text(ORDER)
    (folder / "nodes" / "hook_v1.vsp").write_text(HOOK)
    (folder / "nodes" / "once_v1.vsp").write_text(ONCE)
    keys = [
        f'[[serve.keys]]\nname = "{name}"\nsecret = "{name}"\nscopes = {json.dumps(scopes)}\n'
        + (f'tenant = "{tenant}"\n' if tenant else "")
        for name, (tenant, scopes) in CALLERS.items()
    ]
    (folder / "vesper.toml").write_text(CONFIG + "".join(keys))
    with pytest.MonkeyPatch.context() as patch:
        for name in CALLERS:
            patch.setenv(f"VESPER_SECRET_{name.upper()}", f"the key of {name}, long enough")
        patch.setenv("VESPER_SECRET_HOOK", SIGNING)
        app = vesper.serve.app(folder / "nodes", config=folder / "vesper.toml", engine="direct")
        app.open()
        yield Api(app)
        app.close()


def test_a_run_is_started_answered_signalled_and_ends(api: Api) -> None:
    execution = api.start(key="order 17")
    assert api.start(key="order 17") == execution
    waiting = api.until(execution, waits_at("approval"))
    assert waiting["status"] == "waiting"
    assert (waiting["waits_for"]["kind"], waiting["waits_for"]["name"]) == ("interrupt", "confirmation")
    assert waiting["waits_for"]["message"] == "Ship o-17?"
    own = api.ask("ann", "POST", f"/runs/{execution}/interrupt", json={"approved": True})
    assert problem(own) == (403, "forbidden")
    wrong = api.ask("bob", "POST", f"/runs/{execution}/interrupt", json={"approved": "perhaps"})
    assert problem(wrong) == (422, "bad_input")
    assert api.ask("bob", "POST", f"/runs/{execution}/interrupt", json={"approved": True}).status_code == 202
    assert problem(api.ask("bob", "POST", f"/runs/{execution}/interrupt", json={"approved": True})) == (409, "conflict")
    api.until(execution, waits_at("settled"))
    path = f"/runs/{execution}/signals/payment_settled"
    assert problem(api.ask("ann", "POST", path, json={"amount": "much"})) == (422, "bad_input")
    sent = api.ask("ann", "POST", path, content=b'{"amount": 12.50}', headers={**JSON, "Idempotency-Key": "p1"})
    assert (sent.status_code, sent.json()["is_repeat"]) == (202, False)
    twice = api.ask("ann", "POST", f"/runs/{execution}/cancel?why=x", json={"reason": "no more"})
    assert problem(twice) == (422, "bad_input")
    other = api.ask("ann", "POST", f"/runs/{execution}/cancel", json={"reason": "no more", "id": "another"})
    assert problem(other) == (400, "malformed")
    ended = api.until(execution, lambda run: run["status"] == "ended")
    value = {"order_id": "o-17", "card": "4111", "note": None, "amount": "12.50"}
    assert ended["outcome"] == {"kind": "returned", "value": value}
    hidden = api.run(execution, "bob")["outcome"]["value"]
    assert (hidden["card"], hidden["order_id"]) == ("<sensitive>", "o-17")
    assert api.run(execution, "joe")["outcome"]["value"] == value  # no tenant, and the scope


JSON = {"Content-Type": "application/json"}


def test_a_handler_that_begins_to_wait_is_answered_with_its_run(api: Api) -> None:
    found = api.ask("ann", "POST", "/orders", json=INPUTS)
    assert found.status_code == 202
    body = found.json()
    assert found.headers["location"] == f"/runs/{body['execution']}"
    assert (body["waits_for"]["kind"], body["waits_for"]["step"]) == ("interrupt", "approval")
    reason = {"reason": "not needed"}
    assert problem(api.ask("bob", "POST", f"{found.headers['location']}/cancel", json=reason)) == (403, "forbidden")
    assert problem(api.ask("ann", "POST", f"{found.headers['location']}/cancel", json={})) == (422, "bad_input")
    assert api.ask("ann", "POST", f"{found.headers['location']}/cancel", json=reason).status_code == 202
    ended = api.until(body["execution"], lambda run: run["status"] == "ended")
    assert ended["outcome"]["value"]["error_code"] == "refused"
    assert problem(api.ask("ann", "POST", f"{found.headers['location']}/cancel", json=reason)) == (409, "conflict")


def test_a_mounted_application_names_runs_where_it_is_mounted(api: Api) -> None:
    found = api.ask("ann", "POST", "/shop/orders", json=INPUTS, root="/shop")
    assert found.headers["location"] == f"/shop/runs/{found.json()['execution']}"


def test_the_runs_of_other_tenants_look_like_none(api: Api) -> None:
    execution = api.start(delay=3_600)
    assert api.run(execution)["status"] == "queued"
    assert problem(api.ask("eve", "GET", f"/runs/{execution}")) == (404, "not_found")
    assert problem(api.ask("tim", "GET", f"/runs/{execution}")) == (403, "forbidden")
    for path, body in (("cancel", {"reason": "mine now"}), ("interrupt", {"approved": True}), ("signals/x", {})):
        assert problem(api.ask("eve", "POST", f"/runs/{execution}/{path}", json=body)) == (404, "not_found")
    listed = {name: api.ask(name, "GET", "/runs?status=queued&node=order_v1").json()["runs"] for name in CALLERS}
    seen = {name: execution in [each["execution"] for each in runs] for name, runs in listed.items()}
    assert seen == {"ann": True, "bob": True, "eve": False, "joe": True, "max": False, "tim": False}
    assert problem(api.ask("ann", "GET", "/runs?status=odd")) == (422, "bad_input")
    for other in (execution[:12], execution.upper(), "%00", "x" * 500):  # no prefixes here
        assert problem(api.ask("ann", "GET", f"/runs/{other}")) == (404, "not_found")
    assert problem(api.ask("nobody", "GET", "/runs")) == (401, "unauthenticated")


def test_runs_of_a_signed_node_are_shown_and_not_changed(api: Api) -> None:
    body = json.dumps(INPUTS)
    moment = int(time.time())
    signature = hmac.new(SIGNING.encode(), f"{moment}.{body}".encode(), hashlib.sha256).hexdigest()
    headers = {**JSON, "Stripe-Signature": f"t={moment},v1={signature}"}
    execution = api.ask("", "POST", "/hook", content=body, headers=headers).json()["execution"]
    assert api.run(execution, "joe")["node"] == "hook_v1"
    started = api.ask("joe", "POST", "/runs", json={"node": "hook_v1", "inputs": INPUTS})
    assert problem(started) == (403, "forbidden")
    for path, value in (("interrupt", {"approved": True}), ("signals/payment_settled", {"amount": "1"})):
        assert problem(api.ask("joe", "POST", f"/runs/{execution}/{path}", json=value)) == (403, "forbidden")
    cancelled = api.ask("max", "POST", f"/runs/{execution}/cancel", json={"reason": "not needed"})
    assert problem(cancelled) == (403, "forbidden")
    assert "webhook" in cancelled.json()["detail"]


def test_parameters_that_do_not_fit_are_problems(api: Api) -> None:
    execution, digits = api.start(delay=3_600), "1" * 5_000
    queries = ("?node=a&node=b", "?status=ended&status=queued", f"?page={digits}", "?page=0", "?page=%D9%A1")
    for query in (*queries, f"/{execution}?wait={digits}", f"/{execution}?wait=-1", f"/{execution}?wait=1&wait=2"):
        assert problem(api.ask("ann", "GET", f"/runs{query}")) == (422, "bad_input"), query


def test_a_page_reads_no_more_runs_than_it_covers(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    hers = api.start("eve", delay=3_600)
    others = [api.start(delay=3_600) for _ in range(4)]
    monkeypatch.setattr(operations, "PAGE_RUNS", 2)
    first = api.ask("eve", "GET", "/runs?status=queued&node=order_v1").json()
    assert first == {"runs": [], "next": 2}, "the runs of others fill the page, and there are more"
    found: list[str] = []
    page: int | None = 2
    while hers not in found:
        answer = api.ask("eve", "GET", f"/runs?status=queued&node=order_v1&page={page}").json()
        assert len(answer["runs"]) <= 2
        found += [each["execution"] for each in answer["runs"]]
        page = answer["next"]
    assert not {*others} & {*found}


def test_a_singleton_of_another_tenant_is_not_shown(api: Api) -> None:
    execution = api.start(node="once_v1", delay=3_600)
    assert api.start("bob", node="once_v1", delay=3_600) == execution
    found = api.ask("eve", "POST", "/runs", json={"node": "once_v1", "inputs": INPUTS, "delay": 3_600})
    assert execution not in found.text + str(found.headers)


def test_what_does_not_fit_starts_no_run(api: Api) -> None:
    refused = api.ask("ann", "POST", "/runs", json={"node": "order_v1", "inputs": {"order_id": 5}})
    assert problem(refused) == (422, "bad_input")
    assert [(each["path"], each["kind"]) for each in refused.json()["problems"]] == [
        ("order_id", "wrong_type"),
        ("card", "missing"),
    ]
    wrong: list[Any] = [{"node": "other_v1"}, {"node": "order_v1", "typo": 1}, {"node": "order_v1", "delay": -1}, []]
    wrong += [{"node": "order_v1", "delay": None}, {"node": "order_v1", "priority": 1.5}, {"node": ["order_v1"]}]
    for body in wrong:
        assert problem(api.ask("ann", "POST", "/runs", json=body))[0] == 422
    api.start(key="once")
    other = api.ask("ann", "POST", "/runs", json={"node": "order_v1", "inputs": {**INPUTS, "card": "x"}, "key": "once"})
    assert problem(other) == (422, "key_reused")
    assert problem(api.ask("tim", "POST", "/runs", json={"node": "order_v1", "inputs": INPUTS})) == (403, "forbidden")


def test_long_polls_and_streams_report_each_change(api: Api) -> None:
    execution = api.start()
    api.until(execution, waits_at("approval"))
    events: list[dict[str, Any]] = []

    async def follow() -> None:
        headers = {"X-API-Key": "the key of ann, long enough", "Accept": "text/event-stream"}
        bob = {**JSON, "X-API-Key": "the key of bob, long enough"}
        transport = httpx.ASGITransport(api._app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client:
            streamed = asyncio.ensure_future(client.get(f"/runs/{execution}"))
            polled = asyncio.ensure_future(client.get(f"/runs/{execution}?wait=30", headers={"Accept": "*/*"}))
            await asyncio.sleep(0.05)
            answered = await client.post(f"/runs/{execution}/interrupt", json={"approved": True}, headers=bob)
            assert answered.status_code == 202
            assert (await polled).json()["status"] in ("running", "waiting")
            await client.post(f"/runs/{execution}/signals/payment_settled", json={"amount": "1"}, headers=JSON)
            found = await streamed
            assert found.headers["content-type"] == "text/event-stream"
            lines = found.text.splitlines()
            events.extend(json.loads(each.removeprefix("data: ")) for each in lines if each.startswith("data: "))
            last = [each.removeprefix("id: ") for each in lines if each.startswith("id: ")][-1]
            assert (await client.get(f"/runs/{execution}", headers={"Last-Event-ID": last})).status_code == 204

    asyncio.run(follow())
    assert events[0]["waits_for"]["step"] == "approval"
    assert events[-1]["outcome"]["kind"] == "returned"
    assert problem(api.ask("ann", "GET", f"/runs/{execution}?wait=soon")) == (422, "bad_input")


def test_the_document_lists_the_endpoints(api: Api) -> None:
    document = api.ask("ann", "GET", "/openapi.json").json()
    assert {path for path in document["paths"] if path.startswith("/runs")} == {
        "/runs", "/runs/{id}", "/runs/{id}/signals/{name}", "/runs/{id}/interrupt", "/runs/{id}/cancel",
    }  # fmt: skip
    assert "202" in document["paths"]["/orders"]["post"]["responses"]
    assert document["paths"]["/runs/{id}/cancel"]["post"]["security"] == [{"key": ["cancel"]}]


def test_the_document_describes_the_answers(api: Api) -> None:
    schemas = api.ask("ann", "GET", "/openapi.json").json()["components"]["schemas"]
    execution = api.start()
    run = api.until(execution, waits_at("approval"))
    listed = api.ask("ann", "GET", "/runs").json()
    sent = api.ask("ann", "POST", f"/runs/{execution}/signals/payment_settled", json={"amount": "1"}).json()
    for name, answer in (("Run", run), ("RunList", listed), ("SignalSent", sent)):
        Draft202012Validator(schemas[name]).validate(answer)
        assert schemas[name]["properties"].keys() == answer.keys()
    assert schemas["RunList"]["properties"]["runs"]["items"]["properties"].keys() == listed["runs"][0].keys()
    assert schemas["Run"]["properties"]["waits_for"]["properties"].keys() == run["waits_for"].keys()


def test_interrupts_that_every_caller_could_answer_are_not_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "order_v1.vsp").write_text(ORDER)
    text = CONFIG.replace('"/runs/{id}/interrupt" = ["approve"]\n', "").partition("[serve.webhooks")[0]
    (tmp_path / "vesper.toml").write_text(text + '[[serve.keys]]\nname = "ann"\nsecret = "ann"\n')
    monkeypatch.setenv("VESPER_SECRET_ANN", "the key of ann, long enough")
    with pytest.raises(ConfigError, match=r'"/runs/\{id\}/interrupt" = \["approve"\]'):
        vesper.serve.app(tmp_path, config=tmp_path / "vesper.toml").open()
