"""A sample of `make proof-openapi` without its tools: every example of the document is sent to the service.

Every operation answers its first example with success, and every answer is as the document says.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from jsonschema import Draft202012Validator  # noqa: E402

from tests.proofs.serving.openapi import calls_of, shop  # noqa: E402
from tests.support.serving import Serving  # noqa: E402


def send(server: Serving, call: dict[str, Any]) -> tuple[int, str, bytes]:
    """Make a call; return status, content type and body."""
    parameters = call["parameters"]
    path = call["path"]
    for name, value in parameters.get("path", {}).items():
        path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
    if "query" in parameters:
        path += f"?{urlencode(parameters['query'], doseq=True)}"
    body = json.dumps(call["body"]).encode() if "body" in call else None
    status, headers, found = server.request(call["method"], path, body, parameters.get("header"))
    return status, headers.get("content-type", ""), found


def problem_of(document: dict[str, Any], call: dict[str, Any], answer: tuple[int, str, bytes]) -> str | None:
    """Return where the answer is not as the document says, or no success."""
    status, content_type, body = answer
    responses = document["paths"][call["path"]][call["method"].lower()]["responses"]
    content = responses.get(str(status), responses["default"])["content"]
    shown = f"{call['id']}: {status} {content_type} {body[:300]!r}"
    if status not in (200, 201) or content_type not in content:
        return shown
    schema = {**content[content_type]["schema"], "components": document["components"]}
    errors = [error.message for error in Draft202012Validator(schema).iter_errors(json.loads(body))]
    return f"{shown}: {errors}" if errors else None


def main() -> int:
    with shop() as server:
        document = json.loads(server.request("GET", "/openapi.json")[2])
        calls = calls_of(document)
        problems = [each for call in calls if (each := problem_of(document, call, send(server, call)))]
    for problem in problems:
        print(f"FAILED: {problem}")
    print(f"{len(calls)} operations answer their examples as the document says" if not problems else "")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
