"""The process of a dashboard: its socket, its server, and its end."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Callable

import uvicorn
from starlette.applications import Starlette

from vesper.config.settings import Config
from vesper.dashboard.access.caller import Caller, Role
from vesper.dashboard.access.guard import Access
from vesper.dashboard.app import make_app
from vesper.dashboard.stores import Stores


class _Server(uvicorn.Server):
    """A server that ends its streams of events before it waits for connections."""

    def __init__(self, app: Starlette) -> None:
        self._site = app
        super().__init__(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1, http="h11"))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._site.state.live.close()
        await super().shutdown(sockets)


def serve_dashboard(config: Config, host: str, port: int, allow_changes: bool, report: Callable[[str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    stores = Stores(config)
    roles = frozenset(Role) if allow_changes else frozenset({Role.VIEWER})
    remedy = "" if allow_changes else "Start `vesper dashboard --allow-changes`, or configure keys for `vesper serve`."
    caller = Caller(getpass.getuser(), roles, remedy)
    app = make_app(stores, Access(caller))
    with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        address, bound = listener.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        report(f"dashboard at http://{shown}:{bound}; Ctrl-C or SIGTERM ends it")
        _Server(app).run([listener])
