"""A connection to an MCP server: bounded messages, and a tool list that is compared before each call."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import httpx2
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import CallToolResult, PaginatedRequestParams, Tool, jsonrpc_message_adapter

from vesper.effects.mcp.settings import McpSettings

MAX_TOOLS: Final = 1000
_PAGES: Final = 20
_STOP_SECONDS: Final = 1.0
_CPU_SECONDS: Final = 24 * 3600
_held: Final[set[asyncio.Task[None]]] = set()
"""Tasks of open and ending connections: a loop alone does not keep them alive."""


class TooLarge(Exception):
    """A message of the server is longer than `max_result`."""


class ServerGone(Exception):
    """The server ended or could not be reached."""


class Connection:
    """An open session. One task owns the transport; calls come from other tasks of the same loop."""

    def __init__(self, settings: McpSettings, token: Callable[[str], str]) -> None:
        self._settings = settings
        self._token = token
        loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[ClientSession] = loop.create_future()
        self._ended: asyncio.Future[BaseException] = loop.create_future()
        """The reason why the connection can no longer be used."""
        self._task = asyncio.create_task(self._keep_open())
        _held.add(self._task)
        self._task.add_done_callback(_held.discard)

    async def tools(self) -> list[Tool]:
        """Return the tools that the server lists now."""
        session = await self._session()
        found: list[Tool] = []
        cursor: str | None = None
        for _ in range(_PAGES):
            page = await self._await_answer(session.list_tools(params=PaginatedRequestParams(cursor=cursor)))
            found += page.tools
            cursor = page.next_cursor
            if cursor is None or len(found) > MAX_TOOLS:
                break
        if cursor is not None or len(found) > MAX_TOOLS:
            raise TooLarge(f"the server lists more than {MAX_TOOLS:,} tools")
        return found

    async def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        session = await self._session()
        result: CallToolResult = await self._await_answer(session.call_tool(tool, arguments))
        return result

    async def close(self) -> None:
        self._end(ServerGone("the connection was closed"))
        await asyncio.wait((self._task,), timeout=_STOP_SECONDS * 2)

    @property
    def is_open(self) -> bool:
        return not self._ended.done()

    async def _session(self) -> ClientSession:
        await asyncio.wait((self._opened, self._ended), return_when=asyncio.FIRST_COMPLETED)
        if self._ended.done():
            raise self._ended.result()
        return self._opened.result()

    async def _await_answer(self, call: Any) -> Any:
        """Await an answer. Raises the reason if the connection ends first."""
        asked = asyncio.ensure_future(call)
        try:
            await asyncio.wait((asked, self._ended), return_when=asyncio.FIRST_COMPLETED)
            if self._ended.done():
                raise self._ended.result()
            return asked.result()
        finally:
            asked.cancel()

    def _end(self, problem: BaseException) -> None:
        """End the connection for this reason; later reasons are ignored."""
        if not self._ended.done():
            self._ended.set_result(problem)
            self._task.cancel()

    async def _keep_open(self) -> None:
        """Keep the connection open until the task is cancelled."""
        try:
            async with self._transport() as (read, write), ClientSession(read, write) as session:
                await session.initialize()
                self._opened.set_result(session)
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self._end(ServerGone("the connection was cancelled"))
        except Exception as error:  # noqa: BLE001  # of the SDK, of a transport, of a process
            self._end(_cause(error))

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[tuple[Any, Any]]:
        settings = self._settings
        if settings.url is None:
            async with self._process() as streams:
                yield streams
            return
        headers = {}
        if settings.token_secret is not None:
            headers["authorization"] = f"Bearer {self._token(settings.token_secret)}"
        limited = _LimitedTransport(httpx2.AsyncHTTPTransport(), settings.max_result, self._end)
        timeout = httpx2.Timeout(settings.timeout)
        async with (
            httpx2.AsyncClient(transport=limited, headers=headers, timeout=timeout, trust_env=False) as client,
            streamable_http_client(settings.url, http_client=client, max_sse_event_size=settings.max_result) as streams,
        ):
            yield streams

    @asynccontextmanager
    async def _process(self) -> AsyncIterator[tuple[Any, Any]]:
        """Run the server in the sandbox and pass its lines, each of at most `max_result` bytes."""
        settings = self._settings
        argv = settings.confinement.command(settings.command, settings.folder, 2, _CPU_SECONDS)
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={},
            start_new_session=True,
            limit=settings.max_result,
        )
        assert process.stdin and process.stdout
        incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        tasks = [
            asyncio.create_task(self._read(process.stdout, incoming)),
            asyncio.create_task(_write(process.stdin, outgoing)),
        ]
        try:
            yield read, write
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for stream in (incoming, read, write, outgoing):
                stream.close()
            process.stdin.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _STOP_SECONDS)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            process._transport.close()  # type: ignore[attr-defined]  # its pipes stay open otherwise

    async def _read(self, pipe: asyncio.StreamReader, incoming: Any) -> None:
        while True:
            try:
                line = await pipe.readuntil(b"\n")
            except asyncio.LimitOverrunError:
                self._end(TooLarge(f"a message of the server has more than {self._settings.max_result:,} bytes"))
                return
            except (asyncio.IncompleteReadError, OSError):
                self._end(ServerGone("the server ended"))
                return
            try:
                message: SessionMessage | Exception = SessionMessage(jsonrpc_message_adapter.validate_json(line))
            except ValueError:
                self._end(ServerGone("the server sent a line that is no message of the protocol"))
                return
            await incoming.send(message)


async def _write(pipe: asyncio.StreamWriter, outgoing: Any) -> None:
    async for each in outgoing:
        pipe.write(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
        await pipe.drain()


class _LimitedTransport(httpx2.AsyncBaseTransport):
    """Transport that ends a response longer than the limit, unless it is an event stream."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, limit: int, note: Callable[[BaseException], None]) -> None:
        self._inner = inner
        self._limit = limit
        self._note = note

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _LimitedStream(response.stream, self._limit, self._note)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: Any, limit: int, note: Callable[[BaseException], None]) -> None:
        self._inner = inner
        self._limit = limit
        self._note = note

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._limit
        async for chunk in self._inner:
            left -= len(chunk)
            if left < 0:
                problem = TooLarge(f"an answer of the server has more than {self._limit:,} bytes")
                self._note(problem)
                raise problem
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def pin_of(tools: list[Tool]) -> str:
    """Return the pin of a tool list: a hash of every name, description, schema and annotation."""
    listed = sorted((tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools), key=_name)
    text = json.dumps(listed, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _name(tool: dict[str, Any]) -> str:
    return str(tool["name"])


def _cause(error: BaseException) -> BaseException:
    """Return the first exception of a group, which is the cause."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
