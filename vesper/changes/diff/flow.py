"""Entities of a flow: steps with their blocks, handlers and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from vesper.changes.diff.declared import Outline
from vesper.changes.diff.model import Entity, Group, Part
from vesper.changes.diff.tables import table_groups, table_parts
from vesper.changes.diff.version import base_name
from vesper.language.syntax import ast, budget_ast

_ORDER = "a step can fail or request something, and those before it come first"
_PURE = (ast.Compute, ast.DecisionTable)


class FlowOutline:
    """Writes the entities of steps."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline

    def steps(self, listed: Sequence[ast.Step], bound: tuple[str, ...] = ()) -> Group:
        return Group(tuple(self._step(each, bound) for each in listed), "meaning", _ORDER)

    def _step(self, step: ast.Step, bound: tuple[str, ...]) -> Entity:
        texts, names = self._outline.texts, self._outline.names
        line = texts.line(step.span)
        parts = {"operation": Part(step.operation.text, step.operation.text, line)}
        groups: dict[str, Group] = {}
        reasons = (*step.reasons, *[None] * (len(step.conditions) - len(step.reasons)))
        conditions = tuple(map(self._condition, step.conditions, reasons, [bound] * len(reasons)))
        if conditions:
            groups["conditions"] = Group(conditions, "meaning", "conditions are evaluated in order")
        self._action(step, bound, parts, groups)
        if step.handlers:
            groups["handlers"] = Group(tuple(self._handler(each, bound) for each in step.handlers))
        name = None if step.name is None else names.of_value(step.name.text)
        title = f"step `{step.name.text}`" if step.name is not None else f"{step.operation.text} step"
        value = parts.get("value") or parts.get("condition")
        text = step.operation.text if value is None else f"{step.operation.text} {value.text}"
        is_pure = isinstance(step.action, _PURE)
        return Entity(
            "step", name, title, parts, groups, line, text,
            name_level="text" if is_pure else "meaning",
            is_inert=is_pure and not step.handlers and not any(map(texts.can_fail, _expressions(step))),
        )  # fmt: skip

    def _condition(self, given: ast.Expression, reason: ast.Word | None, bound: tuple[str, ...]) -> Entity:
        part = self._outline.expression(given, bound=bound)
        parts = {"condition": part} | ({} if reason is None else {"reason": self._outline.word(reason, "text")})
        return Entity("condition", None, "condition", parts, line=part.line, text=part.text)

    # -- actions ----------------------------------------------------------------------------------

    def _action(self, step: ast.Step, bound: tuple[str, ...], parts: dict[str, Part], groups: dict[str, Group]) -> None:
        outline = self._outline
        match step.action:
            case ast.Compute(value=value, type=type_):
                parts["value"] = outline.expression(value, bound=bound)
                if type_ is not None:
                    parts["type"] = outline.type(type_)
            case ast.DecisionTable() as table:
                parts |= table_parts(outline, table)
                groups |= table_groups(outline, table, bound)
            case ast.Validation(requirements=requirements):
                listed = tuple(self._requirement(each, bound) for each in requirements)
                groups["requirements"] = Group(listed, "meaning", "the first that fails ends the run")
            case ast.Conditional(condition=condition, then=then, otherwise=otherwise, type=type_):
                parts["condition"] = outline.expression(condition, bound=bound)
                if type_ is not None:
                    parts["type"] = outline.type(type_)
                blocks = [self._block("then", then, bound)]
                blocks += [] if otherwise is None else [self._block("else", otherwise, bound)]
                groups["blocks"] = Group(tuple(blocks))
            case ast.Match() as match:
                self._match(match, bound, parts, groups)
            case ast.Loop() as loop:
                self._loop(loop, bound, parts, groups)
            case ast.Parallel(members=members):
                for number, member in enumerate(members, start=1):
                    groups[f"strand {number}"] = self.steps(member, bound)
            case ast.Return(values=values):
                for name, value in values:
                    label = f"output {outline.names.of('output', name.text)}"
                    parts[label] = outline.expression(value, "output", bound)
            case ast.Raise(error=error):
                parts |= self._error(error, bound)
            case ast.EffectStep() as effect:
                self._effect(effect, bound, parts)
            case budget_ast.BudgetBlock(budget=budget, block=block):
                parts |= outline.tree_parts(budget, "budget")
                groups["blocks"] = Group((self._block("steps", block, bound),))
            case ast.CallNode(node=node, inputs=inputs, agent=agent):
                parts["node"] = outline.word(node, form=base_name(node.text))
                parts |= self._expressions("input", inputs, bound)
                if agent is not None and agent.message is not None:
                    parts["message"] = outline.expression(agent.message, bound=bound)
                for label, tree in () if agent is None else (("timeout", agent.timeout), ("budget", agent.budget)):
                    parts |= {} if tree is None else outline.tree_parts(tree, label)
            case ast.Transition(machine=machine, entity=entity, sources=sources, target=target):
                parts |= {"machine": outline.word(machine), "target state": outline.word(target)}
                parts["entity"] = outline.expression(entity, bound=bound)
                text = ", ".join(each.text for each in sources)
                parts["source states"] = Part(text, text, outline.texts.line(machine.span))
            case ast.StateRead(machine=machine, entity=entity):
                parts["machine"] = outline.word(machine)
                parts["entity"] = outline.expression(entity, bound=bound)

    def _requirement(self, given: ast.Requirement, bound: tuple[str, ...]) -> Entity:
        part = self._outline.expression(given.clause.holds, bound=bound)
        parts = {"condition": part} | ({} if given.error is None else self._error(given.error, bound))
        return Entity("requirement", None, "requirement", parts, line=part.line, text=part.text)

    def _error(self, error: ast.ErrorValue, bound: tuple[str, ...]) -> dict[str, Part]:
        names = self._outline.names
        listed = [(ast.Word(names.of("error", name.text), name.span), value) for name, value in error.values]
        return self._expressions("error", listed, bound)

    def _match(
        self, match: ast.Match, bound: tuple[str, ...], parts: dict[str, Part], groups: dict[str, Group]
    ) -> None:
        parts["matched value"] = self._outline.expression(match.on, bound=bound)
        if match.type is not None:
            parts["type"] = self._outline.type(match.type)
        blocks = [
            self._block(f"case {', '.join(each.text for each in case.literals)}", case.then, bound)
            for case in match.cases
        ]
        blocks += [] if match.otherwise is None else [self._block("default", match.otherwise, bound)]
        groups["cases"] = Group(tuple(blocks), "text", "the literals of cases exclude each other")

    def _loop(self, loop: ast.Loop, bound: tuple[str, ...], parts: dict[str, Part], groups: dict[str, Group]) -> None:
        outline = self._outline
        binding = loop.binding
        words = (*(() if binding is None else binding.names), *(each.name for each in loop.state))
        inner = (*bound, *(word.text for word in words))
        if binding is not None:
            parts["collection"] = outline.expression(binding.over, bound=bound)
            if binding.where is not None:
                parts["where"] = outline.expression(binding.where, bound=inner)
        inside = {"while": loop.condition, "collect": loop.collect, "stop when": loop.stop_when}
        for label, expression in inside.items():
            if expression is not None:
                parts[label] = outline.expression(expression, bound=inner)
        if loop.max is not None:
            parts["max"] = outline.tree(loop.max)
        if loop.max_in_flight is not None:
            parts["max in flight"] = outline.tree(loop.max_in_flight)
        for place, state in enumerate(loop.state, start=1):
            parts[f"state {place}"] = outline.expression(state.value, "state", bound)
            if state.type is not None:
                parts[f"type of state {place}"] = outline.type(state.type)
        places = {state.name.text: place for place, state in enumerate(loop.state, start=1)}
        for name, value in loop.next:
            parts[f"next of state {places.get(name.text, 0)}"] = outline.expression(value, "next", inner)
        groups["steps"] = self.steps(loop.steps, inner)

    def _effect(self, effect: ast.EffectStep, bound: tuple[str, ...], parts: dict[str, Part]) -> None:
        outline = self._outline
        line = parts["operation"].line
        parts |= {label: outline.word(word) for label, word in effect.words.items()}
        parts |= {label: outline.expression(each, bound=bound) for label, each in effect.expressions.items()}
        for label, listed in effect.groups.items():
            parts |= self._expressions(label, listed, bound)
        for label, sql in (("query", effect.sql), ("where", effect.where)):
            if sql is not None:
                text = " ".join(sql.text.split())
                parts[label] = Part(text, text, outline.texts.line(sql.scalar.span))
        if effect.returns is not None:
            parts["returns"] = outline.type(effect.returns)
        for field in effect.expect or ():
            parts[f"expect {field.name.text}"] = outline.type(field.type)
        for label, tree in effect.literals.items():
            parts |= outline.tree_parts(tree, label)
        if effect.sensitive:
            listed_fields = effect.sensitive if isinstance(effect.sensitive, tuple) else ()
            text = ", ".join(each.text for each in listed_fields) or "the whole answer"
            parts["sensitive"] = Part(text, text, line)

    def _expressions(
        self, kind: str, listed: Iterable[tuple[ast.Word, ast.Expression]], bound: tuple[str, ...]
    ) -> dict[str, Part]:
        return {f"{kind} {name.text}": self._outline.expression(value, kind, bound) for name, value in listed}

    # -- blocks -----------------------------------------------------------------------------------

    def _block(self, name: str, block: ast.Block, bound: tuple[str, ...]) -> Entity:
        parts = {} if block.value is None else {"value": self._outline.expression(block.value, bound=bound)}
        groups = {"steps": self.steps(block.steps, bound)}
        line = self._outline.texts.line(block.span)
        text = "" if block.value is None else parts["value"].text
        return Entity("block", name, name, parts, groups, line, text, name_level="meaning")

    def _handler(self, handler: ast.Handler, bound: tuple[str, ...]) -> Entity:
        codes = ", ".join(sorted(each.text for each in handler.codes))
        parts = {} if handler.value is None else {"value": self._outline.expression(handler.value, bound=bound)}
        groups = {"steps": self.steps(handler.steps, bound)}
        line = self._outline.texts.line(handler.codes[0].span) if handler.codes else None
        text = parts["value"].text if parts else ""
        return Entity("handler", codes, f"on_error {codes}", parts, groups, line, text, name_level="meaning")


def _expressions(step: ast.Step) -> Iterator[ast.Expression]:
    """Yield the outermost expressions of a step without blocks."""
    yield from step.conditions
    match step.action:
        case ast.Compute(value=value):
            yield value
        case ast.DecisionTable(rows=rows, otherwise=otherwise, columns=columns):
            yield from (each.value for each in columns if each.value is not None)
            for row in (*(rows if isinstance(rows, tuple) else ()), *(() if otherwise is None else (otherwise,))):
                yield from (each for each in (row.when, row.then) if each is not None)
