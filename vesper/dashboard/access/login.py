"""Login by a key or token, logout, the choice of a theme, and the session as JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from vesper.dashboard.access.caller import Role
from vesper.dashboard.access.guard import LOGIN, Access
from vesper.dashboard.problem import BadRequest, TooMany

THEMES: Final = ("system", "light", "dark")
THEME_COOKIE: Final = "vesper-theme"
_THEME_SECONDS: Final = 365 * 86_400


def login_routes(access: Access, render: Callable[..., Response]) -> list[Route]:
    """Return the routes; `render` makes the login page."""

    async def login(request: Request) -> Response:
        if access.credentials is None:
            raise BadRequest(
                "this dashboard has no logins", "Add [[serve.keys]] or [[serve.jwt]] to vesper.toml and start it again."
            )
        if request.method != "POST":
            return render(request, error="", remedy="", after=_local(request.query_params.get("next", "/")))
        fields = await _fields(request)
        address = request.client.host if request.client else ""
        if access.attempts.is_blocked(address):
            raise TooMany("there were too many failed logins", "Wait a minute, then log in again.")
        credential = fields.get("credential", "").strip()
        after = _local(fields.get("next", "/"))
        caller = access.credentials.caller(credential)
        if caller is None or not caller.can(Role.VIEWER):
            access.attempts.add(address)
            error = "This key or token is not accepted." if caller is None else f"{caller.name} has no role here."
            response = render(request, error=error, remedy="" if caller is None else caller.remedy, after=after)
            response.status_code = 401 if caller is None else 403
            return response
        _drop_session(request)  # an id that was known before the login must not survive it
        response = RedirectResponse(after, 303)
        response.set_cookie(
            access.cookie_name(request),
            access.sessions.create(credential),
            httponly=True,
            samesite="strict",
            secure=access.is_secure(request),
        )
        return response

    async def logout(request: Request) -> Response:
        _drop_session(request)
        response = RedirectResponse(LOGIN if access.credentials is not None else "/", 303)
        response.delete_cookie(
            access.cookie_name(request), httponly=True, samesite="strict", secure=access.is_secure(request)
        )
        return response

    def _drop_session(request: Request) -> None:
        session_id = request.cookies.get(access.cookie_name(request))
        if session_id is not None:
            access.sessions.drop(session_id)

    async def theme(request: Request) -> Response:
        fields = await _fields(request)
        chosen = fields.get("theme", "")
        if chosen not in THEMES:
            raise BadRequest("there is no such theme", f"Use one of {', '.join(THEMES)}.")
        response = RedirectResponse(_local(fields.get("next", "/")), 303)
        response.set_cookie(THEME_COOKIE, chosen, max_age=_THEME_SECONDS, httponly=True, samesite="strict")
        return response

    async def session(request: Request) -> Response:
        caller = request.state.caller
        roles = sorted(each.value for each in caller.roles)
        return JSONResponse({"name": caller.name, "roles": roles, "csrf": request.state.csrf})

    return [
        Route(LOGIN, login, methods=["GET", "POST"]),
        Route("/logout", logout, methods=["POST"]),
        Route("/theme", theme, methods=["POST"]),
        Route("/api/session", session),
    ]


async def _fields(request: Request) -> dict[str, str]:
    try:
        found = parse_qs((await request.body()).decode(), max_num_fields=20)
    except ValueError:
        raise BadRequest("the form cannot be read", "Load the page again.") from None
    return {name: values[0] for name, values in found.items()}


def _local(address: str) -> str:
    """Return a path of this dashboard; the first page for anything else."""
    is_local = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if is_local and "\\" not in address else "/"
