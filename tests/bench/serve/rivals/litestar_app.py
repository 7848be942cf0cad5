"""W1 with Litestar and msgspec, on uvicorn."""

from __future__ import annotations

from litestar import Litestar, post
from litestar.exceptions import HTTPException

from tests.bench.serve.rivals import model


@post("/decide", status_code=200)
async def decide(data: model.Payment) -> model.Decision:
    try:
        return model.Decision(**model.decide(data))
    except ValueError as problem:
        raise HTTPException(str(problem), status_code=422) from None


app = Litestar([decide], openapi_config=None)
