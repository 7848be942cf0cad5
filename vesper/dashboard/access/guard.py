"""Checks of every request before it reaches a page: host, path, caller, origin, token and size."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final
from urllib.parse import parse_qs, quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vesper.dashboard.access.caller import Caller, Role
from vesper.dashboard.access.credentials import Credentials
from vesper.dashboard.access.peer import peer_user_id
from vesper.dashboard.access.sessions import Attempts, Session, Sessions
from vesper.dashboard.problem import BadRequest, Forbidden, NotLoggedIn, Problem, TooLarge
from vesper.values.model import printable

_log = logging.getLogger("vesper.dashboard")
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
MAX_BODY_BYTES: Final = 4 << 20
BODY_SECONDS: Final = 10.0
LOOPBACK_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
LOGIN: Final = "/login"
EVENTS: Final = "/events"
_ANYBODY: Final = Caller("", frozenset())
_SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")
_HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with `no-referrer` browsers send `Origin: null` from our own forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers of every answer that does not set them itself."""
_TRICKS: Final = re.compile(r"(?i)%2f|%5c|%00|\\|(?:^|/)(?:\.|%2e){1,2}(?:/|$)|//")
_HOST: Final = re.compile(r"(?P<name>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?P<port>:[0-9]{1,5})?")
RELOAD_PAGE: Final = b'<!DOCTYPE html><title>Vesper</title><meta http-equiv="refresh" content="0">'
"""Answer to a visit from another site, which comes without cookies: the page loads itself again with them."""


@dataclass(slots=True)
class Access:
    """The access to a dashboard: by credentials, or as one caller for all users of this machine."""

    local: Caller
    """The caller of all requests where there are no credentials."""
    credentials: Credentials | None = None
    owner_id: int | None = None
    """The user of the operating system that is `local`; others are refused. None: everybody."""
    hosts: frozenset[str] = LOOPBACK_HOSTS
    """Names in the header Host, without port; any literal address where empty."""
    origins: tuple[str, ...] = ()
    """Further origins, such as those of a proxy."""
    sessions: Sessions = field(default_factory=Sessions)
    attempts: Attempts = field(default_factory=Attempts)
    local_session: Session = field(default_factory=lambda: Session("", 0.0, 0.0))

    def origin_of(self, connection: HTTPConnection) -> str | None:
        """Return the origin of the dashboard as this request names it; None for a foreign Host."""
        host = connection.headers.get("host", "")
        found = _HOST.fullmatch(host)
        if found is None:
            return None
        for origin in self.origins:
            if origin.partition("://")[2].lower() == host.lower():
                return origin
        name = found["name"].lower()
        scheme = {"ws": "http", "wss": "https"}.get(connection.url.scheme, connection.url.scheme)
        return f"{scheme}://{host}" if name in self.hosts or (not self.hosts and _is_address(name)) else None

    def cookie_name(self, connection: HTTPConnection) -> str:
        """Return the name of the cookie: other dashboards of this host have other ports."""
        port = (connection.scope.get("server") or ("", 0))[1]
        return f"__Host-vesper-{port}" if self.is_secure(connection) else f"vesper-{port}"

    def is_secure(self, connection: HTTPConnection) -> bool:
        return (self.origin_of(connection) or "").startswith("https:")

    def identify(self, connection: HTTPConnection) -> tuple[Caller, Session | None]:
        """Return the caller and the session that its requests must prove. Raises `NotLoggedIn` or `Forbidden`."""
        if self.credentials is None:
            self._require_owner(connection)
            return self.local, self.local_session
        given = credential_of(connection.headers)
        if given is not None:
            caller = self.credentials.caller(given)
            if caller is None:
                raise NotLoggedIn("the key or token is not accepted", "Send a valid one, or log in at /login.")
            return caller, None
        session_id = connection.cookies.get(self.cookie_name(connection))
        # A page that refreshes itself is no sign of its reader.
        is_used = connection.scope["path"] != EVENTS and "x-live" not in connection.headers
        session = None if session_id is None else self.sessions.find(session_id, is_used)
        caller = None if session is None else self.credentials.caller(session.credential)
        if session_id is None or session is None or caller is None:
            if session_id is not None:
                self.sessions.drop(session_id)
            raise NotLoggedIn(
                "this dashboard needs a key or a token", "Log in at /login, or send `Authorization: Bearer …`."
            )
        return caller, session

    def _require_owner(self, connection: HTTPConnection) -> None:
        """Refuse other users of this machine: stores and files are those of one user."""
        client, server = connection.scope.get("client"), connection.scope.get("server")
        if self.owner_id is None or (client and server and peer_user_id(tuple(client), tuple(server)) == self.owner_id):
            return
        raise Forbidden(
            f"this address is for {self.local.name} alone, and another user has opened it",
            "Start `vesper play` or `vesper dashboard` as your own user.",
        )


def credential_of(headers: Headers) -> str | None:
    """Return the key or token of the headers; None without one."""
    scheme, _, rest = headers.get("authorization", "").partition(" ")
    return rest.strip() if scheme.lower() == "bearer" else headers.get("x-api-key")


class Guard:
    """Middleware that lets only checked requests through, and gives every answer its headers."""

    def __init__(self, app: ASGIApp, access: Access, show: Callable[[Request, Exception], Awaitable[Response]]) -> None:
        self._app = app
        self._access = access
        self._show = show

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        is_started = False

        async def send_guarded(message: Message) -> None:
            nonlocal is_started
            is_started = True
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        scope.setdefault("state", {}).update(caller=_ANYBODY, csrf="")
        request = Request(scope, receive)
        try:
            receive = await self._admit(request)
        except Problem as problem:
            response = await self._refusal(request, problem)
            await response(scope, receive, send_guarded)
            return
        try:
            await self._app(scope, receive, send_guarded)
        except Exception:
            if not is_started:
                bug = Problem("this is a bug in Vesper", "Report it with the lines of the dashboard's log.")
                await (await self._show(request, bug))(scope, receive, send_guarded)
            raise  # to the log

    async def _admit(self, request: Request) -> Receive:
        """Check a request, and return the stream of its body. Raises `Problem`."""
        origin = self._access.origin_of(request)
        if origin is None:
            raise BadRequest(
                "this dashboard is not reached by that host name",
                "Use the address that `vesper dashboard` printed, or add yours to `origins` of [dashboard].",
            )
        raw_path = request.scope.get("raw_path") or b""
        path: str = request.scope["path"]
        if _TRICKS.search(raw_path.decode("latin-1")) or not path.isprintable():
            raise BadRequest("the path has an encoded or doubled separator", "Follow a link of a page.")
        is_open = path == LOGIN or path.startswith("/static/")
        session = None
        credentials = self._access.credentials
        if credentials is not None and credentials.is_stale:
            await asyncio.to_thread(credentials.refresh)
        if not is_open:
            caller, session = self._access.identify(request)
            request.state.caller = caller
            request.state.csrf = "" if session is None else session.token()
            caller.require(Role.VIEWER)
        if request.method in _SAFE_METHODS:
            return request.receive
        _check_origin(request, origin, is_required=path == LOGIN)
        body = await _read_body(request)
        if session is not None and not session.has_token(_token_of(request, body)):
            raise Forbidden(
                "the form is stale, or another site sent it", "Load the page again, then repeat the change."
            )
        return _replay(body)

    async def _refusal(self, request: Request, problem: Problem) -> Response:
        is_anonymous = isinstance(problem, NotLoggedIn)
        level = logging.DEBUG if is_anonymous else logging.INFO
        _log.log(level, "refused %s %s: %s", request.method, printable(request.url.path[:200]), problem.what)
        is_page = request.method in _SAFE_METHODS and not request.url.path.startswith("/api/")
        if is_anonymous and is_page and "text/html" in request.headers.get("accept", ""):
            if request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
                return Response(RELOAD_PAGE, media_type="text/html")
            after = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"{LOGIN}?next={quote(after, safe='')}", 303)
        response = await self._show(request, problem)
        if is_anonymous:
            response.headers["www-authenticate"] = 'Bearer realm="vesper"'
        return response

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a socket through whose page is ours; refuse any other before it is accepted."""
        connection = HTTPConnection(scope)
        try:
            origin = self._access.origin_of(connection)
            if origin is None or connection.headers.get("origin") != origin:
                raise Forbidden("another site opened this socket")
            caller, session = self._access.identify(connection)
            caller.require(Role.VIEWER)
        except Problem as problem:
            _log.info("refused a socket at %s: %s", connection.url.path, problem.what)
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": ""})
            return
        scope.setdefault("state", {}).update(caller=caller, csrf="" if session is None else session.token())
        await self._app(scope, receive, send)


def _check_origin(request: Request, origin: str, is_required: bool) -> None:
    given, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    is_foreign = given not in (None, origin) or site not in (None, "same-origin", "none")
    if is_foreign or (is_required and given is None):
        raise Forbidden(
            "the request comes from another site", "Open this dashboard itself, and repeat the change there."
        )


async def _read_body(request: Request) -> bytes:
    """Return the whole body, within limits of size and time. Raises `Problem`."""
    found = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                found += chunk
                if len(found) > MAX_BODY_BYTES:
                    raise TooLarge(f"the body has more than {MAX_BODY_BYTES:,} bytes", "Send less at once.")
    except TimeoutError:
        raise BadRequest(f"the body did not arrive within {BODY_SECONDS:g} s", "Send it faster.") from None
    return bytes(found)


def _token_of(request: Request, body: bytes) -> str:
    found = request.headers.get("x-csrf")
    if found is None and request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        try:
            found = parse_qs(body.decode(), max_num_fields=200).get("csrf", [""])[0]
        except ValueError:
            return ""
    return found or ""


def _replay(body: bytes) -> Receive:
    """Return a stream that gives the body once, and then waits for the end of the connection."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    return receive


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
