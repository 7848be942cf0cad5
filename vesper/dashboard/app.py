"""The application: routes of pages, actions, the API and events."""

from __future__ import annotations

import importlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from vesper.dashboard.access.caller import Caller, Role
from vesper.dashboard.access.guard import Access, Guard
from vesper.dashboard.action import Action
from vesper.dashboard.json_form import json_bytes
from vesper.dashboard.live import Live
from vesper.dashboard.openapi import api_document
from vesper.dashboard.page import Context, Page, context_of
from vesper.dashboard.pages import PACKAGES
from vesper.dashboard.problem import BadRequest, NotFound, Problem, Unavailable
from vesper.dashboard.rendering import STATIC, make_environment
from vesper.dashboard.stores import Stores, Topic
from vesper.values.model import printable
from vesper.values.vesper_error import VesperError

_FLASH: Final = "vesper-flash"
_SHARED: Final = Caller("", frozenset({Role.VIEWER}))
Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Site:
    """All pages, actions and raw routes."""

    pages: tuple[Page[Any], ...] = ()
    actions: tuple[Action, ...] = ()
    routes: tuple[BaseRoute, ...] = ()
    folders: tuple[Path, ...] = ()
    """Further folders of templates."""

    def and_package(self, name: str) -> Site:
        """Return the site with those of a package."""
        module = importlib.import_module(name)
        return Site(
            self.pages + tuple(getattr(module, "PAGES", ())),
            self.actions + tuple(getattr(module, "ACTIONS", ())),
            self.routes + tuple(getattr(module, "ROUTES", ())),
            self.folders,
        )


def whole_site(packages: Sequence[str] = PACKAGES) -> Site:
    """Return the pages of all packages."""
    site = Site()
    for each in packages:
        site = site.and_package(each)
    return site


def make_app(stores: Stores, access: Access, site: Site | None = None) -> Starlette:
    """Return the application; it closes the stores when it ends."""
    views = _Views(stores, whole_site() if site is None else site)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        views.live.close()
        stores.close()

    app = Starlette(
        routes=views.routes(),
        lifespan=lifespan,
        middleware=[Middleware(Guard, access=access)],
        exception_handlers={VesperError: views.problem, HTTPException: views.http_problem, Exception: views.fault},
    )
    app.state.stores = stores
    app.state.live = views.live
    return app


class _Views:
    """The handlers of requests."""

    def __init__(self, stores: Stores, site: Site) -> None:
        self._site = site
        self.live = Live(stores)
        self._environment = make_environment(site.pages, {each.name: each for each in site.actions}, site.folders)
        self._document = json.dumps(api_document(site.pages, site.actions)).encode()

    def routes(self) -> list[BaseRoute]:
        found: list[BaseRoute] = []
        for page in self._site.pages:
            found.append(Route(page.path, self._html(page)))
            found.append(Route("/api" + page.path, self._json(page)))
        for action in self._site.actions:
            found.append(Route(action.path, self._perform(action, is_api=False), methods=["POST"]))
            found.append(Route("/api" + action.path, self._perform(action, is_api=True), methods=["POST"]))
        return [
            *found,
            *self._site.routes,
            Route("/api/openapi.json", self._openapi),
            Route("/events", self._events),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]

    def _html(self, page: Page[Any]) -> Handler:
        async def handle(request: Request) -> Response:
            context = context_of(request)
            return await run_in_threadpool(self._page, request, page, context)

        return handle

    def _page(self, request: Request, page: Page[Any], context: Context) -> Response:
        model = page.read(replace(context, caller=_SHARED) if page.topics else context)
        response = self._rendered(
            request,
            page.template,
            context=context,
            page=page,
            model=model,
            title=page.titled(context.path),
            topics=" ".join(sorted(each.value for each in page.topics)),
        )
        if page.policy is not None:
            response.headers["content-security-policy"] = page.policy
        return response

    def _json(self, page: Page[Any]) -> Handler:
        async def handle(request: Request) -> Response:
            context = context_of(request)
            model = await run_in_threadpool(page.read, replace(context, caller=_SHARED) if page.topics else context)
            return Response(json_bytes(model), media_type="application/json")

        return handle

    def _perform(self, action: Action, is_api: bool) -> Handler:
        async def handle(request: Request) -> Response:
            context = context_of(request)
            fields = await _fields(request)
            done = await run_in_threadpool(action.run, context, fields)
            if is_api:
                return JSONResponse({"message": done.message, "location": done.location})
            response = RedirectResponse(done.location, 303)
            response.set_cookie(_FLASH, json.dumps(done.message[:500]), max_age=60, httponly=True, samesite="strict")
            return response

        return handle

    async def _openapi(self, _request: Request) -> Response:
        return Response(self._document, media_type="application/json")

    async def _events(self, request: Request) -> Response:
        names = request.query_params.get("topics", "").split()
        try:
            topics = {Topic(each) for each in names}
        except ValueError:
            choices = ", ".join(each.value for each in Topic)
            raise BadRequest("`topics` names an unknown topic", f"Use {choices}.") from None
        return StreamingResponse(self.live.watch(topics), media_type="text/event-stream")

    # -- problems ---------------------------------------------------------------------------------

    async def problem(self, request: Request, error: Exception) -> Response:
        """Return the page of a problem, or its RFC 9457 form for programs."""
        if not isinstance(error, Problem):
            error = Unavailable("the store", printable(str(error)), "Correct the cause and load the page again.")
        if request.url.path.startswith("/api/"):
            value = {"type": "about:blank", "title": error.title, "status": error.status, "detail": error.what}
            value |= {"remedy": error.remedy} if error.remedy else {}
            return JSONResponse(value, error.status, media_type="application/problem+json")
        context = context_of(request)
        response = self._rendered(
            request, "problem.html", context=context, problem=error, title=error.title, topics="", page=None
        )
        response.status_code = error.status
        return response

    async def http_problem(self, request: Request, error: Exception) -> Response:
        """Return the page of an error of routing."""
        assert isinstance(error, HTTPException)
        if error.status_code == 404:
            return await self.problem(request, NotFound("there is no page at this address", "Choose one of the menu."))
        found = BadRequest(error.detail, "Follow a link or a form of a page.")
        found.status = error.status_code
        return await self.problem(request, found)

    async def fault(self, request: Request, _error: Exception) -> Response:
        """Return the page of a bug; the log has its traceback."""
        return await self.problem(
            request, Problem("this is a bug in Vesper", "Report it with the log of the dashboard.")
        )

    def _rendered(self, request: Request, template: str, **values: object) -> Response:
        flash = _read_flash(request)
        text = self._environment.get_template(template).render(
            **values, flash=flash, address=request.url.path, theme=request.cookies.get("vesper-theme", "system")
        )
        response = Response(text, media_type="text/html")
        if flash is not None:
            response.delete_cookie(_FLASH, httponly=True, samesite="strict")
        return response


def _read_flash(request: Request) -> str | None:
    try:
        found = json.loads(request.cookies.get(_FLASH, "null"))
    except ValueError:
        return None
    return found if isinstance(found, str) else None


async def _fields(request: Request) -> dict[str, str]:
    """Return the fields of a form or of a JSON object, without the token."""
    body = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    try:
        if kind == "application/json":
            found = json.loads(body)
            if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
                raise BadRequest("the body is not an object of texts", 'Send {"reason": "…"}.')
        else:
            found = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=200))
    except ValueError:
        raise BadRequest("the body cannot be read", "Send a form or a JSON object.") from None
    return {name: each for name, each in found.items() if name != "csrf"}
