"""Checks of every request before it reaches a page."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from vesper.dashboard.access.caller import Caller


class Access:
    """The credentials of this dashboard; without any, every caller is the same."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller


class Guard:
    """Identifies the caller of each request."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            scope.setdefault("state", {}).update(caller=self._access.caller, csrf="")
        await self._app(scope, receive, send)
