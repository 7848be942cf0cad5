"""Messages, tools and answers of models as Python objects; docs/spec/models.md has their JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, TypeAlias

Role: TypeAlias = Literal["user", "assistant"]
Stop: TypeAlias = Literal["end", "tools", "length", "refusal"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as a model sees it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of the arguments."""
    node: str | None = None
    """Id of the node that is called; None where only the model's view is known."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model requests. Its arguments are unchecked."""

    name: str
    arguments: Any
    id: str = ""

    def members(self) -> dict[str, Any]:
        return {"id": self.id or self.name, "name": self.name, "arguments": self.arguments}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The message that returns the result of a call to the model."""

    call: str
    """`id` of the call."""
    content: str
    is_error: bool = False

    @property
    def text(self) -> str:
        return self.content

    def members(self) -> dict[str, Any]:
        return {"role": "tool", "call": self.call, "content": self.content, "is_error": self.is_error}


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the user or of the model."""

    role: Role
    content: str | Sequence[Mapping[str, Any]]
    """A text, or parts of text and images."""
    tool_calls: tuple[ToolCall, ...] = ()
    raw: Any = None
    """The provider's own form of an answer."""

    @property
    def text(self) -> str:
        """Return the text without images."""
        if isinstance(self.content, str):
            return self.content
        return "".join(str(part.get("text", "")) for part in self.content if part.get("type") == "text")

    def members(self) -> dict[str, Any]:
        """Return the message in the JSON form of requests, sessions and inputs of type `array<json>`."""
        found: dict[str, Any] = {
            "role": self.role,
            "content": self.content if isinstance(self.content, str) else [dict(each) for each in self.content],
        }
        if self.tool_calls:
            found["tool_calls"] = [each.members() for each in self.tool_calls]
        return found if self.raw is None else {**found, "raw": self.raw}


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of an answer. The input includes cached reads and cached writes."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0

    def members(self) -> dict[str, Any]:
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_input_tokens": self.cached_input_tokens,
            "cache_write_tokens": self.cache_write_tokens,
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a model."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    output: Any = None
    stop: Stop = "end"
    thinking: str | None = None
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    cost_usd: Decimal = Decimal(0)

    def members(self) -> dict[str, Any]:
        """Return the answer in the form of a completion of `model_call`."""
        return {
            "text": self.text,
            "thinking": self.thinking,
            "tool_calls": [each.members() for each in self.tool_calls],
            "output": self.output,
            "stop": self.stop,
            "raw": None,
            "model": self.model,
            "usage": self.usage.members(),
            "cost_usd": format(self.cost_usd, "f"),
            "retries": 0,
            "latency_ms": 0,
            "failed": [],
        }


def read_messages(messages: object) -> tuple[Message | ToolResult, ...]:
    """Return the messages of a request or of a session. Entries of another form are left out."""
    listed: Iterable[object] = messages if isinstance(messages, list | tuple) else ()
    return tuple(found for each in listed if (found := _read_message(each)) is not None)


def read_tool_calls(calls: object) -> tuple[ToolCall, ...]:
    listed: Iterable[object] = calls if isinstance(calls, list | tuple) else ()
    return tuple(
        ToolCall(str(each.get("name", "")), each.get("arguments"), str(each.get("id") or ""))
        for each in listed
        if isinstance(each, Mapping)
    )


def read_tools(tools: object) -> tuple[Tool, ...]:
    """Return the tools of a request."""
    listed: Iterable[object] = tools if isinstance(tools, list | tuple) else ()
    return tuple(
        Tool(str(each.get("name", "")), str(each.get("description") or ""), each.get("parameters") or {})
        for each in listed
        if isinstance(each, Mapping)
    )


def _read_message(found: object) -> Message | ToolResult | None:
    if not isinstance(found, Mapping):
        return None
    content = found.get("content")
    shown: str | Sequence[Mapping[str, Any]] = ""
    if isinstance(content, str):
        shown = content
    elif isinstance(content, list | tuple):
        shown = tuple(each for each in content if isinstance(each, Mapping))
    match found.get("role"):
        case "tool":
            text = shown if isinstance(shown, str) else Message("user", shown).text
            return ToolResult(str(found.get("call", "")), text, found.get("is_error") is True)
        case ("user" | "assistant") as role:
            return Message(role, shown, read_tool_calls(found.get("tool_calls")), found.get("raw"))
        case _:
            return None
