"""Flow of an agent: model requests in a bounded loop, with tool calls and checked answers.

An agent is syntax. Its flow has ordinary steps only, so contracts, the journal, replay and migration know it already.
docs/spec/agents.md shows the flow as a node would write it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from vesper.language.check.agents.repairs import AnswerCheck
from vesper.language.check.agents.rewriting import read_expression
from vesper.language.check.agents.sessions import REASON, USED_FIELDS, SessionSteps
from vesper.language.check.agents.tool_calls import TOOL_CALL, ToolCalls
from vesper.language.check.agents.tool_schemas import answer_schema
from vesper.language.check.callees import Callees
from vesper.language.check.expressions.literals import Unread, read_literal
from vesper.language.check.named_types import TypeResolver
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.ir.failures import ANY
from vesper.language.ir.statements import Policy
from vesper.language.syntax import ast
from vesper.language.syntax.agents import agent_ast
from vesper.language.syntax.yaml_tree import Scalar
from vesper.values.generated.effects import EFFECTS
from vesper.values.types import DECIMAL, INTEGER, JSON, STRING, ArrayOf, Record, optional

DEFAULT_POLICY: Policy = {
    "attempts": 3,
    "retry_on": ("rate_limit", "overloaded", "timeout"),
    "backoff_us": 100_000,
    "backoff_factor": 2,
    "backoff_max_us": 5_000_000,
    "breaker_failures": 5,
    "breaker_within_us": timedelta(minutes=1) // timedelta(microseconds=1),
    "breaker_open_us": timedelta(seconds=30) // timedelta(microseconds=1),
}
"""Policy of an agent's requests where it has none of its own: retry as a whole, breaker as a whole."""
_GROUPS = {
    "retry": ("attempts", "retry_on", "backoff_us", "backoff_factor", "backoff_max_us"),
    "circuit_breaker": ("breaker_failures", "breaker_within_us", "breaker_open_us"),
}
_SETTINGS = {
    "max_tokens": (4096, 1, 10_000_000),
    "max_turns": (10, 1, 1_000),
    "repairs": (2, 0, 100),
    "max_result": (16_000, 100, 1_000_000),
    "thinking": (None, 1, 10_000_000),
}
"""Default, minimum and maximum of each whole number."""
BUDGET = "budget_exceeded"
_OWN_REASONS = ("turns", "repairs", "length", "refused", "bad_response")
MODEL_CODES = tuple(code for code in EFFECTS["model_call"].codes() if code != BUDGET)
REASONS = (*_OWN_REASONS, *(code for code in MODEL_CODES if code not in _OWN_REASONS))
"""Values of `reason`: how the agent failed."""
_ANSWER = Record(
    (
        ("text", optional(STRING)),
        ("tool_calls", optional(ArrayOf(TOOL_CALL))),
        ("output", optional(JSON)),
        ("stop", optional(STRING)),
        ("raw", optional(JSON)),
    )
)
_ANSWER_USED = Record((*_ANSWER.fields, *USED_FIELDS))


def agent_policy(written: Policy, policies: Sequence[str]) -> Policy:
    """Return the policy of an agent: its own sections, and the defaults of all others."""
    replaced = {key for section in policies for key in _GROUPS.get(section, ())}
    return {key: value for key, value in DEFAULT_POLICY.items() if key not in replaced} | dict(written)


def lower_agent(document: ast.Document, types: TypeResolver, callees: Callees, bag: DiagnosticBag) -> ast.Document:
    """Return the document of an agent with its generated flow, errors and constants."""
    assert document.agent is not None
    return _Lowering(document, document.agent, types, callees, bag).document()


class _Lowering:
    def __init__(
        self,
        document: ast.Document,
        agent: agent_ast.Agent,
        types: TypeResolver,
        callees: Callees,
        bag: DiagnosticBag,
    ) -> None:
        self._document = document
        self._agent = agent
        self._bag = bag
        self._span = agent.span
        self._counts = {key: self._read_setting(key) for key in _SETTINGS}
        max_result = self._counts["max_result"]
        assert max_result is not None  # it has a default
        self._tools = ToolCalls(agent, types, callees, max_result, bag)
        self._answer = AnswerCheck(document, types, agent.span, bag)
        self._session = None
        if agent.session is not None:
            self._session = SessionSteps(agent.session, agent.span, _ANSWER_USED, self._any_failure_handler, bag)

    def document(self) -> ast.Document:
        constants = [*self._document.constants]
        if self._tools.schemas:
            constants.append(self._json_constant("_tools", self._tools.schemas))
        outputs = self._answer.outputs
        if outputs is not None and not self._answer.is_text:
            name = self._document.node_id.text
            constants.append(self._json_constant("_form", {"name": name, "schema": answer_schema(outputs)}))
        if self._document.errors_span is not None:
            help_ = f"it ends with `agent_failed` and a `reason`, or with `{BUDGET}`: remove `error`"
            where, span = "`outputs` of an agent", self._document.errors_span
            self._bag.error(Code.UNKNOWN_KEY, span, where=where, key="error", help=help_)
        return replace(
            self._document,
            type=replace(self._document.type, text="workflow"),
            constants=tuple(constants),
            errors=self._errors(),
            flow=(
                *self._history(),
                self._conversation(),
                self._failure_step("turns", "the agent has not ended within {} turns", "max_turns"),
            ),
        )

    # -- declarations -----------------------------------------------------------------------------

    def _errors(self) -> tuple[ast.Output, ...]:
        word, span = self._word, self._span
        codes = ast.TypeEnum((word("agent_failed"), word(BUDGET)), span)
        listed = (*REASONS, BUDGET) if self._session is None else (*REASONS, BUDGET, REASON)
        reasons = ast.TypeEnum(tuple(word(each) for each in listed), span)
        text = ast.TypeName(word("string"), span)
        return (
            ast.Output(word("error_code"), codes),
            ast.Output(word("reason"), reasons),
            ast.Output(word("message"), text),
        )

    def _json_constant(self, name: str, content: object) -> ast.Constant:
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        type_ = ast.TypeName(self._word("json"), self._span)
        return ast.Constant(self._word(name), type_, Scalar(text, "'", self._span))

    def _read_setting(self, key: str) -> int | None:
        default, low, high = _SETTINGS[key]
        scalar = self._agent.settings.get(key)
        if scalar is None:
            return default
        value = read_literal(INTEGER, scalar, key, self._bag)
        if isinstance(value, Unread):
            return default
        assert isinstance(value, int)
        if not low <= value <= high:
            expected = f"a number from {low:,} to {high:,}"
            self._bag.error(Code.BAD_LITERAL, scalar.span, text=scalar.text, expected=expected)
            return default
        return value

    # -- the conversation -------------------------------------------------------------------------

    def _history(self) -> tuple[ast.Step, ...]:
        if self._session is None:
            return ()
        max_tokens = self._counts["max_tokens"]
        assert max_tokens is not None
        return self._session.history_steps(self._ask_with, max_tokens, bool(self._tools.schemas))

    def _conversation(self) -> ast.Step:
        texts = ast.TypeApplied(self._word("array"), (ast.TypeName(self._word("json"), self._span),), self._span)
        state = (
            ast.StateValue(self._word("_turn"), None, self._read("0")),
            ast.StateValue(self._word("_repairs"), None, self._read("0")),
            ast.StateValue(self._word("_messages"), texts, self._first_messages()),
            *(() if self._session is None else self._session.loop_state()),
        )
        maximum = str(self._counts["max_turns"])
        said = "{role: 'assistant', content: _answer.text ?? '', tool_calls: _answer.tool_calls, raw: _answer.raw}"
        steps = (
            self._ask(),
            self._step(
                "_answer",
                ast.Compute(
                    self._read("CAST(model AS _type)", {}, _ANSWER if self._session is None else _ANSWER_USED)
                ),
                (self._failure_handler(("bad_cast",), "bad_response", "the answer of the model has another form"),),
            ),
            self._failure_step("refused", "the model refuses to answer", None, "_answer.stop == 'refusal'"),
            self._failure_step(
                "length", "the answer is longer than {} tokens", "max_tokens", "_answer.stop == 'length'"
            ),
            *self._tools.steps(),
            *self._end_steps(said),
            self._failure_step(
                "repairs", "the answer does not fit: {_problem}", None,
                f"_problem != '' AND _repairs >= {self._counts['repairs']}",
            ),
        )  # fmt: skip
        next_ = (
            ("_turn", self._read("_turn + 1")),
            ("_repairs", self._read("IF _problem == '' THEN _repairs ELSE _repairs + 1")),
            ("_messages", self._read(f"append(_messages, to_json({said})) + {self._tools.replies}")),
            *(() if self._session is None else self._session.next_state()),
        )
        loop = ast.Loop(
            None,
            self._read(f"_turn < {maximum}"),
            Scalar(maximum, "", self._span),
            state,
            steps,
            None,
            tuple((self._word(name), value) for name, value in next_),
            None,
        )
        return ast.Step(self._word("_conversation"), self._word("loop"), (), loop, ())

    def _end_steps(self, said: str) -> tuple[ast.Step, ...]:
        """Return the steps that check and return an answer.

        With a session the step before the return appends the turn to it.
        """
        steps = self._answer.steps(self._tools.has_calls)
        last = steps[-1]
        if self._session is None or not isinstance(last.action, ast.Return):
            return steps
        return (*steps[:-1], self._session.usage_step(), self._session.turn_step(last.conditions, said), last)

    def _first_messages(self) -> ast.Expression:
        lists = {
            each.name.text
            for each in self._document.inputs
            if isinstance(each.type, ast.TypeApplied) and each.type.head.text == "array"
        }
        parts: list[ast.Expression] = [] if self._session is None else [self._read("_session.messages")]
        for message in self._agent.messages:
            content = message.content
            if message.role is None and isinstance(content, ast.Name) and content.text in lists:
                parts.append(self._read("[to_json(_each) FOR _each IN list]", {"list": content}))
                continue
            role = message.role or self._word("user")
            text = content if message.role is not None or isinstance(content, ast.Template) else _as_text(content)
            entries = (
                (self._word("role"), ast.String(role.text, role.span, (role.span.start,))),
                (self._word("content"), text),
            )
            parts.append(ast.ArrayLiteral((ast.JsonTree(entries, (), False, content.span),), content.span))
        whole = parts[0] if parts else self._read("[to_json('')]")
        for each in parts[1:]:
            whole = ast.Infix(whole, self._word("+"), each, self._span)
        return whole

    def _ask(self) -> ast.Step:
        agent, span = self._agent, self._span
        members: dict[str, ast.Expression] = {}
        if agent.system is not None:
            members["system"] = agent.system
        members["messages"] = ast.Name("_messages", span)
        members["max_tokens"] = self._read(str(self._counts["max_tokens"]))
        if (temperature := self._temperature()) is not None:
            members["temperature"] = temperature
        if self._counts["thinking"] is not None:
            members["thinking"] = self._read(f"{{budget_tokens: {self._counts['thinking']}}}")
        if self._tools.schemas:
            members["tools"] = ast.Name("_tools", span)
        if not self._answer.is_text:
            members["output"] = ast.Name("_form", span)
        return self._ask_with("model", members)

    def _ask_with(self, name: str, members: dict[str, ast.Expression]) -> ast.Step:
        """Return the step that requests an answer from the model of the agent."""
        agent, span = self._agent, self._span
        entries = tuple((self._word(key), value) for key, value in members.items())
        request = ast.JsonTree(entries, (), False, span)
        action = ast.EffectStep(
            "ask_model", {"model": agent.model}, {"request": request}, {}, None, None, None, None, {},
            {"request": span, "model": span},
        )  # fmt: skip
        handlers = [self._failure_handler((code,), code, f"the model failed: {code}") for code in MODEL_CODES]
        handlers.append(self._failure_handler((BUDGET,), BUDGET, "the budget of the agent is used up", BUDGET))
        return ast.Step(self._word(name), self._word("ask_model"), (), action, tuple(handlers))

    def _temperature(self) -> ast.Expression | None:
        scalar = self._agent.settings.get("temperature")
        value = None if scalar is None else read_literal(DECIMAL, scalar, "temperature", self._bag)
        if scalar is None or isinstance(value, Unread):
            return None
        assert isinstance(value, Decimal)
        if not 0 <= value <= 2:
            self._bag.error(Code.BAD_LITERAL, scalar.span, text=scalar.text, expected="a number from 0 to 2")
        return ast.JsonLiteral(Scalar(scalar.text, "", scalar.span), scalar.span)

    # -- small parts ------------------------------------------------------------------------------

    def _failure_step(self, reason: str, message: str, setting: str | None, when: str | None = None) -> ast.Step:
        """Return a step that ends the agent; `{}` in its message is the setting's value."""
        text = message.replace("{}", str(self._counts[setting])) if setting is not None else message
        conditions = () if when is None else (self._read(when),)
        return ast.Step(None, self._word("raise"), conditions, ast.Raise(self._error("agent_failed", reason, text)), ())

    def _failure_handler(
        self, codes: Sequence[str], reason: str, message: str, code: str = "agent_failed"
    ) -> ast.Handler:
        raised = ast.Step(None, self._word("raise"), (), ast.Raise(self._error(code, reason, message)), ())
        return ast.Handler(tuple(self._word(each) for each in codes), (raised,), None)

    def _any_failure_handler(self, reason: str, message: str) -> ast.Handler:
        return self._failure_handler((ANY,), reason, message)

    def _error(self, code: str, reason: str, message: str) -> ast.ErrorValue:
        before, hole, _ = message.partition("{_problem}")
        parts: tuple[str | ast.Expression, ...] = (before, self._read("_problem")) if hole else (message,)
        return ast.ErrorValue(
            (
                (self._word("error_code"), ast.Name(code, self._span)),
                (self._word("reason"), ast.Name(reason, self._span)),
                (self._word("message"), ast.Template(parts, False, self._span)),
            ),
            self._span,
        )

    def _step(self, name: str, action: ast.Action, handlers: tuple[ast.Handler, ...] = ()) -> ast.Step:
        return ast.Step(self._word(name), self._word("compute"), (), action, handlers)

    def _word(self, text: str) -> ast.Word:
        return ast.Word(text, self._span)

    def _read(
        self, text: str, parts: dict[str, ast.Expression] | None = None, type_: Record | None = None
    ) -> ast.Expression:
        return read_expression(text, self._span, self._bag, parts or {}, type_)


def _as_text(content: ast.Expression) -> ast.Expression:
    return ast.Template((content,), False, content.span)
