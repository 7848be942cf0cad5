"""Requests with signatures, as the exchange of a server reads them."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Mapping

import pytest

import vesper
from tests.support.nodes import ROOT
from vesper._direct import Exchange, ExchangeCall
from vesper.config.settings import config_from
from vesper.effects.performer import EffectFailed
from vesper.effects.settings import ConfigError
from vesper.serve.keys import auth_table
from vesper.serve.table import build_table

NODE = "payment_decision_v1"
PATH = f"/nodes/{NODE}"
BODY = json.dumps({"amount": 9.99, "balance": 100, "currency": "USD", "country": "DE", "user_age_days": 400}).encode()
SECRETS = {"hook": "whsec_current", "hook_before": "whsec_before", "key": "0123456789abcdef"}
SETTINGS = {
    "webhooks": {NODE: {"extends": "stripe", "secrets": ["hook", "hook_before"]}},
    "keys": [{"name": "shop", "secret": "key"}],
}


def secret(name: str) -> str:
    if name not in SECRETS:
        raise EffectFailed("not_found", f"there is no secret `{name}`")
    return SECRETS[name]


def exchange_of(settings: Mapping[str, object] = SETTINGS) -> Exchange:
    serve = config_from({"serve": settings}, ROOT).serve
    node = vesper.load("payment_decision", nodes=ROOT / "nodes")
    return Exchange(build_table([node], serve, auth_table(serve, secret)))


def signed(text: str, body: bytes = BODY, age: int = 0) -> list[tuple[bytes, bytes]]:
    moment = int(time.time()) - age
    found = hmac.new(text.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
    return [(b"content-type", b"application/json"), (b"stripe-signature", f"t={moment},v1={found}".encode())]


@pytest.mark.parametrize("text", ["whsec_current", "whsec_before"])
def test_a_signed_request_needs_no_other_credentials(text: str) -> None:
    call = exchange_of().route("POST", PATH, signed(text))
    assert isinstance(call, ExchangeCall)
    assert call.inputs(BODY) == BODY
    assert call.actor == "stripe"


def test_a_body_that_does_not_fit_runs_nothing() -> None:
    call = exchange_of().route("POST", PATH, signed("whsec_current"))
    assert isinstance(call, ExchangeCall)
    answer = call.inputs(BODY + b" ")
    assert isinstance(answer, tuple)
    assert answer[0] == 401
    assert json.loads(answer[2])["detail"] == "The signature does not fit the body."


@pytest.mark.parametrize(
    "headers", [[], signed("whsec_current", age=301), [(b"x-api-key", b"0123456789abcdef")]], ids=["none", "old", "key"]
)
def test_other_requests_are_refused_by_their_head(headers: list[tuple[bytes, bytes]]) -> None:
    answer = exchange_of().route("POST", PATH, headers)
    assert isinstance(answer, tuple)
    assert answer[0] == 401


def test_a_signature_gives_no_scopes() -> None:
    answer = exchange_of({**SETTINGS, "scopes": {NODE: ["pay"]}}).route("POST", PATH, signed("whsec_current"))
    assert isinstance(answer, tuple)
    assert answer[0] == 403


def test_a_missing_secret_is_named() -> None:
    with pytest.raises(ConfigError, match=f"serve.webhooks.{NODE}.secrets: there is no secret `other`"):
        exchange_of({"webhooks": {NODE: {"extends": "stripe", "secrets": ["other"]}}})


def test_webhooks_of_a_node_that_is_not_served_are_refused() -> None:
    hook = {"extends": "stripe", "secrets": ["hook"]}
    with pytest.raises(ConfigError, match=r"serve\.webhooks\.payment_decision_v2: no node .* did you mean"):
        exchange_of({"webhooks": {"payment_decision_v2": hook}})
