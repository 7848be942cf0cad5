"""Steps for the session of an agent. They read its history, summarise a long one, and append the turn."""

from __future__ import annotations

from collections.abc import Callable

from vesper.language.check.agents.rewriting import read_expression
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import Span
from vesper.language.syntax import ast
from vesper.language.syntax.agents import agent_ast
from vesper.values.types import BOOLEAN, DECIMAL, INTEGER, JSON, ArrayOf, Record, Type, optional

REASON = "session"
"""Value of `reason` where the session cannot be read or changed."""
USED_FIELDS = (
    ("usage", optional(Record((("input_tokens", INTEGER), ("output_tokens", INTEGER))))),
    ("cost_usd", optional(DECIMAL)),
)
"""Fields of an answer that an agent with a session reads besides those of every agent."""
_HISTORY = Record((("messages", ArrayOf(JSON)), ("count", INTEGER), ("is_over_limit", BOOLEAN)))
_ROLE_OF_TURN = "CAST(_each['role'] AS string)"
_SUMMARY_SYSTEM = (
    "You summarise conversations. Write down what was asked, what was found and agreed, and what is open, "
    "with every name, number and date that later turns may need. Answer with the summary only."
)
_NOTHING_USED = "input_tokens: 0, output_tokens: 0, cost_usd: 0.0"
Fails = Callable[[str, str], ast.Handler]
"""Builds the handler of any failure: reason and message."""
AsksModel = Callable[[str, dict[str, ast.Expression]], ast.Step]
"""Builds a question to the agent's model: name of the step, and members of the request."""


class SessionSteps:
    """The additional steps of an agent with a session."""

    def __init__(
        self, session: agent_ast.Session, span: Span, answer: Record, fails: Fails, bag: DiagnosticBag
    ) -> None:
        self._session = session
        self._answer = answer
        self._fails = fails
        self._bag = bag
        self._span = span

    def history_steps(self, ask: AsksModel, max_tokens: int, has_tools: bool) -> tuple[ast.Step, ...]:
        """Return the steps before the first request to the model. They leave the history in `_session`."""
        kept = f"length(take_while({_ROLE_OF_TURN} != 'user' FOR _each IN reverse(_history.messages))) + 1"
        is_over = "_history.is_over_limit AND length(_history.messages) > _last_turn"
        unchanged = ast.Block((), self._read(f"{{messages: _history.messages, {_NOTHING_USED}}}"), self._span)
        summarised = ast.Block(
            self._summary(ask, max_tokens, has_tools),
            self._read(
                "{messages: _compacted.messages, input_tokens: _summary_usage.input_tokens, "
                "output_tokens: _summary_usage.output_tokens, cost_usd: _summary.cost_usd ?? 0.0}"
            ),
            self._span,
        )
        return (
            self._request("session_history", "read"),
            self._cast("_history", "session_history", _HISTORY),
            self._compute("_last_turn", self._read(kept)),
            ast.Step(
                self._word("_session"),
                self._word("conditional"),
                (),
                ast.Conditional(self._read(is_over), summarised, unchanged),
                (),
            ),
        )

    def _summary(self, ask: AsksModel, max_tokens: int, has_tools: bool) -> tuple[ast.Step, ...]:
        """Return the steps that replace all turns but the last one by a summary."""
        order = "to_json({role: 'user', content: 'Summarise the conversation so far.'})"
        start = f"append(take(_history.messages, length(_history.messages) - _last_turn), {order})"
        members = {
            "system": ast.String(_SUMMARY_SYSTEM, self._span, (self._span.start,)),
            "messages": self._read(start),
            "max_tokens": self._read(str(max_tokens)),
        }
        if has_tools:  # a provider that reads calls of tools must know the tools
            members |= {"tools": self._read("_tools"), "tool_choice": self._read("'none'")}
        compact = {
            "summary": self._read("_summary.text ?? ''"),
            "through": self._read("_history.count - _last_turn"),
        }
        return (
            ask("session_summary", members),
            self._cast("_summary", "session_summary", self._answer),
            self._usage("_summary_usage", "_summary"),
            self._request("session_compaction", "compact", compact),
            self._request("session_compacted", "read"),
            self._cast("_compacted", "session_compacted", _HISTORY),
        )

    def usage_step(self) -> ast.Step:
        """Return the step that reads the tokens which an answer used."""
        return self._usage("_usage", "_answer")

    def loop_state(self) -> tuple[ast.StateValue, ...]:
        """Return the loop state that adds up tokens and cost of the conversation."""
        found = {name: self._read(f"_session.{name}") for name in ("input_tokens", "output_tokens", "cost_usd")}
        return tuple(ast.StateValue(self._word(f"_{name}"), None, value) for name, value in found.items())

    def next_state(self) -> tuple[tuple[str, ast.Expression], ...]:
        """Return the values of the loop state after a round."""
        return tuple((f"_{name}", self._read(value)) for name, value in _SUMS.items())

    def turn_step(self, conditions: tuple[ast.Expression, ...], said: str) -> ast.Step:
        """Return the step that appends the new messages and the answer `said` to the session."""
        values = {
            "messages": self._read(f"append(drop(_messages, length(_session.messages)), to_json({said}))"),
            "usage": self._read(
                f"{{input_tokens: {_SUMS['input_tokens']}, output_tokens: {_SUMS['output_tokens']}, "
                f"cost_usd: text({_SUMS['cost_usd']})}}"
            ),
        }
        return self._request("session_turn", "append", values, conditions)

    # -- small parts ------------------------------------------------------------------------------

    def _request(
        self,
        name: str,
        action: str,
        values: dict[str, ast.Expression] | None = None,
        conditions: tuple[ast.Expression, ...] = (),
    ) -> ast.Step:
        words = {"action": self._word(action), "session": self._session.name}
        expressions = {"id": self._session.id, **(values or {})}
        spans = dict.fromkeys(("action", "session", *expressions), self._span)
        request = ast.EffectStep("session", words, expressions, {}, None, None, None, None, {}, spans)
        handler = self._fails(REASON, f"the session failed: {action}")
        return ast.Step(self._word(name), self._word("session"), conditions, request, (handler,))

    def _usage(self, name: str, answer: str) -> ast.Step:
        return self._compute(name, self._read(f"{answer}.usage ?? {{input_tokens: 0, output_tokens: 0}}"))

    def _cast(self, name: str, value: str, type_: Record) -> ast.Step:
        action = ast.Compute(self._read(f"CAST({value} AS _type)", type_))
        handler = self._fails("bad_response", "the history or the summary has another form")
        return ast.Step(self._word(name), self._word("compute"), (), action, (handler,))

    def _compute(self, name: str, value: ast.Expression) -> ast.Step:
        return ast.Step(self._word(name), self._word("compute"), (), ast.Compute(value), ())

    def _word(self, text: str) -> ast.Word:
        return ast.Word(text, self._span)

    def _read(self, text: str, type_: Type | None = None) -> ast.Expression:
        return read_expression(text, self._span, self._bag, {}, type_)


_SUMS = {
    "input_tokens": "_input_tokens + _usage.input_tokens",
    "output_tokens": "_output_tokens + _usage.output_tokens",
    "cost_usd": "_cost_usd + (_answer.cost_usd ?? 0.0)",
}
