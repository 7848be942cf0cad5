"""Steps to agents: `send`, `broadcast`, `ask` and `exit`, read as requests of existing kinds.

The first two and `exit` are effects of `custom`; `ask` is a message and a wait for the signal of its end. Neither the
IR nor an engine has code for agents.
"""

from __future__ import annotations

from typing import Final

from vesper.language.diagnostics.codes import Code
from vesper.language.syntax import ast
from vesper.language.syntax.effects_to_ast import EffectReader, is_duration, is_record_of_types
from vesper.language.syntax.fields import Fields
from vesper.language.syntax.yaml_tree import Mapping, Tree

MESSAGE_STEPS: Final = ("send", "broadcast", "exit")
REPLY: Final = "agent_reply"
"""Signal for which `ask` waits; it matches the execution of the message."""


class MessageReader(EffectReader):
    """Reads steps to agents."""

    def _agent_request(self, operation: ast.Word, entry: Fields) -> ast.EffectStep | None:
        """Return the request of a message or of an exit."""
        span = operation.span
        if operation.text == "exit":
            reason = self._expression(entry.scalar("reason")) or ast.String("normal", span)
            return _custom("agent_exit", ((ast.Word("reason", span), reason),), operation)
        agent, message = self._expression(entry.scalar("agent")), self._entries(entry.get("message"), "message")
        if agent is None:
            return None
        tree = entry.get("message")
        if tree is not None and not message:
            self._bag.error(
                Code.WRONG_KIND, tree.span, key="message", expected="at least one input of the node", found="none"
            )
            return None
        record = ast.RecordLiteral(message, span if tree is None else tree.span)
        request: list[tuple[ast.Word, ast.Expression]] = [
            (ast.Word("agent", span), agent),
            (ast.Word("message", span), record),
        ]
        priority = self._expression(entry.scalar("priority"))
        if priority is not None:
            request.append((ast.Word("priority", span), priority))
        if operation.text == "broadcast":
            request.append((ast.Word("is_broadcast", span), ast.Boolean(True, span)))
        return _custom("agent_send", tuple(request), operation)

    def _ask(
        self,
        name: ast.Word | None,
        operation: ast.Word,
        entry: Fields,
        conditions: tuple[ast.Expression, ...],
        handlers: tuple[ast.Handler, ...],
        reasons: tuple[ast.Word | None, ...],
    ) -> list[ast.Step]:
        """Return the two steps of `ask`: the message, and the wait for its end."""
        message = self._agent_request(operation, entry)
        returns = entry.get("returns")
        if name is None or message is None or returns is None:
            return []
        sent = ast.Word(f"{name.text}_message", name.span)
        expressions: dict[str, ast.Expression] = {"match": ast.Name(sent.text, name.span)}
        literals: dict[str, Tree] = {}
        timeout = entry.scalar("timeout")
        if timeout is not None and is_duration(timeout.text):
            literals["timeout"] = timeout
        elif timeout is not None and (length := self._expression(timeout)) is not None:
            expressions["timeout"] = length
        fields = None
        if isinstance(returns, Mapping) and is_record_of_types(returns):
            fields, returns = self._read_each(returns, self._field_type), None
        type_, sensitive = self._read_returns(returns, "wait_for")
        wait = ast.EffectStep(
            "wait_for",
            {"signal": ast.Word(REPLY, operation.span)},
            expressions,
            {},
            None,
            None,
            type_,
            fields,
            literals,
            {key: tree.span for key in ("timeout", "returns") if (tree := entry.get(key)) is not None},
            sensitive,
        )
        return [
            ast.Step(sent, operation, conditions, message, (), reasons),
            ast.Step(name, operation, conditions, wait, handlers, reasons),
        ]


def _custom(name: str, request: tuple[tuple[ast.Word, ast.Expression], ...], operation: ast.Word) -> ast.EffectStep:
    span = operation.span
    words = {"name": ast.Word(name, span), "effect": ast.Word("txn", span)}
    returns = ast.TypeName(ast.Word("string", span), span)
    return ast.EffectStep(
        "custom",
        words,
        {},
        {"request": request},
        None,
        None,
        returns,
        None,
        {},
        {"request": span, "name": span, "effect": span},
    )
