"""Servers that mean harm, or are broken: each costs a bounded time and memory, and the failure names what it did."""

from __future__ import annotations

import gzip
import socket
import threading
import tracemalloc

import pytest

from tests.support.web import Script, closes, hangs, message, sends, sends_for_ever
from tests.unit.effects.http.helpers import PATIENCE, Side, ask_of, failure

_CHUNKED = b"HTTP/1.1 200 -\r\nTransfer-Encoding: chunked\r\n\r\n"
_MEGABYTE = b"x" * (1 << 20)
SHORT = 1.0

SERVERS: dict[str, tuple[Script, str, str]] = {
    "hangs": (hangs, "timeout", "no time was left while waiting for the answer"),
    "trickles a status line": (
        sends_for_ever(b"HTTP/1.1 200 -\r\nX: ", b"x", 0.02),
        "timeout",
        "no time was left while",
    ),
    "trickles headers": (sends_for_ever(b"HTTP/1.1 200 -\r\n", b"X: y\r\n", 0.02), "timeout", "no time was left while"),
    "trickles a body": (
        sends_for_ever(b"HTTP/1.1 200 -\r\nContent-Length: 99999\r\n\r\n", b" ", 0.02),
        "timeout",
        "no time was left while",
    ),
    "trickles chunks": (sends_for_ever(_CHUNKED, b"1\r\n \r\n", 0.02), "timeout", "no time was left while"),
    "trickles a chunk": (sends_for_ever(_CHUNKED + b"ffff\r\n", b" ", 0.02), "timeout", "no time was left while"),
    "goes on for ever with 100": (
        sends_for_ever(b"", b"HTTP/1.1 100 -\r\n\r\n", 0.01),
        "timeout",
        "no time was left while",
    ),
    "closes": (closes, "unavailable", "closed before the answer was complete"),
    "closes in the status": (sends(b"HTTP/1.1 2", then_close=True), "unavailable", "closed before"),
    "closes in the headers": (sends(b"HTTP/1.1 200 -\r\nX:", then_close=True), "unavailable", "closed before"),
    "closes in the body": (
        sends(b'HTTP/1.1 200 -\r\nContent-Length: 9\r\n\r\n{"a"', then_close=True),
        "unavailable",
        "closed before",
    ),
    "closes in a chunk": (sends(_CHUNKED + b"9\r\n{}", then_close=True), "unavailable", "closed before"),
    "closes before the last chunk": (sends(_CHUNKED + b"2\r\n{}\r\n", then_close=True), "unavailable", "closed before"),
    "announces 20 MB": (
        sends_for_ever(b"HTTP/1.1 200 -\r\nContent-Length: 20000000\r\n\r\n", _MEGABYTE),
        "bad_response",
        "longer than 1,048,576 bytes, the limit `max_response`",
    ),
    "sends 20 MB unannounced": (
        sends(b"HTTP/1.1 200 -\r\n\r\n", *[_MEGABYTE] * 20, then_close=True),
        "bad_response",
        "longer than 1,048,576 bytes, the limit `max_response`",
    ),
    "sends chunks for ever": (
        sends_for_ever(_CHUNKED, b"100000\r\n" + _MEGABYTE + b"\r\n"),
        "bad_response",
        "the limit `max_response`",
    ),
    "sends tiny chunks for ever": (
        sends_for_ever(_CHUNKED, b"1\r\nx\r\n" * 10_000),
        "bad_response",
        "pieces, of less than 64 bytes on the average",
    ),
    "has a chunk of no size": (sends(_CHUNKED + b"zz\r\n{}\r\n"), "bad_response", "does not speak HTTP"),
    "has a chunk that is too long": (sends(_CHUNKED + b"1\r\n{}\r\n0\r\n\r\n"), "bad_response", "does not speak HTTP"),
    "has a chunk of a huge size": (sends(_CHUNKED + b"f" * 200_000), "bad_response", "does not speak HTTP"),
    "has a huge header": (
        sends(b"HTTP/1.1 200 -\r\nX: " + b"x" * 300_000 + b"\r\n\r\n"),
        "bad_response",
        "does not speak HTTP",
    ),
    "has headers for ever": (
        sends_for_ever(b"HTTP/1.1 200 -\r\n", b"X-Y: z\r\n" * 10_000),
        "bad_response",
        "does not speak HTTP",
    ),
    "has two lengths": (
        sends(b"HTTP/1.1 200 -\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}"),
        "bad_response",
        "does not speak HTTP",
    ),
    "has a negative length": (
        sends(b"HTTP/1.1 200 -\r\nContent-Length: -1\r\n\r\n{}"),
        "bad_response",
        "not speak HTTP",
    ),
    "has another coding": (
        sends(b"HTTP/1.1 200 -\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
        "bad_response",
        "does not speak HTTP",
    ),
    "speaks something else": (sends(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), "bad_response", "does not speak HTTP"),
    "speaks binary": (sends(bytes(range(256)) * 500), "bad_response", "does not speak HTTP"),
    "answers in invalid UTF-8": (sends(message(200, b'{"a": "\xc3\x28"}')), "bad_response", "byte 7 of its body"),
    "is compressed": (
        sends(message(200, gzip.compress(b" " * 10_000_000), {"Content-Encoding": "gzip"})),
        "bad_response",
        "is compressed (`gzip`)",
    ),
    "is compressed and does not say so": (
        sends(message(200, gzip.compress(b" " * 10_000_000))),
        "bad_response",
        "is not in UTF-8",
    ),
    "switches the protocol": (
        sends(b"HTTP/1.1 101 -\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"),
        "bad_response",
        "does not speak HTTP",
    ),
}


@pytest.mark.parametrize("name", SERVERS)
def test_a_hostile_server_costs_little_and_is_named(side: Side, name: str) -> None:
    script, code, problem = SERVERS[name]
    side.web.on("/it", script)
    timeout = SHORT if code == "timeout" else PATIENCE
    tracemalloc.start()
    try:
        failed = failure(side.performer(), ask_of(method="POST", timeout=timeout, effect_class="unsafe"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert failed.code == code
    assert problem in failed.message
    assert failed.may_have_happened
    assert peak < 40 << 20  # the server, which is of this process, holds some of it
    assert len(side.web.got) == 1 or code == "timeout"  # which may be over before the server has read the request
    assert side.web.connections <= 1


def test_a_server_that_is_wrong_once_is_asked_anew(side: Side) -> None:
    """Whatever was left on the connection is not read as the answer to the next request."""
    performer = side.performer()
    side.web.on("/it", sends(message(200, b"1") + message(200, b'"smuggled"')))
    side.web.on("/next", sends(message(200, b'"mine"')))
    assert performer.perform(ask_of()) == 1
    assert performer.perform(ask_of("/next")) == "mine"
    assert side.web.connections == 2


def test_an_error_that_goes_on_for_ever_is_still_an_error(side: Side) -> None:
    side.web.on("/it", sends_for_ever(b"HTTP/1.1 500 -\r\n\r\n", _MEGABYTE))
    assert failure(side.performer(), ask_of()).code == "http_500"
    side.web.on("/it", sends_for_ever(b"HTTP/1.1 503 -\r\nContent-Length: 9999\r\n\r\n", b"slow ", 0.02))
    failed = failure(side.performer(), ask_of(timeout=SHORT))
    assert failed.code == "http_503"
    assert "slow slow" in failed.message
    side.web.on("/it", sends(b"HTTP/1.1 502 -\r\nContent-Length: 9999\r\n\r\ncut", then_close=True))
    assert failure(side.performer(), ask_of()).message == "`shop` answered with status 502: cut"


def test_a_server_that_does_not_read(side: Side) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        body = "x" * 9_000_000
        failed = failure(side.performer(base_url=base), ask_of(method="POST", body=body, timeout=2.0))
    assert (failed.code, failed.may_have_happened) == ("timeout", True)
    assert failed.message == "no time was left while sending the request"


def test_a_server_that_refuses_in_the_middle_of_the_request(side: Side) -> None:
    """It answers and closes without reading the body: the answer counts, if it came before the end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        performer = side.performer(base_url=base)

        def refuse() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(message(413, b"too much"))
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1 << 20):
                    pass

        thread = threading.Thread(target=refuse)
        thread.start()
        failed = failure(performer, ask_of(method="POST", body="x" * 3_000_000))
        performer.close()
        thread.join(PATIENCE)
    assert failed.code == "http_413"


def test_nobody_listens(side: Side) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    failed = failure(side.performer(base_url=f"http://127.0.0.1:{port}"), ask_of(method="POST"))
    assert (failed.code, failed.may_have_happened) == ("unavailable", False)
    assert "`127.0.0.1` cannot be reached: 127.0.0.1: Connection refused" in failed.message


def test_nobody_accepts(side: Side) -> None:
    """A full backlog: the connection is never made, and only its own time-out ends that."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        fillers = [socket.socket() for _ in range(4)]
        for each in fillers:
            each.setblocking(False)
            each.connect_ex(address)
        performer = side.performer(base_url=f"http://127.0.0.1:{address[1]}", connect_timeout="300ms")
        failed = failure(performer, ask_of(method="POST"))
        for each in fillers:
            each.close()
    assert (failed.code, failed.may_have_happened) == ("timeout", False)
    assert "while connecting" in failed.message


def test_a_name_that_cannot_be_found(side: Side) -> None:
    def resolve(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    side.resolve = resolve  # type: ignore[method-assign]
    failed = failure(side.performer(base_url="https://shop.example"), ask_of())
    assert (failed.code, failed.may_have_happened) == ("unavailable", False)
    assert failed.message == "`shop.example` cannot be found: Name or service not known"


def test_a_name_server_that_hangs(side: Side) -> None:
    is_over = threading.Event()

    def resolve(host: str, port: int) -> list[str]:
        is_over.wait(2 * PATIENCE)
        return []

    side.resolve = resolve  # type: ignore[method-assign]
    try:
        failed = failure(side.performer(base_url="https://shop.example"), ask_of(timeout=0.1))
    finally:
        is_over.set()
    assert (failed.code, failed.may_have_happened) == ("timeout", False)
    assert "while looking up shop.example" in failed.message


def test_no_time_at_all(side: Side) -> None:
    for timeout in (0.0, -1.0):
        failed = failure(side.performer(), ask_of(timeout=timeout))
        assert (failed.code, failed.may_have_happened) == ("timeout", False)
    assert side.web.connections == 0
