"""The chat protocol of Ollama: JSON on lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.models.replies import Asked, Rejected, Reply, pieces, usage_of
from tests.support.web import Got

CONTENT_TYPE = "application/x-ndjson"


def read(got: Got, body: Mapping[str, Any], number: int) -> Asked:
    messages = body.get("messages")
    if not body.get("model") or not isinstance(messages, list):
        raise Rejected(400, "model is required")
    results: list[str] = []
    for message in messages:
        if message["role"] == "assistant":
            results = []
        if message["role"] == "tool":
            results.append(message["content"])
    return Asked(
        api="ollama",
        number=number,
        model=body["model"],
        system="\n".join(each["content"] for each in messages if each["role"] == "system"),
        texts=tuple(each["content"] for each in messages if each["role"] in ("user", "tool")),
        images=sum(len(each.get("images", ())) for each in messages),
        tools=tuple(tool["function"]["name"] for tool in body.get("tools", ())),
        results=tuple(results),
        schema=body.get("format"),
        is_streamed=body.get("stream", True),
        headers=got.headers,
        body=body,
    )


def whole(asked: Asked, reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.thinking:
        message["thinking"] = reply.thinking
    if reply.tools:
        message["tool_calls"] = _calls(reply)
    return {**_head(asked), "message": message, **_end(asked, reply)}


def events(asked: Asked, reply: Reply) -> Iterator[bytes]:
    for name, text in (("thinking", reply.thinking), ("content", reply.text)):
        for piece in pieces(text, reply.piece):
            message: dict[str, Any] = {"role": "assistant", "content": "", name: piece}
            yield _line({**_head(asked), "message": message, "done": False})
    if reply.tools:
        message = {"role": "assistant", "content": "", "tool_calls": _calls(reply)}
        yield _line({**_head(asked), "message": message, "done": False})
    yield _line({**_head(asked), "message": {"role": "assistant", "content": ""}, **_end(asked, reply)})


def error(status: int, kind: str, message: str) -> dict[str, Any]:
    return {"error": message}


def error_event() -> bytes:
    return _line({"error": "an error was encountered while running the model"})


def _head(asked: Asked) -> dict[str, Any]:
    return {"model": asked.model, "created_at": "2026-11-18T23:00:00Z"}


def _end(asked: Asked, reply: Reply) -> dict[str, Any]:
    given, answered = usage_of(asked, reply)
    reason = "length" if reply.stop == "length" else "stop"
    return {"done": True, "done_reason": reason, "prompt_eval_count": given, "eval_count": answered}


def _calls(reply: Reply) -> list[dict[str, Any]]:
    return [{"function": {"name": name, "arguments": arguments}} for name, arguments in reply.tools]


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"
