"""The playground: an editor for nodes, in the dashboard."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.routing import BaseRoute, Match, Router
from starlette.types import Receive, Scope, Send

from vesper.dashboard.play.page import PAGE

PREFIX = "/play/"


class LateRoutes(BaseRoute):
    """The routes of the editor, imported by its first request: they load compiler and language server."""

    def __init__(self) -> None:
        self._router: Router | None = None

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        is_ours = scope["type"] in ("http", "websocket") and scope["path"].startswith(PREFIX)
        return (Match.FULL if is_ours else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._router is None:
            self._router = await run_in_threadpool(_load)
        await self._router(scope, receive, send)


def _load() -> Router:
    from vesper.dashboard.play import authoring, routes

    return Router([*routes.ROUTES, *authoring.ROUTES])


PAGES = (PAGE,)
ROUTES = (LateRoutes(),)

__all__ = ["PAGES", "ROUTES"]
