from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.web import Web, redirects, says
from tests.unit.effects.http.helpers import SECRETS, Side, ask_of, failure


@pytest.fixture
def other() -> Iterator[Web]:
    with Web() as server:
        server.on("/there", says("there"))
        yield server


def test_redirects_are_not_followed_unless_the_settings_say_so(side: Side) -> None:
    side.web.on("/it", redirects("/there"))
    failed = failure(side.performer(), ask_of())
    assert failed.code == "http_302"
    assert "are not followed (`redirects`): `/there`" in failed.message
    assert len(side.web.got) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_the_same_host_keeps_credentials(side: Side, status: int) -> None:
    side.web.on("/it", redirects("/there?x=1", status))
    side.web.on("/there", says("there"))
    performer = side.performer(redirects="same_host", auth={"value": "Bearer {secret:api_key}"})
    assert performer.perform(ask_of()) == "there"
    assert [got.target for got in side.web.got] == ["/it", "/there?x=1"]
    assert side.web.got[1].headers["authorization"] == f"Bearer {SECRETS['api_key']}"
    assert side.web.connections == 1


def test_an_absolute_location_and_one_without_a_scheme(side: Side) -> None:
    side.web.on("/it", redirects(f"{side.web.url}/next#part"))
    side.web.on("/next", redirects(f"//127.0.0.1:{side.web.port}/there"))
    side.web.on("/there", says("there"))
    assert side.performer(redirects="same_host").perform(ask_of()) == "there"
    assert [got.target for got in side.web.got] == ["/it", "/next", "/there"]


def test_a_post_is_sent_again_only_where_that_is_what_is_meant(side: Side) -> None:
    side.web.on("/there", says("there"))
    performer = side.performer(redirects="same_host")
    ask = ask_of(method="POST", body={"a": 1}, effect_class="keyed", key="k")
    for status, sent in ((307, ("POST", b'{"a":1}', "k")), (308, ("POST", b'{"a":1}', "k")), (303, ("GET", b"", "k"))):
        side.web.on("/it", redirects("/there", status))
        assert performer.perform(ask) == "there"
        got = side.web.got[-1]
        assert (got.method, got.body, got.headers["idempotency-key"]) == sent
        assert ("content-type" in got.headers) == (got.method == "POST")
    for status in (301, 302):
        side.web.on("/it", redirects("/there", status))
        failed = failure(performer, ask)
        assert failed.code == f"http_{status}"
        assert "only by 303, 307 or 308" in failed.message


@pytest.mark.parametrize("how", ["none", "same_host"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_redirect_after_a_post_may_mean_that_it_is_done(side: Side, status: int, method: str, how: str) -> None:
    """Also where what comes of the redirect is another failure."""
    side.web.on("/it", redirects("/gone", status))
    failed = failure(side.performer(redirects=how), ask_of(method=method))
    assert failed.code in ("http_404", f"http_{status}")
    assert failed.may_have_happened == (method == "POST" and status < 307)


def test_a_redirect_loop_ends(side: Side) -> None:
    side.web.on("/it", redirects("/it"))
    failed = failure(side.performer(redirects="same_host"), ask_of())
    assert (failed.code, "more than 5 redirects" in failed.message) == ("http_302", True)
    assert len(side.web.got) == 6


def test_five_redirects_are_followed(side: Side) -> None:
    side.web.on("/it", redirects("/1"))
    for number in range(1, 5):
        side.web.on(f"/{number}", redirects(f"/{number + 1}"))
    side.web.on("/5", says("there"))
    assert side.performer(redirects="same_host").perform(ask_of()) == "there"


@pytest.mark.parametrize("how", ["same_host", "allowed_hosts"])
@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00:ec2::254]/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://127.1/",
        "http://localhost/",
        "//evil.example/there",
        "///evil.example/there",
        "https://evil.example/there",
        "http://127.0.0.1@evil.example/there",
        "http://user:pass@127.0.0.1/there",
        "http://127.0.0.1\\@evil.example/",
        "\\\\evil.example\\there",
        "/\\evil.example/there",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "there",
        "?x",
        "",
        "/a/../there",
        "/%2e%2e/there",
        "http://[::ffff:127.0.0.1]/there",
        "http://127.0.0.1:1/there",
        "/" + "a" * 9000,
    ],
    ids=lambda text: text[:30],
)
def test_a_redirect_cannot_lead_elsewhere(side: Side, location: str, how: str) -> None:
    side.web.on("/it", redirects(location))
    failed = failure(side.performer(redirects=how), ask_of())
    assert failed.code == "http_302"
    assert failed.message.startswith("`shop` answered with status 302: ")
    assert (side.web.connections, len(side.web.got)) == (1, 1)


def test_a_redirect_without_a_location(side: Side) -> None:
    side.web.on("/it", says("x", 302))
    assert "without a `Location`" in failure(side.performer(redirects="same_host"), ask_of()).message


def test_an_allowed_host_that_leads_inside_is_refused(side: Side) -> None:
    side.names["files.shop.example"] = ["169.254.169.254"]
    side.web.on("/it", redirects("http://files.shop.example/there"))
    allowed = [f"127.0.0.1:{side.web.port}", "files.shop.example"]
    failed = failure(side.performer(redirects="allowed_hosts", allowed_hosts=allowed), ask_of())
    assert failed.code == "http_302"
    assert "`files.shop.example` is at 169.254.169.254 (the metadata service of a cloud)" in failed.message


def test_another_host_gets_no_credentials(side: Side, other: Web) -> None:
    side.web.on("/it", redirects(f"{other.url}/there", 307))
    allowed = ["127.0.0.1", f"127.0.0.1:{other.port}"]
    performer = side.performer(
        redirects="allowed_hosts",
        allowed_hosts=allowed,
        auth={"value": "Bearer {secret:api_key}"},
        headers={"X-Static": "{secret:other}"},
    )
    assert performer.perform(ask_of(headers={"x_token": "secret:api_key", "cookie": "a=b"})) == "there"
    (got,) = other.got
    assert got.headers == {
        "host": f"127.0.0.1:{other.port}",
        "user-agent": "vesper",
        "accept": "application/json",
        "accept-encoding": "identity",
    }
    assert side.web.got[0].headers["x-static"] == SECRETS["other"]


def test_nothing_but_a_get_goes_to_another_host(side: Side, other: Web) -> None:
    side.web.on("/it", redirects(f"{other.url}/there", 307))
    performer = side.performer(redirects="allowed_hosts", allowed_hosts=["127.0.0.1", f"127.0.0.1:{other.port}"])
    failed = failure(performer, ask_of(method="POST", body={"a": 1}))
    assert (failed.code, "a POST is not sent to another host" in failed.message) == ("http_307", True)
    assert other.connections == 0
