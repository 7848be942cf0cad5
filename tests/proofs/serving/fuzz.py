"""Damaged HTTP requests, drawn from a seed: request NUMBER of a seed is always the same bytes."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.proofs.serving.attacks import BODY, MALFORMED, OVERSIZED, PATH, SMUGGLED, chunked, post

MAX_BYTES = 200_000
_GOOD = [
    post(),
    post("Connection: close"),
    post("Transfer-Encoding: chunked", has_length=False, body=chunked(BODY)),
    post("Expect: 100-continue"),
    post("Idempotency-Key: k", "Vesper-Timeout: 5", "Accept-Encoding: gzip;q=0.5, *;q=0", "X-API-Key: k"),
    post("traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate: a=b"),
    post("Authorization: Bearer eyJhbGciOiJub25lIn0.e30."),
    b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n",
    b'GET /openapi.json HTTP/1.1\r\nHost: x\r\nIf-None-Match: "a", W/"b"\r\nAccept: */*\r\n\r\n',
    b"GET /status?a=1&a=2 HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, upgrade\r\nUpgrade: h2c\r\n\r\n",
    b"OPTIONS %s HTTP/1.1\r\nHost: x\r\nOrigin: http://y\r\nAccess-Control-Request-Method: POST\r\n\r\n"
    % PATH.encode(),
    b"HEAD /docs HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /metrics HTTP/1.0\r\nAccept: application/openmetrics-text;version=1.0.0\r\n\r\n",
    b"DELETE %s HTTP/1.1\r\nHost: x\r\n\r\n" % PATH.encode(),
]
_STARTS = [*_GOOD, *_GOOD, *(each.data for each in (*MALFORMED, *OVERSIZED, *SMUGGLED) if len(each.data) < 20_000)]
_WORDS = [
    *(b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b",", b";", b"%", b"%2f", b"%00", b"?", b"&", b"=", b"#", b"/"),
    *(b"chunked", b"identity", b"gzip", b"Content-Length: ", b"Transfer-Encoding: ", b"Host: ", b"Connection: close"),
    *(b"HTTP/1.1", b"HTTP/1.0", b"POST ", b"GET ", b"CONNECT ", b"TRACE ", b"0\r\n\r\n", b"ffffffff", b"-1", b"1e309"),
    *(
        b'"',
        b"\\",
        b"\\ud800",
        b"{",
        b"}",
        b"[",
        b"]",
        b"null",
        b"true",
        b"\xff",
        b"\xc3\x28",
        b"\xef\xbb\xbf",
        b"\x7f",
    ),
    *(b"99999999999999999999", b"0.1", b"Accept-Encoding: gzip;q=9", b"Vesper-Timeout: nan", b"Range: bytes=0-"),
]


@dataclass(frozen=True)
class Drawn:
    """Pieces to send with pauses between them, and how the connection ends."""

    pieces: list[bytes]
    pause: float
    ends: str


def draw(seed: int, number: int) -> Drawn:
    """Return request NUMBER of a seed."""
    source = random.Random(f"{seed}/{number}")
    data = bytearray(source.choice(_STARTS))
    if source.random() < 0.2:
        data += source.choice(_STARTS)  # on the same connection
    for _ in range(source.choice((0, 1, 1, 2, 3, 8))):
        _change(data, source)
    data = data[:MAX_BYTES]
    cuts = sorted(source.randrange(len(data) + 1) for _ in range(source.choice((0, 0, 0, 1, 3))))
    pieces = [bytes(data[start:end]) for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    pause = source.choice((0.0, 0.0, 0.001))
    return Drawn([each for each in pieces if each], pause, source.choice(("read", "read", "half", "half", "reset")))


def _change(data: bytearray, source: random.Random) -> None:
    at = source.randrange(len(data) + 1)
    until = min(len(data), at + source.choice((1, 1, 2, 8, 64)))
    match source.randrange(6):
        case 0:
            del data[at:until]
        case 1:
            data[at:at] = source.choice(_WORDS)
        case 2:
            data[at:until] = source.choice(_WORDS)
        case 3:
            data[at:until] = bytes(source.randrange(256) for _ in range(until - at))
        case 4:
            data[at:at] = data[at:until] * source.choice((1, 2, 50, 500))
        case _:
            del data[at:]
