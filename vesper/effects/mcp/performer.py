"""Calls tools of MCP servers: only those of the pinned list, with bounded and typed results."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from vesper.effects.custom.private_loop import LOOP
from vesper.effects.mcp.settings import McpSettings
from vesper.effects.performer import NOT_DONE, Ask, EffectFailed
from vesper.effects.settings import ConfigError
from vesper.effects.stored_json import checked_value
from vesper.effects.worker_threads import StillRunning
from vesper.storage.per_process import PerProcess
from vesper.values.model import plain
from vesper.values.types import JSON, STRING

if TYPE_CHECKING:
    from mcp_types import CallToolResult, Tool

    from vesper.effects.mcp.connection import Connection

_EXTRA: Final = "calls of MCP tools need the package `mcp`: pip install 'vesper[mcp]'"
MAX_MESSAGE: Final = 500
"""Characters of a tool's own error message that a failure repeats."""


class McpPerformer:
    """Performs `mcp_call`."""

    def __init__(self, servers: Mapping[str, McpSettings], secret: Callable[[str], str]) -> None:
        self._servers = servers
        self._secret = secret
        self._open: PerProcess[dict[str, Connection]] = PerProcess(dict)

    def perform(self, ask: Ask) -> object:
        server, tool = ask.fixed["server"], ask.fixed["tool"]
        settings = self._servers.get(server)
        if settings is None:
            raise EffectFailed("unavailable", f"no `[mcp.{server}]` is configured: add it to vesper.toml")
        if settings.tools is None:
            message = f"`[mcp.{server}]` has no pin: `vesper mcp --pins` prints the line `tools = …` to add"
            raise EffectFailed("not_allowed", message)
        arguments = plain(ask.arguments.get("arguments"))
        if arguments is not None and not isinstance(arguments, dict):
            raise EffectFailed("invalid_argument", f"the arguments of `{server}.{tool}` are an object")
        timeout = settings.timeout if ask.timeout is None else min(settings.timeout, ask.timeout)
        started = [False]
        result = self._run(
            settings, lambda: self._call(settings, tool, _json_of(arguments or {}), started), timeout, started
        )
        return _value(ask, f"{server}.{tool}", result)

    def probe(self, ask: Ask) -> object:
        """Return `NOT_DONE`: calls of tools are never of class `probe`."""
        return NOT_DONE

    def close(self) -> None:
        for connection in (self._open.drop() or {}).values():
            LOOP.run(lambda connection=connection: connection.close(), None)  # type: ignore[misc]  # bound now

    def pin(self, server: str) -> tuple[str, list[str]]:
        """Return the pin of the tools that a server lists now, and their names."""
        pin, tools = self.list_tools(server)
        return pin, [tool.name for tool in tools]

    def list_tools(self, server: str) -> tuple[str, list[Tool]]:
        """Return the pin of the tools that a server lists now, and the tools sorted by name. Raises `EffectFailed`."""
        settings = self._servers[server]

        async def read_tools() -> tuple[str, list[Tool]]:
            from vesper.effects.mcp.connection import pin_of

            tools = await self._connection(settings).tools()
            return pin_of(tools), sorted(tools, key=lambda tool: tool.name)

        found: tuple[str, list[Tool]] = self._run(settings, read_tools, settings.timeout, [False])
        return found

    async def _call(self, settings: McpSettings, tool: str, arguments: dict[str, Any], started: list[bool]) -> Any:
        from vesper.effects.mcp.connection import pin_of

        connection = self._connection(settings)
        tools = await connection.tools()
        pin = pin_of(tools)
        if pin != settings.tools:
            message = (
                f"the tools of `{settings.name}` are not those that `[mcp.{settings.name}]` pins: they are {pin}. "
                "Look at them with `vesper mcp --pins` before you change the pin"
            )
            raise EffectFailed("not_allowed", message)
        if all(each.name != tool for each in tools):
            raise EffectFailed("not_allowed", f"`{settings.name}` has no tool `{tool}`")
        started[0] = True
        return await connection.call(tool, arguments)

    def _connection(self, settings: McpSettings) -> Connection:
        """Return the open connection of a server. Called only in the loop."""
        from vesper.effects.mcp.connection import Connection

        found = self._open.get().get(settings.name)
        if found is None or not found.is_open:
            found = self._open.get()[settings.name] = Connection(settings, self._secret)
        return found

    def _run(self, settings: McpSettings, make: Callable[[], Any], timeout: float, started: list[bool]) -> Any:
        try:
            from vesper.effects.mcp import connection as connections
        except ImportError:
            raise ConfigError(f"mcp.{settings.name}", _EXTRA) from None
        logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it repeats messages, which may be sensitive
        try:
            return LOOP.run(make, timeout)
        except StillRunning:
            message = f"`{settings.name}` took longer than {timeout:g} s"
            raise EffectFailed("timeout", message, may_have_happened=started[0]) from None
        except EffectFailed:
            raise
        except connections.TooLarge as problem:
            raise EffectFailed("bad_response", f"`{settings.name}`: {problem}", may_have_happened=started[0]) from None
        except Exception as error:  # noqa: BLE001  # of the SDK, of a transport, of a process
            message = f"`{settings.name}` cannot be used: {type(error).__name__}: {str(error)[:MAX_MESSAGE]}"
            raise EffectFailed("unavailable", message, may_have_happened=started[0]) from None


def _json_of(value: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(value, default=str))
    return found


def _value(ask: Ask, tool: str, result: CallToolResult) -> object:
    """Return the structured content of a result, else its text, as a value of the declared type."""
    texts = [each.text for each in result.content if each.type == "text"]
    text = "\n".join(texts)
    if result.is_error:
        raise EffectFailed("effect_failed", f"`{tool}` failed: {text[:MAX_MESSAGE]}", may_have_happened=True)
    if result.structured_content is not None and ask.gives != STRING:
        value: object = result.structured_content
    elif len(texts) < len(result.content):
        kinds = sorted({each.type for each in result.content if each.type != "text"})
        message = f"`{tool}` gave {', '.join(kinds)}, and only text and structured content are read"
        raise EffectFailed("bad_response", message, may_have_happened=True)
    elif ask.gives in (JSON, STRING):
        value = text
    else:
        try:
            value = json.loads(text)
        except ValueError:
            message = f"`{tool}` gave a text that is no JSON, and {ask.gives} is declared"
            raise EffectFailed("bad_response", message, may_have_happened=True) from None
    try:
        return checked_value(ask.gives, value, f"the result of `{tool}`")
    except EffectFailed as failure:
        raise EffectFailed("bad_response", failure.message, may_have_happened=True) from None
