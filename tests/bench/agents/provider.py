"""A loopback provider of `make bench-agents`: streams of OpenAI and Anthropic whose chunks come at known times.

$ python -m tests.bench.agents.provider      # prints its port, and answers until its standard input ends

The name of the model has the times: `paced-50-10-20` sends its first chunk after 50 ms, 20 chunks in all, one every
10 ms. The text begins with the times at which the request came and the first chunk left, in nanoseconds of the clock
that all processes of the machine share: a caller subtracts them from its own.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_WORD = "and so on "


@dataclass(frozen=True, slots=True)
class Pace:
    """The times of one stream."""

    first: float
    gap: float
    chunks: int

    @classmethod
    def of(cls, model: str) -> Pace:
        _, first, gap, chunks = model.split("-")
        return cls(int(first) / 1000, int(gap) / 1000, int(chunks))

    @property
    def model(self) -> str:
        return f"paced-{self.first * 1000:.0f}-{self.gap * 1000:.0f}-{self.chunks}"

    @property
    def tail(self) -> str:
        """The text behind the first chunk."""
        return _WORD * (self.chunks - 1)


class OpenAi:
    PATH = "/v1/chat/completions"

    def __init__(self, model: str) -> None:
        self._head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_795_000_000, "model": model}

    def begin(self) -> bytes:
        return self._chunk({"role": "assistant", "content": "", "refusal": None})

    def text(self, text: str) -> bytes:
        return self._chunk({"content": text})

    def end(self, chunks: int) -> bytes:
        usage = {"prompt_tokens": 20, "completion_tokens": chunks, "total_tokens": 20 + chunks}
        return self._chunk({}, "stop") + self._data({**self._head, "choices": [], "usage": usage}) + b"data: [DONE]\n\n"

    def _chunk(self, delta: dict[str, object], stop: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": stop}
        return self._data({**self._head, "choices": [choice]})

    def _data(self, value: object) -> bytes:
        return f"data: {json.dumps(value)}\n\n".encode()


class Anthropic:
    PATH = "/v1/messages"

    def __init__(self, model: str) -> None:
        self._model = model

    def begin(self) -> bytes:
        usage = {"input_tokens": 20, "output_tokens": 1}
        message: dict[str, object] = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": self._model, "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": usage,
        }  # fmt: skip
        block = {"type": "text", "text": ""}
        return self._event("message_start", message=message) + self._event(
            "content_block_start", index=0, content_block=block
        )

    def text(self, text: str) -> bytes:
        return self._event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})

    def end(self, chunks: int) -> bytes:
        delta = {"stop_reason": "end_turn", "stop_sequence": None}
        return (
            self._event("content_block_stop", index=0)
            + self._event("message_delta", delta=delta, usage={"output_tokens": chunks})
            + self._event("message_stop")
        )

    def _event(self, name: str, **members: object) -> bytes:
        return f"event: {name}\ndata: {json.dumps({'type': name, **members})}\n\n".encode()


PROTOCOLS = {each.PATH: each for each in (OpenAi, Anthropic)}


class Provider(asyncio.Protocol):
    """One connection. A request follows the end of the last answer."""

    def __init__(self) -> None:
        self._buffer = b""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, _: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        came_ns = time.monotonic_ns()
        self._buffer += data
        head, blank, rest = self._buffer.partition(b"\r\n\r\n")
        if not blank:
            return
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        protocol = PROTOCOLS.get(lines[0].split(" ")[1])
        body = json.loads(rest[:length] or b"{}")
        if protocol is None or not body.get("stream"):
            self._transport.write(b"HTTP/1.1 404 -\r\nContent-Length: 0\r\n\r\n")
            return
        pace = Pace.of(body["model"])
        answer = protocol(body["model"])
        loop = asyncio.get_running_loop()
        at = loop.time() + pace.first
        self._timer = loop.call_at(at, self._send_first, came_ns, at, pace, answer)

    def _send_first(self, came_ns: int, at: float, pace: Pace, answer: OpenAi | Anthropic) -> None:
        begin = _HEAD + _framed(answer.begin())
        text = f"{came_ns} {time.monotonic_ns()} "
        self._transport.write(begin + _framed(answer.text(text)))
        self._next(1, at, pace, _framed(answer.text(_WORD)), _framed(answer.end(pace.chunks)) + b"0\r\n\r\n")

    def _next(self, number: int, at: float, pace: Pace, chunk: bytes, end: bytes) -> None:
        if number == pace.chunks:
            self._transport.write(end)
            return
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(at + pace.gap * number, self._send, number, at, pace, chunk, end)

    def _send(self, number: int, at: float, pace: Pace, chunk: bytes, end: bytes) -> None:
        self._transport.write(chunk)
        self._next(number + 1, at, pace, chunk, end)


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def main() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Provider, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
