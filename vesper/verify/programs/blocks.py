"""Blocks of steps, their ends, handlers and templates, from which steps of every kind are built.

Each drawing mirrors `vesper.language.check.flow.steps`: the names visible in a block, the names that a condition proves
not to be null, and the type of a value if its step can be skipped.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from dataclasses import dataclass

from vesper.values.generated.operations import IMPLEMENTED
from vesper.values.types import BOOLEAN, INTEGER, STRING, Record, Type, declared_type
from vesper.verify.programs.expressions import Expressions
from vesper.verify.programs.features import Features
from vesper.verify.programs.plain_terms import NUMBERS, PlainTerms
from vesper.verify.programs.risks import SteadyTerms
from vesper.verify.programs.terms import Facts, NotExpressible, Scope, Term
from vesper.verify.programs.text import Tree

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
MAX_BLOCKS = 2
"""Depth of blocks below which only steps without blocks are drawn."""


@dataclass(slots=True)
class DrawnPart:
    """A step and the scope after it."""

    fields: dict[str, Tree]
    after: Scope


@dataclass(frozen=True, slots=True)
class Drawing:
    """The generators of terms that all steps of a node share."""

    expressions: Expressions
    plain: PlainTerms
    steady: SteadyTerms
    handled: SteadyTerms
    """Draws values of steps with handlers."""

    @classmethod
    def of(cls, expressions: Expressions) -> Drawing:
        steady, handled = SteadyTerms(expressions), SteadyTerms(expressions, may_be_handled=True)
        return cls(expressions, PlainTerms(expressions), steady, handled)

    @property
    def random(self) -> random.Random:
        return self.expressions.random

    @property
    def features(self) -> Features:
        return self.expressions.features

    def output(self, type_: Type, scope: Scope, depth: int) -> Term:
        """Draw the value of an output, mostly that of a step. Outputs are how step values show in an outcome."""
        computed = [
            each for each in scope.paths if each.type == type_ and each.path and each.path[0].startswith("step ")
        ]
        if computed and self.random.random() < 0.7:
            return self.random.choice(computed)
        if type_ in NUMBERS and self.random.random() < 0.4:
            return self.plain.number(type_, scope)
        return self.steady.assignable(type_, scope, depth)


class Blocks(ABC):
    """Base of the generator of one node's steps, which also collects the declarations that they need."""

    def __init__(self, drawing: Drawing, outputs: tuple[tuple[str, Type], ...]) -> None:
        self.drawing = drawing
        self._draw = drawing.expressions
        self._plain = drawing.plain
        self._steady = drawing.steady
        self.random: random.Random = drawing.random
        self._features = drawing.features
        self._outputs = outputs
        self._names = 0
        self._blocks = 0
        self._skipped: dict[str, Facts] = {}
        """Steps by the text of their conditions: under equal conditions they were not skipped."""

    @abstractmethod
    def step(self, scope: Scope) -> tuple[dict[str, Tree], Scope]:
        """Draw one step of any kind; return it with the scope after it."""

    # -- blocks -----------------------------------------------------------------------------------

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

    @abstractmethod
    def _draw_ending_block(self, scope: Scope) -> Tree:
        """Draw a block that always leaves the node."""

    def _name(self) -> str:
        self._names += 1
        return f"part_{self._names}"

    def _type(self) -> Type:
        return self.random.choice(self._draw.pool)

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    # -- values -----------------------------------------------------------------------------------

    def value(self, type_: Type, scope: Scope, depth: int, hint: Type | None = None) -> Term:
        """Draw a value: a number that occurs elsewhere, or any expression."""
        if type_ in NUMBERS and hint is None and self._chance(0.4):
            return self._plain.number(type_, scope)
        return self._steady.expression(type_, scope, depth, hint)

    def condition(self, scope: Scope) -> Term:
        if self._chance(0.5):
            return self._plain.test(scope)
        return self._steady.expression(BOOLEAN, scope, 2, BOOLEAN)

    def _plain_condition(self, scope: Scope) -> Term:
        """Draw a condition that proves no value to be null or not null."""
        for _ in range(6):
            found = self.condition(scope)
            if not found.when_true and not found.when_false:
                return found
        return Term(BOOLEAN, (self.random.choice(("true", "false")),))

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

    # -- ends -------------------------------------------------------------------------------------

    def error(self, scope: Scope) -> Tree:
        member = self.random.choice(ERROR_MEMBERS)
        return {"error_code": member, "message": self.template(scope)}

    def outputs(self, scope: Scope) -> dict[str, Tree]:
        return {name: self.drawing.output(type_, scope, 2) for name, type_ in self._outputs}

    def _end(self, scope: Scope, when: dict[str, Tree]) -> dict[str, Tree]:
        if self._chance(0.75):
            return {"operation": "return", **when, "success": self.outputs(scope)}
        return {"operation": "raise", **when, "error": self.error(scope)}

    # -- handlers ---------------------------------------------------------------------------------

    def _handlers(self, scope: Scope, type_: Type | None, codes: tuple[str, ...]) -> Tree:
        """Draw handlers by code; without a type, none of them gives a value."""
        joined = ", ".join(codes)
        key = self.random.choice((*codes, "any", "any", joined, joined))
        found: dict[str, Tree] = {key: self._handler(scope, type_)}
        left = [code for code in codes if code not in key]
        if key != "any" and self._chance(0.3):
            found["any"] = self._handler(scope, type_)
        elif key == "any" and left and self._chance(0.3):
            found[left[0]] = self._handler(scope, type_)
        return found

    def _handler(self, scope: Scope, type_: Type | None) -> Tree:
        steps, inner = self._draw_inner(scope, (0, 0, 0, 1)) if self._blocks < MAX_BLOCKS else ([], scope)
        fields: dict[str, Tree] = {"steps": steps} if steps else {}
        way = self.random.choice((*["value"] * 6, "return_error", "return"))
        if way == "value" and type_ is not None:
            return fields | {"value": self._handler_value(type_, inner)}
        if way == "return":
            return fields | {"return": self.outputs(inner)}
        return fields | {"return_error": self.error(inner)}

    def _handler_value(self, type_: Type, scope: Scope) -> Tree:
        """Draw the value of a handler; that of a loop is a record without a name, written as YAML."""
        if isinstance(type_, Record) and type_.name is None:
            return {name: self._draw.assignable(field, scope, 0) for name, field in type_.fields}
        return self._steady.assignable(type_, scope, 1)
