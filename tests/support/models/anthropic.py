"""The Messages protocol of Anthropic, also as Vertex and Bedrock have it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.models.replies import Asked, Rejected, Reply, pieces, usage_of
from tests.support.web import Got

CONTENT_TYPE = "text/event-stream; charset=utf-8"
_VERSIONS = ("2023-06-01", "2026-10-21")
"""Versions of the protocol; the second one refuses what draws answers, and its SDKs send the key as a bearer token."""
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_MEMBERS = {
    *("model", "max_tokens", "messages", "stream", "system", "temperature", "tools", "tool_choice", "thinking"),
    *("output_config", "anthropic_version", "metadata", "stop_sequences"),
}


def read(got: Got, body: Mapping[str, Any], number: int) -> Asked:
    is_bedrock, is_vertex = got.path.startswith("/model/"), "/publishers/" in got.path
    if not is_bedrock and not is_vertex:
        if not got.headers.get("x-api-key") and not got.headers.get("authorization", "").startswith("Bearer "):
            raise Rejected(401, "x-api-key header is required")
        version = got.headers.get("anthropic-version")
        if version not in _VERSIONS:
            raise Rejected(400, "anthropic-version: header is required")
        if version != _VERSIONS[0] and "temperature" in body:
            raise Rejected(400, f"temperature: not supported in version {version}")
    elif "model" in body or "anthropic_version" not in body:
        raise Rejected(400, "anthropic_version: Field required")
    if unknown := sorted(set(body) - _MEMBERS):
        raise Rejected(400, f"{unknown[0]}: Extra inputs are not permitted")
    if type(body.get("max_tokens")) is not int or body["max_tokens"] < 1:
        raise Rejected(400, "max_tokens: Field required")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or messages[0].get("role") != "user":
        raise Rejected(400, "messages: first message must use the user role")
    texts: list[str] = []
    results: list[str] = []
    images, expected = 0, None
    for message in messages:
        if message["role"] == expected:
            raise Rejected(400, "messages: roles must alternate")
        expected = message["role"]
        results = [] if message["role"] == "assistant" else results
        blocks = message["content"]
        blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
        for block in blocks:
            match block["type"]:
                case "text" if message["role"] == "user":
                    texts.append(block["text"])
                case "image":
                    if block["source"]["type"] != "base64" or not block["source"]["media_type"].startswith("image/"):
                        raise Rejected(400, "messages: image source is invalid")
                    images += 1
                case "tool_result":
                    results.append(block["content"])
                    texts.append(block["content"])
                case "thinking" if not block.get("signature"):
                    raise Rejected(400, "messages: thinking.signature: Field required")
    system = body.get("system", "")
    if isinstance(system, list):
        system = "\n".join(block["text"] for block in system)
    tools = body.get("tools", [])
    if any("input_schema" not in tool for tool in tools):
        raise Rejected(400, "tools.0.input_schema: Field required")
    output = body.get("output_config", {}).get("format")
    return Asked(
        api="anthropic",
        number=number,
        model=body.get("model") or got.path.rsplit("/", 1)[1].partition(":")[0],
        system=system,
        texts=tuple(texts),
        images=images,
        tools=tuple(tool["name"] for tool in tools),
        results=tuple(results),
        schema=None if output is None else output["schema"],
        is_streamed=bool(body.get("stream")),
        headers=got.headers,
        body=body,
    )


def whole(asked: Asked, reply: Reply) -> dict[str, Any]:
    return {
        "id": f"msg_{asked.number:04}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": _blocks(asked, reply),
        "stop_reason": _stop(reply),
        "stop_sequence": None,
        "usage": _usage(asked, reply),
    }


def events(asked: Asked, reply: Reply) -> Iterator[bytes]:
    message = whole(asked, reply)
    usage = message["usage"]
    start = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield _event("message_start", message=start)
    yield _event("ping")
    for index, block in enumerate(message["content"]):
        field, delta, text, empty = {
            "text": ("text", "text_delta", block.get("text"), ""),
            "thinking": ("thinking", "thinking_delta", block.get("thinking"), ""),
            "tool_use": ("partial_json", "input_json_delta", json.dumps(block.get("input")), {}),
        }[block["type"]]
        key = "input" if block["type"] == "tool_use" else field
        begun = {**block, key: empty} | ({"signature": ""} if "signature" in block else {})
        yield _event("content_block_start", index=index, content_block=begun)
        for piece in pieces(text, reply.piece):
            yield _event("content_block_delta", index=index, delta={"type": delta, field: piece})
        if "signature" in block:
            signature = {"type": "signature_delta", "signature": block["signature"]}
            yield _event("content_block_delta", index=index, delta=signature)
        yield _event("content_block_stop", index=index)
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=stop, usage={"output_tokens": usage["output_tokens"]})
    yield _event("message_stop")


def error(status: int, kind: str, message: str) -> dict[str, Any]:
    kind = kind or _KINDS.get(status, "invalid_request_error" if status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def error_event() -> bytes:
    return _event("error", error={"type": "overloaded_error", "message": "Overloaded"})


def _event(name: str, **members: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **members})}\n\n".encode()


def _blocks(asked: Asked, reply: Reply) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.thinking:
        blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": f"sig-{asked.number}"})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    for index, (name, arguments) in enumerate(reply.tools):
        blocks.append({"type": "tool_use", "id": f"toolu_{asked.number}_{index}", "name": name, "input": arguments})
    return blocks


def _stop(reply: Reply) -> str:
    named = {"length": "max_tokens", "refusal": "refusal"}.get(reply.stop)
    return named or ("tool_use" if reply.tools else "end_turn")


def _usage(asked: Asked, reply: Reply) -> dict[str, int]:
    given, answered = usage_of(asked, reply)
    return {
        "input_tokens": given - reply.cached_tokens - reply.written_tokens,
        "cache_read_input_tokens": reply.cached_tokens,
        "cache_creation_input_tokens": reply.written_tokens,
        "output_tokens": answered,
    }
