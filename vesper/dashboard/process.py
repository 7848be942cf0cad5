"""The process of a dashboard: its socket, its server, and its end."""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import h11
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from vesper.config.settings import Config
from vesper.dashboard.access.caller import Caller, Role
from vesper.dashboard.access.credentials import Credentials
from vesper.dashboard.access.guard import LOOPBACK_HOSTS, Access
from vesper.dashboard.app import make_app
from vesper.dashboard.stores import Nodes, Stores
from vesper.effects.settings import ConfigError
from vesper.serve.control import is_public
from vesper.serve.supervisor import bind

HEAD_SECONDS: Final = 10.0
"""Time for the head of a request, and for a handshake."""
MAX_HEAD_BYTES: Final = 32 << 10
MAX_CONNECTIONS: Final = 512
MAX_WEBSOCKET_BYTES: Final = 4 << 20
_DRAIN_SECONDS: Final = 0.5
"""Time of requests under way after a signal; streams of events end at once."""


class _Protocol(H11Protocol):
    """HTTP/1.1 with a deadline for the head of each request."""

    _deadline: asyncio.TimerHandle | None = None
    _is_upgraded = False
    """Whether a websocket has taken over the connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the class above
        super().connection_made(transport)
        self._start_deadline()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        cycle: Any = self.cycle  # None before the first request
        if self._is_upgraded or (cycle is not None and not cycle.response_complete):
            self._cancel_deadline()
        elif self._deadline is None:
            self._start_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._is_upgraded = True
        super().handle_websocket_upgrade(event)

    def _start_deadline(self) -> None:
        self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _Server(uvicorn.Server):
    """A server that ends its streams of events before it waits for connections."""

    def __init__(self, app: Starlette, config: Config, ends_with_input: bool = False) -> None:
        self._site = app
        self._ends_with_input = ends_with_input
        super().__init__(
            uvicorn.Config(
                app,
                http=_Protocol,
                ws="websockets-sansio",
                ws_max_size=MAX_WEBSOCKET_BYTES,
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=MAX_CONNECTIONS,
                timeout_graceful_shutdown=1,
                h11_max_incomplete_event_size=MAX_HEAD_BYTES,
                **_tls_options(config),
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._ends_with_input:  # a pipe of the process that started this one, which writes nothing to it
            asyncio.get_running_loop().add_reader(0, self._end)
        await super().startup(sockets)

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(0)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._site.state.live.close()
        asyncio.get_running_loop().call_later(_DRAIN_SECONDS, self._abort)
        await super().shutdown(sockets)

    def _abort(self) -> None:
        """Drop connections whose client does not close them, as with TLS."""
        for connection in list(self.server_state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()


_NICENESS: Final = 10
"""Priority of a dashboard beside a service, whose workers go first."""


def serve_dashboard(
    config: Config,
    host: str | None,
    port: int | None,
    allow_changes: bool,
    report: Callable[[str], None],
    ends_with_input: bool = False,
) -> None:
    """Serve until SIGTERM, Ctrl-C or the end of standard input; `report` gets the address. Raises `VesperError`."""
    settings = config.dashboard
    if ends_with_input:
        os.nice(_NICENESS)
    with bind(settings.host if host is None else host, settings.port if port is None else port) as listener:
        address, bound = listener.getsockname()[:2]
        app = make_app(Stores(config), make_access(config, address, allow_changes))
        scheme = "http" if config.serve.tls is None else "https"
        report(f"dashboard at {scheme}://{f'[{address}]' if ':' in address else address}:{bound}")
        _Server(app, config, ends_with_input).run([listener])


def serve_play(config: Config, folder: Path, node: str | None, port: int, report: Callable[[str], None]) -> None:
    """Serve the playground to the current user on loopback; `report` gets the address of its page."""
    stores = Stores(config)
    stores.nodes = Nodes(folder)  # as the command names it, for messages
    user = Caller(_user_name(), frozenset({Role.VIEWER, Role.AUTHOR}), "Use `vesper dashboard` for services.")
    with bind("127.0.0.1", port) as listener:
        app = make_app(stores, Access(user, owner_id=os.getuid()))
        query = "" if node is None else f"?node={quote(node, safe='')}"
        report(f"http://127.0.0.1:{listener.getsockname()[1]}/play{query}")
        _Server(app, replace(config, serve=replace(config.serve, tls=None))).run([listener])


def make_access(config: Config, address: str, allow_changes: bool) -> Access:
    """Return the access of a dashboard at this address. Raises `ConfigError` where it would be too open."""
    serve, public = config.serve, is_public(address)
    hosts = frozenset() if public else LOOPBACK_HOSTS
    if serve.has_auth:
        if not serve.keys and not serve.jwt:
            raise ConfigError("dashboard", "logins need keys or tokens: add [[serve.keys]] or [[serve.jwt]]")
        if allow_changes:
            raise ConfigError("dashboard", "--allow-changes is for settings without authentication: log in instead")
        return Access(Caller(""), Credentials(config), hosts=hosts, origins=config.dashboard.origins)
    if public:
        raise ConfigError(
            "dashboard",
            "other machines can reach this address, and no caller has to authenticate: add [[serve.keys]] or "
            "[[serve.jwt]], or use 127.0.0.1",
        )
    if not allow_changes:
        remedy = "Start `vesper dashboard --allow-changes`, or add [[serve.keys]] to vesper.toml and log in."
        return Access(Caller("viewer", remedy=remedy), origins=config.dashboard.origins)
    return Access(Caller(_user_name(), frozenset(Role)), owner_id=os.getuid(), origins=config.dashboard.origins)


def _user_name() -> str:
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (OSError, KeyError):  # the user has no name, as in many containers
        return f"uid {os.getuid()}@{socket.gethostname()}"


def _tls_options(config: Config) -> dict[str, Any]:
    """Return the options of the certificate of `[serve.tls]`."""
    tls = config.serve.tls
    return {} if tls is None else {"ssl_certfile": str(tls.certificate), "ssl_keyfile": str(tls.key)}
