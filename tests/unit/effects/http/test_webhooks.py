"""Signatures of webhooks by the schemes of packs."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from vesper.effects.http.webhooks import SignatureRefused, WebhookScheme, pack_scheme, verify
from vesper.effects.settings import ConfigError, Table

BODY = b'{"id": "evt_1"}'
NOW = 1_700_000_000.0


def mac(secret: str, text: bytes) -> str:
    return hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()


STRIPE = {"Stripe-Signature": f"t=1700000000,v1={mac('new', b'1700000000.' + BODY)},v0={mac('new', BODY)}"}
SLACK = {
    "X-Slack-Signature": f"v0={mac('new', b'v0:1700000000:' + BODY)}",
    "X-Slack-Request-Timestamp": "1700000000",
}


def test_the_example_of_github() -> None:
    """The values of docs.github.com, "Validating webhook deliveries"."""
    signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    verify(pack_scheme("github"), ["It's a Secret to Everybody"], {"X-Hub-Signature-256": signature}, b"Hello, World!")


def test_the_example_of_slack() -> None:
    """The values of docs.slack.dev, "Verifying requests from Slack"."""
    body = (
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
        b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
        b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
        b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
    )
    headers = {
        "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
        "x-slack-request-timestamp": "1531420618",
    }
    verify(pack_scheme("slack"), ["8f742231b10e8888abcd99yyyzzz85a5"], headers, body, 1531420700)


@pytest.mark.parametrize("pack, headers", [("stripe", STRIPE), ("slack", SLACK)])
def test_a_secret_that_is_being_replaced(pack: str, headers: dict[str, str]) -> None:
    for secrets in (["new"], ["old", "new"], ["new", "old"]):
        verify(pack_scheme(pack), secrets, headers, BODY, NOW)
    with pytest.raises(SignatureRefused, match="does not fit the body"):
        verify(pack_scheme(pack), ["old"], headers, BODY, NOW)


def test_a_sender_may_sign_with_both_secrets() -> None:
    old = mac("old", b"1700000000." + BODY)
    headers = {"stripe-signature": f"t=1700000000, v1={old}, v1={mac('new', b'1700000000.' + BODY)}"}
    verify(pack_scheme("stripe"), ["new"], headers, BODY, NOW)


@pytest.mark.parametrize(
    "headers, body, now, problem",
    [
        (STRIPE, BODY + b" ", NOW, "does not fit the body"),
        (STRIPE, BODY, NOW + 301, "too far from now"),
        (STRIPE, BODY, NOW - 301, "too far from now"),
        ({}, BODY, NOW, "is missing"),
        ({"Stripe-Signature": f"v1={mac('new', BODY)}"}, BODY, NOW, "no timestamp"),
        ({"Stripe-Signature": "t=1700000000,v1=abc"}, BODY, NOW, "no signature of a known form"),
        ({"Stripe-Signature": f"t=1700000000,v0={mac('new', BODY)}"}, BODY, NOW, "no signature of a known form"),
        ({"Stripe-Signature": STRIPE["Stripe-Signature"] + ",t=1700000001"}, BODY, NOW, "two timestamps"),
        ({**STRIPE, "stripe-signature": STRIPE["Stripe-Signature"]}, BODY, NOW, "is there twice"),
        ({"Stripe-Signature": STRIPE["Stripe-Signature"].replace("t=17", "t=+17")}, BODY, NOW, "no timestamp"),
    ],
)
def test_requests_that_are_refused(headers: dict[str, str], body: bytes, now: float, problem: str) -> None:
    with pytest.raises(SignatureRefused, match=problem):
        verify(pack_scheme("stripe"), ["new"], headers, body, now)


def test_the_limit_of_the_timestamp() -> None:
    verify(pack_scheme("stripe"), ["new"], STRIPE, BODY, NOW + 300)


@pytest.mark.parametrize(
    "values, problem",
    [
        ({"extends": "aws-s3", "secrets": ["x"]}, "describes no webhooks"),
        ({"extends": "stripe"}, "`secrets` is missing"),
        ({"extends": "stripe", "secrets": []}, "without one no signature can be verified"),
        ({"header": "X", "signed": "{body}.", "secrets": ["x"]}, "it ends with `{body}`"),
        ({"header": "X", "signed": "{timestamp}.{body}", "secrets": ["x"]}, "has `{timestamp}` where"),
        ({"header": "X", "signed": "{body}", "secrets": ["x"], "prfix": "a"}, "prfix: no such setting"),
    ],
)
def test_schemes_that_cannot_be_used(values: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        WebhookScheme.from_table(Table("vesper.toml: serve.webhooks.pay_v1", values), None)
