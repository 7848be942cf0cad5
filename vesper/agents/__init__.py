"""Agents for Python: nodes of type `agent`, their messages and tools; supervised agents with durable mailboxes."""

from vesper.agents.agent import Agent, NotAnAgent
from vesper.agents.conversation import Conversation, NotAConversation
from vesper.agents.messages import (
    ask,
    broadcast,
    demonitor,
    exit,  # noqa: A004  # its name in Erlang
    gather,
    link,
    monitor,
    self_address,
    send,
    send_async,
    spawn,
    start,
    state,
    stop,
    unlink,
    working,
)
from vesper.api.observed.answer_stream import AnswerStream
from vesper.api.runs import RunHandle
from vesper.effects.models.messages import Answer, Message, Tool, ToolCall, ToolResult, Usage
from vesper.host.streaming.events import RunEvent
from vesper.supervision.overview import AgentLine as AgentState
from vesper.trace.export.call_records import CallRecord

self = self_address
"""The address of the agent whose message is handled here; None outside of agents."""

__all__ = [
    "Agent",
    "AgentState",
    "Answer",
    "AnswerStream",
    "CallRecord",
    "Conversation",
    "Message",
    "NotAConversation",
    "NotAnAgent",
    "RunEvent",
    "RunHandle",
    "Tool",
    "ToolCall",
    "ToolResult",
    "Usage",
    "ask",
    "broadcast",
    "demonitor",
    "exit",
    "gather",
    "link",
    "monitor",
    "self",
    "self_address",
    "send",
    "send_async",
    "spawn",
    "start",
    "state",
    "stop",
    "unlink",
    "working",
]
