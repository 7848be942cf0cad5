"""Nodes as an ASGI application, for uvicorn and inside FastAPI and Starlette (docs/how-to/serve-with-asgi.md).

The native code of `vesper serve` reads requests and writes answers here, too.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from vesper._direct import Exchange, ExchangeCall
from vesper.journal.journal import JournalError
from vesper.observe.metrics import count, observe
from vesper.serve.builtins import Builtins
from vesper.serve.control import Options
from vesper.serve.keys import read_auth
from vesper.serve.nodes import Service, is_hosted
from vesper.serve.run_call import JSON_HEADERS, describe_error, run_call
from vesper.serve.runs.endpoints import ENDPOINTS
from vesper.serve.runs.operations import EVENT_HEADERS, Watch
from vesper.serve.runs.watches import WatchPlaces, follow
from vesper.serve.streams import StreamedRun, wants_stream
from vesper.serve.table import build_table
from vesper.values.generated.metrics import REQUEST_DURATION, REQUESTS_TOTAL
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper.api.node import Node

_log = logging.getLogger("vesper.serve")
_CLOSE_SECONDS = 10.0
_EPOCH = 1
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Methods that metrics tell apart: a client cannot make up new ones."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Answer = tuple[int, list[tuple[bytes, bytes]], bytes]


class Application:
    """An ASGI application. It loads its nodes at startup, or at the first request if it is mounted in another one."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._opened: _LoadedNodes | None = None

    def open(self) -> None:
        """Load the nodes unless this process has loaded them. Raises `VesperError`."""
        with self._lock:
            if self._opened is None or self._opened.pid != os.getpid():
                self._opened = _LoadedNodes(self._options)

    def close(self) -> None:
        """End the runs that are under way, and close journal and threads. An application can be opened again."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._handle_lifespan(receive, send)
        elif scope["type"] == "http":
            await self._respond(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})

    async def _handle_lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            kind = (await receive())["type"]
            try:
                await asyncio.to_thread(self.open if kind == "lifespan.startup" else self.close)
            except VesperError as problem:
                await send({"type": f"{kind}.failed", "message": str(problem)})
                return
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        opened = self._opened
        if opened is None or opened.pid != os.getpid():
            await asyncio.to_thread(self.open)
            opened = self._opened
            assert opened is not None
        started = time.perf_counter()
        opened.refresh_keys()
        headers = [(name, value) for name, value in scope["headers"]]  # pairs may be lists
        routed = opened.exchange.route(scope["method"], _target(scope), headers)
        answer = await opened.answer(routed, receive) if isinstance(routed, ExchangeCall) else routed
        if answer is None:
            return
        if isinstance(answer, tuple):
            await self._send(opened, routed, answer, started, scope, send)
            return
        if isinstance(answer, StreamedRun):
            assert isinstance(routed, ExchangeCall)  # as below
            await self._send(opened, routed, routed.send(200, EVENT_HEADERS, b""), started, scope, send, is_stream=True)
            await _send_events(answer.parts(), receive, send)
            await send({"type": "http.response.body", "body": b""})
            return
        assert isinstance(routed, ExchangeCall)  # a watch belongs to a call
        try:
            head = routed.send(200, EVENT_HEADERS, b"")
            events = None if scope["method"] == "HEAD" else opened.follow(answer)
            await self._send(opened, routed, head, started, scope, send, is_stream=True)
            if events is not None:
                await _send_events(events, receive, send)
            await send({"type": "http.response.body", "body": b""})
        finally:
            opened.watch_places.release(routed)

    async def _send(
        self,
        opened: _LoadedNodes,
        routed: ExchangeCall | Answer,
        answer: Answer,
        started: float,
        scope: Scope,
        send: Send,
        is_stream: bool = False,
    ) -> None:
        """Send an answer, or the head of a stream."""
        status, headers, body = answer
        node = opened.label(routed) if isinstance(routed, ExchangeCall) else ""
        method = scope["method"] if scope["method"] in _METHODS else "other"
        count(REQUESTS_TOTAL, (node, method, str(status)))
        observe(REQUEST_DURATION, (node, method), time.perf_counter() - started)
        if not is_stream and status not in (204, 304) and not any(name == b"content-length" for name, _ in headers):
            headers.append((b"content-length", str(len(body)).encode()))
        root = _root(scope).encode()
        headers = [
            (name, root + value if name == b"location" and value.startswith(b"/runs/") else value)
            for name, value in headers
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        if not is_stream:
            await send({"type": "http.response.body", "body": body})


class _LoadedNodes:
    """The nodes of an application, loaded in one process."""

    def __init__(self, options: Options) -> None:
        self.pid = os.getpid()
        config = options.read_config()
        self._settings = config.serve
        auth = read_auth(config)
        self._service = Service(config, options, None)
        try:
            self._set_keys(auth)
        except BaseException:
            self._service.close(0.0)
            raise
        self._refresh_seconds = min((each.refresh for each in self._settings.jwt), default=float("inf"))
        self._keys_due = time.monotonic() + self._refresh_seconds
        threads = options.threads or self._settings.threads
        self._pool = ThreadPoolExecutor(threads, "vesper-serve")
        self._page_pool = ThreadPoolExecutor(1, "vesper-serve-pages")
        self._watch_pool = ThreadPoolExecutor(1, "vesper-serve-watches")
        self.watch_places = WatchPlaces()
        self._places = threading.Semaphore(threads + self._settings.limits.queue)
        self._builtins = Builtins(dict)
        self._service.start_work()

    def _set_keys(self, auth: Mapping[str, object]) -> None:
        service = self._service
        self.exchange = Exchange(build_table(service.nodes, self._settings, auth, has_runs=service.has_runs))

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._page_pool.shutdown(wait=False, cancel_futures=True)
        self._watch_pool.shutdown(wait=False, cancel_futures=True)
        self._service.close(_CLOSE_SECONDS)

    def refresh_keys(self) -> None:
        """Read the keys of issuers in the background, if they are due."""
        if time.monotonic() > self._keys_due:
            self._keys_due = time.monotonic() + self._refresh_seconds
            self._page_pool.submit(self._refresh_keys)

    def label(self, call: ExchangeCall) -> str:
        """Return the node of a call, or the path of a page, for metrics."""
        nodes = self._service.nodes
        if call.builtin is not None:
            return call.builtin
        return nodes[call.endpoint].id if call.endpoint < len(nodes) else ENDPOINTS[call.endpoint - len(nodes)].path

    def follow(self, watch: Watch) -> AsyncIterator[bytes]:
        """Return the events of a run, which the thread of watches reads."""
        return follow(watch, lambda poll: asyncio.wrap_future(self._watch_pool.submit(poll)))

    async def answer(self, call: ExchangeCall, receive: Receive) -> Answer | Watch | StreamedRun | None:
        """Return the answer to a call, or the watch of a stream with its place. None if the client is gone."""
        until = None if call.timeout is None else time.monotonic() + call.timeout
        try:
            body = await read_body(receive, self._settings.limits.max_body_bytes)
        except ConnectionError:
            return None
        if body is None:
            return call.refuse("too_large", None, None, None)
        if call.builtin is not None:
            return await asyncio.wrap_future(self._page_pool.submit(self._page, call, call.builtin))
        inputs = call.inputs(body)
        if not isinstance(inputs, bytes):
            return inputs
        run: Callable[[], Answer | Watch]
        if call.endpoint >= len(self._service.nodes):
            run = partial(self._answer_runs, call, inputs)
        else:
            node = self._service.nodes[call.endpoint]
            if wants_stream(call.accept, node):
                opened = StreamedRun(call, node, inputs, seconds_left(until), self._service)
                return opened if opened.refusal_outcome is None else call.answer(opened.refusal_outcome, None)
            run = partial(self._run, call, node, inputs, until)
            if node._is_short and not is_hosted(node):
                return run()
        if not self._places.acquire(blocking=False):
            return call.refuse("overloaded", None, 1.0, None)
        try:
            future: Future[Answer | Watch] = self._pool.submit(run)
        except RuntimeError:  # the pool is shut down
            self._places.release()
            return call.refuse("closing", None, 1.0, None)
        future.add_done_callback(lambda _: self._places.release())
        # A run outlives the caller's patience: its effects have begun.
        done, _ = await asyncio.wait({asyncio.wrap_future(future)}, timeout=seconds_left(until))
        if not done:
            return call.refuse("deadline", None, None, None)
        found = done.pop().result()
        if not isinstance(found, Watch):
            return found
        if not self.watch_places.take(call):
            return call.refuse("overloaded", None, 1.0, None)
        return found if found.is_stream else await self._poll(call, found)

    async def _poll(self, call: ExchangeCall, watch: Watch) -> Answer:
        """Answer a long poll once its run changes."""
        try:
            return call.send(200, JSON_HEADERS, b"".join([each async for each in self.follow(watch)]))
        except RuntimeError:  # the pool is shut down
            return call.refuse("closing", None, 1.0, None)
        except JournalError as problem:
            _log.error("a watch of a run broke: %s", self._service.host.redact(str(problem)))
            return call.refuse("journal", None, 1.0, None)
        finally:
            self.watch_places.release(call)

    def _run(self, call: ExchangeCall, node: Node, inputs: bytes, until: float | None) -> Answer:
        try:
            return run_call(call, node, inputs, seconds_left(until), self._service, self._service.has_runs)
        except Exception as error:  # noqa: BLE001  # a bug of one request ends that request
            _log.error("%s broke\n%s", node.id, describe_error(error, self._service, node))
            return call.refuse("internal", None, None, None)

    def _answer_runs(self, call: ExchangeCall, inputs: bytes) -> Answer | Watch:
        try:
            return self._service.runs.answer(call.endpoint - len(self._service.nodes), call, inputs)
        except Exception as error:  # noqa: BLE001  # as for a run
            _log.error("/runs broke\n%s", describe_error(error, self._service, None))
            return call.refuse("internal", None, None, None)

    def _page(self, call: ExchangeCall, name: str) -> Answer:
        try:
            return call.send(*self._builtins.page(name, self._service, _EPOCH, call.actor is not None, call.accept))
        except Exception as error:  # noqa: BLE001  # as for a run
            _log.error("%s broke\n%s", name, describe_error(error, self._service, None))
            return call.refuse("internal", None, None, None)

    def _refresh_keys(self) -> None:
        """Read the credentials again. If that fails, the known ones remain in use."""
        try:
            auth = read_auth(self._service.config)
        except VesperError as problem:
            _log.error("the keys of issuers cannot be read again, and the known ones stay: %s", problem)
        else:
            self._set_keys(auth)


def seconds_left(until: float | None) -> float | None:
    """Return the seconds until a deadline; None without one."""
    return None if until is None else max(0.0, until - time.monotonic())


async def _send_events(events: AsyncIterator[bytes], receive: Receive, send: Send) -> None:
    """Send events until the run has ended or the client is gone."""
    gone = asyncio.ensure_future(receive())
    try:
        async for each in events:
            if gone.done():
                return
            await send({"type": "http.response.body", "body": each, "more_body": True})
    except RuntimeError:  # the pool is shut down: the client connects again
        return
    except JournalError as problem:  # the head is sent: the client connects again, and is told
        _log.error("a stream of a run broke: %s", type(problem).__name__)
    finally:
        gone.cancel()
        if isinstance(events, AsyncGenerator):
            await events.aclose()  # ends the run of a client that is gone


def _target(scope: Scope) -> str:
    """Return path and query as sent, without the path at which the application is mounted."""
    raw = scope.get("raw_path")
    path = quote(scope["path"], safe="/%") if raw is None else raw.decode("utf-8", "replace")
    root = _root(scope)
    if root and (path == root or path.startswith(f"{root}/")):
        path = path[len(root) :]
    query = scope.get("query_string", b"").decode("utf-8", "replace")
    return f"{path}?{query}" if query else path


def _root(scope: Scope) -> str:
    """Return the path at which the application is mounted."""
    return quote(scope.get("root_path", ""), safe="/%").rstrip("/")


async def read_body(receive: Receive, max_bytes: int) -> bytes | None:
    """Return the body; None if it is too large. Raises `ConnectionError` if the client is gone."""
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > max_bytes:
            return None
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)
