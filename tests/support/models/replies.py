"""What a loopback model answers, and the faults that it has on demand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Asked:
    """A request in the form that every protocol shares."""

    api: str
    """`anthropic`, `openai` or `ollama`."""
    number: int
    """Number of the request to the server, from 1."""
    model: str
    system: str
    texts: tuple[str, ...]
    """Texts of the messages of user and tools, in their order."""
    images: int
    tools: tuple[str, ...]
    results: tuple[str, ...]
    """Texts of the results of tools after the last answer."""
    schema: Mapping[str, Any] | None
    is_streamed: bool
    headers: Mapping[str, str]
    body: Mapping[str, Any]


@dataclass(frozen=True)
class Reply:
    """An answer. Its tokens are counted by its length unless they are given."""

    text: str = ""
    thinking: str = ""
    tools: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """Names and arguments of calls."""
    stop: str = ""
    """`length` or `refusal`; else what the answer implies."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int = 0
    written_tokens: int = 0
    piece: int = 6
    """Characters of one chunk of a stream."""
    pause: float = 0.0
    """Seconds before each chunk, and before an answer as a whole."""
    cut_after: int | None = None
    """Chunks after which the connection is closed."""
    error_after: int | None = None
    """Chunks after which the stream has an error event of kind `overloaded`."""


@dataclass(frozen=True)
class Fault:
    """An answer that is none: an error of the protocol, or raw bytes in its place."""

    status: int = 500
    kind: str = ""
    """Type of the error; by default that of the status."""
    message: str = "a fault on demand"
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    """Sent instead of a response, before the connection is closed."""
    is_silent: bool = False
    """True where nothing is sent and the connection stays open."""


Behaviour: TypeAlias = Callable[[Asked], Reply | Fault]


def echo(asked: Asked) -> Reply:
    """Answer as a simple model would: fill a schema, call a tool that a message names, or repeat the last message."""
    last = asked.texts[-1] if asked.texts else ""
    if asked.results:
        return Reply(f"The tool said: {asked.results[-1]}")
    if asked.schema is not None:
        return Reply(json.dumps(filled(asked.schema)))
    called = tuple((name, {"query": last}) for name in asked.tools if name in last)
    if called:
        return Reply("I look it up.", tools=called)
    return Reply(f"You said: {last}")


def filled(schema: Mapping[str, Any]) -> Any:
    """Return a value that fits a schema."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {name: filled(each) for name, each in schema.get("properties", {}).items()}
        case "array":
            return [filled(schema.get("items", {"type": "string"}))]
        case "integer":
            return 1
        case "number":
            return 1.5
        case "boolean":
            return True
        case _:
            return "text"


def in_turn(*replies: Reply | Fault) -> Behaviour:
    """Answer with each in turn; the last one again and again."""
    return lambda asked: replies[min(asked.number, len(replies)) - 1]


class Rejected(Exception):
    """A request that the provider refuses, with its status and the kind of the error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def pieces(text: str, size: int) -> Iterator[str]:
    """Return a text in pieces."""
    return (text[start : start + size] for start in range(0, len(text), size))


def tokens_of(text: object) -> int:
    """Return a number of tokens that a text could have: a quarter of its bytes, rounded up."""
    return -(-len(str(text).encode()) // 4)


def usage_of(asked: Asked, reply: Reply) -> tuple[int, int]:
    """Return the tokens of a request and of its answer."""
    given = reply.input_tokens if reply.input_tokens is not None else tokens_of(json.dumps(asked.body))
    answer = reply.text + reply.thinking + "".join(json.dumps(arguments) for _, arguments in reply.tools)
    return given, reply.output_tokens if reply.output_tokens is not None else max(1, tokens_of(answer))
