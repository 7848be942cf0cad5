"""Forms of the language in random expressions: lazily evaluated and binding forms.

These are the parts of `Expressions` without a declaration; a new form of the language is added here.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from vesper.values.types import (
    BOOLEAN,
    DECIMAL,
    INTEGER,
    JSON,
    NULL,
    ArrayOf,
    MapOf,
    OptionalOf,
    Record,
    SetOf,
    Type,
    is_key,
    is_ordered,
)
from vesper.verify.inputs.json_shapes import JsonShapes, json_text
from vesper.verify.programs.terms import COMPARISON, LOOSEST, TIGHTEST, NotExpressible, Scope, Term, infix, parenthesise
from vesper.verify.programs.types import is_quotable, quoted, type_text

Producer: TypeAlias = tuple[float, Callable[[], Term]]
_LOCALS = ("it", "each", "n", "key", "entry", "item", "value", "record", "line", "sum", "lambda", "i", "acc", "total2")
_MAX_LOOPS = 2
_SUMMABLE = (INTEGER, DECIMAL)


class Forms:
    random: random.Random
    pool: list[Type]
    bound: int

    @abstractmethod
    def expression(self, type_: Type, scope: Scope, depth: int, hint: Type | None = None) -> Term: ...
    @abstractmethod
    def assignable(self, type_: Type, scope: Scope, depth: int) -> Term: ...
    @abstractmethod
    def any_type(self) -> Type: ...

    def forms(self, type_: Type, scope: Scope, depth: int, hint: Type | None) -> Iterator[Producer]:
        """Yield every form that can have this type."""
        yield 1.5, partial(self._if, type_, scope, depth, hint)
        yield 0.7, partial(self._let, type_, scope, depth, hint)
        yield 0.8, partial(self._or_else, type_, scope, depth, hint)
        yield 0.25, partial(self._index, type_, scope, depth)
        yield 0.6, partial(self._field, type_, scope, depth)
        yield 0.5 if isinstance(type_, MapOf | Record) else 0.3, partial(self.cast, type_, scope, depth)
        yield 0.3, partial(self._ascription, type_, scope, depth)
        if type_ == BOOLEAN:
            for word in ("AND", "OR", "=>"):
                yield 1.0, partial(self._logical, word, scope, depth)
            yield 1.0, partial(self._quantifier, scope, depth)
        if type_ == INTEGER:
            yield 0.5, partial(self.aggregate, "COUNT", None, scope, depth)
        if type_ in _SUMMABLE:
            yield 0.6, partial(self.aggregate, "SUM", type_, scope, depth)
        if is_ordered(type_):
            yield 0.4, partial(self.aggregate, self.random.choice(("MIN", "MAX")), type_, scope, depth)
        match type_:
            case ArrayOf():
                yield 3.0, partial(self.array_literal, type_, scope, depth, hint)
                yield 3.0, partial(self._comprehension, type_, scope, depth, hint)
            case SetOf() | MapOf():
                yield 4.0, partial(self._comprehension, type_, scope, depth, hint)
                if hint == type_:
                    yield 1.0, partial(self.literal_by_place, type_, scope, depth)
            case Record():
                yield 4.0, partial(self.record_literal, type_, scope, depth, hint)
                yield 2.0, partial(self._with, type_, scope, depth)

    def cast(self, type_: Type, scope: Scope, depth: int) -> Term:
        """Draw a cast of JSON, which is a name, a text in the shape of the type, or made from a value of the type."""
        written = type_text(type_)
        if "{" in written:
            raise NotExpressible  # an anonymous record of an operation, whose type cannot be written
        names = [each for each in scope.paths if each.type == JSON]
        pick = self.random.random()
        text = json_text(JsonShapes(self.random).draw(type_))
        if names and pick < 0.5:
            value = self.random.choice(names)
        elif pick < 0.7 and is_quotable(text):
            value = Term(JSON, (f"parse_json({quoted(text)})",))
        elif pick < 0.9:
            value = Term(JSON, ("to_json(", self.expression(type_, scope, depth), ")"))
        else:
            value = self.expression(JSON, scope, depth)
        value = Term(JSON, ("(", value, ")")) if " AS " in str(value) else value
        return Term(type_, ("CAST(", value, f" AS {written})"))

    def _ascription(self, type_: Type, scope: Scope, depth: int) -> Term:
        """Draw `value AS type`, where literals and conversions are those of a place of this type."""
        written = type_text(type_)
        if "{" in written:
            raise NotExpressible  # an anonymous record of an operation, whose type cannot be written
        return Term(type_, (*parenthesise(self.assignable(type_, scope, depth), TIGHTEST), f" AS {written}"))

    # -- conditions -------------------------------------------------------------------------------

    def _if(self, type_: Type, scope: Scope, depth: int, hint: Type | None) -> Term:
        return self.choice(self.expression(BOOLEAN, scope, depth), type_, scope, depth, hint)

    def choice(self, condition: Term, type_: Type, scope: Scope, depth: int, hint: Type | None) -> Term:
        """Draw both branches of a condition. In each, the condition may prove that values are not null."""
        if isinstance(type_, OptionalOf) and self.random.random() < 0.5:
            then, otherwise = self._one_null(type_, condition, scope, depth, hint)
        else:
            then = self.expression(type_, scope.assuming(condition.when_true), depth, hint)
            told = type_ if hint is None else hint
            otherwise = self.expression(type_, scope.assuming(condition.when_false), depth, told)
        return Term(type_, ("IF ", condition, " THEN ", then, " ELSE ", otherwise), LOOSEST)

    def _one_null(
        self, type_: OptionalOf, condition: Term, scope: Scope, depth: int, hint: Type | None
    ) -> tuple[Term, Term]:
        """Draw two branches of which one is null, which makes the other optional."""
        null = Term(type_, ("null",))
        other = type_ if self.random.random() < 0.3 else type_.inner
        if self.random.random() < 0.5:
            return self.expression(other, scope.assuming(condition.when_true), depth, hint), null
        return null, self.expression(other, scope.assuming(condition.when_false), depth, NULL if hint is None else hint)

    def _logical(self, word: str, scope: Scope, depth: int) -> Term:
        """Draw AND or OR. The right side may use the facts under which the left side does not decide."""
        left = self.expression(BOOLEAN, scope, depth)
        known = left.when_false if word == "OR" else left.when_true
        right = self.expression(BOOLEAN, scope.assuming(known), depth)
        term = infix(word, left, right, BOOLEAN)
        if word == "AND":
            true, false = left.when_true | right.when_true, left.when_false & right.when_false
        elif word == "OR":
            true, false = left.when_true & right.when_true, left.when_false | right.when_false
        else:
            true, false = left.when_false & right.when_true, left.when_true | right.when_false
        return replace(term, when_true=true, when_false=false)

    def _or_else(self, type_: Type, scope: Scope, depth: int, hint: Type | None) -> Term:
        maybe = type_ if isinstance(type_, OptionalOf) else OptionalOf(type_)
        left = self.expression(maybe, scope, depth)
        right = self.expression(type_, scope, depth, maybe.inner if hint is None else hint)
        return infix("??", left, right, type_)

    # -- names ------------------------------------------------------------------------------------

    def bind(self, scope: Scope, type_: Type) -> tuple[str, Scope]:
        free = [each for each in _LOCALS if each not in scope.taken]
        self.bound += 1
        name = self.random.choice(free) if free else f"local{self.bound}"
        return name, scope.bind(name, type_, self.bound)

    def _let(self, type_: Type, scope: Scope, depth: int, hint: Type | None) -> Term:
        parts: list[str | Term] = ["LET "]
        for number in range(self.random.choice((1, 1, 1, 2))):
            bound = self.any_type()
            value = self.expression(bound, scope, depth)
            name, scope = self.bind(scope, bound)
            parts += [", " if number else "", f"{name} = ", *_without_in(value)]
        return Term(type_, (*parts, " IN ", self.expression(type_, scope, depth, hint)), LOOSEST)

    def binding(
        self, scope: Scope, depth: int, over: Type | None = None, one_name: bool = False, outer: Scope | None = None
    ) -> tuple[tuple[str | Term, ...], Scope]:
        """Draw `x IN xs WHERE …` and the scope inside; `outer` is the collection's scope if smaller."""
        if scope.loops >= _MAX_LOOPS:
            raise NotExpressible
        over = over or self._collection()
        items = self.expression(over, outer or scope, depth)
        inner = scope.in_loop()
        match over:
            case MapOf(key, value):
                first, inner = self.bind(inner, key)
                names = first
                if not one_name and self.random.random() < 0.6:
                    second, inner = self.bind(inner, value)
                    names = f"{first}, {second}"
            case ArrayOf(element) | SetOf(element):
                names, inner = self.bind(inner, element)
            case _:
                raise NotExpressible
        parts: tuple[str | Term, ...] = (f"{names} IN ", *parenthesise(items, COMPARISON + 1))
        if self.random.random() < 0.35:
            where = self.expression(BOOLEAN, inner, depth)
            parts, inner = (*parts, " WHERE ", where), inner.assuming(where.when_true)
        return parts, inner

    def _collection(self) -> Type:
        """Draw a collection type: one of the node's, or an array of one of its types."""
        found = [each for each in self.pool if isinstance(each, ArrayOf | SetOf | MapOf)]
        return self.random.choice(found) if found and self.random.random() < 0.8 else ArrayOf(self.any_type())

    def _quantifier(self, scope: Scope, depth: int) -> Term:
        binding, inner = self.binding(scope, depth)
        word = self.random.choice(("FORALL ", "EXISTS "))
        says = self.random.choice((" SATISFIES ", ": "))
        return Term(BOOLEAN, (word, *binding, says, self.expression(BOOLEAN, inner, depth, BOOLEAN)), LOOSEST)

    def aggregate(self, word: str, type_: Type | None, scope: Scope, depth: int, returned: Type | None = None) -> Term:
        returned = returned or (INTEGER if type_ is None else type_)
        if self.random.random() < 0.4:
            over = self._collection() if type_ is None else self._collection_of(type_)
            return Term(returned, (f"{word}(", self.expression(over, scope, depth), ")"))
        word = word.lower() if self.random.random() < 0.4 else word  # with a FOR both spellings are equal
        binding, inner = self.binding(scope, depth)
        value = self.expression(type_ or self.any_type(), inner, depth)
        return Term(returned, (f"{word}(", value, " FOR ", *binding, ")"))

    def _collection_of(self, type_: Type) -> Type:
        """Draw a collection type whose items or keys have this type."""
        choices: list[Type] = [ArrayOf(type_)]
        if is_key(type_):
            choices += [SetOf(type_), MapOf(type_, self.any_type())]
        return self.random.choice(choices)

    def _comprehension(self, type_: ArrayOf | SetOf | MapOf, scope: Scope, depth: int, hint: Type | None) -> Term:
        binding, inner = self.binding(scope, depth)
        element = type_.value if isinstance(type_, MapOf) else type_.element
        if isinstance(type_, MapOf):
            key = self.expression(type_.key, inner, depth)
            value = self.assignable(element, inner, depth) if hint == type_ else self.expression(element, inner, depth)
            return Term(type_, ("{", key, ": ", value, " FOR ", *binding, "}"))
        value = self.assignable(element, inner, depth) if hint == type_ else self.expression(element, inner, depth)
        opening, closing = "[]" if isinstance(type_, ArrayOf) else "{}"
        return Term(type_, (opening, value, " FOR ", *binding, closing))

    # -- records, arrays, parts of them -----------------------------------------------------------

    def array_literal(self, type_: ArrayOf, scope: Scope, depth: int, hint: Type | None) -> Term:
        """Draw an array; without an expected type, its items determine one."""
        items: list[Term] = []
        of = type_.element
        for _ in range(self.random.choice((0, 1, 1, 2, 2, 3))):
            items.append(self.assignable(of, scope, depth) if hint == type_ else self.expression(of, scope, depth))
        if not items and hint != type_:
            raise NotExpressible
        parts: list[str | Term] = ["["]
        for number, item in enumerate(items):
            parts += [", " if number else "", item]
        return Term(type_, (*parts, "]"), is_open=all(item.is_open for item in items))

    def literal_by_place(self, type_: SetOf | MapOf, scope: Scope, depth: int) -> Term:
        """Draw `[…]` where a set is expected, or `{}` where a map is."""
        if isinstance(type_, MapOf):
            return Term(type_, ("{}",))
        items = [self.assignable(type_.element, scope, depth) for _ in range(self.random.choice((0, 1, 2)))]
        parts: list[str | Term] = ["["]
        for number, item in enumerate(items):
            parts += [", " if number else "", item]
        return Term(type_, (*parts, "]"))

    def record_literal(self, type_: Record, scope: Scope, depth: int, hint: Type | None) -> Term:
        """Draw a record: in any order and without optional fields if its type is expected."""
        entries = self.record_entries(type_, scope, depth, hint)
        parts: list[str | Term] = ["{"]
        for number, (name, value) in enumerate(entries):
            parts += [", " if number else "", f"{name}: ", value]
        return Term(type_, (*parts, "}"))

    def record_entries(self, type_: Record, scope: Scope, depth: int, hint: Type | None) -> list[tuple[str, Term]]:
        if hint != type_:
            return [(name, self.expression(field, scope, depth)) for name, field in type_.fields]
        fields = [
            (name, field)
            for name, field in type_.fields
            if not isinstance(field, OptionalOf) or self.random.random() < 0.8
        ] or list(type_.fields)
        if self.random.random() < 0.3:
            self.random.shuffle(fields)
        return [(name, self.assignable(field, scope, depth)) for name, field in fields]

    def _with(self, type_: Record, scope: Scope, depth: int) -> Term:
        base = self.expression(type_, scope, depth)
        changed = self.random.sample(type_.fields, self.random.randint(1, min(2, len(type_.fields))))
        parts: list[str | Term] = [*parenthesise(base, TIGHTEST), " WITH {"]
        for number, (name, field) in enumerate(changed):
            parts += [", " if number else "", f"{name}: ", self.assignable(field, scope, depth)]
        return Term(type_, (*parts, "}"))

    def _field(self, type_: Type, scope: Scope, depth: int) -> Term:
        found = [
            (each, name)
            for each in self.pool
            if isinstance(each, Record)
            for name, field in each.fields
            if field == type_
        ]
        if not found:
            raise NotExpressible
        record, name = self.random.choice(found)
        base = self.expression(record, scope, depth)
        if base.path is not None:
            raise NotExpressible  # a path, which narrows separately
        return Term(type_, (*parenthesise(base, TIGHTEST), f".{name}"))

    def _index(self, type_: Type, scope: Scope, depth: int) -> Term:
        keys = [each.key for each in self.pool if isinstance(each, MapOf) and each.value == type_]
        if keys and self.random.random() < 0.6:
            key = self.random.choice(keys)
            base = self.expression(MapOf(key, type_), scope, depth)
            index = self.expression(key, scope, depth, key)
        else:
            base = self.expression(ArrayOf(type_), scope, depth)
            index = self.position(scope, depth)
        return Term(type_, (*parenthesise(base, TIGHTEST), "[", index, "]"))

    def position(self, scope: Scope, depth: int) -> Term:
        """Draw an index, mostly one that many arrays have."""
        if self.random.random() < 0.7:
            return Term(INTEGER, (self.random.choice("0001"),), is_open=True)
        return self.expression(INTEGER, scope, depth)


def _without_in(value: Term) -> tuple[str | Term, ...]:
    """Return the value of a LET, in parentheses if the word IN would end it."""
    return ("(", value, ")") if " IN " in str(value) else (value,)
