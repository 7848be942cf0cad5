"""Random steps of a flow: every kind of step, with its conditions.

Blocks, branches and loops are in `blocks`, `branches` and `loops`, steps with effects in `effects`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from vesper.values.types import BOOLEAN, INTEGER, STRING, OptionalOf, Type, optional
from vesper.verify.programs.blocks import MAX_BLOCKS, Drawing, DrawnPart
from vesper.verify.programs.branches import Branches
from vesper.verify.programs.effects import Effects
from vesper.verify.programs.loops import Loops
from vesper.verify.programs.plain_terms import NUMBERS
from vesper.verify.programs.risks import is_fallible, is_risky
from vesper.verify.programs.terms import NOTHING, Facts, Scope, Term, infix
from vesper.verify.programs.text import Tree


class Flow(Loops, Branches):
    """Generator of one node's steps."""

    def __init__(self, drawing: Drawing, outputs: tuple[tuple[str, Type], ...], has_effects: bool) -> None:
        super().__init__(drawing, outputs)
        self.effects = Effects(drawing.expressions, self.template) if has_effects else None

    def step(self, scope: Scope) -> tuple[dict[str, Tree], Scope]:
        """Draw one step of any kind; return it with the scope after it."""
        kinds: dict[str, tuple[float, Callable[[Scope], DrawnPart]]] = {
            "compute": (2.0, self._draw_computed),
            "number": (2.0, self._draw_number),
            "template": (0.7, self._template_step),
            "validation": (1.0, self._validation),
            "end": (1.2, self._draw_conditional_end),
        }
        if self._blocks < MAX_BLOCKS:
            kinds |= {"conditional": (2.0, self._conditional), "match": (1.5, self._match), "loop": (3.5, self._loop)}
        if self.effects is not None:
            kinds["effect"] = (3.0, self._effect)
        weights = self._features.weights({name: weight for name, (weight, _) in kinds.items()})
        (chosen,) = self.random.choices([draw for _, draw in kinds.values()], weights)
        drawn = chosen(scope)
        return drawn.fields, drawn.after

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
            # Selected by the text, so that the rest of the program stays the same.
            has_reason = len(_one_line(guard)) % 2 == 0
            fields["guards"] = [{"holds": guard, "reason": "guard_fails"} if has_reason else guard]
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

    def _draw_number(self, scope: Scope) -> DrawnPart:
        """Draw a number, mostly a computation that occurs elsewhere too."""
        type_ = self.random.choice(NUMBERS)
        fields: dict[str, Tree] = {"step": self._name(), "operation": "compute"}
        fields["value"] = self._plain.number(type_, scope)
        return DrawnPart(fields, scope.declare("step", str(fields["step"]), type_))

    def _draw_computed(self, scope: Scope) -> DrawnPart:
        """Draw a value, mostly one that can fail and has a handler."""
        when, facts, _, text = self._when(scope)
        inner = scope.assuming(facts)
        type_ = self._type()
        fields: dict[str, Tree] = {"step": self._name(), "operation": "compute", **when}
        if self._chance(0.6):
            value = self.drawing.handled.expression(type_, inner, 3)
            fields["value"] = value
            if is_fallible(value) and (is_risky(value) or self._chance(0.5)):
                fields["on_error"] = self._handlers(inner, type_, ("any",))
        elif type_ == INTEGER or isinstance(type_, OptionalOf):
            type_ = INTEGER
            left, right = (self._draw.expression(INTEGER, inner, 2) for _ in range(2))
            fields["value"] = Term(INTEGER, ("quot(", left, ", ", right, ")"))
            fields["on_error"] = self._handlers(inner, type_, ("division_by_zero", "integer_overflow"))
        else:
            maybe = self._draw.expression(OptionalOf(type_), inner, 2)
            fields["value"] = Term(type_, ("require(", maybe, ")"))
            fields["on_error"] = self._handlers(inner, type_, ("null_value",))
        return DrawnPart(fields, self._declare(scope, str(fields["step"]), type_, text))

    def _template_step(self, scope: Scope) -> DrawnPart:
        when, facts, _, text = self._when(scope)
        fields: dict[str, Tree] = {"step": self._name(), "operation": "string_template", **when}
        fields["template"] = self.template(scope.assuming(facts))
        return DrawnPart(fields, self._declare(scope, str(fields["step"]), STRING, text))

    def _effect(self, scope: Scope) -> DrawnPart:
        assert self.effects is not None
        # A preference of the program, so that other programs stay the same.
        if self._features.weight("parallel") > 1 and self._chance(0.5):
            return self._parallel(scope)
        when, facts, _, text = self._when(scope)
        inner = scope.assuming(facts)
        asked, type_, codes = self.effects.request(inner)
        fields: dict[str, Tree] = {"step": self._name(), **asked, **when}
        if codes and self._chance(0.4):
            fields["on_error"] = self._handlers(inner, type_, codes)
        return DrawnPart(fields, self._declare(scope, str(fields["step"]), type_, text))

    def _parallel(self, scope: Scope) -> DrawnPart:
        """Draw requests that are made together."""
        assert self.effects is not None
        members: list[Tree] = []
        after = scope
        for _ in range(self.random.choice((2, 2, 3))):
            name = self._name()
            asked, type_, codes = self.effects.request(scope, may_wait=False)
            while not codes:  # `now()`, which is no request
                asked, type_, codes = self.effects.request(scope, may_wait=False)
            fields: dict[str, Tree] = {"step": name, **asked}
            if self._chance(0.3):
                fields["on_error"] = {"any": {"value": self._draw.expression(type_, scope, 1)}}
            members.append(fields)
            after = after.declare("step", name, type_)
        return DrawnPart({"operation": "parallel", "steps": members}, after)

    def _draw_conditional_end(self, scope: Scope) -> DrawnPart:
        """Draw a conditional end, whose condition is false in all later steps."""
        when, facts, single, _ = self._when(scope)
        if not when:
            single = self._plain.test(scope) if self._chance(0.6) else self.condition(scope)
            if self._chance(0.4):  # most inputs should pass
                more = self.condition(scope.assuming(single.when_true))
                true, false = single.when_true | more.when_true, single.when_false & more.when_false
                single = replace(infix("AND", single, more, BOOLEAN), when_true=true, when_false=false)
            text = _one_line(single)
            when, facts = {"when": single}, single.when_true | self._skipped.get(text, NOTHING)
        fields = self._end(scope.assuming(facts), when)
        return DrawnPart(fields, scope if single is None else scope.assuming(single.when_false))

    def raising(self, scope: Scope) -> dict[str, Tree]:
        """Draw a step that raises under a condition that narrows no optional value."""
        when = self._plain_condition(scope)
        if self._chance(0.7):  # most inputs should pass
            when = infix("AND", self._plain.test(scope), when, BOOLEAN)
        return {"operation": "raise", "when": when, "error": self.error(scope)}

    def _validation(self, scope: Scope) -> DrawnPart:
        """Draw a validation, whose requirements are known afterwards; a failed one raises an error."""
        when, facts, _, _ = self._when(scope) if self._chance(0.3) else ({}, NOTHING, None, "")
        inner = scope.assuming(facts)
        required: list[Tree] = []
        for _ in range(self.random.choice((1, 1, 2))):
            condition = self.condition(inner)
            if self._chance(0.8):  # most inputs should pass
                condition = infix("OR", condition, Term(BOOLEAN, ("true",)), BOOLEAN)
            error = self.error(inner.assuming(condition.when_false)) if self._chance(0.5) else None
            required.append(condition if error is None else {"condition": condition, "error": error})
            inner = inner.assuming(condition.when_true)
        fields: dict[str, Tree] = {"operation": "validation", **when, "require": required}
        return DrawnPart(fields, scope if when else inner)


def _one_line(term: Term) -> str:
    return " ".join(str(term).split())
