"""Attempts to slip past: each is refused before anything is sent, so the server has not even seen a connection."""

from __future__ import annotations

import pytest

from tests.unit.effects.http.helpers import Side, ask_of, failure, settings_of
from vesper.effects.settings import ConfigError

ENDPOINTS = [
    "https://evil.example/x",
    "http://127.0.0.1/",
    "//evil.example/x",
    "///evil.example/x",
    "\\\\evil.example/x",
    "/\\evil.example/x",
    "/a\\..\\b",
    "@evil.example/x",
    "evil.example/x",
    ":80/x",
    ".evil.example/x",
    "../x",
    "/..",
    "/../x",
    "/a/../../x",
    "/a/./b",
    "/%2e%2e/x",
    "/%2E./x",
    "/.%2e/x",
    "/a/..%2f..%2fx",
    "/a/..%5c..%5cx",
    "/%252e%252e/x",
    "/%25252e%25252e/x",
    "/%2525252525252e/x",
    "/..;/x",
    "/..;jsessionid=1/x",
    "/%2e%2e%3bx/y",
    "/a//b",
    "/a/%",
    "/a/%2",
    "/a/%zz",
    "/a b",
    "/a\r\nX-Evil: 1",
    "/a\nb",
    "/a\x00b",
    "/a%00b",
    "/a%0d%0aX-Evil:%201",
    "/a\tb",
    "/a\x7fb",
    "/bücher",
    "/a#b",
    "/a?x=1#y",
    "/a?x= 1",
    '/a"b',
    "/<script>",
    "/{secret}",
    "/a/secret:api_key",
    "/a?token=secret:api_key",
    "/" + "a" * 9000,
]


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda text: ascii(text)[:40])
def test_an_endpoint_cannot_leave_its_base(side: Side, endpoint: str) -> None:
    failed = failure(side.performer(base_url=f"{side.web.url}/base"), ask_of(endpoint))
    assert (failed.code, failed.may_have_happened) == ("invalid_argument", False)
    assert failed.message.startswith("nothing was sent: ")
    assert (side.web.connections, side.web.got) == (0, [])


HEADERS = [
    {"host": "evil.example"},
    {"Host": "evil.example"},
    {"content_length": "0"},
    {"transfer_encoding": "chunked"},
    {"connection": "close"},
    {"upgrade": "h2c"},
    {"te": "trailers"},
    {"expect": "100-continue"},
    {"accept_encoding": "gzip"},
    {"proxy_authorization": "Basic eA=="},
    {"x_a": "1\r\nX-Evil: 1"},
    {"x_a": "1\nX-Evil: 1"},
    {"x_a": "1\rX-Evil: 1"},
    {"x_a": "a\x00b"},
    {"x_a": "a\x0bb"},
    {"x_a": " a"},
    {"x_a": "a "},
    {"x_a": "bücher"},
    {"x_a": "a\u2028b"},
    {"x_a": "a" * 9000},
    {"x a": "1"},
    {"x:a": "1"},
    {"x\r\ny": "1"},
    {"": "1"},
    {"ü": "1"},
    {"x_a": "1", "x-a": "2"},
    {"authorization": "Bearer mine"},
    {"x_tenant": "other"},
    {f"x_{number}": "a" * 8000 for number in range(9)},
]


@pytest.mark.parametrize("headers", HEADERS, ids=lambda each: ascii(each)[:40])
def test_a_header_cannot_become_two_nor_replace_what_is_configured(side: Side, headers: dict[str, str]) -> None:
    performer = side.performer(auth={"value": "Bearer {secret:api_key}"}, headers={"X-Tenant": "mine"})
    failed = failure(performer, ask_of(headers=headers))
    assert (failed.code, failed.may_have_happened) == ("invalid_argument", False)
    assert failed.message.startswith("nothing was sent: ")
    assert side.web.connections == 0


ADDRESSES = [
    *("10.0.0.1", "169.254.169.254", "127.0.0.1", "0.0.0.0", "100.64.0.1", "224.0.0.1", "255.255.255.255"),
    *("::1", "::", "fe80::1", "fd00:ec2::254", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1"),
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_name_that_leads_inside_is_refused_when_it_is_connected_to(side: Side, address: str) -> None:
    """The name is as public as can be; only where it leads is not. This is what DNS rebinding comes to."""
    side.names["api.shop.example"] = [address]
    base = f"https://api.shop.example:{side.web.port}"
    failed = failure(side.performer(base_url=base, allow_private_addresses=False), ask_of())
    assert (failed.code, failed.may_have_happened) == ("unavailable", False)
    assert failed.message.startswith("nothing was sent: `api.shop.example` is at ")
    # The setting is named where it would help, and only there: the metadata services of clouds stay closed.
    closed = ("169.254.169.254", "0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "fe80::1", "fd00:ec2::254")
    opens = address not in (*closed, "2002:7f00:1::")
    assert ("allow_private_addresses = true" in failed.message) is opens
    assert side.web.connections == 0


def test_each_connection_looks_at_the_address_anew(side: Side) -> None:
    """Somebody who answers first with an address that is allowed, and then with one that is not, gains nothing."""
    answers = iter([["127.0.0.1"], ["169.254.169.254"]])
    performer = side.performer(base_url=f"http://shop.example:{side.web.port}")
    side.names["shop.example"] = next(answers)
    assert failure(performer, ask_of()).code == "http_404"
    performer.close()
    side.names["shop.example"] = next(answers)
    assert "metadata" in failure(performer, ask_of()).message
    assert side.web.connections == 1


def test_of_several_addresses_only_those_are_tried_that_are_allowed(side: Side) -> None:
    side.names["shop.example"] = ["169.254.169.254", "0.0.0.0", "127.0.0.1"]
    performer = side.performer(base_url=f"http://shop.example:{side.web.port}")
    assert failure(performer, ask_of()).code == "http_404"
    assert side.web.connections == 1


BASE_URLS = [
    *("http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/", "http://127.1/", "http://127.0.0.1.0/"),
    *("http://user@example.com/", "http://user:pass@example.com/", "http://example.com@evil.example/"),
    *(
        "http://example.com\\@evil.example/",
        "http://exam ple.com/",
        "http://example.com:0/",
        "http://example.com:99999/",
    ),
    *(
        "http://example.com:8o/",
        "http://[::1/",
        "http://[::1%25eth0]/",
        "http://①②⑦.0.0.1/",
        "http:///x",
        "http:example",
    ),
    *("ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "//example.com/", "example.com", ""),
    *("http://example.com/a/../b", "http://example.com/%2e%2e/b", "http://example.com/?x=1", "http://example.com/#x"),
    *("http://example.com/\r\nX: 1", "javascript:alert(1)", "http://example.com:80:80/", "http://１.1.1.1/"),
]


@pytest.mark.parametrize("base_url", BASE_URLS)
def test_a_base_url_is_a_plain_one(base_url: str) -> None:
    with pytest.raises(ConfigError, match=r"providers\.shop"):
        settings_of({"base_url": base_url, "allow_http": True})


@pytest.mark.parametrize(
    "arguments, problem",
    [
        ({"query": {"a": {"b": 1}}}, "`a` of the query"),
        ({"query": {"a": [[1]]}}, "`a` of the query"),
        ({"query": {"q": "secret:api_key"}}, "a secret stands in the endpoint or the query"),
        ({"query": {"q": "a" * 9000}}, "more than 8,192"),
        ({"body": "secret:unknown"}, "there is no secret `unknown`"),
        ({"headers": {"x_a": "secret:unknown"}}, "there is no secret `unknown`"),
    ],
)
def test_other_parts_that_are_refused(side: Side, arguments: dict[str, object], problem: str) -> None:
    failed = failure(side.performer(), ask_of(**arguments))  # type: ignore[arg-type]
    assert failed.code == "invalid_argument"
    assert problem in failed.message
    assert side.web.connections == 0


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "get", "GET / HTTP/1.1\r\nX: ", ""])
def test_a_method_is_one_of_a_few(side: Side, method: str) -> None:
    assert failure(side.performer(), ask_of(method=method)).code == "invalid_argument"
    assert side.web.connections == 0


def test_a_provider_that_nobody_configured(side: Side) -> None:
    failed = failure(side.performer(), ask_of(provider="shopp"))
    assert failed.message == "nothing was sent: no provider `shopp` is configured: add `[providers.shopp]`"


@pytest.mark.parametrize("key", ["", "k" * 256, "ü" * 64])
def test_a_key_that_no_header_can_hold(side: Side, key: str) -> None:
    failed = failure(side.performer(), ask_of(method="POST", effect_class="keyed", key=key))
    assert failed.code == "invalid_argument"
    assert "the key of the request" in failed.message
    assert side.web.connections == 0


def test_a_keyed_request_without_a_key_is_not_sent(side: Side) -> None:
    assert "has no key" in failure(side.performer(), ask_of(method="POST", effect_class="keyed")).message
    assert side.web.connections == 0
