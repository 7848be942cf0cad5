"""Nodes as endpoints of a FastAPI application (docs/how-to/use-with-fastapi.md).

Requests are read and answers written by the native part of `vesper serve`, so statuses, problems, exact decimals,
`Idempotency-Key` and `Vesper-Timeout` are those of [serving](docs/spec/serving.md). Access is the application's part.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Literal

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends
from fastapi.routing import APIRoute

from vesper._direct import Exchange, ExchangeCall
from vesper.api.input_conversion import Plain
from vesper.api.json_calls import outcome_json
from vesper.api.node import Node
from vesper.api.outcome import Outcome
from vesper.config.serve import ServeSettings
from vesper.engines.outcome import Returned
from vesper.serve.asgi import read_body, seconds_left
from vesper.serve.keys import auth_table
from vesper.serve.nodes import is_hosted
from vesper.serve.openapi.document import build_document
from vesper.serve.run_call import describe_error, run_call
from vesper.serve.table import build_table
from vesper.values.json_mistake import JsonMistake
from vesper.values.strict_json import forms_of_json

_log = logging.getLogger("vesper.integrations.fastapi")
_Answer = tuple[int, list[tuple[bytes, bytes]], bytes]
Decimals = Literal["text", "number"]


# -- endpoints of nodes ---------------------------------------------------------------------------


def add_nodes(
    app: FastAPI,
    *nodes: Node,
    prefix: str = "",
    decimals: Decimals = "text",
    dependencies: Sequence[Depends] = (),
    tags: Sequence[str] = (),
) -> None:
    """Add an endpoint for each node: by its `http:`, or else at `POST PREFIX/nodes/ID`.

    `decimals` is their form in answers, `dependencies` run before each request. Raises `ValueError` for a node with
    `scopes` and no dependency that could check them.
    """
    settings = ServeSettings(decimals=decimals)
    document = _own_names(app, build_document([each._compiled for each in nodes], settings, app.title))
    operations = {
        operation["operationId"]: (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    for node in nodes:
        http = node._compiled.http
        if http is not None and http.scopes and not dependencies:
            raise ValueError(f"{node.id} needs the scopes {', '.join(http.scopes)}: check them in `dependencies`")
        path, method, operation = operations[node.id]
        app.add_api_route(
            prefix + path,
            _Endpoint(node, settings, prefix).respond,
            methods=[method.upper()],
            name=node.id,
            operation_id=node.id,
            summary=node.intent,
            description=node.intent,
            response_class=Response,
            openapi_extra=operation,
            dependencies=list(dependencies),
            tags=list(tags),
        )
    _extend_openapi(app, document["components"]["schemas"])


def _own_names(app: FastAPI, document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with names of components that no model of the application and no other call has."""
    number = getattr(app.openapi, "vesper_calls", 0) + 1
    start = "nodes." if number == 1 else f"nodes{number}."
    text = json.dumps(document).replace('"#/components/schemas/', f'"#/components/schemas/{start}')
    found: dict[str, Any] = json.loads(text)
    schemas = found["components"]["schemas"]
    found["components"]["schemas"] = {start + name: schema for name, schema in schemas.items()}
    return found


def _extend_openapi(app: FastAPI, schemas: dict[str, Any]) -> None:
    """Add components to the OpenAPI document of an application."""
    before = app.openapi

    def openapi() -> dict[str, Any]:
        document = before()
        document.setdefault("components", {}).setdefault("schemas", {}).update(schemas)
        return document

    openapi.vesper_calls = getattr(before, "vesper_calls", 0) + 1  # type: ignore[attr-defined]  # for `_own_names`
    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI documents it


class _Endpoint:
    """One node, as `vesper serve` has it."""

    def __init__(self, node: Node, settings: ServeSettings, prefix: str) -> None:
        self._node = node
        self._prefix = prefix
        self._max_bytes = settings.limits.max_body_bytes
        self._exchange = Exchange(_table(node, settings))

    async def respond(self, request: Request) -> Response:
        routed = self._exchange.route(request.method, self._target(request), list(request.headers.raw))
        answer = await self._answer(routed, request) if isinstance(routed, ExchangeCall) else routed
        return _response(answer)

    def _target(self, request: Request) -> str:
        """Return path and query as sent, without the path at which the application and its nodes are."""
        path: str = request.scope.get("raw_path", request.url.path.encode()).decode("utf-8", "replace")
        root = request.scope.get("root_path", "") + self._prefix
        path = path.partition("?")[0].removeprefix(root)
        return f"{path}?{request.url.query}" if request.url.query else path

    async def _answer(self, call: ExchangeCall, request: Request) -> _Answer:
        until = None if call.timeout is None else time.monotonic() + call.timeout
        try:
            body = await read_body(request.receive, self._max_bytes)
        except ConnectionError:  # the client is gone
            return call.refuse("closing")
        if body is None:
            return call.refuse("too_large")
        inputs = call.inputs(body)
        if not isinstance(inputs, bytes):
            return inputs
        run = partial(self._run, call, inputs, until)
        if self._node._is_short and not is_hosted(self._node):
            return run()
        # A run outlives the caller's patience: its effects have begun.
        done, _ = await asyncio.wait({asyncio.ensure_future(asyncio.to_thread(run))}, timeout=seconds_left(until))
        return done.pop().result() if done else call.refuse("deadline")

    def _run(self, call: ExchangeCall, inputs: bytes, until: float | None) -> _Answer:
        try:
            return run_call(call, self._node, inputs, seconds_left(until), self._node)
        except Exception as error:  # noqa: BLE001  # a bug of one request ends that request
            _log.error("%s broke\n%s", self._node.id, describe_error(error, self._node, self._node))
            return call.refuse("internal")


def _table(node: Node, settings: ServeSettings, **changes: object) -> bytes:
    """Return the table of one node for callers that the application lets through."""
    table = json.loads(build_table([node], settings, auth_table(settings, str), ()))
    table["endpoints"][0] |= {"scopes": [], **changes}
    return json.dumps(table).encode()


def _response(answer: _Answer) -> Response:
    status, headers, body = answer
    found = Response(body, status)
    found.raw_headers += [(name, each) for name, each in headers if name != b"content-length"]
    return found


# -- endpoints of the application -----------------------------------------------------------------


class NodeResponse(Response):
    """An outcome as `vesper serve` answers it: outputs with exact decimals, or a problem (RFC 9457)."""

    def __init__(self, outcome: Outcome[Any], *, decimals: Decimals = "text") -> None:
        node = outcome._node
        if node is None:
            raise ValueError("this outcome does not come from a call of a node in this process")
        settings = ServeSettings(decimals=decimals)
        plain = {"method": "POST", "path": "/", "inputs": [], "body": "object", "response_headers": {}}
        call = Exchange(_table(node, settings, **plain)).route("POST", "/", [])
        assert isinstance(call, ExchangeCall)
        ended = Returned(dict(outcome.unwrap())) if outcome.error is None else outcome.error.outcome
        given = node._to_plain(outcome._inputs) if outcome.error is not None else Plain({})
        text = outcome_json(node._compiled, ended, given).encode()
        status, headers, body = call.answer(text, outcome.trace_id if is_hosted(node) else None)
        super().__init__(body, status, {name.decode(): each.decode() for name, each in headers})


class ExactRequest(Request):
    """A request whose JSON has exact numbers: `int`, or `Decimal` where there is a point or an exponent."""

    async def json(self) -> Any:
        text = (await self.body()).decode("utf-8", "replace")
        try:
            return forms_of_json(text)
        except JsonMistake as problem:
            raise json.JSONDecodeError(problem.what, text, problem.offset) from None


class ExactRoute(APIRoute):
    """A route whose models get exact numbers: `APIRouter(route_class=ExactRoute)`.

    Bodies that do not fit are answered with a problem, as `vesper serve` does.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_exact(request: Request) -> Response:
            try:
                return await handle(ExactRequest(request.scope, request.receive))
            except RequestValidationError as refused:
                if any(each["loc"][0] != "body" for each in refused.errors()):
                    raise
                return _refusal(refused)

        return handle_exact


def _refusal(refused: RequestValidationError) -> Response:
    """Return the problem of a body that does not fit its model."""
    malformed = [each["ctx"]["error"] for each in refused.errors() if each["type"] == "json_invalid"]
    problem: dict[str, Any] = {"type": "urn:vesper:problem:bad_input", "title": "Inputs do not fit", "status": 422}
    if malformed:
        problem = {"type": "urn:vesper:problem:bad_json", "title": "Malformed JSON", "status": 400}
    problem["detail"] = f"JSON text: {malformed[0]}" if malformed else "the inputs do not fit"
    problem["problems"] = [
        {
            "path": "" if malformed else ".".join(str(part) for part in each["loc"][1:]),
            "kind": "malformed" if malformed else str(each["type"]).removeprefix("vesper_"),
            "message": problem["detail"] if malformed else each["msg"],
        }
        for each in refused.errors()
    ]
    return Response(json.dumps(problem), problem["status"], media_type="application/problem+json")
