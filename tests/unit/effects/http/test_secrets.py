from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest

from tests.support.web import Got, Wire, message, says
from tests.unit.effects.http.helpers import SECRETS, Side, ask_of, failure
from vesper.effects.http.credentials import Template
from vesper.effects.performer import EffectFailed, no_secret
from vesper.values.types import INTEGER, STRING, MapOf


def test_references_in_headers_and_body_are_replaced(side: Side) -> None:
    side.web.on("/it", says(1))
    body = {"token": "secret:api_key", "deep": [{"text": "key=secret:other, and so on"}], "secret:api_key": 1}
    side.performer().perform(ask_of(method="POST", headers={"authorization": "Bearer secret:api_key"}, body=body))
    (got,) = side.web.got
    assert got.headers["authorization"] == f"Bearer {SECRETS['api_key']}"
    assert json.loads(got.body) == {
        "token": SECRETS["api_key"],
        "deep": [{"text": f"key={SECRETS['other']}, and so on"}],
        "secret:api_key": 1,
    }


@pytest.mark.parametrize(
    "text", ["secrets:api_key", "secret:another", "secret: api_key", "secret:", "Secret:api_key", "{secret:another}"]
)
def test_what_only_looks_like_a_reference_is_text(side: Side, text: str) -> None:
    side.web.on("/it", says(1))
    side.performer().perform(ask_of(method="POST", body=text, query={"q": text}))
    assert json.loads(side.web.got[0].body) == text


def test_a_secret_that_the_execution_may_not_use(side: Side) -> None:
    failed = failure(side.performer(), ask_of(method="POST", body="secret:api_key", secrets=no_secret))
    assert failed.message == "nothing was sent: the secret `api_key` may not be used here"
    assert side.web.connections == 0


def test_a_secret_is_not_looked_into_for_references(side: Side) -> None:
    side.web.on("/it", says(1))
    side.performer().perform(ask_of(method="POST", body="secret:one", secrets=lambda _: "secret:api_key"))
    assert json.loads(side.web.got[0].body) == "secret:api_key"


def test_the_credentials_of_the_provider(side: Side) -> None:
    side.web.on("/it", says(1))
    side.performer(auth={"header": "X-Key", "value": "{secret:api_key}"}).perform(ask_of(secrets=no_secret))
    side.performer(auth={"value": "Bearer {secret:api_key}"}).perform(ask_of(secrets=no_secret))
    side.performer(auth={"basic": {"user": "me", "password": "{secret:other}"}}).perform(ask_of(secrets=no_secret))
    side.performer(headers={"X-A": "a {secret:api_key} b"}).perform(ask_of(secrets=no_secret))
    headers = [got.headers for got in side.web.got]
    assert headers[0]["x-key"] == SECRETS["api_key"]
    assert headers[1]["authorization"] == f"Bearer {SECRETS['api_key']}"
    assert headers[2]["authorization"] == "Basic " + base64.b64encode(f"me:{SECRETS['other']}".encode()).decode()
    assert headers[3]["x-a"] == f"a {SECRETS['api_key']} b"


def test_a_secret_of_the_provider_that_is_missing(side: Side) -> None:
    failed = failure(side.performer(auth={"value": "{secret:absent}"}), ask_of())
    assert failed.message == "nothing was sent: there is no secret `absent`"
    assert side.web.connections == 0


@pytest.mark.parametrize("text", ["line\nbreak", "sk_test\r\n", "sk_test ", "\x00", "schlüssel"])
def test_a_secret_that_no_header_can_hold_is_named_and_not_shown(side: Side, text: str) -> None:
    ask = ask_of(headers={"x_key": "secret:mine"}, secrets=lambda _: text)
    failed = failure(side.performer(), ask)
    assert failed.message.startswith("nothing was sent: the header `x-key` ")
    assert text not in failed.message
    assert side.web.connections == 0


def test_no_form_of_a_secret_comes_back_in_a_message(side: Side) -> None:
    """A server that says in its error what it was sent, in whatever spelling."""

    def echo(got: Got, wire: Wire) -> None:
        text = got.headers["x-key"]
        basic = got.headers["authorization"].removeprefix("Basic ")
        forms = [text, quote(text), quote_plus(text), quote(text, safe=""), json.dumps(text), basic]
        forms.append(base64.b64encode(text.encode()).decode())
        wire.send(message(400, (" ".join(forms)).encode()))

    side.web.on("/it", echo)
    performer = side.performer(auth={"basic": {"user": "me", "password": "{secret:api_key}"}})
    failed = failure(performer, ask_of(headers={"x_key": "secret:other"}))
    for text in SECRETS.values():
        for form in (text, quote(text, safe=""), quote_plus(text), base64.b64encode(text.encode()).decode()):
            assert form not in failed.message
    assert base64.b64encode(f"me:{SECRETS['api_key']}".encode()).decode() not in failed.message
    assert "secret:other" in failed.message


@pytest.mark.parametrize("before", range(180, 202, 3))
def test_a_message_that_is_cut_inside_a_secret_shows_no_half_of_it(side: Side, before: int) -> None:
    def echo(got: Got, wire: Wire) -> None:
        wire.send(message(400, b"x" * before + got.headers["x-key"].encode()))

    side.web.on("/it", echo)
    message_ = failure(side.performer(), ask_of(headers={"x_key": "secret:api_key"})).message
    assert "sk_" not in message_


def test_the_text_of_a_body_that_is_no_json_shows_no_secret(side: Side) -> None:
    def echo(got: Got, wire: Wire) -> None:
        wire.send(message(200, b"you sent " + got.headers["x-key"].encode()))

    side.web.on("/it", echo)
    failed = failure(side.performer(), ask_of(headers={"x_key": "secret:api_key"}))
    assert (failed.code, "you sent secret:api_key" in failed.message) == ("bad_response", True)


MAPPED = MapOf(STRING, INTEGER)


@pytest.mark.parametrize("before", ["", "x" * 25, "x" * 50, "x" * 90, "x" * 190])
@pytest.mark.parametrize(
    "answer",
    [
        "HTTP/1.1 302 -\r\nLocation: /{}\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 302 -\r\nLocation: https://{}.example/\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 -\r\nContent-Type: {}\r\nContent-Length: 2\r\n\r\nno",
        "HTTP/1.1 200 -\r\nContent-Type: x; charset={}\r\nContent-Length: 2\r\n\r\n{{}}",
        "HTTP/1.1 200 -\r\nContent-Encoding: {}\r\nContent-Length: 2\r\n\r\n{{}}",
        'HTTP/1.1 200 -\r\n\r\n{{"{}": "no number"}}',
        "HTTP/1.1 200 - \r\n{}\r\n\r\n",
        "{} HTTP\r\n\r\n",
        "HTTP/1.1 500 {}\r\nContent-Length: 0\r\n\r\n",
    ],
    ids=lambda text: text[:40] if "{}" in text else str(len(text)),
)
def test_a_secret_that_comes_back_anywhere_is_not_shown_nor_any_half_of_it(
    side: Side, answer: str, before: str
) -> None:
    def echo(got: Got, wire: Wire) -> None:
        wire.send(answer.format(before + got.headers["x-key"]).encode())
        wire.close()

    side.web.on("/it", echo)
    ask = ask_of(headers={"x_key": "secret:api_key"}, gives=MAPPED)
    for performer in (side.performer(), side.performer(redirects="same_host")):
        assert "sk_" not in failure(performer, ask).message
    assert len(side.web.got) == 2


@pytest.mark.parametrize(
    "text", ["{}", "{secret}", "{secret:}", "{secret:A}", "a}", "{secret:a", "{{secret:a}}", "{a}"]
)
def test_a_template_has_braces_for_secrets_only(text: str) -> None:
    with pytest.raises(ValueError, match="braces are only for secrets"):
        Template.read(text)


def test_a_template_has_texts_around_its_secrets() -> None:
    assert Template.read("a{secret:x}{secret:y-1.z}b") == (("a", "", "b"), ("x", "y-1.z"))
    assert Template.read("plain") == (("plain",), ())


def test_what_another_part_says_about_a_secret_is_not_shown_either(side: Side) -> None:
    def resolver(name: str) -> str:
        if name == "api_key":
            return SECRETS[name]
        raise EffectFailed("not_found", f"the vault has {SECRETS['api_key']} but not `{name}`")

    failed = failure(side.performer(), ask_of(headers={"x_a": "secret:api_key secret:absent"}, secrets=resolver))
    assert failed.message == "nothing was sent: the vault has secret:api_key but not `absent`"


def test_a_secret_that_is_no_text(side: Side) -> None:
    failed = failure(side.performer(), ask_of(headers={"x_key": "secret:mine"}, secrets=lambda _: "\udcff"))
    assert (failed.code, failed.message) == ("unavailable", "nothing was sent: the secret `mine` is no valid text")
