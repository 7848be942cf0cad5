"""Endpoints of the playground: JSON in, JSON out, for authors only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vesper.dashboard.access.caller import Role
from vesper.dashboard.json_form import json_bytes, read_json, to_json
from vesper.dashboard.page import Context, context_of
from vesper.dashboard.problem import BadRequest, Problem, Unavailable
from vesper.values.model import printable
from vesper.values.vesper_error import VesperError

T = TypeVar("T")
Answer = Callable[[Context, Mapping[str, Any]], object]
"""Returns a dataclass or plain values for the body of a request; runs in a thread and raises `Problem`."""


def endpoint(path: str, answer: Answer) -> Route:
    """Return the route of an endpoint. Its problems are JSON, with `detail` and `remedy`."""

    async def handle(request: Request) -> Response:
        try:
            context = context_of(request)
            context.caller.require(Role.AUTHOR)
            found = await run_in_threadpool(answer, context, await _body(request))
            return Response(json_bytes(found), media_type="application/json")
        except VesperError as error:
            return _problem(error, request.headers.get("x-problems") == "inline")

    return Route(path, handle, methods=["POST"])


def field(body: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """Return a field of a body. Raises `BadRequest` where it is absent or of another type."""
    found = body.get(name)
    if not isinstance(found, kind):
        raise BadRequest(f"`{name}` is missing or of another type than {kind.__name__}", "Reload the page.")
    return found


async def _body(request: Request) -> dict[str, Any]:
    try:
        found = read_json(await request.body())  # the guard limits its size
    except (ValueError, RecursionError):
        raise BadRequest("the body is no JSON of whole characters", "Reload the page.") from None
    if not isinstance(found, dict):
        raise BadRequest("the body is no JSON object", "Reload the page.")
    return found


def _problem(error: VesperError, is_inline: bool) -> Response:
    """Return a problem as JSON. The page requests the status 200, because browsers log others as errors."""
    if not isinstance(error, Problem):
        error = Unavailable("the node", printable(str(error)), "Correct the cause and try again.")
    value = {"title": error.title, "status": error.status, "detail": error.what, "remedy": error.remedy}
    found = getattr(error, "found", None)
    if found is not None:
        value["found"] = to_json(found)
    return JSONResponse(value, 200 if is_inline else error.status, media_type="application/problem+json")
