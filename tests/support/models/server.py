"""A server that speaks the protocols of Anthropic, OpenAI and Ollama, with their checks and their errors.

$ python -m tests.support.models.server          # prints its port, and answers until it is stopped
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from typing import Any

from tests.support.models import anthropic, ollama, openai
from tests.support.models.replies import Asked, Behaviour, Fault, Rejected, Reply, echo
from tests.support.web import Got, Web, Wire, message

_PROTOCOLS = {
    "/v1/messages": anthropic,
    "/v1/chat/completions": openai,
    "/chat/completions": openai,
    "/openai/v1/chat/completions": openai,
    "/api/chat": ollama,
}
KEY = "key-of-a-model-0123456789"


class ModelServer(Web):
    """Models of three providers on one port. `behaviour` decides what they answer."""

    def __init__(self, behaviour: Behaviour = echo, tls: ssl.SSLContext | None = None, port: int = 0) -> None:
        self.behaviour = behaviour
        self.asked: list[Asked] = []
        self.cut = 0
        """Answers whose client left before their end."""
        self._count_lock = threading.Lock()
        super().__init__(tls, port)

    def answer(self, got: Got, wire: Wire) -> None:
        protocol = _protocol_of(got.path)
        if protocol is None:
            return super().answer(got, wire)
        try:
            body = _body_of(got)
            with self._count_lock:
                asked = protocol.read(got, body, len(self.asked) + 1)
                self.asked.append(asked)
            found = self.behaviour(asked)
        except Rejected as rejected:
            asked, found = None, Fault(rejected.status, message=rejected.message)
        if isinstance(found, Fault):
            return _fail(found, protocol, wire)
        assert asked is not None
        try:
            if asked.is_streamed:
                _stream(protocol.events(asked, found), protocol.CONTENT_TYPE, found, protocol, wire)
            elif not found.pause or wire.wait(found.pause):
                wire.send(message(200, json.dumps(protocol.whole(asked, found)).encode(), _JSON))
        except OSError:
            self.cut += 1
            raise


_JSON = {"Content-Type": "application/json"}


def _protocol_of(path: str) -> Any:
    if "/publishers/anthropic/models/" in path or path.startswith("/model/"):
        return anthropic
    return _PROTOCOLS.get(path)


def _body_of(got: Got) -> dict[str, Any]:
    try:
        body = json.loads(got.body)
    except ValueError:
        raise Rejected(400, "the body is no JSON") from None
    if not isinstance(body, dict):
        raise Rejected(400, "the body is no object")
    return body


def _fail(fault: Fault, protocol: Any, wire: Wire) -> None:
    if fault.is_silent:
        wire.wait(60)
        return wire.close()
    if fault.raw is not None:
        wire.send(fault.raw)
        return wire.close()
    body = json.dumps(protocol.error(fault.status, fault.kind, fault.message)).encode()
    wire.send(message(fault.status, body, {**_JSON, **fault.headers}))


def _stream(events: Iterator[bytes], content_type: str, reply: Reply, protocol: Any, wire: Wire) -> None:
    """Send events as chunks of HTTP."""
    head = f"HTTP/1.1 200 -\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
    wire.send(head.encode())
    for number, event in enumerate(events):
        if number == reply.cut_after:
            return wire.close()
        if number == reply.error_after:
            event = protocol.error_event()
        if reply.pause and not wire.wait(reply.pause):
            return None
        wire.send(b"%x\r\n%s\r\n" % (len(event), event))
        if number == reply.error_after:
            break
    wire.send(b"0\r\n\r\n")
    return None


if __name__ == "__main__":
    server = ModelServer()
    print(server.port, flush=True)
    threading.Event().wait()
