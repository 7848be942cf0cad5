"""Comparisons of names in random expressions, and repetitions of earlier comparisons.

An optimizer's knowledge of a guard or a number's range shows only if the same two values are compared again, mostly
with another operator. Independent expressions rarely do that.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from vesper.values.model import MAX_INTEGER, MIN_INTEGER
from vesper.values.types import (
    BOOLEAN,
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    INTEGER,
    PERIOD,
    STRING,
    TIME_OF_DAY,
    TIMESTAMP,
    ArrayOf,
    Enum,
    MapOf,
    Record,
    SetOf,
    Type,
)
from vesper.verify.programs.forms import Forms, Producer
from vesper.verify.programs.terms import (
    COMPARISON,
    LEVELS,
    LOOSEST,
    TIGHTEST,
    NotExpressible,
    Scope,
    Term,
    hint_from,
    infix,
    parenthesise,
    prefix,
)

_EQUALITY = ("==", "!=")
_ORDER = ("<", "<=", ">", ">=")
_NUMBERS: tuple[Type, ...] = (INTEGER, DECIMAL, FLOAT)
_TIMES: tuple[Type, ...] = (DATE, TIMESTAMP, DURATION, TIME_OF_DAY, PERIOD)
_FLIPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPUTED: tuple[Type, ...] = (INTEGER, DECIMAL)
_JOINS = ("AND", "AND", "OR", "OR", "=>", "==", "!=")
_MAX_PAIRS = 6
_RANGE_SHARE = 0.08


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """Two compared values and the names in them."""

    left: Term
    right: Term
    names: tuple[Term, ...]

    def is_visible(self, scope: Scope) -> bool:
        """Return whether each name has the same spelling, meaning and nullability in this scope."""
        return all(name in scope.paths for name in self.names)


class Comparisons(Forms):
    compared_pairs: list[ComparedPair]
    """Latest comparisons of the node."""

    @abstractmethod
    def literal(self, type_: Type, hint: Type | None, scope: Scope) -> Term: ...

    def comparisons(self, scope: Scope) -> Iterator[Producer]:
        names = [each for each in scope.paths if _is_tested(each.type)]
        if names:
            yield 2.0, partial(self._draw_comparison, names, scope)
        composed = [each for each in scope.paths if isinstance(each.type, Record | ArrayOf | SetOf | MapOf)]
        if composed:
            yield 0.7, partial(self._draw_equality, composed, scope)
        again = [each for each in self.compared_pairs if each.is_visible(scope)]
        if again:
            yield 3.0, partial(self._draw_repeat, again)
            yield 1.0, partial(self._draw_joined, again)

    def graded(self, type_: Type, scope: Scope, depth: int, hint: Type | None) -> Iterator[Producer]:
        names = [each for each in scope.paths if _is_tested(each.type)]
        if names:
            yield 0.8, partial(self._draw_graded, names, type_, scope, depth, hint)

    def _draw_graded(self, names: list[Term], type_: Type, scope: Scope, depth: int, hint: Type | None) -> Term:
        """Draw a choice that contains a second comparison of the same two values in one branch."""
        first = self._draw_comparison(names, scope)
        second = self._draw_repeat(self.compared_pairs[-1:])
        told = type_ if hint is None else hint
        if self.random.random() < 0.5:
            then = self.expression(type_, scope, depth, hint)
            return _choice(first, then, _choice(second, *self._draw_two(type_, scope, depth, told, told)))
        then = _choice(second, *self._draw_two(type_, scope, depth, hint, told))
        return _choice(first, then, self.expression(type_, scope, depth, told))

    def _draw_two(
        self, type_: Type, scope: Scope, depth: int, first: Type | None, second: Type | None
    ) -> tuple[Term, Term]:
        return self.expression(type_, scope, depth, first), self.expression(type_, scope, depth, second)

    def tests_of_one(self, scope: Scope) -> list[Term]:
        """Draw tests of one name for several values: alone, alternatives, or with a condition."""
        names = [each for each in scope.paths if each.type == INTEGER or _has_members(each.type)]
        if not names:
            raise NotExpressible
        name = self.random.choice(names)
        tests: list[Term] = []
        for _ in range(self.random.choice((3, 4, 5))):
            test = self._test(name, scope)
            if self.random.random() < 0.25:
                test = infix("OR", test, self._test(name, scope), BOOLEAN)
            elif self.random.random() < 0.25:
                more = self.expression(BOOLEAN, scope, 1)
                test = replace(infix("AND", test, more, BOOLEAN), when_true=more.when_true)
            tests.append(test)
        return tests

    def _test(self, name: Term, scope: Scope) -> Term:
        small = Term(INTEGER, (self.random.choice("01235"),), is_open=True)
        value = small if name.type == INTEGER else self.literal(name.type, name.type, scope)
        return infix("==", name, value, BOOLEAN)

    def _draw_comparison(self, names: list[Term], scope: Scope) -> Term:
        numbers = [each for each in names if each.type in _NUMBERS]
        left = self.random.choice(numbers if numbers and self.random.random() < 0.7 else names)
        same = [each for each in names if each.type == left.type]
        used = [left]
        if left.type in _COMPUTED and self.random.random() < 0.25:
            used.append(self.random.choice(same))
            left = infix(self.random.choice("+-*"), left, used[-1], left.type)
        pick = self.random.random()
        if pick < 0.05:
            right = left
        elif pick < 0.55 and not isinstance(left.type, Enum):
            right = self.random.choice(same)
            used.append(right)
        else:
            right = self.literal(left.type, hint_from(left.type), scope)
        pair = ComparedPair(left, right, tuple(used))
        self.compared_pairs = [*self.compared_pairs[1 - _MAX_PAIRS :], pair]
        return self._draw_repeat([pair])

    def _draw_equality(self, names: list[Term], scope: Scope) -> Term:
        """Draw the equality of a composed value with another name or a changed value of its type."""
        left = self.random.choice(names)
        same = [each for each in names if each.type == left.type]
        is_named = self.random.random() < 0.6
        right = self.random.choice(same) if is_named else self.expression(left.type, scope, 1)
        return infix(self.random.choice(_EQUALITY), left, right, BOOLEAN)

    def _draw_repeat(self, known: list[ComparedPair]) -> Term:
        """Draw a comparison of a known pair: in either order, negated, or with the next number."""
        pair = self.random.choice(known)
        left, right = pair.left, self._neighbour(pair.right)
        operator = self.random.choice((*_ORDER, *_EQUALITY) if is_compared(left.type) else _EQUALITY)
        if right == pair.right and self.random.random() < 0.1 and _is_listed(right):
            return self._draw_membership(left, right)
        if is_compared(left.type) and not left.is_open and self.random.random() < _RANGE_SHARE:
            return self._draw_range(left, right)
        if self.random.random() < 0.4:
            left, right, operator = right, left, _FLIPPED[operator]
        found = infix(operator, left, right, BOOLEAN)
        return prefix("NOT", found, BOOLEAN) if self.random.random() < 0.12 else found

    def _draw_range(self, value: Term, bound: Term) -> Term:
        """Draw `x IN [a..b)` with the compared value as one bound or both."""
        low, high = self.random.choice(((bound, value), (value, bound), (bound, bound)))
        brackets = self.random.choice("[("), self.random.choice(")]")
        words = self.random.choice((" IN ", " IN ", " NOT IN "))
        parts = (*parenthesise(value, COMPARISON + 1), f"{words}{brackets[0]}", low, "..", high, brackets[1])
        return Term(BOOLEAN, parts, COMPARISON)

    def _draw_joined(self, known: list[ComparedPair]) -> Term:
        """Draw several comparisons of one pair, so that one decides another."""
        pair = [self.random.choice(known)]
        joined = self._draw_repeat(pair)
        for _ in range(self.random.choice((1, 1, 2, 3))):
            joined = infix(self.random.choice(_JOINS), joined, self._draw_repeat(pair), BOOLEAN)
        return joined

    def _draw_membership(self, value: Term, literal: Term) -> Term:
        """Draw `x IN [1, 2]` with the compared literal and its neighbours."""
        items = [self._neighbour(literal) for _ in range(self.random.choice((0, 1, 2)))]
        self.random.shuffle(items := [*items, literal])
        parts: list[str | Term] = []
        for number, item in enumerate(items):
            parts += [", " if number else "", item]
        array = Term(ArrayOf(value.type), ("[", *parts, "]"), is_open=True)
        return infix("IN", value, array, BOOLEAN, self.random.choice(("IN", "NOT IN")))

    def _neighbour(self, term: Term) -> Term:
        """Return an integer literal plus or minus one in some draws; any other term unchanged."""
        digits = str(term)
        if not (term.is_open and term.type == INTEGER and digits.removeprefix("-").isdigit()):
            return term
        moved = int(digits) + self.random.choice((0, 0, 0, 1, -1))
        if not MIN_INTEGER <= moved <= MAX_INTEGER or moved == int(digits):
            return term
        return Term(INTEGER, (str(moved),), LEVELS["unary -"] if moved < 0 else TIGHTEST, is_open=True)


def _is_listed(term: Term) -> bool:
    """Return whether a term is a literal that an array can list without a declared type."""
    return term.is_open and term.type in (INTEGER, STRING)


def _choice(condition: Term, then: Term, otherwise: Term) -> Term:
    held_then = (then,) if then.level > LOOSEST else ("(", then, ")")
    return Term(then.type, ("IF ", condition, " THEN ", *held_then, " ELSE ", otherwise), LOOSEST)


def is_compared(type_: Type) -> bool:
    """Return whether `<` is defined for a type."""
    return type_ in (*_NUMBERS, *_TIMES, STRING)


def _is_tested(type_: Type) -> bool:
    return is_compared(type_) or isinstance(type_, Enum)


def _has_members(type_: Type) -> bool:
    return isinstance(type_, Enum) and len(type_.members) > 2
