"""Random steps of a flow: blocks, loops, conditions, handlers and errors.

Steps with effects are in `effects`. Each drawing mirrors `vesper.language.check.flow.steps`: the names visible in a
block, what a condition says about null and where, and the type of a value if its step can be skipped.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from vesper.values.generated.operations import IMPLEMENTED
from vesper.values.types import (
    BOOLEAN,
    INTEGER,
    STRING,
    ArrayOf,
    Enum,
    OptionalOf,
    Record,
    Type,
    declared_type,
    optional,
)
from vesper.verify.programs.effects import Effects
from vesper.verify.programs.expressions import Expressions
from vesper.verify.programs.terms import NOTHING, Facts, NotExpressible, Scope, Term, infix
from vesper.verify.programs.text import Tree, scalar
from vesper.verify.programs.types import quote_yaml, type_text

ERROR_MEMBERS = ("shop_closed", "too_much", "not_here", "refused")
_WITH_TEXT: tuple[Type, ...] = (
    STRING,
    *(
        declared_type(spec.params[0][1])
        for spec in IMPLEMENTED.values()
        if spec.function == "text" and not spec.type_params
    ),
)
"""Types that a hole of a template can have."""
_WORDS = ("total", "is {{", "}} at", "é:", "#", "it's", "-")
_MATCHED_TEXTS = ("", "a", "b", "USD", "é", "it's", "null", "0")
_MATCHED_INTEGERS = ("0", "1", "-1", "2", "10", "9223372036854775807")
_MAX_BLOCKS = 2


@dataclass(slots=True)
class _DrawnStep:
    """A step and the scope after it."""

    fields: dict[str, Tree]
    after: Scope


class Flow:
    """Generator of one node's steps, which also collects the declarations that they need."""

    def __init__(self, expressions: Expressions, outputs: tuple[tuple[str, Type], ...], has_effects: bool) -> None:
        self._draw = expressions
        self.random: random.Random = expressions.random
        self._outputs = outputs
        self.raised: set[str] = set()
        self.effects = Effects(expressions, self.template) if has_effects else None
        self._names = 0
        self._blocks = 0
        self._skipped: dict[str, Facts] = {}
        """Steps by the text of their conditions: under equal conditions they were not skipped."""

    # -- steps and blocks -------------------------------------------------------------------------

    def step(self, scope: Scope) -> tuple[dict[str, Tree], Scope]:
        """Draw one step of any kind; return it with the scope below."""
        kinds: list[tuple[float, Callable[[Scope], _DrawnStep]]] = [
            (3.0, self._draw_computed),
            (1.0, self._template_step),
            (1.5, self._validation),
            (1.5, self._draw_conditional_end),
        ]
        if self._blocks < _MAX_BLOCKS:
            kinds += [(2.0, self._conditional), (2.0, self._match), (2.5, self._loop)]
        if self.effects is not None:
            kinds.append((3.0, self._effect))
        (chosen,) = self.random.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])
        drawn = chosen(scope)
        return drawn.fields, drawn.after

    def _steps(self, scope: Scope, counts: tuple[int, ...]) -> tuple[list[Tree], Scope]:
        found: list[Tree] = []
        for _ in range(self.random.choice(counts)):
            try:
                fields, scope = self.step(scope)
            except NotExpressible:
                continue
            found.append(fields)
        return found, scope

    def _draw_inner(self, scope: Scope, counts: tuple[int, ...]) -> tuple[list[Tree], Scope]:
        """Draw the steps of a block with its inner scope; its names are not visible after it."""
        skipped = dict(self._skipped)
        self._blocks += 1
        steps, inner = self._steps(scope, counts)
        self._blocks -= 1
        self._skipped = skipped
        return steps, inner

    def _block(self, scope: Scope, type_: Type | None, hint: Type | None = None) -> Tree:
        """Draw a block with or without a value."""
        steps, inner = self._draw_inner(scope, (0, 0, 1, 1, 2) if type_ is not None else (1, 2))
        if type_ is None:
            return steps or [self._end(scope, {"when": Term(BOOLEAN, ("false",))})]
        value = self._draw.expression(type_, inner, 2, hint)
        return {"steps": steps, "value": value} if steps else value

    def _draw_ending_block(self, scope: Scope) -> Tree:
        steps, inner = self._draw_inner(scope, (0, 0, 1))
        return [*steps, self._end(inner, {})]

    def _name(self) -> str:
        self._names += 1
        return f"part_{self._names}"

    def _type(self) -> Type:
        return self.random.choice(self._draw.pool)

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def condition(self, scope: Scope) -> Term:
        return self._draw.expression(BOOLEAN, scope, 2, BOOLEAN)

    def _plain_condition(self, scope: Scope) -> Term:
        """Draw a condition that says nothing about null."""
        for _ in range(6):
            found = self.condition(scope)
            if not found.when_true and not found.when_false:
                return found
        return Term(BOOLEAN, (self.random.choice(("true", "false")),))

    def _when(self, scope: Scope) -> tuple[dict[str, Tree], Facts, Term | None, str]:
        """Draw `when` and `guards` of a step.

        Returns the fields, the facts inside, the condition if it is the only one, and the text.
        """
        if not self._chance(0.35):
            return {}, NOTHING, None, ""
        when = self.condition(scope)
        fields: dict[str, Tree] = {"when": when}
        facts, text, single = when.when_true, _one_line(when), when
        if self._chance(0.2):
            guard = self.condition(scope.assuming(facts))
            fields["guards"] = [guard]
            facts |= guard.when_true
            return (
                fields,
                facts | self._skipped.get(f"{text} AND {_one_line(guard)}", NOTHING),
                None,
                (f"{text} AND {_one_line(guard)}"),
            )
        return fields, facts | self._skipped.get(text, NOTHING), single, text

    def _declare(self, scope: Scope, name: str, type_: Type, text: str) -> Scope:
        """Return the scope after a step; `text` is that of its conditions."""
        if not text:
            return scope.declare("step", name, type_)
        if not isinstance(type_, OptionalOf):  # a value that may itself be null stays optional even if the step ran
            self._skipped[text] = self._skipped.get(text, NOTHING) | {(f"step {name}", ())}
        return scope.declare("step", name, optional(type_))

    # -- values -----------------------------------------------------------------------------------

    def _draw_computed(self, scope: Scope) -> _DrawnStep:
        """Draw a value, mostly one that can fail and has a handler."""
        when, facts, _, text = self._when(scope)
        inner = scope.assuming(facts)
        type_ = self._type()
        fields: dict[str, Tree] = {"step": self._name(), "operation": "compute", **when}
        if self._chance(0.4):
            fields["value"] = self._draw.expression(type_, inner, 3)
        elif type_ == INTEGER or isinstance(type_, OptionalOf):
            type_ = INTEGER
            left, right = (self._draw.expression(INTEGER, inner, 2) for _ in range(2))
            fields["value"] = Term(INTEGER, ("quot(", left, ", ", right, ")"))
            fields["on_error"] = self._handlers(inner, type_, ("division_by_zero", "integer_overflow"))
        else:
            maybe = self._draw.expression(OptionalOf(type_), inner, 2)
            fields["value"] = Term(type_, ("require(", maybe, ")"))
            fields["on_error"] = self._handlers(inner, type_, ("null_value",))
        return _DrawnStep(fields, self._declare(scope, str(fields["step"]), type_, text))

    def _template_step(self, scope: Scope) -> _DrawnStep:
        when, facts, _, text = self._when(scope)
        fields: dict[str, Tree] = {"step": self._name(), "operation": "string_template", **when}
        fields["template"] = self.template(scope.assuming(facts))
        return _DrawnStep(fields, self._declare(scope, str(fields["step"]), STRING, text))

    def template(self, scope: Scope) -> Term:
        """Draw text with holes. A single hole alone would keep its type."""
        parts: list[str | Term] = [self.random.choice(_WORDS)]
        for _ in range(self.random.choice((0, 1, 1, 2))):
            parts += [" {", self.hole(scope), "}", self.random.choice(("", " ", " end", "{{}}"))]
        return Term(STRING, tuple(parts))

    def hole(self, scope: Scope) -> Term:
        for _ in range(4):
            found = self._draw.expression(self.random.choice(_WITH_TEXT), scope, 1)
            if not set(str(found)) & set("{}\n"):
                return found
        return Term(INTEGER, ("7",))

    def _effect(self, scope: Scope) -> _DrawnStep:
        assert self.effects is not None
        when, facts, _, text = self._when(scope)
        inner = scope.assuming(facts)
        asked, type_, codes = self.effects.request(inner)
        fields: dict[str, Tree] = {"step": self._name(), **asked, **when}
        if codes and self._chance(0.4):
            fields["on_error"] = self._handlers(inner, type_, codes)
        return _DrawnStep(fields, self._declare(scope, str(fields["step"]), type_, text))

    # -- ends -------------------------------------------------------------------------------------

    def error(self, scope: Scope) -> Tree:
        member = self.random.choice(ERROR_MEMBERS)
        self.raised.add(member)
        return {"error_code": member, "message": self.template(scope)}

    def outputs(self, scope: Scope) -> Tree:
        return {name: self._draw.assignable(type_, scope, 2) for name, type_ in self._outputs}

    def _end(self, scope: Scope, when: dict[str, Tree]) -> dict[str, Tree]:
        if self._chance(0.5):
            return {"operation": "return", **when, "success": self.outputs(scope)}
        return {"operation": "raise", **when, "error": self.error(scope)}

    def _draw_conditional_end(self, scope: Scope) -> _DrawnStep:
        """Draw a conditional end, whose condition is false in all later steps."""
        when, facts, single, _ = self._when(scope)
        if not when:
            single = self.condition(scope)
            text = _one_line(single)
            when, facts = {"when": single}, single.when_true | self._skipped.get(text, NOTHING)
        fields = self._end(scope.assuming(facts), when)
        return _DrawnStep(fields, scope if single is None else scope.assuming(single.when_false))

    def raising(self, scope: Scope) -> dict[str, Tree]:
        """Draw a step that raises under a condition that narrows no optional value."""
        when: Tree = self._plain_condition(scope)
        return {"operation": "raise", "when": when, "error": self.error(scope)}

    def _validation(self, scope: Scope) -> _DrawnStep:
        """Draw a validation, whose requirements are known afterwards; a failed one raises an error."""
        when, facts, _, _ = self._when(scope) if self._chance(0.3) else ({}, NOTHING, None, "")
        inner = scope.assuming(facts)
        required: list[Tree] = []
        for _ in range(self.random.choice((1, 1, 2))):
            condition = self.condition(inner)
            if self._chance(0.6):  # most inputs should pass
                condition = infix("OR", condition, Term(BOOLEAN, ("true",)), BOOLEAN)
            error = self.error(inner.assuming(condition.when_false)) if self._chance(0.5) else None
            required.append(condition if error is None else {"condition": condition, "error": error})
            inner = inner.assuming(condition.when_true)
        fields: dict[str, Tree] = {"operation": "validation", **when, "require": required}
        return _DrawnStep(fields, scope if when else inner)

    # -- blocks -----------------------------------------------------------------------------------

    def _conditional(self, scope: Scope) -> _DrawnStep:
        """Draw two blocks with values of one type; or one block ends, and its condition is false below."""
        condition = self.condition(scope)
        type_ = self._type() if self._chance(0.7) else None
        true, false = scope.assuming(condition.when_true), scope.assuming(condition.when_false)
        fields: dict[str, Tree] = {} if type_ is None else {"step": self._name()}
        fields |= {"operation": "conditional", "condition": condition}
        way = self.random.choice(("both", "both", "then leaves", "else leaves", "no else"))
        after = scope
        match way:
            case "then leaves":
                fields["then"] = self._draw_ending_block(true)
                fields["else"] = self._block(false, type_)
                after = false
            case "else leaves":
                fields["then"] = self._block(true, type_)
                fields["else"] = self._draw_ending_block(false)
                after = true
            case "no else":
                fields["then"] = self._block(true, type_)
            case _:
                fields["then"] = self._block(true, type_)
                fields["else"] = self._block(false, type_, type_)
        if type_ is None:
            return _DrawnStep(fields, after)
        outside = optional(type_) if way == "no else" else type_
        return _DrawnStep(fields, after.declare("step", str(fields["step"]), outside))

    def _match(self, scope: Scope) -> _DrawnStep:
        enums: list[Type] = [each for each in self._draw.pool if isinstance(each, Enum)]
        on_type = self.random.choice([STRING, INTEGER, BOOLEAN, *enums[:3], *enums[:3]])
        on = self._draw.expression(on_type, scope, 2)
        literals = self._literals(on_type)
        covers = on_type == BOOLEAN or isinstance(on_type, Enum)
        needs_otherwise = not covers or len(literals) < 2 or self._chance(0.4)
        if needs_otherwise and len(literals) > 1:
            literals = literals[: self.random.randint(1, len(literals) - 1)]
        type_ = self._type() if self._chance(0.8) else None
        cases: list[Tree] = []
        hint: Type | None = None
        while literals:
            size = self.random.choice((1, 1, 2)) if len(literals) > 2 or needs_otherwise else 1
            taken, literals = literals[:size], literals[size:]
            is_: Tree = taken[0] if len(taken) == 1 else f"[{', '.join(taken)}]"
            if self._chance(0.15) and (cases or needs_otherwise):
                cases.append({"is": is_, "then": self._draw_ending_block(scope)})
                continue
            cases.append({"is": is_, "then": self._block(scope, type_, hint)})
            hint = type_
        fields: dict[str, Tree] = {} if type_ is None else {"step": self._name()}
        fields |= {"operation": "match", "on": on, "cases": cases}
        if needs_otherwise:
            fields["otherwise"] = self._block(scope, type_, hint)
        return _DrawnStep(fields, scope if type_ is None else scope.declare("step", str(fields["step"]), type_))

    def _literals(self, type_: Type) -> list[str]:
        if isinstance(type_, Enum):
            found = [quote_yaml(each) for each in type_.members]
        elif type_ == BOOLEAN:
            found = ["true", "false"]
        else:
            found = [*_MATCHED_INTEGERS] if type_ == INTEGER else [quote_yaml(each) for each in _MATCHED_TEXTS]
        self.random.shuffle(found)
        return found if isinstance(type_, Enum) or type_ == BOOLEAN else found[: self.random.randint(2, 4)]

    # -- loops ------------------------------------------------------------------------------------

    def _loop(self, scope: Scope) -> _DrawnStep:
        fields: dict[str, Tree] = {"step": self._name(), "operation": "loop"}
        inner = scope.in_loop()
        goes_over = self._chance(0.6)
        if goes_over:
            parts, inner = self._draw.binding(scope, 1)
            fields["over"] = Term(BOOLEAN, parts)
        counts = not goes_over and self._chance(0.7)
        state: dict[str, Type] = {}
        first: dict[str, Tree] = {}
        for number in range(self.random.choice((0, 1, 1, 2))):
            name, type_ = f"{fields['step']}_s{number}", self._type()
            if self._chance(0.5):
                first[name] = self._draw.expression(type_, scope, 1)
            else:
                first[name] = {
                    "type": scalar(type_text(type_), in_flow=True),
                    "value": self._draw.assignable(type_, scope, 1),
                }
            state[name] = type_
        counter = f"{fields['step']}_n"
        if counts:
            first[counter], state[counter] = Term(INTEGER, ("0",)), INTEGER
        for name, type_ in state.items():
            self._draw.bound += 1
            inner = inner.bind(name, type_, self._draw.bound)
        if counts:
            fields["while"] = Term(BOOLEAN, (f"{counter} < {self.random.randint(1, 4)}",))
            fields["max"] = "5"
        elif not goes_over or self._chance(0.2):
            condition = self._plain_condition(inner)
            fields["while"] = condition
            fields["max"] = str(self.random.choice((1, 2, 6)))
        fields |= {"state": first} if first else {}
        before = inner
        steps, inner = self._draw_inner(inner, (0, 0, 1, 2))
        fields |= {"steps": steps} if steps else {}
        collected: Type | None = None
        if not state or self._chance(0.5):
            collected = self._type()
            fields["collect"] = self._draw.expression(collected, inner, 2)
        changes: dict[str, Tree] = {
            name: self._draw.assignable(type_, inner, 2)
            for name, type_ in state.items()
            if name != counter and self._chance(0.85)
        }
        changes |= {counter: Term(INTEGER, (f"{counter} + 1",))} if counts else {}
        fields |= {"next": changes} if changes else {}
        if self._chance(0.3):
            fields["stop_when"] = self._draw.expression(BOOLEAN, replace(inner, facts=before.facts), 1, BOOLEAN)
        if self._chance(0.3):
            type_ = _loop_type(state, collected)
            codes = ("loop_limit", "too_large")
            fields["on_error"] = self._handlers(scope, None, codes)
            return _DrawnStep(fields, scope.declare("step", str(fields["step"]), type_))
        return _DrawnStep(fields, scope.declare("step", str(fields["step"]), _loop_type(state, collected)))

    # -- handlers ---------------------------------------------------------------------------------

    def _handlers(self, scope: Scope, type_: Type | None, codes: tuple[str, ...]) -> Tree:
        """Draw handlers by code; without a type, none of them gives a value."""
        key = self.random.choice((*codes, "any", ", ".join(codes)))
        found: dict[str, Tree] = {key: self._handler(scope, type_)}
        left = [code for code in codes if code not in key]
        if key != "any" and self._chance(0.3):
            found["any"] = self._handler(scope, type_)
        elif key == "any" and left and self._chance(0.3):
            found[left[0]] = self._handler(scope, type_)
        return found

    def _handler(self, scope: Scope, type_: Type | None) -> Tree:
        steps, inner = self._draw_inner(scope, (0, 0, 0, 1)) if self._blocks < _MAX_BLOCKS else ([], scope)
        fields: dict[str, Tree] = {"steps": steps} if steps else {}
        way = self.random.choice(("value", "value", "value", "return_error", "return"))
        if way == "value" and type_ is not None:
            return fields | {"value": self._draw.assignable(type_, inner, 1)}
        if way == "return":
            return fields | {"return": self.outputs(inner)}
        return fields | {"return_error": self.error(inner)}


def _loop_type(state: dict[str, Type], collected: Type | None) -> Record:
    fields = tuple(state.items())
    return Record(fields if collected is None else (*fields, ("collected", ArrayOf(collected))))


def _one_line(term: Term) -> str:
    return " ".join(str(term).split())
