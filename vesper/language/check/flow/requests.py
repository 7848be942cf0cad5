"""Check of steps that leave the node: requests, transitions, calls of other nodes. Takes AST steps and returns IR.

`schemas/effects.toml` declares the parts of each request. This module types and orders them, chooses the effect class
and records the required capability.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial

from vesper.language.check.callees import Callees, Interface
from vesper.language.check.capabilities import FUNCTION, Need
from vesper.language.check.expressions.checker import ExpressionChecker, place_of
from vesper.language.check.flow.budgets import COUNTED, BudgetChecker
from vesper.language.check.flow.loop_keys import round_key
from vesper.language.check.flow.machines import sources_of
from vesper.language.check.flow.sql import (
    READS,
    WRITES,
    SqlProblem,
    Statement,
    help_for_placeholder,
    one_line,
    quoted_placeholders,
    read_sql,
    row_type,
)
from vesper.language.check.named_types import TypeResolver
from vesper.language.check.scope import Declared, Scope
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.language.diagnostics.source import Span
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.language.syntax.yaml_tree import Scalar
from vesper.values.effect import EffectSpec
from vesper.values.generated.effects import EFFECTS, INTERRUPT_KINDS
from vesper.values.node_id import split_node_id
from vesper.values.types import (
    BOOLEAN,
    BYTES,
    DURATION,
    JSON,
    PRIMITIVES,
    STRING,
    ArrayOf,
    Enum,
    OptionalOf,
    Record,
    Type,
    optional,
)

_BY_ACTION = {
    ("cache", "get"): "cache_get",
    ("cache", "put"): "cache_put",
    ("cache", "delete"): "cache_delete",
    ("file", "read"): "file_read",
    ("file", "write"): "file_write",
    ("file", "append"): "file_append",
    **{("session", verb): f"session_{verb}" for verb in ("read", "append", "compact", "get", "put", "delete")},
}
_BY_OPERATION = {operation: spec for spec in reversed(EFFECTS.values()) for operation in spec.operations}
_HAS_OWN_KEY = ("cache", "session")
"""Operations whose `key` is an argument, and no idempotency key."""
_SAFE_METHODS = ("GET", "HEAD")
COMMAND_RESULT = Record(
    (
        ("exit_code", PRIMITIVES["integer"]),
        ("stdout", STRING),
        ("stderr", STRING),
        ("is_truncated", BOOLEAN),
    )
)
"""The type of the value of a `shell_command`."""
_Parts = tuple[dict[str, str], dict[str, ir.Expression], Type]
"""Fixed fields, arguments by name, and type of the completion."""


class RequestChecker(BudgetChecker):
    """Checks requests, transitions and node calls; collects capabilities, calls and effects of the node."""

    def __init__(
        self,
        scope: Scope,
        expressions: ExpressionChecker,
        types: TypeResolver,
        machines: dict[str, ir.Machine],
        callees: Callees,
        node_type: str,
        bag: DiagnosticBag,
    ) -> None:
        super().__init__(bag)
        self._scope = scope
        self._expressions = expressions
        self._types = types
        self._machines = machines
        self._callees = callees
        self._node_type = node_type
        self._loops: list[Sequence[Declared]] = []
        """Names of each open loop, outermost first."""
        self._keyed_by_event: set[tuple[str, str]] = set()
        self.needs: list[Need] = []
        self.called: dict[str, Interface] = {}
        self.calls: list[tuple[ast.Word, Interface]] = []
        self._not_callable: set[str] = set()
        """Names of nodes that are called and cannot be; the reason is reported."""
        """Each call: the word that names the node, and its interface."""
        self.made: list[tuple[EffectSpec, str, Span]] = []
        """Each request: its effect, effect class and location."""

    @contextmanager
    def in_loop(self, names: Sequence[Declared]) -> Iterator[None]:
        """Treat the requests that are checked inside as repeated in each round. `names` are those of the loop."""
        self._loops.append(names)
        yield
        self._loops.pop()

    def waits(self, node_id: str) -> bool:
        """Return whether a called node, or one that it calls, has a wait."""
        found = self._callees.find(node_id)
        return isinstance(found, Interface) and any(each.effect_class == "wait" for each in found.requests.values())

    def callee_codes(self) -> dict[str, frozenset[str]]:
        """Return the failure codes of each called node, by id."""
        return {node_id: found.codes for node_id, found in self.called.items()}

    def statement(self, step: ast.Step, name: str) -> ir.Request | ir.CallNode | None:
        """Return the IR of a step that leaves the node. None after reporting an error."""
        match step.action:
            case ast.CallNode() as action:
                return self._call(action, name, step)
            case ast.Transition() as action:
                return self._transition(action, name, step)
            case ast.EffectStep() as action:
                return self._effect(action, name, step)
            case _:
                raise AssertionError(f"no effect: {step.action}")

    # -- state machines ---------------------------------------------------------------------------

    def _machine(self, word: ast.Word) -> ir.Machine | None:
        machine = self._machines.get(word.text)
        if machine is None:
            help_ = did_you_mean(word.text, self._machines) or "declare it under `state_machines`"
            self._bag.error(Code.UNKNOWN_NAME, word.span, kinds="no state machine", name=word.text, help=help_)
        return machine

    def _transition(self, action: ast.Transition, name: str, step: ast.Step) -> ir.Request | None:
        machine = self._machine(action.machine)
        entity = self._expressions.check(action.entity, STRING)
        sources = None if machine is None else sources_of(action, machine, self._bag)
        if machine is None or entity is None or sources is None:
            return None
        spec = EFFECTS["state_transition"]
        fixed = {"machine": machine.name, "from": ",".join(sources), "to": action.target.text}
        return self._request(spec, "txn", name, step, fixed, {"entity": entity}, Enum(machine.states), {}, None)

    def _state_read(self, action: ast.EffectStep) -> _Parts | None:
        machine = self._machine(action.words["machine"]) if "machine" in action.words else None
        entity = self._argument(action, "entity", STRING)
        if machine is None or entity is None:
            return None
        return {"machine": machine.name}, {"entity": entity}, Enum(machine.states)

    # -- requests ---------------------------------------------------------------------------------

    def _effect(self, action: ast.EffectStep, name: str, step: ast.Step) -> ir.Request | None:
        operation = action.operation
        if operation in ("cache", "file", "session"):
            if "action" not in action.words:
                return None
            spec = EFFECTS[_BY_ACTION[operation, action.words["action"].text]]
        else:
            spec = _BY_OPERATION[operation]
        effect_class = self._class(spec, action, step)
        key = self._key(effect_class, action, step) if operation not in _HAS_OWN_KEY else None
        policy = {} if effect_class == "wait" else self._policies.step_policy(action.literals)
        if effect_class == "unsafe" and int(policy.get("attempts", 1)) > 1:  # type: ignore[arg-type]
            problem = "retry would repeat an `unsafe` effect"
            help_ = "write `effect: keyed` with a `key` if the other side recognises it, or remove `retry`"
            self._bag.error(Code.EFFECT_CLASS, action.spans["retry"], problem=problem, help=help_)
        if spec.name in COUNTED and (budgets := self._budgets_of(spec.name, action.literals.get("budget"), name)):
            policy = {**policy, "budgets": budgets}
        parts = self._parts(spec, action, step)
        if parts is None or effect_class is None or (effect_class == "keyed" and key is None):
            return None
        if (
            effect_class == "keyed"
            and "key" not in action.expressions
            and self._report_shared_key(spec, parts[0], step)
        ):
            return None
        request = self._request(spec, effect_class, name, step, *parts, policy, key)
        return replace(request, sensitive=self._sensitive(action.sensitive, request.result.type))

    def _sensitive(self, declared: bool | tuple[ast.Word, ...], gives: Type) -> bool | tuple[str, ...]:
        """Return the sensitive fields of an answer, or whether all of it is sensitive.

        Reports fields that its records do not have.
        """
        if isinstance(declared, bool):
            return declared
        record = _record_in(gives)
        names = [] if record is None else [name for name, _ in record.fields]
        for word in declared:
            if word.text not in names:
                help_ = did_you_mean(word.text, names) or "write `sensitive: true` for the whole answer"
                kinds = f"no field of {gives}"
                self._bag.error(Code.UNKNOWN_NAME, word.span, kinds=kinds, name=word.text, help=help_)
        return tuple(sorted({word.text for word in declared})) or False

    def _report_shared_key(self, spec: EffectSpec, fixed: dict[str, str], step: ast.Step) -> bool:
        """Report a `keyed` effect that shares its key with another request.

        Returns whether it does. The key is the event's id. The external system would take the second request for a
        repetition of the first.
        """
        other_side = (spec.name, fixed[spec.fixed[0]])
        if not self._loops and other_side not in self._keyed_by_event:
            self._keyed_by_event.add(other_side)
            return False
        where = "in a loop" if self._loops else "like one before it"
        problem = f"a `keyed` effect {where} needs its own `key`"
        names = [(each.name, each.type) for each in self._loops[-1]] if self._loops else []
        example = round_key("event_id", names) if self._loops else "event_id + '-2'"
        help_ = f"add `key: {example}`"
        self._bag.error(Code.EFFECT_CLASS, step.span, problem=problem, help=help_)
        return True

    def _request(
        self,
        spec: EffectSpec,
        effect_class: str,
        name: str,
        step: ast.Step,
        fixed: dict[str, str],
        arguments: dict[str, ir.Expression],
        gives: Type,
        policy: ir.Policy,
        key: ir.Expression | None,
    ) -> ir.Request:
        place = place_of(self._bag.source, step.span)
        if "{table}" not in spec.capability:
            self._add_need(spec.capability.format(**fixed), step)
        self.made.append((spec, effect_class, step.span))
        given = tuple((each.name, arguments[each.name]) for each in spec.arguments if each.name in arguments)
        result = ir.Result(gives, place)
        return ir.Request(name, spec.name, effect_class, key, fixed, given, result, policy, place)

    def _add_need(self, capability: str, step: ast.Step, span: Span | None = None) -> None:
        who = f"the step `{step.name.text}`" if step.name is not None else f"this {step.operation.text}"
        self.needs.append(Need(capability, span or step.span, who))

    def _class(self, spec: EffectSpec, action: ast.EffectStep, step: ast.Step) -> str | None:
        word = action.words.get("effect")
        if word is None:
            method = action.words.get("method")
            return "read" if method is not None and method.text in _SAFE_METHODS else spec.classes[0]
        if word.text not in spec.classes:
            problem = f"{step.operation.text} cannot be `{word.text}`"
            help_ = f"it is {' or '.join(spec.classes)}"
            self._bag.error(Code.EFFECT_CLASS, word.span, problem=problem, help=help_)
            return None
        return word.text

    def _key(self, effect_class: str | None, action: ast.EffectStep, step: ast.Step) -> ir.Expression | None:
        expression = action.expressions.get("key")
        if effect_class != "keyed":
            if expression is not None and effect_class is not None:
                problem = f"a `{effect_class}` effect has no key"
                help_ = "write `effect: keyed`, or remove the key"
                self._bag.error(Code.EFFECT_CLASS, expression.span, problem=problem, help=help_)
            return None
        if expression is not None:
            return self._expressions.check(expression, STRING)
        event = self._scope.names.get("event_id")
        if self._node_type == "event_handler" and event is not None and event.type == STRING:
            event.used = True
            return ir.Ref("input", "event_id", STRING, place_of(self._bag.source, step.span))
        problem, help_ = "a `keyed` effect needs a `key`", "the other side knows a repetition by it"
        self._bag.error(Code.EFFECT_CLASS, step.span, problem=problem, help=help_)
        return None

    def _parts(self, spec: EffectSpec, action: ast.EffectStep, step: ast.Step) -> _Parts | None:
        match spec.name:
            case "database_query":
                return self._query(action, step)
            case "database_write":
                return self._write(action, step)
            case "http_request":
                return self._http(action)
            case "cache_get" | "cache_put" | "cache_delete" | "file_read" | "file_write" | "file_append":
                return self._stored_value(spec, action, step)
            case "state_read":
                return self._state_read(action)
            case name if name.startswith("session_"):
                return self._session_parts(spec, action, step)
            case "sleep" | "signal_wait" | "interrupt":
                return self._wait_parts(spec, action, step)
            case "budget_read":
                budget = self._budget_name(action, step)
                return None if budget is None else ({"budget": budget}, {}, JSON)
            case "command_run" | "mcp_call":
                return self._tool_parts(spec, action)
            case _:
                return self._plain_parts(spec, action)

    def _plain_parts(self, spec: EffectSpec, action: ast.EffectStep) -> _Parts | None:
        """Return the parts of an effect whose fields and arguments have equal names."""
        fixed = {name: action.words[name].text for name in spec.fixed if name in action.words}
        arguments: dict[str, ir.Expression] = {}
        for each in spec.arguments:
            if each.type == "record":
                group = action.groups.get(each.name)
                value = None if group is None else self._record(group, action.spans[each.name])
            elif spec.name == "model_call":
                value = self._json_argument(action, each.name)
            else:
                value = self._argument(action, each.name, PRIMITIVES[each.type])
            if value is not None:
                arguments[each.name] = value
            elif each.name in action.expressions or each.name in action.groups:
                return None
        if len(fixed) < len(spec.fixed):
            return None
        gives = self._returns(action) if spec.gives == "declared" else PRIMITIVES[spec.gives]
        missing = [each.name for each in spec.arguments if not each.optional and each.name not in arguments]
        return None if gives is None or missing else (fixed, arguments, gives)

    def _tool_parts(self, spec: EffectSpec, action: ast.EffectStep) -> _Parts | None:
        """Return the parts of a command or of a call of an MCP tool."""
        fixed = {name: action.words[name].text for name in spec.fixed if name in action.words}
        arguments: dict[str, ir.Expression] = {}
        if "arguments" in action.expressions:
            given = self._expressions.infer(action.expressions["arguments"], None)
            if given is None:
                return None
            arguments["arguments"] = given if given.type == JSON else self._expressions.to_json(given)
        if "stdin" in action.expressions:
            stdin = self._argument(action, "stdin", STRING)
            if stdin is None:
                return None
            arguments["stdin"] = stdin
        if spec.name == "command_run":
            gives: Type | None = COMMAND_RESULT
        else:
            gives = JSON if action.returns is None else self._returns(action)
        return None if gives is None or len(fixed) < len(spec.fixed) else (fixed, arguments, gives)

    def _wait_parts(self, spec: EffectSpec, action: ast.EffectStep, step: ast.Step) -> _Parts | None:
        """Return the parts of a sleep, a wait for a signal or an interrupt."""
        fixed = {name: action.words[name].text for name in spec.fixed if name in action.words}
        arguments: dict[str, ir.Expression] = {}
        for each in spec.arguments:
            if each.name in action.literals:
                us = self._policies.read_duration_us(action.literals[each.name], each.name)
                value = None if us is None else self._duration_literal(us, action.spans[each.name])
            else:
                value = self._argument(action, each.name, PRIMITIVES[each.type])
            if value is not None:
                arguments[each.name] = value
            elif each.name in action.spans or not each.optional:
                return None
        if spec.name == "sleep":
            if len(arguments) != 1:
                expected, found = "`duration` or `until`", "both" if arguments else "neither"
                help_ = "write `duration: 3d`, or `until:` with a timestamp"
                self._bag.error(Code.WRONG_KIND, step.span, key="sleep", expected=expected, found=found, help=help_)
                return None
            return fixed, arguments, PRIMITIVES[spec.gives]
        kind = INTERRUPT_KINDS.get(fixed.get("kind", ""))
        if kind is not None and kind.ttl_us is not None and "ttl" not in arguments:
            arguments["ttl"] = self._duration_literal(kind.ttl_us, step.span)
        if kind is not None and kind.is_answered and "returns" not in action.spans:
            where, help_ = f"an interrupt of kind `{fixed['kind']}`", "add the type of the answer: `returns: boolean`"
            self._bag.error(Code.MISSING_KEY, step.span, where=where, key="returns", help=help_)
            return None
        gives = self._answer_type(action) if "returns" in action.spans else OptionalOf(STRING)
        return None if gives is None or len(fixed) < len(spec.fixed) else (fixed, arguments, gives)

    def _duration_literal(self, us: int, span: Span) -> ir.Expression:
        return ir.Literal(DURATION, timedelta(microseconds=us), place_of(self._bag.source, span))

    def _argument(self, action: ast.EffectStep, name: str, type_: Type) -> ir.Expression | None:
        expression = action.expressions.get(name)
        return None if expression is None else self._expressions.check(expression, type_)

    def _record(self, group: tuple[tuple[ast.Word, ast.Expression], ...], span: Span) -> ir.Expression | None:
        found: list[tuple[str, ir.Expression]] = []
        seen: dict[str, Span] = {}
        for word, expression in group:
            value = self._expressions.infer(expression, None)
            if value is None or self._expressions.is_bare_null(value, expression.span):
                return None
            if word.text in seen:
                also = (Label(seen[word.text], "the first one"),)
                self._bag.error(Code.DUPLICATE_KEY, word.span, also=also, key=word.text)
                return None
            seen[word.text] = word.span
            found.append((word.text, value))
        return ir.RecordValue(tuple(found), place_of(self._bag.source, span)) if found else None

    def _returns(self, action: ast.EffectStep) -> Type | None:
        return None if action.returns is None else self._types.resolve(action.returns)

    def _stored_value(self, spec: EffectSpec, action: ast.EffectStep, step: ast.Step) -> _Parts | None:
        """Return the parts of cache and file requests. Reads declare a type, and writes pass a value."""
        wants_type, has_type = spec.gives == "declared", action.returns is not None
        written = next((each.name for each in spec.arguments if each.name in ("value", "content")), None)
        for name, is_wanted in (
            ("returns", wants_type),
            ("value", written == "value"),
            ("content", written == "content"),
        ):
            is_there = has_type if name == "returns" else name in action.expressions
            verb = action.words["action"].text
            if is_wanted and not is_there:
                where = f"a {action.operation} step with `action: {verb}`"
                self._bag.error(Code.MISSING_KEY, step.span, where=where, key=name)
                return None
            if is_there and not is_wanted:
                where = f"a {action.operation} step with `action: {verb}`"
                self._bag.error(Code.UNKNOWN_KEY, action.spans[name], where=where, key=name)
                return None
        fixed = {name: action.words[name].text for name in spec.fixed if name in action.words}
        if "ttl_us" in spec.fixed:
            ttl = (
                None if "ttl" not in action.literals else self._policies.read_duration_us(action.literals["ttl"], "ttl")
            )
            if ttl is None:
                if "ttl" not in action.literals:
                    self._bag.error(Code.MISSING_KEY, step.span, where="a cache step with `action: put`", key="ttl")
                return None
            fixed["ttl_us"] = str(ttl)
        arguments: dict[str, ir.Expression] = {}
        for name in ("key", "path", "value", "content"):
            expression = action.expressions.get(name)
            if expression is None:
                continue
            value = self._expressions.infer(expression, None)
            is_text = name in ("key", "path")
            if value is not None and is_text:
                value = self._expressions.fit(value, STRING, expression.span)
            if value is None or self._expressions.is_bare_null(value, expression.span):
                return None
            if name == "content" and value.type not in (STRING, BYTES):
                self._bag.error(Code.TYPE_MISMATCH, expression.span, expected="string or bytes", found=value.type)
                return None
            arguments[name] = value
        gives = self._returns(action) if wants_type else PRIMITIVES[spec.gives]
        if gives is not None and spec.name == "file_read" and gives not in (STRING, BYTES, JSON):
            assert action.returns is not None
            self._bag.error(Code.TYPE_MISMATCH, action.returns.span, expected="string, bytes or json", found=gives)
            return None
        if gives is not None and spec.name == "cache_get":
            gives = optional(gives)
        return None if gives is None else (fixed, arguments, gives)

    def _session_parts(self, spec: EffectSpec, action: ast.EffectStep, step: ast.Step) -> _Parts | None:
        """Return the parts of a session request, with exactly the arguments of its action."""
        where = f"a session step with `action: {action.words['action'].text}`"
        known = {each.name for each in spec.arguments} | ({"ttl"} if "ttl_us" in spec.fixed else set())
        for name in ("messages", "usage", "summary", "through", "key", "value", "ttl"):
            if name in action.spans and name not in known:
                self._bag.error(Code.UNKNOWN_KEY, action.spans[name], where=where, key=name)
                return None
        arguments: dict[str, ir.Expression] = {}
        for each in spec.arguments:
            if each.name not in action.expressions:
                if not each.optional:
                    self._bag.error(Code.MISSING_KEY, step.span, where=where, key=each.name)
                    return None
                continue
            is_json = PRIMITIVES[each.type] == JSON
            found = self._json_argument if is_json else partial(self._argument, type_=PRIMITIVES[each.type])
            value = found(action, each.name)
            if value is None:
                return None
            arguments[each.name] = value
        fixed = {"session": action.words["session"].text} if "session" in action.words else {}
        if "ttl_us" in spec.fixed:
            ttl = self._policies.read_duration_us(action.literals["ttl"], "ttl") if "ttl" in action.literals else 0
            if ttl is None:
                return None
            fixed["ttl_us"] = str(ttl)
        return (fixed, arguments, PRIMITIVES[spec.gives]) if len(fixed) == len(spec.fixed) else None

    def _http(self, action: ast.EffectStep) -> _Parts | None:
        endpoint = self._argument(action, "endpoint", STRING)
        arguments: dict[str, ir.Expression] = {} if endpoint is None else {"endpoint": endpoint}
        for name in ("query", "headers"):
            if name in action.groups:
                group = action.groups[name]
                value = (
                    self._headers(group, action.spans[name])
                    if name == "headers"
                    else self._record(group, action.spans[name])
                )
                if value is None:
                    return None
                arguments[name] = value
        if "body" in action.expressions:
            body = self._json_argument(action, "body")
            if body is None:
                return None
            arguments["body"] = body
        is_declared = action.returns is not None or action.expect is not None
        gives = self._answer_type(action) if is_declared else JSON
        if endpoint is None or gives is None or not {"provider", "method"} <= action.words.keys():
            return None
        return {name: action.words[name].text for name in ("provider", "method")}, arguments, gives

    def _json_argument(self, action: ast.EffectStep, name: str) -> ir.Expression | None:
        """Return a value of any type as JSON. None if the step does not have it, or after reporting an error."""
        expression = action.expressions.get(name)
        found = None if expression is None else self._expressions.infer(expression, None)
        return None if found is None else self._expressions.to_json(found)

    def _answer_type(self, action: ast.EffectStep) -> Type | None:
        """Return the declared type of an answer. Declared fields form a record."""
        if action.expect is None:
            return self._returns(action)
        fields = [(each.name.text, self._types.resolve(each.type)) for each in action.expect]
        known = tuple((name, type_) for name, type_ in fields if type_ is not None)
        return Record(known) if known and len(known) == len(fields) else None

    def _headers(self, group: tuple[tuple[ast.Word, ast.Expression], ...], span: Span) -> ir.Expression | None:
        """Return headers as record fields, in lower case: `Idempotency-Key` becomes `idempotency_key`."""
        named = tuple((ast.Word(word.text.lower().replace("-", "_"), word.span), value) for word, value in group)
        record = self._record(named, span)
        if isinstance(record, ir.RecordValue):
            for (word, expression), (_, value) in zip(group, record.fields, strict=True):
                if value.type != STRING:
                    self._bag.error(Code.TYPE_MISMATCH, expression.span, expected=STRING, found=value.type)
                    return None
                if not word.text.replace("-", "a").replace("_", "a").isalnum() or not word.text.isascii():
                    self._bag.error(Code.BAD_NAME, word.span, name=word.text, what="a header")
                    return None
        return record

    # -- SQL --------------------------------------------------------------------------------------

    def _sql(self, sql: ast.Sql, verbs: tuple[str, ...], step: ast.Step, text: str | None = None) -> Statement | None:
        has_bind = isinstance(step.action, ast.EffectStep) and "bind" in step.action.spans
        try:
            statement = read_sql(text or sql.text)
        except SqlProblem as problem:
            help_ = help_for_placeholder(sql.text, self._scope.names, has_bind)
            self._bag.error(Code.BAD_SQL, sql.scalar.span, problem=str(problem), help=help_)
            return None
        self._warn_of_text_in_place_of_value(sql, has_bind)
        if statement.verb not in verbs:
            article = "an" if statement.verb[0] in "IU" else "a"
            problem_text = f"is {article} {statement.verb}; {step.operation.text} takes {' or '.join(verbs)}"
            help_ = (
                "write `operation: database_query`, and `returns` with the type of a row" if verbs == WRITES else None
            )
            self._bag.error(Code.BAD_SQL, sql.scalar.span, problem=problem_text, help=help_)
            return None
        if not statement.capabilities:
            self._bag.error(Code.SQL_WITHOUT_TABLE, sql.scalar.span, help="compute the value in a `compute` step")
            return None
        for capability in statement.capabilities:
            self._add_need(capability, step, sql.scalar.span if capability.startswith(FUNCTION) else None)
        return statement

    def _warn_of_text_in_place_of_value(self, sql: ast.Sql, has_bind: bool) -> None:
        """Warn of strings in SQL that name a value of the node: the database gets their letters."""
        for written, help_ in quoted_placeholders(sql.text, self._scope.names, has_bind):
            span = sql.scalar.span
            start = self._bag.source.text.find(written, span.start, span.end)
            span = span if start < 0 else Span(start, start + len(written))
            problem = f"has the text `{written}` in quotes, and nothing is put in its place"
            self._bag.warning(Code.BAD_SQL, span, problem=problem, help=help_)

    def _parameters_match(
        self, statement: Statement, action: ast.EffectStep, given: dict[str, ir.Expression], sql: ast.Sql
    ) -> bool:
        """Return whether a statement's parameters equal the given ones; report the first difference."""
        missing = [name for name in statement.parameters if name not in given]
        unused = [name for name in given if name not in statement.parameters]
        if missing:
            problem = f"nothing gives `:{missing[0]}`"
            help_ = did_you_mean(missing[0], unused) or f"add `{missing[0]}` to `bind`"
            self._bag.error(Code.SQL_PARAMETERS, sql.scalar.span, problem=problem, help=help_)
        elif unused:
            span = next((w.span for g in action.groups.values() for w, _ in g if w.text == unused[0]), sql.scalar.span)
            problem = f"the statement has no `:{unused[0]}`"
            self._bag.error(Code.SQL_PARAMETERS, span, problem=problem)
        return not missing and not unused

    def _binds(self, action: ast.EffectStep) -> dict[str, ir.Expression] | None:
        group = action.groups.get("bind", ())
        if not group:
            return {}
        record = self._record(group, action.spans["bind"])
        return dict(record.fields) if isinstance(record, ir.RecordValue) else None

    def _database(self, action: ast.EffectStep) -> str:
        return action.words["database"].text if "database" in action.words else "main"

    def _query(self, action: ast.EffectStep, step: ast.Step) -> _Parts | None:
        binds, gives = self._binds(action), self._returns(action)
        if action.sql is None or gives is None or binds is None:
            return None
        statement = self._sql(action.sql, READS, step)
        if statement is None or not self._parameters_match(statement, action, binds, action.sql):
            return None
        rows, row = row_type(gives)
        if not self._columns_fit(statement, row, action.sql):
            return None
        fixed = {"database": self._database(action), "sql": one_line(action.sql.text), "rows": rows}
        return fixed, self._bind_record(binds, step), gives

    def _columns_fit(self, statement: Statement, row: Type, sql: ast.Sql) -> bool:
        if statement.has_star:
            problem = "selects `*`; name the columns, so that a new one in the table changes nothing"
        elif statement.columns is None:
            problem = "has a column without a name; give it one with AS"
        elif isinstance(row, Record):
            fields = [name for name, _ in row.fields]
            missing = [name for name in fields if name not in statement.columns]
            extra = [name for name in statement.columns if name not in fields]
            if not missing and not extra:
                return True
            problem = (
                f"does not select `{missing[0]}`" if missing else f"selects `{extra[0]}`, which is no field of {row}"
            )
        elif len(statement.columns) == 1:
            return True
        else:
            problem = f"gives {len(statement.columns)} columns, and {row} holds one"
        self._bag.error(Code.BAD_SQL, sql.scalar.span, problem=problem)
        return False

    def _bind_record(self, binds: dict[str, ir.Expression], step: ast.Step) -> dict[str, ir.Expression]:
        if not binds:
            return {}
        place = place_of(self._bag.source, step.span)
        return {"bind": ir.RecordValue(tuple(binds.items()), place)}

    def _write(self, action: ast.EffectStep, step: ast.Step) -> _Parts | None:
        binds = self._binds(action)
        if binds is None:
            return None
        if action.sql is not None:
            for name in ("table", "data", "set", "where"):
                if name in action.spans:
                    where = f"a {step.operation.text} with `query`"
                    self._bag.error(Code.UNKNOWN_KEY, action.spans[name], where=where, key=name)
                    return None
            sql, text = action.sql, one_line(action.sql.text)
        else:
            built = self._build_sql(action, step, binds)
            if built is None:
                return None
            sql, text = built
        statement = self._sql(sql, WRITES, step, text)
        if statement is None or not self._parameters_match(statement, action, binds, sql):
            return None
        fixed = {"database": self._database(action), "sql": text}
        return fixed, self._bind_record(binds, step), PRIMITIVES["integer"]

    def _build_sql(
        self, action: ast.EffectStep, step: ast.Step, binds: dict[str, ir.Expression]
    ) -> tuple[ast.Sql, str] | None:
        """Build an INSERT or UPDATE from `table` with `data`, or with `set` and `where`."""
        is_insert = step.operation.text == "database_write"
        wanted = ("table", "data") if is_insert else ("table", "set", "where")
        for name in wanted:
            if name not in action.spans:
                where = f"a {step.operation.text} without `query`"
                self._bag.error(Code.MISSING_KEY, step.span, where=where, key=name)
                return None
        group_name = "data" if is_insert else "set"
        record = self._record(action.groups[group_name], action.spans[group_name])
        if not isinstance(record, ir.RecordValue):
            return None
        table = action.words["table"]
        columns = [name for name, _ in record.fields]
        if is_insert:
            binds.update(record.fields)
            values = ", ".join(f":{name}" for name in columns)
            # SAFETY: the text holds names only, and the grammar of names excludes SQL syntax; values are parameters.
            text = f"INSERT INTO {table.text} ({', '.join(columns)}) VALUES ({values})"  # noqa: S608
            return ast.Sql(text, _scalar(table)), text
        assert action.where is not None
        binds.update({f"set_{name}": value for name, value in record.fields})
        changes = ", ".join(f"{name} = :set_{name}" for name in columns)
        text = f"UPDATE {table.text} SET {changes} WHERE {one_line(action.where.text)}"  # noqa: S608
        return action.where, text

    # -- other nodes ------------------------------------------------------------------------------

    def _call(self, action: ast.CallNode, name: str, step: ast.Step) -> ir.CallNode | None:
        found = self._callees.find(action.node.text)
        values = {word.text: (word, expression) for word, expression in action.inputs}
        if not isinstance(found, Interface):
            self._bag.report(found.code, action.node.span, found.holes, found.help)
            self._not_callable.add(_name_of(action.node.text))
            for _, expression in action.inputs:
                self._expressions.infer(expression, None)
            return None
        inputs: list[tuple[str, ir.Expression]] = []
        is_sound = True
        counted = self._budgets_of_call(action, found, name, step)
        if counted is None:
            return None
        budgets, message = counted
        values |= message
        for input_name, type_, may_miss in found.inputs:
            if input_name in values:
                value = self._expressions.check(values[input_name][1], type_)
                is_sound = is_sound and value is not None
                if value is not None:
                    inputs.append((input_name, value))
            elif input_name in found.flags:
                place = place_of(self._bag.source, step.span)
                inputs.append((input_name, ir.Literal(BOOLEAN, found.flags[input_name] not in values, place)))
            elif not may_miss:
                self._bag.error(Code.MISSING_KEY, step.span, where=f"a call of `{found.node_id}`", key=input_name)
                is_sound = False
        declared = [each for each, _, _ in found.inputs]
        for word, _ in values.values():
            if word.text not in declared:
                help_, where = did_you_mean(word.text, declared), f"`{found.node_id}`"
                self._bag.error(Code.UNKNOWN_KEY, word.span, where=where, key=word.text, help=help_)
                is_sound = False
        self._note_call(action.node, found, step)
        if not is_sound:
            return None
        place = place_of(self._bag.source, step.span)
        result = ir.Result(Record(found.outputs), place)
        return ir.CallNode(name, found.node_id, tuple(inputs), result, place, budgets=budgets)

    def _note_call(self, word: ast.Word, found: Interface, step: ast.Step) -> None:
        self.called[found.node_id] = found
        self.calls.append((word, found))
        for capability in found.capabilities:
            chain = found.chains.get(capability, (found.node_id,))
            self.needs.append(Need(capability, step.span, f"`{' → '.join(chain)}`, which is called here,", chain))

    def report_conflicts(self) -> None:
        """Report names of which the node and the nodes it calls use two versions."""
        seen: dict[str, tuple[str, Span]] = {}
        for word, found in self.calls:
            for name, node_id in found.versions.items():
                first = seen.setdefault(name, (node_id, word.span))
                if first[0] != node_id:
                    also = (Label(first[1], f"`{first[0]}` comes in here"),)
                    self._bag.error(Code.VERSION_CONFLICT, word.span, also=also, first=first[0], second=node_id)

    def check_dependencies(self, listed: tuple[ast.Word, ...] | None) -> None:
        """Report differences between `metadata.dependencies` and the nodes that are called."""
        if listed is None:
            return
        names = {word.text: word for word in listed}
        called_keys: set[str] = set()
        for word, found in self.calls:
            keys = {found.node_id, _name_of(found.node_id)}
            called_keys |= keys
            if not keys & names.keys():
                problem = f"does not list `{found.node_id}`"
                self._bag.error(Code.DEPENDENCIES_LIST, word.span, problem=problem, help="add it there")
        for name, word in names.items():
            if name not in called_keys and _name_of(name) not in self._not_callable:
                self._bag.error(Code.DEPENDENCIES_LIST, word.span, problem=f"lists `{name}`, which nothing calls")
        seen: set[str] = set()
        for word in listed:
            if (name := _name_of(word.text)) in seen:
                self._bag.error(Code.DEPENDENCIES_LIST, word.span, problem=f"lists `{name}` twice", help="remove it")
            seen.add(name)


def _name_of(node: str) -> str:
    """Return the name in an id. A name without version is returned unchanged."""
    parts = split_node_id(node)
    return node if parts is None else parts[0]


def _record_in(type_: Type) -> Record | None:
    """Return the record type that is in arrays and optionals, or None."""
    match type_:
        case ArrayOf(inner) | OptionalOf(inner):
            return _record_in(inner)
        case Record():
            return type_
        case _:
            return None


def _scalar(word: ast.Word) -> Scalar:
    return Scalar(word.text, "", word.span)
