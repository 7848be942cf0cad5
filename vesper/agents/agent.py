"""An agent for Python: its model and tools, its answers, its conversations, and the records of its runs.

triage = Agent("support_triage")
async for event in triage.stream(ticket="Where is order 100234?"):
    print(event.text, end="")
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from vesper.agents.conversation import Conversation
from vesper.effects.models.messages import Message, Tool, ToolResult, read_messages, read_tool_calls, read_tools
from vesper.trace.export.call_records import MODEL_CALL, CallRecord, call_records
from vesper.trace.journalled import trace_of_execution
from vesper.values.json_value import Json, plain_json
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper.api.node import Node
    from vesper.api.observed.answer_stream import AnswerStream
    from vesper.api.outcome import AnyOutcome
    from vesper.host.host import Host

_TOOLS = "_tools"
"""The constant that lowering adds to an agent with tools."""


class NotAnAgent(VesperError):
    """A node is not of type `agent`."""


class Agent:
    """A node of type `agent`. Immutable; any number of threads and tasks may use it."""

    def __init__(self, node: str | Node, *, host: Host | None = None) -> None:
        """Take a loaded node, or load one as `vesper.load` does. Raises `NotAnAgent`."""
        if isinstance(node, str):
            from vesper.api.load import load

            node = load(node, host=host)
        elif host is not None and host is not node.host:
            raise ValueError(f"{node.id} was loaded with another Host: load it with this one")
        binding = node._compiled.agent
        if binding is None:
            raise NotAnAgent(f"{node.id} is of type `{node.type}`: an agent has `type: agent` and a section `agent`")
        self.node = node
        self.model = binding.model
        """Name of the model in the configuration."""
        nodes = dict(binding.tools)
        constants = {each.name: each.value for each in node._compiled.node.constants}
        listed = read_tools(_plain(constants.get(_TOOLS)))
        self.tools: Mapping[str, Tool] = MappingProxyType(
            {each.name: Tool(each.name, each.description, each.parameters, nodes.get(each.name)) for each in listed}
        )
        """Tools by the name that the model sees."""

    def __repr__(self) -> str:
        return f"<agent {self.node.id}>"

    def __call__(self, given: Mapping[str, Any] | None = None, /, **inputs: Any) -> AnyOutcome:
        """Run the agent, and return its outcome."""
        return self.node({**(given or {}), **inputs})

    async def arun(self, given: Mapping[str, Any] | None = None, /, **inputs: Any) -> AnyOutcome:
        """Run the agent from a coroutine."""
        return await self.node.arun({**(given or {}), **inputs})

    def stream(self, given: Mapping[str, Any] | None = None, /, **inputs: Any) -> AnswerStream[AnyOutcome]:
        """Run the agent, and return its events for `async for` or `for`; closing the iterator ends the run."""
        return self.node.stream({**(given or {}), **inputs})

    def conversation(
        self,
        sessions: str | None = None,
        session: str = "",
        *,
        inputs: Mapping[str, Any] | None = None,
        message_input: str | None = None,
    ) -> Conversation:
        """Return a conversation that `[sessions.NAME]` keeps under an id; without a name nothing is kept."""
        store = None if sessions is None else self.node.host.sessions(sessions)
        return Conversation(self.node, store, session, inputs, message_input)

    def calls(self, execution: str) -> list[CallRecord]:
        """Return the records of a run: its sum, then those of called agents and of each question to a model."""
        return call_records(trace_of_execution(self.node.host.journal, execution))

    def messages(self, execution: str) -> tuple[Message | ToolResult, ...]:
        """Return the messages of a run: those of its last question, and the answer to it."""
        trace = trace_of_execution(self.node.host.journal, execution)
        own = [each for each in trace.exchanges if each.effect == MODEL_CALL and "/" not in each.path]
        if not own:
            return ()
        request, answer = _plain(own[-1].arguments.get("request")), _plain(own[-1].value)
        asked = read_messages(request.get("messages") if isinstance(request, Mapping) else None)
        if not isinstance(answer, Mapping):
            return asked
        text = str(answer.get("text") or "")
        return (*asked, Message("assistant", text, read_tool_calls(answer.get("tool_calls")), answer.get("raw")))


def _plain(value: object) -> object:
    return plain_json(value) if isinstance(value, Json) else value
