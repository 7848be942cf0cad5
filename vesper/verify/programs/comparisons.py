"""Comparisons of names in random expressions, and the same ones asked again.

What an optimizer remembers of a guard, or of where a number lies, shows only where somebody asks twice: of the same two
values, mostly by another operator. Expressions that are drawn by themselves hardly ever do.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from vesper.values.types import BOOLEAN, DECIMAL, FLOAT, INTEGER, STRING, Enum, Type
from vesper.verify.programs.forms import Forms, Producer
from vesper.verify.programs.terms import LOOSEST, NoWay, Scope, Term, hint_from, infix

_EQUALITY = ("==", "!=")
_ORDER = ("<", "<=", ">", ">=")
_NUMBERS: tuple[Type, ...] = (INTEGER, DECIMAL, FLOAT)
_COMPUTED: tuple[Type, ...] = (INTEGER, DECIMAL)
_MOST_KEPT = 6


@dataclass(frozen=True, slots=True)
class Asked:
    """Two values that were compared, and the names in them."""

    left: Term
    right: Term
    names: tuple[Term, ...]

    def is_seen(self, scope: Scope) -> bool:
        """True where each name is written so, means the same thing, and is known as much about null."""
        return all(name in scope.paths for name in self.names)


class Comparisons(Forms):
    asked: list[Asked]
    """The last comparisons of the node."""

    @abstractmethod
    def literal(self, type_: Type, hint: Type | None, scope: Scope) -> Term: ...

    def comparisons(self, scope: Scope) -> Iterator[Producer]:
        names = [each for each in scope.paths if _is_compared(each.type)]
        if names:
            yield 2.0, partial(self._compared, names, scope)
        again = [each for each in self.asked if each.is_seen(scope)]
        if again:
            yield 3.0, partial(self._again, again)

    def graded(self, type_: Type, scope: Scope, depth: int, hint: Type | None) -> Iterator[Producer]:
        names = [each for each in scope.paths if _is_compared(each.type)]
        if names:
            yield 0.8, partial(self._graded, names, type_, scope, depth, hint)

    def _graded(self, names: list[Term], type_: Type, scope: Scope, depth: int, hint: Type | None) -> Term:
        """A choice, and on one side of it another that asks of the same two values."""
        first = self._compared(names, scope)
        second = self._again(self.asked[-1:])
        told = type_ if hint is None else hint
        if self.random.random() < 0.5:
            then = self.expression(type_, scope, depth, hint)
            return _choice(first, then, _choice(second, *self._two(type_, scope, depth, told, told)))
        then = _choice(second, *self._two(type_, scope, depth, hint, told))
        return _choice(first, then, self.expression(type_, scope, depth, told))

    def _two(self, type_: Type, scope: Scope, depth: int, first: Type | None, second: Type | None) -> tuple[Term, Term]:
        return self.expression(type_, scope, depth, first), self.expression(type_, scope, depth, second)

    def tests_of_one(self, scope: Scope) -> list[Term]:
        """Tests of one name for several values: alone, one or another of them, or with something more."""
        names = [each for each in scope.paths if each.type == INTEGER or _has_members(each.type)]
        if not names:
            raise NoWay
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

    def _compared(self, names: list[Term], scope: Scope) -> Term:
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
        if self.random.random() < 0.2:
            left, right = right, left
        asked = Asked(left, right, tuple(used))
        self.asked = [*self.asked[1 - _MOST_KEPT :], asked]
        return self._again([asked])

    def _again(self, known: list[Asked]) -> Term:
        asked = self.random.choice(known)
        operators = (*_ORDER, *_EQUALITY) if asked.names[0].type in _NUMBERS else _EQUALITY
        return infix(self.random.choice(operators), asked.left, asked.right, BOOLEAN)


def _choice(condition: Term, then: Term, otherwise: Term) -> Term:
    held_then = (then,) if then.level > LOOSEST else ("(", then, ")")
    return Term(then.type, ("IF ", condition, " THEN ", *held_then, " ELSE ", otherwise), LOOSEST)


def _is_compared(type_: Type) -> bool:
    return type_ in (*_NUMBERS, STRING) or isinstance(type_, Enum)


def _has_members(type_: Type) -> bool:
    return isinstance(type_, Enum) and len(type_.members) > 2
