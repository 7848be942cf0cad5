"""Runs whose events go to their clients as they happen: `Accept: text/event-stream` at the address of a node.

Each event has the kind of a run event as its name and a JSON object as its data; the last one is `outcome`, or
`problem`. A client that goes ends its run (docs/how-to/stream-answers.md).
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from vesper.api.json_calls import stream_json
from vesper.host.streaming.events import RunEvent
from vesper.host.waiting import RunWaits
from vesper.serve.nodes import is_hosted
from vesper.serve.run_call import context_of, describe_error, refusal_of
from vesper.serve.runs.operations import EVENT_HEADERS

if TYPE_CHECKING:
    from vesper._direct import HttpCall, HttpStream
    from vesper.api.node import Node
    from vesper.api.observed.answer_stream import AnswerStream
    from vesper.serve.run_call import Call, HasHost

_log = logging.getLogger("vesper.serve")
EVENT_STREAM: Final = "text/event-stream"
_HEARTBEAT_SECONDS: Final = 0.25
"""Time after which a comment finds a client that is gone."""
_COMMENT: Final = b":\n\n"


def wants_stream(accept: str | None, node: Node) -> bool:
    """Return whether a request asks for the events of a run."""
    return accept is not None and accept.startswith(EVENT_STREAM) and is_hosted(node)


def event_bytes(name: str, data: str) -> bytes:
    """Return one event of a stream; the data is one line of JSON."""
    return f"event: {name}\ndata: {data}\n\n".encode()


def _chunk(event: RunEvent) -> bytes:
    members = event.members()
    return event_bytes(members.pop("kind"), json.dumps(members, ensure_ascii=False))


class StreamedRun:
    """A run with an event stream, from before its begin to its end."""

    def __init__(
        self, call: Call[Any], node: Node, inputs: bytes, seconds_left: float | None, service: HasHost
    ) -> None:
        self._call, self._node, self._service = call, node, service
        self._seconds_left = seconds_left
        self._stream: AnswerStream[bytes] = stream_json(node, inputs)

    @property
    def refusal_outcome(self) -> bytes | None:
        """Return the outcome of refused inputs, which begin no run; None for accepted ones."""
        return self._stream.outcome() if self._stream.is_refused else None

    async def parts(self) -> AsyncGenerator[bytes, None]:
        """Yield events until the outcome. The end of the iterator ends the run."""
        with context_of(self._call, self._seconds_left):  # the task of the run copies the context
            await self._stream.__aenter__()
        try:
            async with aclosing(self._chunks()) as chunks:
                async for part in chunks:
                    yield part
            yield event_bytes("outcome", (await self._stream.result()).decode())
        except RunWaits as waits:
            told = {"execution": waits.execution, "kind": waits.kind, "name": waits.name, "step": waits.path}
            yield event_bytes("waits", json.dumps(told))
        except Exception as error:  # noqa: BLE001  # the head is sent: a problem is an event
            refusal = refusal_of(error, self._node, self._service)
            if refusal is None:
                _log.error("%s broke\n%s", self._node.id, describe_error(error, self._service, self._node))
                refusal = "internal", None, None
            name, retry_after, execution = refusal
            problem = {"problem": name, "retry_after": retry_after, "execution": execution}
            yield event_bytes("problem", json.dumps(problem))
        finally:
            await self._stream.aclose()

    async def _chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield events, and comments while there are none."""
        while True:
            coming = asyncio.ensure_future(anext(self._stream, None))
            try:
                while not (await asyncio.wait({coming}, timeout=_HEARTBEAT_SECONDS))[0]:
                    yield _COMMENT
                event = coming.result()
            finally:
                coming.cancel()
            if event is None:
                return
            yield _chunk(event)


class Streams:
    """The streams of a worker, in one event loop. Its thread starts with the first stream."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def add(self, call: HttpCall, node: Node, service: HasHost) -> None:
        """Answer a call with the events of its run."""
        seconds_left = call.seconds_left
        if seconds_left is not None and seconds_left <= 0:
            return call.refuse("deadline", None, None, None)
        opened = StreamedRun(call, node, call.inputs, seconds_left, service)
        if (refused := opened.refusal_outcome) is not None:
            return call.answer(refused, None)
        self._spawn(self._serve(opened, call.stream(200, EVENT_HEADERS)))
        return None

    async def _serve(self, opened: StreamedRun, stream: HttpStream) -> None:
        parts = opened.parts()
        try:
            async for part in parts:
                if not stream.send(part):
                    return  # the client is gone, or does not read
        finally:
            await parts.aclose()
            stream.close()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="vesper-streams", daemon=True).start()
        asyncio.run_coroutine_threadsafe(work, self._loop)
