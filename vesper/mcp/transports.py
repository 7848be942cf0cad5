"""The transports of a server: standard input and output, or streamable HTTP."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from vesper.effects.settings import ConfigError
from vesper.mcp.callers import KeyMiddleware
from vesper.serve.control import is_public
from vesper.serve.keys import read_auth
from vesper.serve.supervisor import bind
from vesper.values.model import printable

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from vesper.config.settings import Config

PATH: Final = "/mcp"


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client over standard input and output until it closes its end."""
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def serve_http(
    server: Server[Any], listener: socket.socket, host: str, keys: Sequence[Mapping[str, Any]]
) -> None:
    """Serve clients over streamable HTTP until the process is asked to end. With `keys`, callers need one of them."""
    import uvicorn

    app: Any = server.streamable_http_app(streamable_http_path=PATH, host=host)
    settings = uvicorn.Config(
        KeyMiddleware(app, keys) if keys else app, log_level="warning", lifespan="on", timeout_graceful_shutdown=5
    )
    await uvicorn.Server(settings).serve([listener])


def run_server(
    server: Server[Any],
    settings: Config,
    address: str | None,
    is_insecure: bool,
    report: Callable[[str], None],
    close: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Serve standard input, or `address` over HTTP, to the end; then `close` ends the runs of clients.

    Raises `ConfigError` for a public address without API keys, and for callers that cannot be identified here.
    """
    if address is None:
        asyncio.run(_closed(serve_stdio(server), close))
        return
    host, port = _parse(address)
    with bind(host, port) as listener:
        keys = _keys(settings, listener.getsockname()[0], is_insecure)
        bound = listener.getsockname()[1]
        report(f"http://{f'[{host}]' if ':' in host else host}:{bound}{PATH}")
        asyncio.run(_closed(serve_http(server, listener, host, keys), close))


async def _closed(serving: Awaitable[None], close: Callable[[], Awaitable[None]] | None) -> None:
    try:
        await serving
    finally:
        if close is not None:
            await close()


def _parse(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise ConfigError("--http", f"`{printable(address)}` is no address: write PORT or HOST:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


def _keys(settings: Config, address: str, is_insecure: bool) -> Sequence[Mapping[str, Any]]:
    """Return the API keys that callers need; none on this machine where the settings have none."""
    serve = settings.serve
    if serve.jwt or (serve.tls is not None and serve.tls.client_ca is not None):
        raise ConfigError("serve", "`vesper mcp` knows callers by [[serve.keys]] only, not by tokens and certificates")
    if serve.keys:
        return read_auth(settings)["keys"]  # type: ignore[return-value]  # rows of `vesper.serve.keys`
    if is_public(address) and not is_insecure:
        raise ConfigError(
            "serve",
            "other machines can reach this address, and no caller has to authenticate: add [[serve.keys]], or start "
            "with --insecure",
        )
    return ()
