"""Random state of loops: numbers, texts and arrays that change from round to round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vesper.values.model import MAX_INTEGER
from vesper.values.types import BOOLEAN, DECIMAL, FLOAT, INTEGER, STRING, ArrayOf, Type
from vesper.verify.programs.blocks import Drawing
from vesper.verify.programs.plain_terms import choose, number_literal
from vesper.verify.programs.terms import Scope, Term, infix, prefix
from vesper.verify.programs.text import Tree, scalar
from vesper.verify.programs.types import type_text

_MAX_GROWING_ROUNDS = 60
"""Rounds beyond which texts and arrays do not grow: every state of them is compared."""
_MAX_SCALED_ROUNDS = 300
"""Rounds beyond which decimals do not get more digits in each; they have at most 1,000."""

_FLOATS = ("0e0", "1e0", "1e-1", "1.5e0", "2e0", "-1e0", "1e16", "1e300", "5e-324")
_EDGES = (2**31, 2**53, 2**63 - 1, 2**63, 2**64, 2**127 - 1, 2**127, 10**18, 10**34, 10**38)
"""Coefficients at which decimals change their representation, or might."""


@dataclass(frozen=True, slots=True)
class DrawnState:
    name: str
    type: Type
    first: Tree
    next: Callable[[Scope], Term]
    """Draws the value after a round."""
    is_counter: bool = False


class States:
    """Generator of the state of one loop of at most `rounds` rounds."""

    def __init__(self, drawing: Drawing, rounds: int, item: Term | None) -> None:
        self._with = drawing
        self._random = drawing.random
        self._rounds = rounds
        self._item = item

    def counter(self, name: str) -> DrawnState:
        state, one = Term(INTEGER, (name,)), number_literal(INTEGER, "1")
        added = infix("+", state, one, INTEGER) if self._random.random() < 0.7 else infix("+", one, state, INTEGER)
        return DrawnState(name, INTEGER, number_literal(INTEGER, "0"), lambda _: added, is_counter=True)

    def draw(self, name: str, scope: Scope) -> DrawnState:
        defaults = {
            "state integer": 4.0,
            "state decimal": 3.0,
            "state float": 1.0,
            "state boolean": 0.7,
            "state any": 1.0,
        }
        if self._rounds <= _MAX_GROWING_ROUNDS:
            defaults |= {"state string": 1.0, "state array": 1.0}
        (kind,) = self._random.choices([*defaults], self._with.features.weights(defaults))
        match kind:
            case "state integer":
                return self._integer(name, scope)
            case "state decimal":
                return self._decimal(name, scope)
            case "state float":
                first = number_literal(FLOAT, self._random.choice(_FLOATS))
                return DrawnState(name, FLOAT, first, lambda inner: self._next_float(name, inner))
            case "state string":
                first = Term(STRING, (self._random.choice(("''", "'a'", "'é'")),))
                return DrawnState(name, STRING, first, lambda _: self._next_string(name))
            case "state array":
                return self._array(name)
            case "state boolean":
                first = Term(BOOLEAN, (self._random.choice(("true", "false")),))
                return DrawnState(name, BOOLEAN, first, lambda inner: self._next_boolean(name, inner))
            case _:
                return self._any(name, scope)

    # -- numbers ----------------------------------------------------------------------------------

    def _integer(self, name: str, scope: Scope) -> DrawnState:
        if self._random.random() < 0.1:
            return self._grow_to_edge(name, INTEGER, MAX_INTEGER, 0)
        first = number_literal(INTEGER, self._random.choice(("0", "0", "1", "1", "-1", "7")))
        if self._random.random() < 0.3:
            first = self._with.plain.number(INTEGER, scope)
        return DrawnState(name, INTEGER, first, lambda inner: self._next_integer(name, inner))

    def _next_integer(self, name: str, inner: Scope) -> Term:
        state, plain = Term(INTEGER, (name,)), self._with.plain
        match self._random.choice(("item", "item", "one", "plain", "double", "late", "choice", "negate")):
            case "item" if self._item is not None:
                operator = self._random.choice("++-*" if self._rounds < 12 else "++-")
                return infix(operator, state, self._item, INTEGER)
            case "plain":
                return infix(self._random.choice("+-"), state, plain.number(INTEGER, inner), INTEGER)
            case "double" if self._rounds <= 62 or self._random.random() < 0.3:
                return infix("*", state, number_literal(INTEGER, self._random.choice(("2", "2", "-2", "3"))), INTEGER)
            case "late":
                # From zero, the sum exceeds 64 bits in the last round or would in the one after it.
                share = MAX_INTEGER // max(1, self._rounds + self._random.choice((-1, 0, 0, 1)))
                plain.note(share * self._rounds)
                sign = self._random.choice(("", "", "-"))
                return infix("+", state, number_literal(INTEGER, f"{sign}{share}"), INTEGER)
            case "choice":
                more = infix("+", state, number_literal(INTEGER, "1"), INTEGER)
                return choose(plain.test(inner), more, state)
            case "negate":
                return infix("-", number_literal(INTEGER, self._random.choice(("0", "1"))), state, INTEGER)
            case _:
                added = self._random.choice((1, 2, 3, 9))
                plain.note(added * self._rounds)
                return infix("+", state, number_literal(INTEGER, str(added)), INTEGER)

    def _grow_to_edge(self, name: str, type_: Type, edge: int, scale: int) -> DrawnState:
        """Draw a sum whose digits reach an edge in the last round, one before it or one after it."""
        added = self._random.choice((1, 7, 100, 10**6))
        rounds = max(1, self._rounds + self._random.choice((-1, 0, 1)) if self._random.random() < 0.6 else 2)
        sign = self._random.choice(("", "", "-"))
        first, more = (number_literal(type_, _digits(each, scale, sign)) for each in (edge - added * rounds, added))
        next_ = infix("+", Term(type_, (name,)), more, type_)
        return DrawnState(name, type_, first, lambda _: next_)

    def _decimal(self, name: str, scope: Scope) -> DrawnState:
        if self._random.random() < 0.3:
            return self._grow_to_edge(name, DECIMAL, self._random.choice(_EDGES), self._random.choice((1, 2, 18)))
        text = self._random.choice(("0.0", "1.0", "0.00", "1.5", "-1.0", "100.00", "0.000001", "92233720368547758.07"))
        first: Tree = number_literal(DECIMAL, text)
        if self._random.random() < 0.25:
            first = self._with.plain.number(DECIMAL, scope)
        elif self._random.random() < 0.3:
            first = {"type": "decimal", "value": number_literal(DECIMAL, self._random.choice(("0", "1", "7")))}
        return DrawnState(name, DECIMAL, first, lambda inner: self._next_decimal(name, inner))

    def _next_decimal(self, name: str, inner: Scope) -> Term:
        """Draw decimals that stay small, double (beyond 64 and 128 bits in late rounds) or get digits."""
        state, plain = Term(DECIMAL, (name,)), self._with.plain
        ways = ["add", "add", "plain", "double", "choice"]
        ways += ["times", "times", "scale"] if self._rounds <= _MAX_SCALED_ROUNDS else []
        match self._random.choice(ways):
            case "plain":
                return infix(self._random.choice("+-"), state, plain.number(DECIMAL, inner), DECIMAL)
            case "double":
                return infix("+", state, state, DECIMAL)
            case "times":
                factor = self._random.choice(("2.0", "3.0", "10.0", "-2.0", "1.5"))
                return infix("*", state, number_literal(DECIMAL, factor), DECIMAL)
            case "scale":
                factor = self._random.choice(("0.1", "1.1", "0.5"))
                return infix("*", number_literal(DECIMAL, factor), state, DECIMAL)
            case "choice":
                more = infix("+", state, number_literal(DECIMAL, "0.5"), DECIMAL)
                return choose(plain.test(inner), more, state)
            case _:
                added = self._random.choice(("0.01", "0.1", "1.0", "99.99", "9223372036854775.807"))
                return infix("+", state, number_literal(DECIMAL, added), DECIMAL)

    def _next_float(self, name: str, inner: Scope) -> Term:
        state = Term(FLOAT, (name,))
        changed, other = (
            infix(self._random.choice("++-*"), state, number_literal(FLOAT, self._random.choice(_FLOATS)), FLOAT)
            for _ in range(2)
        )
        match self._random.choice(("changed", "bounded", "tested")):
            case "bounded":
                bound = number_literal(FLOAT, self._random.choice(_FLOATS))
                return choose(infix(self._random.choice(("<", ">=", "==")), state, bound, BOOLEAN), changed, other)
            case "tested":
                return choose(self._with.plain.test(inner), changed, state)
            case _:
                return changed

    # -- other types ------------------------------------------------------------------------------

    def _next_string(self, name: str) -> Term:
        state = Term(STRING, (name,))
        added = Term(STRING, (self._random.choice(("'a'", "'ab'", "'é'", "' '", "'0123456789'")),))
        if self._item is not None and self._random.random() < 0.4:
            added = Term(STRING, ("text(", self._item, ")"))
        left, right = (state, added) if self._random.random() < 0.7 else (added, state)
        return infix("+", left, right, STRING)

    def _array(self, name: str) -> DrawnState:
        type_ = ArrayOf(INTEGER)
        first: Tree = {"type": "array<integer>", "value": Term(type_, (self._random.choice(("[]", "[0]", "[1, 2]")),))}
        added = self._item or number_literal(INTEGER, self._random.choice("012"))
        state = Term(type_, (name,))
        return DrawnState(name, type_, first, lambda _: Term(type_, ("append(", state, ", ", added, ")")))

    def _next_boolean(self, name: str, inner: Scope) -> Term:
        state = Term(BOOLEAN, (name,))
        if self._random.random() < 0.4:
            return prefix("NOT", state, BOOLEAN)
        return infix(self._random.choice(("AND", "OR")), state, self._with.plain.test(inner), BOOLEAN)

    def _any(self, name: str, scope: Scope) -> DrawnState:
        type_ = self._random.choice(self._with.expressions.pool)
        first: Tree = {
            "type": scalar(type_text(type_), in_flow=True),
            "value": self._with.steady.assignable(type_, scope, 1),
        }
        if self._random.random() < 0.5:
            first = self._with.steady.expression(type_, scope, 1)
        return DrawnState(name, type_, first, lambda inner: self._with.steady.assignable(type_, inner, 1))


def _digits(coefficient: int, scale: int, sign: str) -> str:
    """Return a number as text; the coefficient may be negative."""
    sign = sign if coefficient >= 0 else "-"
    digits = str(abs(coefficient)).rjust(scale + 1, "0")
    return sign + (f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits)
