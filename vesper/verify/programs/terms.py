"""Terms of drawn expressions: trees with a type and a text, and the names in scope.

A term mirrors the checker's results: its type, its precedence, whether it needs the other operand's type, and what is
known not to be null if it is true or false.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from vesper.values.generated.operators import OPERATOR_LEVELS
from vesper.values.types import DECIMAL, FLOAT, ArrayOf, Enum, MapOf, OptionalOf, Record, SetOf, Type

Path: TypeAlias = tuple[str, tuple[str, ...]]
Facts: TypeAlias = frozenset[Path]
NOTHING: Facts = frozenset()
LOOSEST = -1
"""Precedence of IF, LET, FORALL and EXISTS, which extend as far right as possible."""
TIGHTEST = len(OPERATOR_LEVELS)
LEVELS = {operator: number for number, level in enumerate(OPERATOR_LEVELS) for operator in level.operators}
COMPARISON = LEVELS["=="]
_PATH_DEPTH = 3


class NotExpressible(Exception):
    """No expression of the wanted type is possible here."""


@dataclass(frozen=True, slots=True)
class Term:
    type: Type
    parts: tuple[str | Term, ...]
    level: int = TIGHTEST
    is_open: bool = False
    """True for a literal, a bare member or an array of these, typed by the other operand."""
    when_true: Facts = NOTHING
    when_false: Facts = NOTHING
    path: Path | None = None

    def __str__(self) -> str:
        return "".join(str(part) for part in self.parts)

    def terms(self) -> Iterator[Term]:
        """Yield the direct subterms."""
        return (part for part in self.parts if isinstance(part, Term))


def parenthesise(term: Term, level: int) -> tuple[str | Term, ...]:
    """Return a term, in parentheses if its precedence is below `level`."""
    return (term,) if term.level >= level else ("(", term, ")")


def infix(operator: str, left: Term, right: Term, type_: Type, words: str | None = None) -> Term:
    """Join two terms by an operator; `words` is its spelling if different, such as `NOT IN`."""
    level = LEVELS[operator]
    associates = OPERATOR_LEVELS[level].associates
    parts = (
        *parenthesise(left, level if associates == "left" else level + 1),
        f" {words or operator} ",
        *parenthesise(right, level if associates == "right" else level + 1),
    )
    return Term(type_, parts, level)


def prefix(operator: str, operand: Term, type_: Type) -> Term:
    level = LEVELS[operator]
    sign = operator.removeprefix("unary ")
    gap = " " if sign.isalpha() or str(operand).startswith(sign) else ""
    return Term(type_, (sign + gap, *parenthesise(operand, level)), level, is_open=operand.is_open)


def hint_from(type_: Type) -> Type | None:
    """Return the hint of an operand for a literal on the other side; a collection hints its members."""
    match type_:
        case ArrayOf(inner) | SetOf(inner) | MapOf(inner, _):
            return inner if isinstance(inner, Enum) or inner in (DECIMAL, FLOAT) else None
        case _:
            return type_ if isinstance(type_, Enum) or type_ in (DECIMAL, FLOAT) else None


@dataclass(frozen=True, slots=True)
class Known:
    """A name in scope. `key` identifies the thing; `text` is one spelling."""

    key: str
    text: str
    type: Type


@dataclass(frozen=True)
class Scope:
    """Names visible to an expression, and which are known not to be null."""

    names: tuple[Known, ...] = ()
    facts: Facts = NOTHING
    loops: int = 0
    sees_constants: bool = True
    taken: frozenset[str] = field(default_factory=frozenset)
    """Words that a bound name or a bare member may not be."""

    def bind(self, name: str, type_: Type, number: int) -> Scope:
        known = Known(f"local {name} {number}", name, type_)
        return replace(self, names=(*self.names, known), taken=self.taken | {name})

    def declare(self, kind: str, name: str, type_: Type) -> Scope:
        known = Known(f"{kind} {name}", name, type_)
        return replace(self, names=(*self.names, known), taken=self.taken | {name})

    def assuming(self, facts: Facts) -> Scope:
        return self if facts <= self.facts else replace(self, facts=self.facts | facts)

    def in_loop(self) -> Scope:
        return replace(self, loops=self.loops + 1)

    @cached_property
    def paths(self) -> tuple[Term, ...]:
        """Every name, and every field reachable from it, with its type here."""
        return tuple(found for each in self.names for found in self.paths_from(each))

    @cached_property
    def nullable(self) -> tuple[Term, ...]:
        """Paths that may be null here."""
        return tuple(each for each in self.paths if isinstance(each.type, OptionalOf))

    def paths_from(self, name: Known) -> Iterator[Term]:
        return self._from(name.text, name.type, (name.key, ()))

    def _from(self, text: str, type_: Type, path: Path) -> Iterator[Term]:
        if isinstance(type_, OptionalOf) and path in self.facts:
            type_ = type_.inner
        yield Term(type_, (text,), path=path)
        if isinstance(type_, Record) and len(path[1]) < _PATH_DEPTH:
            for name, inner in type_.fields:
                yield from self._from(f"{text}.{name}", inner, (path[0], (*path[1], name)))
