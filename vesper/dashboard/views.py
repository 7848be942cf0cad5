"""Handlers of requests: pages as HTML and JSON, regions of live pages, actions, events and problems."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from vesper.dashboard.access.caller import Caller, Role
from vesper.dashboard.access.guard import EVENTS
from vesper.dashboard.access.login import THEME_COOKIE, THEMES
from vesper.dashboard.action import Action
from vesper.dashboard.json_form import json_bytes, read_json
from vesper.dashboard.live import Live
from vesper.dashboard.openapi import api_document
from vesper.dashboard.page import Context, Page, context_of
from vesper.dashboard.problem import BadRequest, NotFound, Problem, Unavailable
from vesper.dashboard.rendering import STATIC, make_environment
from vesper.dashboard.stores import Stores, Topic
from vesper.values.model import printable

_FLASH: Final = "vesper-flash"
_FLASH_SECONDS: Final = 60
_MAX_FLASH: Final = 500
_SHARED: Final = Caller("", frozenset({Role.VIEWER}))
"""The caller that pages with topics see: what they read is the same for all."""
_KEEP_SECONDS: Final = 1.0
_MAX_KEPT: Final = 200
_YEAR: Final = "public, max-age=31536000, immutable"
Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Site:
    """All pages, actions and raw routes."""

    pages: tuple[Page[Any], ...] = ()
    actions: tuple[Action, ...] = ()
    routes: tuple[BaseRoute, ...] = ()
    folders: tuple[Path, ...] = ()
    """Further folders of templates."""


class Views:
    def __init__(self, stores: Stores, site: Site, has_logins: bool) -> None:
        self._site = site
        self._has_logins = has_logins
        self.live = Live(stores)
        self._environment = make_environment(site.pages, {each.name: each for each in site.actions}, site.folders)
        self._document = json.dumps(api_document(site.pages, site.actions)).encode()
        self._token_place = secrets.token_hex(32)
        """Stands for the token in regions that callers share."""
        self._kept: dict[object, tuple[float, asyncio.Task[str]]] = {}

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
            Route(EVENTS, self._events),
            Mount("/static", _Assets(directory=STATIC)),
        ]

    # -- pages ------------------------------------------------------------------------------------

    def _html(self, page: Page[Any]) -> Handler:
        async def handle(request: Request) -> Response:
            context = context_of(request)
            if page.topics and request.headers.get("x-live"):
                return await self._regions(request, page, context)
            response = await run_in_threadpool(self._page, request, page, context)
            if page.policy is not None:
                response.headers["content-security-policy"] = page.policy
            return response

        return handle

    def _page(self, request: Request, page: Page[Any], context: Context) -> Response:
        values = _values_of(page, context)
        return self._render(request, page.template, **values, model=_read(page, context))

    async def _regions(self, request: Request, page: Page[Any], context: Context) -> Response:
        """Return the content of a live page, rendered once for all watchers of a change."""
        caller = context.caller
        versions = tuple(self.live.changes[each] for each in page.topics)
        key = (request.url.path, request.url.query, caller.name, caller.roles, versions)
        kept = self._kept.get(key)
        if kept is None or kept[0] < time.monotonic():
            shared = replace(context, csrf=self._token_place)
            work = run_in_threadpool(self._region_text, page, shared, request.url.path)
            kept = time.monotonic() + _KEEP_SECONDS, asyncio.create_task(work)
            while len(self._kept) >= _MAX_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = kept
        text = await asyncio.shield(kept[1])
        own = text.replace(self._token_place, context.csrf)
        return _tag_answer(request, text.encode(), "text/html", own.encode())

    def _region_text(self, page: Page[Any], context: Context, address: str) -> str:
        values = _values_of(page, context)
        return self._environment.get_template(page.template).render(
            **values, model=_read(page, context), address=address, is_live=True
        )

    def _json(self, page: Page[Any]) -> Handler:
        async def handle(request: Request) -> Response:
            context = context_of(request)
            data = await run_in_threadpool(lambda: json_bytes(_read(page, context)))
            return _tag_answer(request, data, "application/json")

        return handle

    def _render(self, request: Request, template: str, **values: object) -> Response:
        flash = _read_flash(request)
        theme = request.cookies.get(THEME_COOKIE, "")
        text = self._environment.get_template(template).render(
            **values,
            flash=flash,
            address=request.url.path,
            here=request.url.path + (f"?{request.url.query}" if request.url.query else ""),
            theme=theme if theme in THEMES else THEMES[0],
            themes=THEMES,
            has_logins=self._has_logins,
            is_live=False,
        )
        response = Response(text, media_type="text/html")
        if flash is not None:
            response.delete_cookie(_FLASH, httponly=True, samesite="strict")
        return response

    def login(self, request: Request, error: str, remedy: str, after: str) -> Response:
        """Return the page of the login."""
        values = {"context": context_of(request), "page": None, "title": "Log in", "topics": ""}
        return self._render(request, "login.html", **values, error=error, remedy=remedy, after=after)

    # -- actions and events -----------------------------------------------------------------------

    def _perform(self, action: Action, is_api: bool) -> Handler:
        async def handle(request: Request) -> Response:
            context = context_of(request)
            fields = await _fields(request)
            done = await run_in_threadpool(action.run, context, fields)
            if is_api:
                return JSONResponse({"message": done.message, "location": done.location})
            response = RedirectResponse(done.location, 303)
            text = json.dumps(done.message[:_MAX_FLASH])
            response.set_cookie(_FLASH, text, max_age=_FLASH_SECONDS, httponly=True, samesite="strict")
            return response

        return handle

    async def _openapi(self, request: Request) -> Response:
        return _tag_answer(request, self._document, "application/json")

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
        if request.url.path.startswith(("/api/", "/play/api/")) or "json" in request.headers.get("accept", ""):
            value = {"type": "about:blank", "title": error.title, "status": error.status, "detail": error.what}
            value |= {"remedy": error.remedy} if error.remedy else {}
            return JSONResponse(value, error.status, media_type="application/problem+json")
        context = Context(request.app.state.stores, {}, {}, request.state.caller, csrf=request.state.csrf)
        values = {"context": context, "page": None, "title": error.title, "topics": ""}
        back = urlsplit(request.headers.get("referer", ""))
        is_own = request.method == "POST" and back.netloc == request.headers.get("host")
        address = urlunsplit(("", "", back.path, back.query, "")) if is_own and not back.path.startswith("//") else ""
        response = self._render(request, "problem.html", **values, problem=error, back=address)
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


class _Assets(StaticFiles):
    """Files of `static`. An address with a digest changes with the content; others are requested again."""

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["cache-control"] = _YEAR if scope["query_string"] else "no-cache"
        return response


def _read(page: Page[Any], context: Context) -> object:
    return page.read(replace(context, caller=_SHARED, csrf="") if page.topics else context)


def _values_of(page: Page[Any], context: Context) -> dict[str, object]:
    topics = " ".join(sorted(each.value for each in page.topics))
    return {"context": context, "page": page, "title": page.titled(context.path), "topics": topics}


def _tag_answer(request: Request, data: bytes, kind: str, own: bytes | None = None) -> Response:
    """Return an answer with a tag of its content; 304 if the caller has that content.

    `own` is the caller's form of the content, without which the content is sent.
    """
    tag = f'W/"{hashlib.sha256(data).hexdigest()[:32]}"'
    headers = {"etag": tag, "cache-control": "no-cache, private" if kind == "application/json" else "no-store"}
    if tag in [each.strip() for each in request.headers.get("if-none-match", "").split(",")]:
        return Response(status_code=304, headers=headers)
    return Response(data if own is None else own, media_type=kind, headers=headers)


def _read_flash(request: Request) -> str | None:
    try:
        found = json.loads(request.cookies.get(_FLASH, "null"))
    except ValueError:
        return None
    return found[:_MAX_FLASH] if isinstance(found, str) else None


async def _fields(request: Request) -> dict[str, str]:
    """Return the fields of a form or of a JSON object, without the token."""
    body = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    try:
        if kind == "application/json":
            found = read_json(body)
            if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
                raise BadRequest("the body is not an object of texts", 'Send {"reason": "…"}.')
        else:
            found = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=200))
    except (ValueError, RecursionError):
        raise BadRequest("the body cannot be read", "Send a form or a JSON object.") from None
    return {name: each for name, each in found.items() if name != "csrf"}
