from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime

import pytest

from tests.support.web import message, says, sends
from tests.unit.effects.http.helpers import Side, ask_of, failure
from vesper.values.model import same
from vesper.values.types import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    INTEGER,
    JSON,
    STRING,
    TIMESTAMP,
    ArrayOf,
    Enum,
    MapOf,
    OptionalOf,
    Record,
    SetOf,
    Type,
)

CHARGE = Record((("id", STRING), ("status", Enum(("succeeded", "pending"))), ("fee", OptionalOf(DECIMAL))))


@pytest.mark.parametrize(
    "body, gives, value",
    [
        (b'{"b":[1,1.50,null,true],"a":"x"}', JSON, {"a": "x", "b": [1, Decimal("1.50"), None, True]}),
        (b'{"id":"ch_1","status":"pending","more":1}', CHARGE, {"id": "ch_1", "status": "pending", "fee": None}),
        (
            b'{"fee":0.10,"id":"c","status":"succeeded"}',
            CHARGE,
            {"id": "c", "status": "succeeded", "fee": Decimal("0.10")},
        ),
        (b"12", INTEGER, 12),
        (b"12", DECIMAL, Decimal(12)),
        (b'"12.50"', DECIMAL, Decimal("12.50")),
        (b"0.5", FLOAT, 0.5),
        (b"true", BOOLEAN, True),
        ('"grün"'.encode(), STRING, "grün"),
        (b'"aGk="', BYTES, b"hi"),
        (b'"2026-11-15"', DATE, date(2026, 11, 15)),
        (b'"2026-11-15T01:02:03Z"', TIMESTAMP, datetime(2026, 11, 15, 1, 2, 3, tzinfo=UTC)),
        (b'"PT90S"', DURATION, timedelta(seconds=90)),
        (b"[3,1]", ArrayOf(INTEGER), [3, 1]),
        (b"[3,1]", SetOf(INTEGER), frozenset({1, 3})),
        (b'{"EUR":1.1,"CHF":2}', MapOf(STRING, DECIMAL), {"CHF": Decimal(2), "EUR": Decimal("1.1")}),
        (b"[[2,true],[1,false]]", MapOf(INTEGER, BOOLEAN), {1: False, 2: True}),
        (b"null", OptionalOf(CHARGE), None),
        (b"null", JSON, None),
        (b"", OptionalOf(CHARGE), None),
        (b"", JSON, None),
        (b' \r\n{"a": 1}\n', JSON, {"a": 1}),
    ],
    ids=lambda each: ascii(each)[:40],
)
def test_the_body_is_cast_to_the_declared_type(side: Side, body: bytes, gives: Type, value: object) -> None:
    side.web.on("/it", sends(message(200, body)))
    assert same(side.performer().perform(ask_of(gives=gives)), value)


@pytest.mark.parametrize(
    "body, gives, problem",
    [
        (b'{"id":"c","status":"gone"}', CHARGE, "body.status is not_a_member, enum[succeeded, pending] is expected"),
        (b'{"status":"pending"}', CHARGE, "body.id is missing, string is expected"),
        (b'{"id":1,"status":"pending"}', CHARGE, "body.id is wrong_type, string is expected"),
        (b'{"id":"c","status":"pending","fee":"x"}', CHARGE, "body.fee is malformed, decimal is expected"),
        (b"[1,2,[3]]", ArrayOf(INTEGER), "body[2] is wrong_type, integer is expected"),
        (b'[{"a":{"k":[0.5]}}]', ArrayOf(MapOf(STRING, MapOf(STRING, SetOf(INTEGER)))), 'body[0]["a"]["k"] is'),
        (b"null", CHARGE, "body is wrong_type"),
        (b"9223372036854775808", INTEGER, "body is out_of_range, integer is expected"),
        (b"", CHARGE, "has no body, and a value of type {id: string"),
        (b"<html>no</html>", JSON, "is no JSON (malformed): <html>no</html>"),
        (b'{"a":1,"a":2}', JSON, "is no JSON (malformed)"),
        (b"NaN", JSON, "is no JSON (malformed)"),
        (b"{'a': 1}", JSON, "is no JSON (malformed)"),
        (b"[1,]", JSON, "is no JSON (malformed)"),
        (b"[" * 5000 + b"]" * 5000, JSON, "is no JSON (too_deep)"),
        (b'"\xff"', STRING, "is not in UTF-8: byte 1 of its body"),
        (b'"\\ud800"', STRING, "is no JSON (malformed)"),
        (b"\xef\xbb\xbf{}", JSON, "is no JSON (malformed)"),
        (b"\x1b[31mred", JSON, "is no JSON (malformed): \\x1b[31mred"),
        (b"1" * 5000, INTEGER, "is no JSON (malformed)"),
        (b"1e999999999", DECIMAL, "is no JSON (malformed)"),
    ],
    ids=lambda each: ascii(each)[:40],
)
def test_a_body_that_does_not_fit_says_where(side: Side, body: bytes, gives: Type, problem: str) -> None:
    side.web.on("/it", sends(message(200, body)))
    failed = failure(side.performer(), ask_of(gives=gives))
    assert (failed.code, failed.may_have_happened) == ("bad_response", True)
    assert problem in failed.message


def test_the_content_type_is_named_where_the_body_is_no_json(side: Side) -> None:
    side.web.on("/it", sends(message(200, b"<p>", {"Content-Type": "text/html; charset=utf-8"})))
    assert "it is of type `text/html; charset=utf-8`: <p>" in failure(side.performer(), ask_of()).message
    side.web.on("/it", sends(message(200, b'"x"', {"Content-Type": "application/json; charset=ISO-8859-1"})))
    failed = failure(side.performer(), ask_of())
    assert (failed.code, "`ISO-8859-1`" in failed.message) == ("bad_response", True)
    side.web.on("/it", sends(message(200, b'"x"', {"Content-Type": 'text/plain; charset="UTF-8"'})))
    assert side.performer().perform(ask_of()) == "x"


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_every_2xx_is_an_answer(side: Side, status: int) -> None:
    side.web.on("/it", sends(f"HTTP/1.1 {status} -\r\n\r\n".encode(), then_close=True))
    assert side.performer().perform(ask_of(gives=OptionalOf(STRING))) is None


@pytest.mark.parametrize(
    "status", [300, 304, 400, 401, 402, 404, 409, 410, 418, 422, 429, 500, 501, 502, 503, 504, 599]
)
def test_any_other_status_is_a_failure_of_its_number(side: Side, status: int) -> None:
    body = b"" if status == 304 else b'{"error": {"code": "no"}}'
    side.web.on("/it", sends(message(status, body)))
    failed = failure(side.performer(), ask_of(method="POST"))
    assert failed.code == f"http_{status}"
    assert failed.message.startswith(f"`shop` answered with status {status}")
    assert ('{"error": {"code": "no"}}' in failed.message) == (status != 304)
    assert failed.may_have_happened == (status in (502, 504))


def test_the_message_shows_only_the_beginning_of_a_body(side: Side) -> None:
    side.web.on("/it", sends(message(500, b"x" * 100_000)))
    shown = failure(side.performer(), ask_of()).message.partition(": ")[2]
    assert shown == "x" * 199 + "…"


def in_a_minute() -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)


@pytest.mark.parametrize(
    "text, least, most",
    [
        ("0", 0, 0),
        ("7", 7, 7),
        ("3600", 300, 300),
        ("9" * 18, 300, 300),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 300, 300),
        ("in a minute", 1, 60),
    ],
)
def test_how_long_the_provider_asks_us_to_wait(side: Side, text: str, least: float, most: float) -> None:
    text = in_a_minute() if text == "in a minute" else text
    side.web.on("/it", sends(message(429, headers={"Retry-After": text})))
    wait = failure(side.performer(retry_after_max="300s"), ask_of()).retry_after
    assert wait is not None
    assert least <= wait <= most


@pytest.mark.parametrize("text", ["", "soon", "-1", "1.5", "9" * 400, "٣", "Wed, 99 Oct 2015 07:28:00 GMT"])
def test_a_wait_that_nobody_understands_is_none(side: Side, text: str) -> None:
    side.web.on("/it", sends(b"HTTP/1.1 503 -\r\nContent-Length: 0\r\nRetry-After: " + text.encode() + b"\r\n\r\n"))
    assert failure(side.performer(), ask_of()).retry_after is None


def test_a_head_has_no_body_and_its_connection_is_kept(side: Side) -> None:
    side.web.on("/it", sends(b"HTTP/1.1 200 -\r\nContent-Length: 99999999\r\n\r\n"))
    performer = side.performer()
    assert [performer.perform(ask_of(method="HEAD")) for _ in range(3)] == [None, None, None]
    assert side.web.connections == 1


# -- what is sent ---------------------------------------------------------------------------------


def test_a_request_as_it_arrives(side: Side) -> None:
    side.web.on("/base/v1/orders/a%2Fb", says({"ok": True}, 201))
    performer = side.performer(base_url=f"{side.web.url}/base/")
    body = {"amount": Decimal("9.90"), "items": [1, None, True], "name": "Zoë \n"}
    query = {
        "q": "a b&c=d/ü",
        "n": Decimal("1.50"),
        "is": True,
        "on": date(2026, 1, 2),
        "none": None,
        "tags": ["x", "y z"],
        "ids": frozenset({2, 1}),
    }
    ask = ask_of(
        "/v1/orders/a%2Fb", "PUT", query=query, headers={"x_reason": "because of it"}, body=body, effect_class="unsafe"
    )
    assert performer.perform(ask) == {"ok": True}
    (got,) = side.web.got
    assert got.method == "PUT"
    assert got.target == (
        "/base/v1/orders/a%2Fb?q=a%20b%26c%3Dd%2F%C3%BC&n=1.50&is=true&on=2026-01-02&tags=x&tags=y%20z&ids=1&ids=2"
    )
    assert got.body.decode() == '{"amount":9.90,"items":[1,null,true],"name":"Zoë \\n"}'
    assert got.headers == {
        "host": f"127.0.0.1:{side.web.port}",
        "user-agent": "vesper",
        "accept": "application/json",
        "x-reason": "because of it",
        "content-type": "application/json",
        "accept-encoding": "identity",
        "content-length": str(len(got.body)),
    }


def test_a_query_in_the_endpoint_comes_first(side: Side) -> None:
    side.web.on("/it", says(1))
    side.performer().perform(ask_of("/it?expand=a%20b", query={"page": 2}))
    side.performer().perform(ask_of("/it?expand=a"))
    side.performer().perform(ask_of("/it"))
    assert [got.target for got in side.web.got] == ["/it?expand=a%20b&page=2", "/it?expand=a", "/it"]


def test_no_body_and_a_body_that_is_null_are_two_things(side: Side) -> None:
    side.web.on("/it", says(1))
    performer = side.performer()
    performer.perform(ask_of(method="POST"))
    performer.perform(ask_of(method="POST", body=None))
    performer.perform(ask_of(method="DELETE"))
    assert [(got.body, got.headers.get("content-length")) for got in side.web.got] == [
        (b"", "0"),
        (b"null", "4"),
        (b"", None),
    ]


def test_a_form(side: Side) -> None:
    side.web.on("/it", says(1))
    body = {
        "amount": 990,
        "metadata": {"order id": "o&1", "none": None},
        "items": [{"id": "a"}, {"id": "b"}],
        "yes": True,
        "rate": Decimal("1.50"),
    }
    side.performer(body="form").perform(ask_of(method="POST", body=body))
    (got,) = side.web.got
    assert got.headers["content-type"] == "application/x-www-form-urlencoded"
    assert got.body.decode() == (
        "amount=990&items%5B0%5D%5Bid%5D=a&items%5B1%5D%5Bid%5D=b&metadata%5Border+id%5D=o%261&rate=1.50&yes=true"
    )


@pytest.mark.parametrize(
    "body", ["text", [1], None, {"a[b]": 1}, {"": 1}, {"a": [1] * 10_001}], ids=lambda b: str(b)[:20]
)
def test_what_is_no_form_is_not_sent(side: Side, body: object) -> None:
    assert failure(side.performer(body="form"), ask_of(method="POST", body=body)).code == "invalid_argument"
    assert side.web.connections == 0


@pytest.mark.parametrize(
    "key, sent",
    [
        ("order-1", "order-1"),
        ("refund ch_3", "refund ch_3"),
        (" a ", "%20a%20"),
        ("  ", "%20%20"),
        ("100%", "100%25"),
        ("%20a", "%2520a"),
        ("Zoë\r\n", "Zo%C3%AB%0D%0A"),
    ],
)
def test_the_key_is_a_header(side: Side, key: str, sent: str) -> None:
    side.web.on("/it", says(1))
    side.performer().perform(ask_of(method="POST", effect_class="keyed", key=key))
    side.performer(key_header="X-Request-Id").perform(ask_of(method="POST", effect_class="keyed", key=key))
    assert side.web.got[0].headers["idempotency-key"] == sent
    assert side.web.got[1].headers["x-request-id"] == sent
    assert "idempotency-key" not in side.web.got[1].headers


def test_a_node_may_say_its_key_again_but_no_other(side: Side) -> None:
    side.web.on("/it", says(1))
    performer = side.performer()
    performer.perform(ask_of(method="POST", effect_class="keyed", key="k", headers={"idempotency_key": "k"}))
    assert [got.headers["idempotency-key"] for got in side.web.got] == ["k"]
    ask = ask_of(method="POST", effect_class="keyed", key="k", headers={"idempotency_key": "l"})
    assert "something else than the key" in failure(performer, ask).message
    assert len(side.web.got) == 1


def test_other_classes_send_no_key(side: Side) -> None:
    side.web.on("/it", says(1))
    side.performer().perform(ask_of(method="POST", effect_class="unsafe", key="k"))
    assert "idempotency-key" not in side.web.got[0].headers
