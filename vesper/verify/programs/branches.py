"""Conditionals and matches, and ends on all of their ways."""

from __future__ import annotations

from vesper.values.types import BOOLEAN, INTEGER, STRING, Enum, Type, optional
from vesper.verify.programs.blocks import Blocks, DrawnPart
from vesper.verify.programs.terms import Scope, Term
from vesper.verify.programs.text import Tree
from vesper.verify.programs.types import quote_yaml

_MATCHED_TEXTS = ("", "a", "b", "USD", "é", "it's", "null", "0")
_MATCHED_INTEGERS = ("0", "1", "-1", "2", "3", "10", "9223372036854775807")
_MAX_FORKS = 2
"""Depth of ends inside of ends."""


class Branches(Blocks):
    _forks = 0

    def ending(self, scope: Scope) -> dict[str, Tree]:
        """Draw a conditional or a match of which every way leaves the node."""
        self._forks += 1
        try:
            return self._ending_match(scope) if self._chance(0.3) else self._ending_conditional(scope)
        finally:
            self._forks -= 1

    def _draw_ending_block(self, scope: Scope) -> Tree:
        steps, inner = self._draw_inner(scope, (0, 0, 1))
        if self._forks < _MAX_FORKS and self._chance(0.3):
            return [*steps, self.ending(inner)]
        return [*steps, self._end(inner, {})]

    def _ending_conditional(self, scope: Scope) -> dict[str, Tree]:
        condition = self.condition(scope)
        return {
            "operation": "conditional",
            "condition": condition,
            "then": self._draw_ending_block(scope.assuming(condition.when_true)),
            "else": self._draw_ending_block(scope.assuming(condition.when_false)),
        }

    def _ending_match(self, scope: Scope) -> dict[str, Tree]:
        on_type = self.random.choice((INTEGER, STRING, BOOLEAN))
        on = self._draw_matched(on_type, scope)
        cases: list[Tree] = [
            {"is": literal, "then": self._draw_ending_block(scope)}
            for literal in self._literals(on_type)[: self.random.choice((1, 2, 3))]
        ]
        fields: dict[str, Tree] = {"operation": "match", "on": on, "cases": cases}
        if on_type != BOOLEAN or len(cases) < 2:
            fields["otherwise"] = self._draw_ending_block(scope)
        return fields

    def _draw_matched(self, type_: Type, scope: Scope) -> Term:
        """Draw the value of a match, mostly a small integer, which its cases name."""
        if type_ == INTEGER and self._chance(0.6):
            found = self._plain.number(INTEGER, scope)
            return found if found.is_open else self._plain.bounded(found, self.random.choice("345"))
        return self._steady.expression(type_, scope, 2)

    def _conditional(self, scope: Scope) -> DrawnPart:
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
            return DrawnPart(fields, after)
        outside = optional(type_) if way == "no else" else type_
        return DrawnPart(fields, after.declare("step", str(fields["step"]), outside))

    def _match(self, scope: Scope) -> DrawnPart:
        enums: list[Type] = [each for each in self._draw.pool if isinstance(each, Enum)]
        on_type = self.random.choice([STRING, INTEGER, BOOLEAN, *enums[:3], *enums[:3]])
        on = self._draw_matched(on_type, scope)
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
        return DrawnPart(fields, scope if type_ is None else scope.declare("step", str(fields["step"]), type_))

    def _literals(self, type_: Type) -> list[str]:
        if isinstance(type_, Enum):
            found = [quote_yaml(each) for each in type_.members]
        elif type_ == BOOLEAN:
            found = ["true", "false"]
        else:
            found = [*_MATCHED_INTEGERS] if type_ == INTEGER else [quote_yaml(each) for each in _MATCHED_TEXTS]
        self.random.shuffle(found)
        return found if isinstance(type_, Enum) or type_ == BOOLEAN else found[: self.random.randint(2, 6)]
