"""W1 with Robyn and msgspec: `python -m tests.bench.serve.rivals.robyn_app PORT`."""

from __future__ import annotations

import os
import sys

from robyn import Request, Response, Robyn

from tests.bench.serve.rivals.model import decide_json

app = Robyn(__file__)


@app.post("/decide")
async def decide(request: Request) -> Response:
    body = request.body
    status, found = decide_json(body.encode() if isinstance(body, str) else bytes(body))
    return Response(status, {"Content-Type": "application/json"}, found)


if __name__ == "__main__":
    port = int(sys.argv.pop())  # Robyn reads the command line itself
    os.environ["ROBYN_LOG_LEVEL"] = "error"
    app.start("127.0.0.1", port)
