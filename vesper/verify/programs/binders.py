"""Functions with FOR in random expressions: sorting, grouping, folding, unbracketed arrays."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from vesper.values.types import BOOLEAN, DECIMAL, INTEGER, ArrayOf, MapOf, OptionalOf, SetOf, Type, is_key, is_ordered
from vesper.verify.programs.comparisons import Comparisons
from vesper.verify.programs.forms import Producer
from vesper.verify.programs.terms import NotExpressible, Scope, Term

_SORTED = ("sort_by",)
_BY_CONDITION = ("take_while", "drop_while")


class BinderForms(Comparisons):
    """Forms whose result consists of the items of a collection, and `fold`."""

    def binder_forms(self, type_: Type, scope: Scope, depth: int, hint: Type | None) -> Iterator[Producer]:
        yield 0.25, partial(self._fold, type_, scope, depth, hint)
        if type_ == DECIMAL:
            yield 0.4, partial(self.aggregate, "AVG", self.random.choice((INTEGER, DECIMAL)), scope, depth, DECIMAL)
        match type_:
            case ArrayOf(item):
                yield 0.5, partial(self._of_items, "sort_by", item, self._ordered(), type_, scope, depth)
                yield 0.5, partial(self._of_items, "distinct_by", item, self.any_type(), type_, scope, depth)
                for word in _BY_CONDITION:
                    yield 0.4, partial(self._of_items, word, item, BOOLEAN, type_, scope, depth)
            case OptionalOf(item):
                word = self.random.choice(("min_by", "max_by"))
                yield 0.8, partial(self._of_items, word, item, self._ordered(), type_, scope, depth)
            case MapOf(key, value):
                yield from self._maps(type_, key, value, scope, depth)
            case _:
                pass

    def _maps(self, type_: MapOf, key: Type, value: Type, scope: Scope, depth: int) -> Iterator[Producer]:
        yield 0.7, partial(self._of_items, "index_by", value, key, type_, scope, depth)
        if isinstance(value, ArrayOf):
            yield 4.0, partial(self._of_items, "group_by", value.element, key, type_, scope, depth)
        if value == INTEGER:
            yield 4.0, partial(self._of_items, "count_by", self.any_type(), key, type_, scope, depth)

    def _ordered(self) -> Type:
        return self.random.choice([each for each in self.pool if is_ordered(each)])

    def _of_items(self, word: str, item: Type, value: Type, type_: Type, scope: Scope, depth: int) -> Term:
        """Draw `sort_by(key FOR x IN xs, descending)`; a map is iterated by its keys."""
        over: list[Type] = [ArrayOf(item), ArrayOf(item)]
        if is_key(item):
            over += [SetOf(item), MapOf(item, self.any_type())]
        binding, inner = self.binding(scope, depth, self.random.choice(over), one_name=True)
        computed = self.expression(value, inner, depth, BOOLEAN if word in _BY_CONDITION else None)
        order = self.random.choice(("", ", ascending", ", descending", ", 'descending'")) if word in _SORTED else ""
        return Term(type_, (f"{word}(", computed, " FOR ", *binding, order, ")"))

    def _fold(self, type_: Type, scope: Scope, depth: int, hint: Type | None) -> Term:
        initial = self.expression(type_, scope, depth, hint)
        name, known = self.bind(scope, type_)
        binding, inner = self.binding(known, depth, outer=scope)
        value = self.expression(type_, inner, depth)
        return Term(type_, ("fold(", value, " FOR ", *binding, f", {name} = ", initial, ")"))

    def array_argument(self, type_: ArrayOf, scope: Scope, depth: int) -> tuple[str | Term, ...]:
        """Draw the first argument of an array function as `x.name FOR x IN xs`."""
        if self.random.random() < 0.8:
            raise NotExpressible
        binding, inner = self.binding(scope, depth)
        return (self.expression(type_.element, inner, depth), " FOR ", *binding)
