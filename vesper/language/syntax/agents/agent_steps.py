"""Steps around agents: `ask_agent`, a call within a budget, and `budget_read`."""

from __future__ import annotations

from dataclasses import replace

from vesper.language.diagnostics.codes import Code
from vesper.language.syntax import ast, budget_ast
from vesper.language.syntax.fields import Fields
from vesper.language.syntax.supervision.message_steps import MessageReader
from vesper.language.syntax.template import as_text
from vesper.values.types import DECIMAL, INTEGER, Record, optional


def _amounts(is_optional: bool) -> Record:
    types = (("usd", DECIMAL), ("tokens", INTEGER), ("calls", INTEGER), ("time_us", INTEGER))
    return Record(tuple((name, optional(type_) if is_optional else type_) for name, type_ in types))


BUDGET_STATE = Record(
    tuple((name, _amounts(name in ("limit", "remaining"))) for name in ("limit", "used", "reserved", "remaining"))
)
"""The value of `budget_read`: amounts that the budget does not limit are null in `limit` and `remaining`."""


class AgentStepReader(MessageReader):
    """Reads steps around agents."""

    def _ask_agent(self, entry: Fields) -> ast.CallNode | None:
        agent = entry.scalar("agent")
        message = self._template(entry.scalar("message"))
        inputs = self._entries(entry.get("inputs"), "inputs")
        if (entry.get("message") is None) == (entry.get("inputs") is None):
            where = "a question to an agent's node"
            self._bag.error(Code.MISSING_KEY, entry.span, where=where, key="message", help="or `inputs`, not both")
            return None
        if agent is None:
            return None
        text = None if message is None else as_text(message)
        asked = budget_ast.AskedAgent(text, entry.get("timeout"), entry.get("budget"))
        return ast.CallNode(ast.Word(agent.text, agent.span), inputs, asked)


def split_budget_read(step: ast.Step) -> list[ast.Step]:
    """Return the two steps of a `budget_read`.

    The first is the request, and the second casts its answer to a record.
    """
    if step.name is None:
        return []
    span = step.name.span
    read = ast.Word(f"{step.name.text}_read", span)
    value = ast.Cast(ast.Name(read.text, span), ast.KnownType(BUDGET_STATE, span), span)
    shown = ast.Step(step.name, step.operation, step.conditions, ast.Compute(value), (), step.reasons)
    return [replace(step, name=read), shown]
