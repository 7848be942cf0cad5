"""A conversation with an agent: its history in a session, one run for each message.

    conversation = Conversation(node, host.sessions("support"), "ada")
    answer = conversation.ask("Where is order 100234?")
    for event in answer:
        print(event.text, end="")
    conversation.keep(answer)

The history enters the agent by its input `history`, an array of json that `messages` names. An answer that was
cancelled or failed leaves no turn.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from vesper.trace.export.call_records import call_records
from vesper.trace.journalled import trace_of_execution
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper.api.node import Node
    from vesper.api.observed.answer_stream import AnswerStream
    from vesper.api.outcome import AnyOutcome
    from vesper.sessions.store import SessionStore

HISTORY: Final = "history"
_HISTORY_TYPE: Final = "array<json>"


class NotAConversation(VesperError):
    """The inputs of a node are not those of a conversation."""


class Conversation:
    """The turns of one session. Without a session each message stands alone."""

    def __init__(
        self,
        node: Node,
        sessions: SessionStore | None = None,
        session: str = "",
        inputs: Mapping[str, Any] | None = None,
        message_input: str | None = None,
    ) -> None:
        """`inputs` are those beside message and history. Raises `NotAConversation`."""
        self.node = node
        self._sessions = sessions
        self._session = session
        self._inputs = dict(inputs or {})
        self._message = message_input or _message_input(node, self._inputs)
        self._asked: dict[int, str] = {}
        self.has_history = HISTORY in node.inputs and node.inputs[HISTORY].type == _HISTORY_TYPE
        if self._message not in node.inputs:
            raise NotAConversation(f"{node.id} has no input `{self._message}`: it has {', '.join(node.inputs)}")
        if sessions is not None and not self.has_history:
            raise NotAConversation(
                f"{node.id} cannot remember a session: add the input `{HISTORY}: {_HISTORY_TYPE}`, and name it first "
                f"under `messages`, as `{{{HISTORY}}}`"
            )

    def ask(self, text: str) -> AnswerStream[AnyOutcome]:
        """Return the events of the answer to a message."""
        given = {**self._inputs, self._message: text}
        if self.has_history:
            given[HISTORY] = [] if self._sessions is None else list(self._sessions.read(self._session).messages)
        stream = self.node.stream(given)
        self._asked[id(stream)] = text
        return stream

    def keep(self, stream: AnswerStream[AnyOutcome]) -> AnyOutcome:
        """Append the turn of an answer that has come, and return its outcome. It is appended once."""
        outcome = stream.outcome()
        text = self._asked.pop(id(stream))
        if self._sessions is None or not outcome.ok:
            return outcome
        turn = [{"role": "user", "content": text}, {"role": "assistant", "content": answer_text(outcome)}]
        execution = outcome.trace_id
        self._sessions.append(
            self._session, turn, self.usage(execution), execution=execution, receipt=f"run:{execution}/turn"
        )
        return outcome

    def usage(self, execution: str) -> dict[str, Any]:
        """Return tokens and cost of a run, from its records."""
        found = call_records(trace_of_execution(self.node.host.journal, execution))
        calls = [each for each in found if each.kind == "model"]
        return {
            "input_tokens": sum(each.input_tokens for each in calls),
            "output_tokens": sum(each.output_tokens for each in calls),
            "cost_usd": format(sum((each.cost_usd for each in calls), Decimal(0)), "f"),
        }


def answer_text(outcome: AnyOutcome) -> str:
    """Return the answer of an agent as a text: its only string, or its outputs as JSON."""
    outputs: Mapping[str, Any] = outcome.unwrap()
    values = list(outputs.values())
    return values[0] if len(values) == 1 and isinstance(values[0], str) else json.dumps(outputs, default=str)


def _message_input(node: Node, given: Mapping[str, Any]) -> str:
    """Return the input that a message goes to: the only string that nothing else gives."""
    open_texts = [
        name for name, each in node.inputs.items() if each.type == "string" and each.required and name not in given
    ]
    if len(open_texts) != 1:
        found = ", ".join(open_texts) or "none"
        raise NotAConversation(
            f"{node.id} needs one required input of type string for messages, and has {found}: name it, or give others"
        )
    return open_texts[0]
