"""Syntax tree of the `agent` section of a node."""

from __future__ import annotations

from dataclasses import dataclass

from vesper.language.diagnostics.source import Span
from vesper.language.syntax import ast
from vesper.language.syntax.yaml_tree import Scalar, Tree

ANSWER_TYPE = "_Answer"
"""Type of a model's answer: the record of the outputs. The grammar does not allow authors to write this name."""


@dataclass(frozen=True, slots=True)
class Message:
    """An initial message of the conversation. `role` is None for a list of messages in one hole."""

    role: ast.Word | None
    content: ast.Expression


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool of an MCP server, with the types of its arguments."""

    server: ast.Word
    tool: ast.Word
    inputs: tuple[ast.Output, ...]
    effect: ast.Word


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the model may call by a name. It is a node or a tool of an MCP server."""

    node: ast.Word
    name: ast.Word
    description: ast.Word | None = None
    mcp: McpTool | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """The conversation that an agent continues."""

    name: ast.Word
    id: ast.Expression


@dataclass(frozen=True, slots=True)
class Agent:
    """The section `agent`: the model, its messages, its tools and settings."""

    model: ast.Word
    system: ast.Expression | None
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    settings: dict[str, Scalar]
    """`temperature`, `max_tokens`, `max_turns`, `repairs`, `max_result`, `thinking`."""
    session: Session | None
    policies: dict[str, Tree]
    """The policies that the section has, which are those of the node."""
    span: Span
    """The key `model`, at which the generated steps stand."""
