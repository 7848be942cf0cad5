"""Nodes as an ASGI application, for uvicorn and inside FastAPI and Starlette (docs/how-to/serve-with-asgi.md).

Requests are read and answers written by the same native part as those of `vesper serve`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from vesper._direct import Exchange, ExchangeCall
from vesper.observe.metrics import count, observe
from vesper.serve.builtins import Builtins
from vesper.serve.control import Options
from vesper.serve.keys import read_auth
from vesper.serve.nodes import Service, is_hosted
from vesper.serve.run_call import describe_error, run_call
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
    """An ASGI application. It loads its nodes at startup, or with the first request where it is mounted."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._opened: _Opened | None = None

    def open(self) -> None:
        """Load the nodes, unless they are loaded in this process. Raises `VesperError`."""
        with self._lock:
            if self._opened is None or self._opened.pid != os.getpid():
                self._opened = _Opened(self._options)

    def close(self) -> None:
        """End the runs that are under way, and release journal and threads. An application can be opened again."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._respond(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})

    async def _live(self, receive: Receive, send: Send) -> None:
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
        status, headers, body = answer
        node = opened.label(routed) if isinstance(routed, ExchangeCall) else ""
        method = scope["method"] if scope["method"] in _METHODS else "other"
        count(REQUESTS_TOTAL, (node, method, str(status)))
        observe(REQUEST_DURATION, (node, method), time.perf_counter() - started)
        if status not in (204, 304) and not any(name == b"content-length" for name, _ in headers):
            headers.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class _Opened:
    """The nodes of an application, loaded in one process."""

    def __init__(self, options: Options) -> None:
        self.pid = os.getpid()
        config = options.read_config()
        self._settings = config.serve
        auth = read_auth(config)
        self._service = Service(config, options, None)
        try:
            self.exchange = Exchange(build_table(self._service.nodes, self._settings, auth))
        except BaseException:
            self._service.close(0.0)
            raise
        self._refresh_seconds = min((each.refresh for each in self._settings.jwt), default=float("inf"))
        self._keys_due = time.monotonic() + self._refresh_seconds
        threads = options.threads or self._settings.threads
        self._pool = ThreadPoolExecutor(threads, "vesper-serve")
        self._page_pool = ThreadPoolExecutor(1, "vesper-serve-pages")
        self._places = threading.Semaphore(threads + self._settings.limits.queue)
        self._builtins = Builtins(dict)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._page_pool.shutdown(wait=False, cancel_futures=True)
        self._service.close(_CLOSE_SECONDS)

    def refresh_keys(self) -> None:
        """Read the keys of issuers again, in the background, if they are due."""
        if time.monotonic() > self._keys_due:
            self._keys_due = time.monotonic() + self._refresh_seconds
            self._page_pool.submit(self._refresh_keys)

    def label(self, call: ExchangeCall) -> str:
        """Return the node of a call, or the path of a page, for metrics."""
        return call.builtin or self._service.nodes[call.endpoint].id

    async def answer(self, call: ExchangeCall, receive: Receive) -> Answer | None:
        """Return the answer to a call; None where the client is gone."""
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
        node = self._service.nodes[call.endpoint]
        run = partial(self._run, call, node, inputs, until)
        if node._is_short and not is_hosted(node):
            return run()
        if not self._places.acquire(blocking=False):
            return call.refuse("overloaded", None, 1.0, None)
        try:
            future: Future[Answer] = self._pool.submit(run)
        except RuntimeError:  # the pool is shut down
            self._places.release()
            return call.refuse("closing", None, 1.0, None)
        future.add_done_callback(lambda _: self._places.release())
        # A run outlives the caller's patience: its effects have begun.
        done, _ = await asyncio.wait({asyncio.wrap_future(future)}, timeout=seconds_left(until))
        return done.pop().result() if done else call.refuse("deadline", None, None, None)

    def _run(self, call: ExchangeCall, node: Node, inputs: bytes, until: float | None) -> Answer:
        try:
            return run_call(call, node, inputs, seconds_left(until), self._service)
        except Exception as error:  # noqa: BLE001  # a bug of one request ends that request
            _log.error("%s broke\n%s", node.id, describe_error(error, self._service, node))
            return call.refuse("internal", None, None, None)

    def _page(self, call: ExchangeCall, name: str) -> Answer:
        try:
            return call.send(*self._builtins.page(name, self._service, _EPOCH, call.actor is not None, call.accept))
        except Exception as error:  # noqa: BLE001  # as for a run
            _log.error("%s broke\n%s", name, describe_error(error, self._service, None))
            return call.refuse("internal", None, None, None)

    def _refresh_keys(self) -> None:
        """Read the credentials again. Where that fails, the known ones stay."""
        try:
            auth = read_auth(self._service.config)
        except VesperError as problem:
            _log.error("the keys of issuers cannot be read again, and the known ones stay: %s", problem)
        else:
            self.exchange = Exchange(build_table(self._service.nodes, self._settings, auth))


def seconds_left(until: float | None) -> float | None:
    """Return the seconds until a deadline; None without one."""
    return None if until is None else max(0.0, until - time.monotonic())


def _target(scope: Scope) -> str:
    """Return path and query as sent, without the path at which the application is mounted."""
    raw = scope.get("raw_path")
    path = quote(scope["path"], safe="/%") if raw is None else raw.decode("utf-8", "replace")
    root = quote(scope.get("root_path", ""), safe="/%").rstrip("/")
    if root and (path == root or path.startswith(f"{root}/")):
        path = path[len(root) :]
    query = scope.get("query_string", b"").decode("utf-8", "replace")
    return f"{path}?{query}" if query else path


async def read_body(receive: Receive, max_bytes: int) -> bytes | None:
    """Return the body; None where it is too large. Raises `ConnectionError` where the client is gone."""
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
