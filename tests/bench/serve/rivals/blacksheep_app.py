"""W1 with BlackSheep and msgspec, on uvicorn."""

from __future__ import annotations

from blacksheep import Application, Content, Request, Response, post

from tests.bench.serve.rivals.model import decide_json

app = Application()


@post("/decide")
async def decide(request: Request) -> Response:
    status, body = decide_json(await request.read() or b"")
    return Response(status, content=Content(b"application/json", body))
