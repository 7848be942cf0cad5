"""The Chat Completions protocol of OpenAI and Azure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.models.replies import Asked, Rejected, Reply, pieces, usage_of
from tests.support.web import Got

CONTENT_TYPE = "text/event-stream"
_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
_ROLES = ("system", "developer", "user", "assistant", "tool")


def read(got: Got, body: Mapping[str, Any], number: int) -> Asked:
    if not got.headers.get("authorization", "").startswith("Bearer ") and not got.headers.get("api-key"):
        raise Rejected(401, "You didn't provide an API key.")
    messages = body.get("messages")
    if not body.get("model") or not isinstance(messages, list) or not messages:
        raise Rejected(400, "you must provide a model parameter and messages")
    if "max_tokens" in body and "max_completion_tokens" in body:
        raise Rejected(400, "max_tokens and max_completion_tokens cannot both be set")
    texts: list[str] = []
    results: list[str] = []
    system, images, called = "", 0, set()
    for message in messages:
        role, content = message.get("role"), message.get("content")
        if role not in _ROLES:
            raise Rejected(400, f"Invalid value: '{role}'.")
        if role in ("system", "developer"):
            system = content
        elif role == "assistant":
            called |= {call["id"] for call in message.get("tool_calls") or ()}
            results = []
        elif role == "tool":
            if message.get("tool_call_id") not in called:
                raise Rejected(400, "messages with role 'tool' must be a response to a preceding 'tool_calls'")
            results.append(content)
            texts.append(content)
        elif isinstance(content, str):
            texts.append(content)
        else:
            texts += [part["text"] for part in content if part["type"] == "text"]
            urls = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
            if any(not url.startswith("data:image/") or ";base64," not in url for url in urls):
                raise Rejected(400, "Invalid image_url")
            images += len(urls)
    output = body.get("response_format")
    return Asked(
        api="openai",
        number=number,
        model=body["model"],
        system=system,
        texts=tuple(texts),
        images=images,
        tools=tuple(tool["function"]["name"] for tool in body.get("tools", ())),
        results=tuple(results),
        schema=None if output is None else output["json_schema"]["schema"],
        is_streamed=bool(body.get("stream")),
        headers=got.headers,
        body=body,
    )


def whole(asked: Asked, reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.stop == "refusal":
        message |= {"content": None, "refusal": reply.text}
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    if reply.tools:
        message["tool_calls"] = [
            {"id": f"call_{asked.number}_{index}", "type": "function", "function": _function(name, arguments)}
            for index, (name, arguments) in enumerate(reply.tools)
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _stop(reply)}
    return {**_head(asked, "chat.completion"), "choices": [choice], "usage": _usage(asked, reply)}


def events(asked: Asked, reply: Reply) -> Iterator[bytes]:
    yield _chunk(asked, {"role": "assistant", "content": "", "refusal": None})
    for name, text in (
        ("reasoning_content", reply.thinking),
        ("refusal" if reply.stop == "refusal" else "content", reply.text),
    ):
        for piece in pieces(text, reply.piece):
            yield _chunk(asked, {name: piece})
    for index, (name, arguments) in enumerate(reply.tools):
        function = {"name": name, "arguments": ""}
        call = {"index": index, "id": f"call_{asked.number}_{index}", "type": "function", "function": function}
        yield _chunk(asked, {"tool_calls": [call]})
        for piece in pieces(json.dumps(arguments), reply.piece):
            yield _chunk(asked, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield _chunk(asked, {}, _stop(reply))
    if asked.body.get("stream_options", {}).get("include_usage"):
        head = _head(asked, "chat.completion.chunk")
        yield _event({**head, "choices": [], "usage": _usage(asked, reply)})
    yield b"data: [DONE]\n\n"


def error(status: int, kind: str, message: str) -> dict[str, Any]:
    type_ = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": type_, "param": None, "code": kind or _CODES.get(status)}}


def error_event() -> bytes:
    return _event({"error": {"message": "Overloaded", "type": "server_error", "code": "overloaded_error"}})


def _head(asked: Asked, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{asked.number}", "object": kind, "created": 1_795_000_000, "model": asked.model}


def _chunk(asked: Asked, delta: Mapping[str, Any], stop: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": stop}
    return _event({**_head(asked, "chat.completion.chunk"), "choices": [choice]})


def _event(value: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def _function(name: str, arguments: Mapping[str, Any]) -> dict[str, str]:
    return {"name": name, "arguments": json.dumps(arguments)}


def _stop(reply: Reply) -> str:
    return "length" if reply.stop == "length" else "tool_calls" if reply.tools else "stop"


def _usage(asked: Asked, reply: Reply) -> dict[str, Any]:
    given, answered = usage_of(asked, reply)
    return {
        "prompt_tokens": given,
        "completion_tokens": answered,
        "total_tokens": given + answered,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
    }
