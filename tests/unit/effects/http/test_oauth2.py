"""OAuth 2 client credentials: one token for all, refreshed once, and never shown."""

from __future__ import annotations

import base64
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs

import pytest

from tests.support.web import Got, Script, Wire, closes, message, says
from tests.unit.effects.http.helpers import SECRETS, Side, ask_of, failure
from vesper.effects.http.performer import HttpPerformer

_CLIENT = {"type": "oauth2", "client_id": "my client", "client_secret": "{secret:other}"}


def _tokens(life: int = 3600) -> Script:
    """Give `token-0001`, `token-0002` and so on."""
    numbers = itertools.count(1)
    lock = threading.Lock()

    def script(got: Got, wire: Wire) -> None:
        with lock:
            token = f"token-{next(numbers):04}"
        says({"access_token": token, "token_type": "bearer", "expires_in": life})(got, wire)

    return script


def _performer(side: Side, **values: object) -> HttpPerformer:
    return side.performer(auth={**_CLIENT, "token_url": f"{side.web.url}/token", **values})


def _authorizations(side: Side) -> list[str]:
    return [got.headers["authorization"] for got in side.web.got if got.path == "/it"]


def test_a_token_is_requested_once_and_used_until_its_end(side: Side) -> None:
    side.web.on("/token", _tokens())
    side.web.on("/it", says(1))
    performer = side.performer(
        auth={**_CLIENT, "token_url": f"{side.web.url}/token", "scope": "a b", "audience": "x&y"}
    )
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: performer.perform(ask_of()), range(24)))
    (token,) = [got for got in side.web.got if got.path == "/token"]
    assert parse_qs(token.body.decode()) == {
        "grant_type": ["client_credentials"],
        "scope": ["a b"],
        "audience": ["x&y"],
    }
    pair = base64.b64decode(token.headers["authorization"].removeprefix("Basic "))
    assert pair == b"my+client:very+secret%2Ftext%2B"
    assert set(_authorizations(side)) == {"Bearer token-0001"}


def test_the_client_can_be_sent_in_the_form(side: Side) -> None:
    side.web.on("/token", _tokens())
    side.web.on("/it", says(1))
    _performer(side, client_auth="body").perform(ask_of())
    form = parse_qs(side.web.got[0].body.decode())
    assert (form["client_id"], form["client_secret"]) == (["my client"], [SECRETS["other"]])
    assert "authorization" not in side.web.got[0].headers


def test_a_token_at_its_end_is_replaced(side: Side) -> None:
    side.web.on("/token", _tokens(life=0))
    side.web.on("/it", says(1))
    performer = _performer(side)
    performer.perform(ask_of())
    performer.perform(ask_of())
    assert _authorizations(side) == ["Bearer token-0001", "Bearer token-0002"]


def test_a_refused_token_is_replaced_once(side: Side) -> None:
    side.web.on("/token", _tokens())
    performer = _performer(side)

    def refuses_first(got: Got, wire: Wire) -> None:
        is_old = got.headers["authorization"] == "Bearer token-0001"
        wire.send(message(401 if is_old else 200, b"1"))

    side.web.on("/it", refuses_first)
    assert performer.perform(ask_of(method="POST", body={"a": 1})) == 1
    assert _authorizations(side) == ["Bearer token-0001", "Bearer token-0002"]
    side.web.on("/it", says("no", 401))
    assert failure(performer, ask_of()).code == "http_401"
    assert _authorizations(side)[2:] == ["Bearer token-0002", "Bearer token-0003"]


def test_a_token_stands_in_no_message_and_no_answer(side: Side) -> None:
    side.web.on("/token", _tokens())
    performer = _performer(side)
    side.web.on("/it", lambda got, wire: wire.send(message(500, got.headers["authorization"].encode())))
    failed = failure(performer, ask_of())
    assert "token-0001" not in failed.message
    assert "secret:(access token)" in failed.message
    side.web.on("/it", lambda got, wire: says(got.headers["authorization"])(got, wire))
    assert failure(performer, ask_of()).code == "bad_response"


@pytest.mark.parametrize(
    "script, says_so",
    [
        (says({"error": "invalid_client"}, 401), "status 401, `invalid_client`"),
        (says({"error": "x" * 200}, 400), "status 400"),
        (says({"access_token": 5}), "its answer has no `access_token`"),
        (says({"access_token": "t" * 20, "token_type": "mac"}), "its tokens are not of the type `Bearer`"),
        (says({"access_token": "a\nb" * 9}), "no header can hold its `access_token`"),
        (says({"access_token": "t"}, 302, {"Location": "http://169.254.169.254/"}), "status 302"),
        (closes, "the connection was closed"),
    ],
)
def test_without_a_token_nothing_is_sent(side: Side, script: Script, says_so: str) -> None:
    side.web.on("/token", script)
    performer = _performer(side)
    failed = failure(performer, ask_of(method="POST", effect_class="unsafe", body={}))
    assert (failed.code, failed.may_have_happened) == ("unavailable", False)
    assert failed.message.startswith(f"nothing was sent: the token endpoint {side.web.url} of `shop`: ")
    assert says_so in failed.message
    assert _authorizations(side) == []


def test_an_endpoint_that_is_busy_says_when_to_come_back(side: Side) -> None:
    side.web.on("/token", says({}, 429, {"Retry-After": "7"}))
    assert failure(_performer(side), ask_of()).retry_after == 7


def test_the_address_of_the_token_endpoint_is_checked(side: Side) -> None:
    side.names["auth.example"] = ["169.254.169.254"]
    performer = side.performer(auth={**_CLIENT, "token_url": "http://auth.example/token"})
    failed = failure(performer, ask_of())
    assert (failed.code, failed.may_have_happened) == ("unavailable", False)
    assert "169.254.169.254" in failed.message
    assert side.web.connections == 0
