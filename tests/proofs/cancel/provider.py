"""The servers of `make proof-cancel`: a model in the protocol of OpenAI and a shop, which note when each exchange ends.

A text `trial-NUMBER-MOMENT` in a request names its trial; the moment decides the answer. An exchange ends with its
answer, or when the client closes its connection.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

from tests.support.models import openai
from tests.support.models.replies import Asked, Reply
from tests.support.web import Got, message

_TRIAL = re.compile(r"trial-\d+-([a-z]+)")
_GAP = 0.03
"""Seconds between two chunks of an answer without end."""
_JSON = {"Content-Type": "application/json"}


@dataclass(slots=True)
class Exchange:
    """One request of a trial; times are those of the monotonic clock."""

    path: str
    came: float
    ended: float | None = None


class Trials:
    """What the servers have seen, by trial. Any thread may read it."""

    def __init__(self) -> None:
        self.exchanges: dict[str, list[Exchange]] = defaultdict(list)
        self._reached: dict[str, Callable[[], None]] = {}

    def when_reached(self, trial: str, then: Callable[[], None]) -> None:
        """Call `then`, in the thread of the server, when the moment of a trial begins."""
        self._reached[trial] = then

    def reach(self, trial: str) -> None:
        then = self._reached.pop(trial, None)
        if then is not None:
            then()


class _Connection(asyncio.Protocol):
    def __init__(self, trials: Trials) -> None:
        self._trials = trials
        self._buffer = b""
        self._timer: asyncio.TimerHandle | None = None
        self._exchange: Exchange | None = None
        self._numbers = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, _: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._end()

    def _end(self) -> None:
        if self._exchange is not None:
            self._exchange.ended = time.monotonic()
            self._exchange = None

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, blank, rest = self._buffer.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        length = int(headers.get("content-length", "0"))
        if not blank or len(rest) < length:
            return
        self._buffer = rest[length:]
        method, target, _ = lines[0].split(" ")
        self._answer(Got(method, target, headers, rest[:length], 0))

    def _answer(self, got: Got) -> None:
        found = _TRIAL.search(got.target) or _TRIAL.search(got.body.decode())
        assert found is not None, got
        trial, moment = found[0], found[1]
        self._exchange = Exchange(got.path, time.monotonic())
        self._trials.exchanges[trial].append(self._exchange)
        if got.path.startswith("/v1/"):
            self._numbers += 1
            self._as_model(openai.read(got, json.loads(got.body), self._numbers), trial, moment)
        elif got.path.startswith("/slow/"):
            self._trials.reach(trial)
        else:
            self._send(message(200, json.dumps({"id": trial}).encode(), _JSON))

    def _as_model(self, asked: Asked, trial: str, moment: str) -> None:
        if asked.results and "note" not in asked.tools:
            return self._say(asked, Reply("Done."))
        inputs = {name: {"question": trial} for name in asked.tools if name.startswith(("teller", "helper"))}
        inputs |= {name: {"event_id": trial} for name in asked.tools if name in ("look", "change", "note")}
        if inputs and not asked.results:
            self._say(asked, Reply(tools=tuple(inputs.items())))
            if "note" in inputs:
                self._trials.reach(trial)
            return None
        if moment == "between":
            return self._stream(openai.events(asked, Reply("word " * 2000, piece=5)), trial)
        if moment in ("retry", "broken"):
            fault = openai.error(429 if moment == "retry" else 500, "", "a fault on demand")
            self._send(message(429 if moment == "retry" else 500, json.dumps(fault).encode(), _JSON))
        self._trials.reach(trial)
        return None

    def _say(self, asked: Asked, reply: Reply) -> None:
        if not asked.is_streamed:
            return self._send(message(200, json.dumps(openai.whole(asked, reply)).encode(), _JSON))
        parts = b"".join(_framed(each) for each in openai.events(asked, reply))
        return self._send(_HEAD + parts + b"0\r\n\r\n")

    def _send(self, data: bytes) -> None:
        self._transport.write(data)
        self._end()

    def _stream(self, events: Iterator[bytes], trial: str) -> None:
        self._transport.write(_HEAD + _framed(next(events)) + _framed(next(events)))
        self._trials.reach(trial)
        self._next(events)

    def _next(self, events: Iterator[bytes]) -> None:
        self._transport.write(_framed(next(events)))
        self._timer = asyncio.get_running_loop().call_later(_GAP, self._next, events)


_HEAD = b"HTTP/1.1 200 -\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


class Provider(Trials):
    """The servers on one port, in a thread of their own."""

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="provider", daemon=True)
        self._thread.start()
        made = self._loop.create_server(lambda: _Connection(self), "127.0.0.1", 0, backlog=256)
        self._server = asyncio.run_coroutine_threadsafe(made, self._loop).result(10)
        self.port: int = self._server.sockets[0].getsockname()[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
