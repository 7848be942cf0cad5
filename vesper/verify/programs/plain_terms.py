"""Arithmetic and tests that rarely fail, and that a program repeats.

An optimizer shares, hoists and folds repeated terms: the same expression in a precondition, in the flow and in a
postcondition, or the same comparison in another spelling. Independent expressions rarely repeat each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from vesper.values.model import MAX_INTEGER, MIN_INTEGER
from vesper.values.types import BOOLEAN, DECIMAL, INTEGER, ArrayOf, MapOf, SetOf, Type
from vesper.verify.programs.expressions import Expressions
from vesper.verify.programs.terms import LEVELS, LOOSEST, Scope, Term, infix, prefix

_SMALL = ("0", "0", "1", "1", "2", "3", "5", "7", "10", "100", "-1", "-2", "-10")
_DECIMALS = ("0", "0", "0.0", "1", "0.5", "0.01", "2.50", "10", "100.00", "-1", "-0.5")
_MODULI = ("2", "3", "5", "9", "100", "1000")
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_MAX_KEPT = 8
NUMBERS: tuple[Type, ...] = (INTEGER, DECIMAL)


@dataclass(frozen=True, slots=True)
class _RepeatableTerm:
    """A term that may be repeated where its names mean the same."""

    term: Term
    names: tuple[Term, ...]

    def is_visible(self, scope: Scope) -> bool:
        return all(name in scope.paths for name in self.names)


@dataclass(frozen=True, slots=True)
class _KnownTest:
    left: _RepeatableTerm
    bound: Term
    operator: str


class PlainTerms:
    def __init__(self, expressions: Expressions) -> None:
        self._draw = expressions
        self._random = expressions.random
        self._kept: list[_RepeatableTerm] = []
        self._tested: list[_KnownTest] = []
        self._notable: list[int] = []

    def number(self, type_: Type, scope: Scope) -> Term:
        """Draw an integer or decimal, mostly one that occurs elsewhere."""
        return self._number(type_, scope).term

    def _number(self, type_: Type, scope: Scope) -> _RepeatableTerm:
        known = [each for each in self._kept if each.term.type == type_ and each.is_visible(scope)]
        if known and self._random.random() < 0.6:
            return self._random.choice(known)
        found = self._new_number(type_, scope)
        if found.names:
            self._kept = [*self._kept[1 - _MAX_KEPT :], found]
        return found

    def _new_number(self, type_: Type, scope: Scope) -> _RepeatableTerm:
        names = [each for each in scope.paths if each.type == type_]
        if not names:
            return _RepeatableTerm(self._size(scope) if type_ == INTEGER else self.literal(type_), ())
        first = self._random.choice(names)
        match self._random.choice(("name", "bounded", "bounded", "literal", "literal", "two", "conditional")):
            case "name":
                return _RepeatableTerm(first, (first,))
            case "bounded" if type_ == INTEGER:
                return _RepeatableTerm(self.bounded(first), (first,))
            case "two":
                second = self._random.choice(names)
                return _RepeatableTerm(infix(self._random.choice("+-*"), first, second, type_), (first, second))
            case "conditional":
                test = infix(self._random.choice(tuple(_NEGATED)), first, self.literal(type_), BOOLEAN)
                other = self._random.choice(names)
                parts = ("(IF ", test, " THEN ", first, " ELSE ", other, ")")
                return _RepeatableTerm(Term(type_, parts), (first, other))
            case _:
                return _RepeatableTerm(self._with_literal(first), (first,))

    def _with_literal(self, name: Term) -> Term:
        sides = (name, self.literal(name.type))
        left, right = sides if self._random.random() < 0.6 else (sides[1], sides[0])
        return infix(self._random.choice("+-*"), left, right, name.type)

    def bounded(self, name: Term, modulus: str | None = None) -> Term:
        """Return `mod(name, n)`, a small number that is not negative."""
        return Term(INTEGER, ("mod(", name, f", {modulus or self._random.choice(_MODULI)})"))

    def _size(self, scope: Scope) -> Term:
        """Draw the length of a collection; a literal if there is none."""
        found = [each for each in scope.paths if isinstance(each.type, ArrayOf | SetOf | MapOf)]
        return Term(INTEGER, ("length(", self._random.choice(found), ")")) if found else self.literal(INTEGER)

    def note(self, number: int) -> None:
        """Remember a number that the program reaches, for literals at it and beside it."""
        self._notable = [*self._notable[1 - _MAX_KEPT :], number]

    def literal(self, type_: Type) -> Term:
        if self._notable and type_ == INTEGER and self._random.random() < 0.3:
            near = self._random.choice(self._notable) + self._random.choice((-1, 0, 0, 1))
            return number_literal(INTEGER, str(max(MIN_INTEGER, min(MAX_INTEGER, near))))
        text = self._random.choice(_SMALL if type_ == INTEGER else _DECIMALS)
        if type_ == DECIMAL and "." not in text:
            text += ".0"
        return number_literal(type_, text)

    # -- tests ------------------------------------------------------------------------------------

    def test(self, scope: Scope) -> Term:
        """Draw a comparison with a constant, mostly one that was drawn before, in any spelling."""
        again = [each for each in self._tested if each.left.is_visible(scope)]
        if again and self._random.random() < 0.6:
            return self._spell(self._random.choice(again))
        numbers = [type_ for type_ in NUMBERS if any(each.type == type_ for each in scope.paths)]
        type_ = self._random.choice(numbers or [INTEGER])
        left = self._number(type_, scope)
        if not left.names:  # a comparison of literals has no type to read them with
            left = _RepeatableTerm(self._size(scope), ())
        tested = _KnownTest(left, self.literal(left.term.type), self._random.choice(tuple(_NEGATED)))
        if left.names:
            self._tested = [*self._tested[1 - _MAX_KEPT :], tested]
        return self._spell(tested)

    def _spell(self, tested: _KnownTest) -> Term:
        """Return the comparison or a neighbour of it, with the constant on either side."""
        operator = tested.operator if self._random.random() < 0.5 else self._random.choice(tuple(_NEGATED))
        left, right = tested.left.term, tested.bound
        if self._random.random() < 0.4:
            left, right, operator = right, left, _MIRRORED[operator]
        if self._random.random() < 0.2:
            return prefix("NOT", infix(_NEGATED[operator], left, right, BOOLEAN), BOOLEAN)
        return infix(operator, left, right, BOOLEAN)

    def tautology(self, scope: Scope) -> Term:
        """Draw a clause that always holds: a comparison or its negation, which neither side shows alone."""
        types = [type_ for type_ in NUMBERS if any(each.type == type_ for each in scope.paths)]
        type_ = self._random.choice(types or [INTEGER])
        left, right = self.number(type_, scope), self.number(type_, scope)
        operator = self._random.choice(tuple(_NEGATED))
        first, second = (infix(each, left, right, BOOLEAN) for each in (operator, _NEGATED[operator]))
        return infix("OR", first, second, BOOLEAN)


def number_literal(type_: Type, text: str) -> Term:
    return Term(type_, (text,), LEVELS["unary -"] if text.startswith("-") else LEVELS["unary -"] + 1, is_open=True)


def choose(condition: Term, then: Term, otherwise: Term) -> Term:
    """Return `IF … THEN … ELSE …`."""
    return Term(then.type, ("IF ", condition, " THEN ", then, " ELSE ", otherwise), LOOSEST)
