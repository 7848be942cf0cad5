"""Requests that no proper client sends, as bytes, with the statuses that may answer them.

An empty set means that the connection ends without an answer. Requests of `SMUGGLED` carry a second one, which no
answer may follow.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

PATH = "/nodes/payment_decision_v1"
GOOD = {"amount": "50.00", "balance": "100.00", "currency": "USD", "country": "DE", "user_age_days": 400}
BODY = json.dumps(GOOD).encode()
SECOND = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
REFUSED = frozenset({400, 404, 405, 408, 411, 413, 414, 415, 417, 422, 426, 431, 501, 505})
TOO_LARGE = frozenset({400, 413, 414, 431})


@dataclass(frozen=True)
class Attack:
    name: str
    data: bytes
    statuses: frozenset[int] = REFUSED
    is_second_forbidden: bool = True
    """Whether a second answer is a fault."""


def post(*headers: str, body: bytes = BODY, has_length: bool = True, path: str = PATH) -> bytes:
    """Return a POST of JSON with these further headers."""
    lines = [f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json", *headers]
    if has_length:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def chunked(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


def _get(*lines: str, first: str = "GET /livez HTTP/1.1") -> bytes:
    return "\r\n".join([first, *lines, "", ""]).encode("latin-1")


MALFORMED = [
    Attack("no target", b"GET\r\n\r\n"),
    Attack("HTTP/0.9", b"GET /livez\r\n\r\n"),
    Attack("unknown version", _get("Host: x", first="GET /livez HTTP/9.9")),
    Attack("two spaces", _get("Host: x", first="GET  /livez HTTP/1.1")),
    Attack("lower-case protocol", _get("Host: x", first="GET /livez http/1.1")),
    Attack("HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    Attack("TLS hello", bytes.fromhex("16030100c8010000c40303") + bytes(190)),
    Attack("binary", bytes(range(256)) * 2 + b"\r\n\r\n"),
    Attack("NUL in target", b"GET /li\0vez HTTP/1.1\r\nHost: x\r\n\r\n"),
    Attack("target without slash", _get("Host: x", first="GET livez HTTP/1.1")),
    Attack("broken escape", _get("Host: x", first="GET /livez%zz HTTP/1.1")),
    Attack("escaped NUL", _get("Host: x", first="GET /%00 HTTP/1.1")),
    Attack("parent folders", _get("Host: x", first="GET /../../etc/passwd HTTP/1.1")),
    Attack("non-ASCII method", b"G\xc3\x89T /livez HTTP/1.1\r\nHost: x\r\n\r\n"),
    Attack("long method", b"G" * 9000 + b" /livez HTTP/1.1\r\nHost: x\r\n\r\n"),
    Attack("no Host", _get()),
    Attack("two Hosts", _get("Host: x", "Host: y")),
    Attack("no colon", _get("Host: x", "nonsense")),
    Attack("empty header name", _get("Host: x", ": y")),
    Attack("space in header name", _get("Host: x", "X Y: z")),
    Attack("space before the colon", _get("Host : x")),
    Attack("folded header", _get("Host: x", "X-A: b", " c")),
    Attack("NUL in header", _get("Host: x", "X-A: b\0c")),
    Attack("carriage return in header", _get("Host: x", "X-A: b\rc")),
    Attack("no JSON", post(body=b"{")),
    Attack("no object", post(body=b"[1]")),
    Attack("empty body", post(body=b"")),
    Attack("broken UTF-8", post(body=b'{"country": "\xff\xfe"}')),
    Attack("lone surrogate", post(body=BODY.replace(b"DE", b"\\ud800x"))),
    Attack("repeated member", post(body=BODY.replace(b"{", b'{"amount": "1", ', 1))),
    Attack("NaN", post(body=BODY.replace(b"400", b"NaN"))),
    Attack("huge exponent", post(body=BODY.replace(b'"50.00"', b"1e999999999"))),
    Attack("huge negative exponent", post(body=BODY.replace(b'"50.00"', b'"1e-999999999"'))),
    Attack("half a million digits", post(body=BODY.replace(b'"50.00"', b"9" * 500_000))),
    Attack("deep arrays", post(body=b"[" * 500_000)),
    Attack("deep objects", post(body=b'{"a":' * 150_000)),
    Attack("unknown encoding", post("Content-Encoding: gzip")),
    Attack("unknown charset", post("Content-Type: application/json; charset=utf-7")),
]
OVERSIZED = [
    Attack("long target", _get("Host: x", first=f"GET /{'a' * 40_000} HTTP/1.1"), TOO_LARGE),
    Attack("long query", _get("Host: x", first=f"GET /livez?{'a=1&' * 10_000} HTTP/1.1"), TOO_LARGE),
    Attack("long header", _get("Host: x", f"X-A: {'a' * 40_000}"), TOO_LARGE),
    Attack("many headers", _get("Host: x", *(f"X-{number}: a" for number in range(400))), TOO_LARGE),
    Attack("announced body", post("Content-Length: 4000000000", has_length=False, body=b"{"), TOO_LARGE),
    Attack("sent body", post(body=b" " * (3 << 20)), TOO_LARGE),
    Attack(
        "chunked body",
        post("Transfer-Encoding: chunked", has_length=False, body=b"10000\r\n%s\r\n" % (b" " * 0x10000) * 48),
        TOO_LARGE,
    ),
    Attack(
        "announced body, waiting",
        post("Expect: 100-continue", "Content-Length: 4000000000", has_length=False, body=b""),
        TOO_LARGE | {417},
    ),
    Attack("long key", post(f"Idempotency-Key: {'k' * 2000}"), REFUSED),
]


def _smuggling(name: str, *headers: str, body: bytes = b"") -> Attack:
    return Attack(name, post(*headers, has_length=False, body=body + SECOND))


_LENGTH = f"Content-Length: {len(BODY)}"
SMUGGLED = [
    _smuggling("length and chunks", _LENGTH, "Transfer-Encoding: chunked", body=chunked(BODY)),
    _smuggling("chunks and length", "Transfer-Encoding: chunked", "Content-Length: 5", body=b"0\r\n\r\n"),
    _smuggling("chunks twice", "Transfer-Encoding: chunked", "Transfer-Encoding: identity", body=chunked(BODY)),
    _smuggling("unknown coding", "Transfer-Encoding: xchunked", body=chunked(BODY)),
    _smuggling("unknown coding with length", "Transfer-Encoding: xchunked", _LENGTH, body=BODY),
    _smuggling("chunked not last", "Transfer-Encoding: chunked, identity", body=chunked(BODY)),
    _smuggling("space before colon", "Transfer-Encoding : chunked", _LENGTH, body=BODY),
    _smuggling("tab and length", "Transfer-Encoding:\tchunked", _LENGTH, body=BODY),
    _smuggling("quoted coding", 'Transfer-Encoding: "chunked"', body=chunked(BODY)),
    _smuggling("vertical tab", "Transfer-Encoding: \x0bchunked", body=chunked(BODY)),
    _smuggling("folded coding", "Transfer-Encoding:", " chunked", _LENGTH, body=BODY),
    _smuggling("two lengths", _LENGTH, "Content-Length: 5", body=BODY),
    _smuggling("two equal lengths", _LENGTH, _LENGTH, body=BODY),
    _smuggling("list of lengths", f"Content-Length: {len(BODY)}, {len(BODY)}", body=BODY),
    _smuggling("signed length", f"Content-Length: +{len(BODY)}", body=BODY),
    _smuggling("negative length", "Content-Length: -1", body=BODY),
    _smuggling("hexadecimal length", f"Content-Length: {len(BODY):#x}", body=BODY),
    _smuggling("huge length", "Content-Length: 99999999999999999999999", body=BODY),
    _smuggling("empty length", "Content-Length:", body=BODY),
    _smuggling("length with space", f"Content-Length: {len(BODY)} 1", body=BODY),
    _smuggling("huge chunk", "Transfer-Encoding: chunked", body=b"FFFFFFFFFFFFFFFFF\r\n" + BODY),
    _smuggling("negative chunk", "Transfer-Encoding: chunked", body=b"-1\r\n" + BODY),
    _smuggling("prefixed chunk", "Transfer-Encoding: chunked", body=b"0x5\r\nabcde\r\n0\r\n\r\n"),
    _smuggling("chunk without end", "Transfer-Encoding: chunked", body=b"5\r\nabcdeXX0\r\n\r\n"),
    _smuggling("chunk size with space", "Transfer-Encoding: chunked", body=b"5 5\r\nabcde\r\n0\r\n\r\n"),
    Attack(
        "chunks in HTTP/1.0",
        post("Transfer-Encoding: chunked", has_length=False, body=chunked(BODY) + SECOND).replace(b"1.1", b"1.0", 1),
    ),
    # A request without a body, and one that is none.
    Attack("no length", post(has_length=False, body=b"{}"), is_second_forbidden=False),
]
