"""Questions of agents in recorded cases: the members of an answer that an agent reads, and the new messages.

A whole conversation stands in each of its requests, so that a case would grow with the square of its length.
"""

from __future__ import annotations

from typing import Final

from vesper.compiler import Compiled
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements
from vesper.values.json_value import Json
from vesper.values.model import Value
from vesper.values.strict_json import JsonContent

_MODEL_CALL: Final = "model_call"
_STATES: Final = {"_turn", "_repairs", "_messages"}
"""States of the loop to which an agent is lowered."""
_READ: Final = ("output", "stop", "text", "tool_calls")  # as canonical JSON has them
_EMPTY: Final = (None, "", ())


def questions_of_agents(compiled: Compiled, prefix: str = "") -> frozenset[str]:
    """Return the steps with which agents ask their models, without iterations, also those of called agents."""
    # The IR in a journal does not say that a node is an agent: no author can write the names of these states.
    callees = {each.node.node_id: each for each in compiled.callees}
    found: set[str] = set()
    for statement in all_statements(compiled.node.body):
        if isinstance(statement, ir.Loop) and {each.name for each in statement.state} >= _STATES:
            asked = (each for each in statement.body if isinstance(each, ir.Request))
            found |= {prefix + each.name for each in asked if each.effect == _MODEL_CALL}
        elif isinstance(statement, ir.CallNode):
            found |= questions_of_agents(callees[statement.node], f"{prefix}{statement.name}/")
    return frozenset(found)


def short_answer(value: Value) -> Value:
    """Return an answer with the members that an agent reads, but for the provider's own form."""
    if not isinstance(value, Json) or not isinstance(value.content, dict):
        return value
    content = value.content
    return Json({name: content[name] for name in _READ if name in content and content[name] not in _EMPTY})


def short_request(value: Value) -> Value:
    """Return the messages of a request; of those up to the last answer the roles."""
    if not isinstance(value, Json) or not isinstance(value.content, dict):
        return value
    messages = value.content.get("messages")
    if not isinstance(messages, tuple):
        return value
    answers = [at for at, each in enumerate(messages) if _role(each) == "assistant"]
    known = answers[-1] + 1 if answers else 0
    roles: tuple[JsonContent, ...] = tuple({"role": _role(each)} for each in messages[:known])
    return Json({"messages": (*roles, *messages[known:])})


def _role(message: JsonContent) -> str:
    role = message.get("role") if isinstance(message, dict) else None
    return role if isinstance(role, str) else ""
