"""`for` expressions over collections of any length: uninterpreted functions with facts about witness items.

The result is named by the terms of one round, with everything that does not depend on the item as an operand, so that
equal computations have equal results. Facts tie it to items: a FORALL that is false has an item that breaks it, one
that is true holds for every item that is read elsewhere; a negative sum has a negative term.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import z3

from vesper.language.ir import nodes as ir
from vesper.proof.comprehensions import bind
from vesper.proof.context import ABSTRACT
from vesper.proof.equality import at_most, equal, is_orderable, same
from vesper.proof.evaluation import Evaluator, Failure
from vesper.proof.operations.keyed import keys_of, look_up
from vesper.proof.symbols import (
    ArrayTerm,
    DecimalTerm,
    MapTerm,
    OptionalTerm,
    RecordTerm,
    Scalar,
    SetTerm,
    Symbolic,
    boolean,
    components,
    sort_of,
    symbol,
)
from vesper.proof.terms import (
    FALSE,
    TRUE,
    ZERO,
    Term,
    add,
    both,
    either,
    implied,
    is_number,
    is_same,
    negated,
)
from vesper.values.model import MAX_INTEGER
from vesper.values.types import DECIMAL, FLOAT, INTEGER, ArrayOf, OptionalOf, Record

_ENDS_EARLY = frozenset(("forall", "exists", "take_while", "drop_while"))
_OWN_CODES = {"map": ("duplicate_key",), "index_by": ("duplicate_key",)}


def evaluate_by_witnesses(evaluator: Evaluator, loop: ir.For, over: Symbolic, start: Symbolic | None) -> Symbolic:
    """Return the value of a `for` over a collection of any length."""
    array = _array_of(evaluator, loop, over)
    evaluator.note(loop.index, f"a {loop.kind} over a collection of any length")
    return _Abstracted(evaluator, loop, array, start).result()


def _array_of(evaluator: Evaluator, loop: ir.For, over: Symbolic) -> ArrayTerm:
    """Return the items as an array; those of a map with two locals are pairs."""
    if isinstance(over, ArrayTerm):
        return over
    assert isinstance(over, SetTerm | MapTerm)
    keys = keys_of(evaluator.context, over)
    if isinstance(over, SetTerm) or len(loop.locals) - (loop.kind == "fold") < 2:
        return keys
    context, entries = evaluator.context, over
    pair = Record((("key", entries.type.key), ("value", entries.type.value)))

    def read(index: Term) -> Symbolic:
        key = keys.at(context, index)
        has, value = look_up(context, entries, key)
        context.assume(implied(keys.has(index), has))
        return RecordTerm(pair, {"key": key, "value": value})

    return ArrayTerm(ArrayOf(pair), keys.length, read, lambda: over.identity)


@dataclass(frozen=True, slots=True)
class _Round:
    """One round at a position: whether the item takes part, its key and value, and its failures."""

    is_there: Term
    key: Symbolic | None
    value: Symbolic
    failures: tuple[Failure, ...]

    @property
    def fails(self) -> Term:
        return either(*(each.guard for each in self.failures))


class _Abstracted:
    """One `for`, its name, and its facts."""

    def __init__(self, evaluator: Evaluator, loop: ir.For, array: ArrayTerm, start: Symbolic | None) -> None:
        self._evaluator = evaluator
        self._context = evaluator.context
        self._loop = loop
        self._array = array
        self._names = evaluator.names.copy()
        self._rounds: dict[int, tuple[Term, _Round]] = {}
        level = evaluator.nesting
        self._index = z3.Const(f"item of level {level}", z3.IntSort())
        self._state: Symbolic | None = None
        if loop.kind == "fold":
            self._state = symbol(self._context, loop.type, f"state of level {level}")
        generic = self.at(self._index)
        self._generic = generic
        self._record()
        own: list[Term] = [] if start is None else components(self._context, start)
        parts = [generic.is_there, *components(self._context, generic.value)]
        parts += [] if generic.key is None else components(self._context, generic.key)
        for each in generic.failures:
            parts += [each.guard, each.code]
        generic_terms = [self._index, *([] if self._state is None else components(self._context, self._state))]
        key, operands = name_of(parts, generic_terms)
        kind = f"{loop.kind} {loop.type!r} {loop.value.type!r} {loop.where is None} {len(generic.failures)}"
        self._key = hashlib.sha256(f"{kind}\n{key}".encode()).hexdigest()[:24]
        self._operands = [*own, *operands, array.identity]
        self._fails = self._failure()

    # -- rounds ------------------------------------------------------------------------------------

    def at(self, index: Term) -> _Round:
        """Return the round at a position."""
        found = self._rounds.get(index.get_id())
        if found is None:
            found = self._rounds[index.get_id()] = (
                index,
                self._round(self._evaluator.inner(self._names.copy()), index),
            )
        return found[1]

    def _round(self, inner: Evaluator, index: Term) -> _Round:
        item = self._array.at(self._context, index)
        loop = self._loop
        is_pair = isinstance(item, RecordTerm) and len(loop.locals) - (loop.kind == "fold") == 2
        parts = tuple(item.fields.values()) if is_pair and isinstance(item, RecordTerm) else (item,)
        bind(inner, loop, parts, self._state)
        is_there = TRUE
        if loop.where is not None:
            is_there = inner.truth(loop.where)
            inner.condition(loop.where.index, is_there)
        key, value = inner.where(is_there, lambda: self._key_and_value(inner))
        return _Round(is_there, key, value, tuple(inner.failures))

    def _key_and_value(self, inner: Evaluator) -> tuple[Symbolic | None, Symbolic]:
        key = None if self._loop.key is None else inner.value(self._loop.key)
        return key, inner.value(self._loop.value)

    def _record(self) -> None:
        """Record the checks and conditions of a round at any position."""
        recorder = self._evaluator.recorder
        if recorder is None:
            return
        inner = self._evaluator.inner(self._names.copy(), recorder)
        inner.alive = both(self._evaluator.alive, self._array.has(self._index))
        self._round(inner, self._index)

    # -- names -------------------------------------------------------------------------------------

    def _function(self, what: str, sort: Term, *more: Term) -> Term:
        return self._context.apply(f"{ABSTRACT}{what} of {self._key}", (*self._operands, *more), sort)

    def _truth(self, what: str) -> Term:
        return self._function(what, z3.BoolSort())

    def _place(self, what: str) -> Term:
        return self._function(f"place of {what}", z3.IntSort())

    def _symbol(self) -> Symbolic:
        return symbol(self._context, self._loop.type, f"{ABSTRACT}{self._key}", self._operands)

    def _for_all(self, fact: Callable[[Term], Term]) -> None:
        self._array.hold_for_all(self._context, fact)

    # -- facts -------------------------------------------------------------------------------------

    def _failure(self) -> Term:
        """Return whether a round fails; adds the failure."""
        generic = self._generic
        if not generic.failures:
            return FALSE
        found = self._truth("failure")
        codes = sorted({str(each.code) for each in generic.failures})
        code = generic.failures[0].code if len(codes) == 1 else self._function("code", z3.IntSort())
        if self._loop.kind != "fold":
            place = self._place("failure")
            at_place = self.at(place)
            happens = either(*(both(each.guard, is_same(each.code, code)) for each in at_place.failures))
            self._context.assume(implied(found, both(self._array.has(place), happens)))
            if self._loop.kind not in _ENDS_EARLY:
                self._for_all(
                    lambda index: implied(both(negated(found), self._array.has(index)), negated(self.at(index).fails))
                )
        elif len(codes) > 1:
            self._context.assume(either(*(is_same(code, each.code) for each in generic.failures)))
        self._raise(found, code)
        return found

    def _raise(self, condition: Term, code: Term) -> None:
        evaluator = self._evaluator
        guard = both(evaluator.alive, condition)
        if not z3.is_false(guard):
            evaluator.failures.append(Failure(guard, code, self._loop.index))
            evaluator.alive = both(evaluator.alive, negated(condition))

    @property
    def _is_whole(self) -> Term:
        """Whether no round fails. Facts hold only then: values after a failure may be outside of their types."""
        return negated(self._fails)

    def _there(self, index: Term) -> Term:
        return both(self._array.has(index), self.at(index).is_there)

    def result(self) -> Symbolic:
        for code in _OWN_CODES.get(self._loop.kind, ()):
            self._evaluator.fail(self._loop.index, code, self._truth(f"{code}"), "for")
        match self._loop.kind:
            case "forall" | "exists":
                return self._quantified()
            case "array":
                return self._built()
            case "sum":
                return self._sum()
            case "count":
                return Scalar(INTEGER, self._count("count"))
            case "min" | "max" | "min_by" | "max_by":
                return self._best()
            case "avg":
                self._evaluator.fail(self._loop.index, "empty_collection", self._none(), "avg")
                if self._loop.type != FLOAT:
                    overflow = self._truth("overflow")
                    self._evaluator.fail(self._loop.index, "decimal_overflow", overflow, "avg")
                return self._average()
            case "sort_by" | "distinct_by":
                return self._chosen()
            case "take_while" | "drop_while":
                return self._part()
            case "map" | "index_by" | "count_by":
                return self._keyed()
            case _:
                return self._symbol()

    def _quantified(self) -> Symbolic:
        is_all = self._loop.kind == "forall"
        place = self._place("item that decides")
        holds = self._truth("truth")
        is_whole = self._is_whole

        def value(index: Term) -> Term:
            found = self.at(index).value
            assert isinstance(found, Scalar)
            return found.term if is_all else negated(found.term)

        decided = negated(holds) if is_all else holds
        self._context.assume(implied(both(is_whole, decided), both(self._there(place), negated(value(place)))))

        def fact(index: Term) -> Term:
            return implied(
                both(is_whole, negated(decided), self._there(index)), both(value(index), negated(self.at(index).fails))
            )

        self._for_all(fact)
        return boolean(holds)

    def _count(self, what: str) -> Term:
        """Return the number of items that take part."""
        if self._loop.where is None:
            return self._array.length
        count = self._function(what, z3.IntSort())
        some, other = self._place("item that counts"), self._place("item that does not count")
        length, is_whole = self._array.length, self._is_whole
        self._context.assume(
            count >= 0,
            implied(is_whole, count <= length),
            implied(both(is_whole, count > 0), self._there(some)),
            implied(both(is_whole, count < length), both(self._array.has(other), negated(self.at(other).is_there))),
        )
        self._for_all(
            lambda index: both(
                implied(both(is_whole, self._there(index)), count > 0),
                implied(both(is_whole, self._array.has(index), negated(self.at(index).is_there)), count < length),
            )
        )
        return count

    def _none(self) -> Term:
        """Return whether no item takes part."""
        return is_same(self._count("count"), ZERO)

    def _built(self) -> Symbolic:
        loop, context = self._loop, self._context
        assert isinstance(loop.type, ArrayOf)
        identity = self._function("array", sort_of(context, loop.type))
        if loop.where is None:
            return ArrayTerm(loop.type, self._array.length, lambda index: self.at(index).value, lambda: identity)
        length = self._count("count")

        def read(index: Term) -> Symbolic:
            place = self._function("source", z3.IntSort(), index)
            is_item = both(self._is_whole, index >= 0, index < length)
            context.assume(implied(is_item, self._there(place)))
            return self.at(place).value

        return ArrayTerm(loop.type, length, read, lambda: identity)

    def _sum(self) -> Symbolic:
        loop, context = self._loop, self._context
        found = self._symbol()
        if loop.type == FLOAT:
            return found
        is_decimal = loop.type == DECIMAL
        number = found.value if isinstance(found, DecimalTerm) else found.term  # type: ignore[union-attr]
        code = "decimal_overflow" if is_decimal else "integer_overflow" if loop.type == INTEGER else "time_overflow"
        overflow = self._truth("overflow")
        large = self._place("large item")
        if loop.type == INTEGER:
            size = _number_of(self.at(large).value)
            least = MAX_INTEGER // 1_000_000
            context.assume(
                implied(both(self._is_whole, overflow), both(self._there(large), either(size > least, size < -least))),
                implied(
                    both(self._is_whole, overflow, self._array.length <= 1000),
                    either(size > least * 1000, size < -least * 1000),
                ),
            )
        self._evaluator.fail(loop.index, code, overflow, "sum")
        whole = both(self._is_whole, negated(overflow))
        low, high = self._place("negative item"), self._place("positive item")

        def value(index: Term) -> Term:
            return _number_of(self.at(index).value)

        some = self._place("item")
        is_empty = self._none()
        context.assume(
            implied(both(whole, number < 0), both(self._there(low), value(low) < 0)),
            implied(both(whole, number > 0), both(self._there(high), value(high) > 0)),
            implied(both(whole, is_empty), number == 0),
            implied(negated(is_empty), TRUE if z3.is_true(is_empty) else self._array.has(some)),
        )
        if isinstance(found, DecimalTerm):
            context.assume(implied(both(whole, is_empty), found.scale == 0))
            self._know_scale(found, whole)

        def fact(index: Term) -> Term:
            there = both(whole, self._there(index))
            return both(
                implied(there, either(number >= value(index), both(self._there(low), value(low) < 0))),
                implied(there, either(number <= value(index), both(self._there(high), value(high) > 0))),
            )

        self._for_all(fact)
        return found

    def _know_scale(self, found: DecimalTerm, whole: Term) -> None:
        """Add facts about the scale of a sum: it is zero or that of an item, and no item has a larger one."""
        widest = self._place("item of the largest scale")
        at_widest = self.at(widest).value
        assert isinstance(at_widest, DecimalTerm)
        is_of_item = both(self._there(widest), is_same(found.scale, at_widest.scale))
        self._context.assume(implied(whole, either(found.scale == 0, is_of_item)))

        def fact(index: Term) -> Term:
            item = self.at(index).value
            assert isinstance(item, DecimalTerm)
            return implied(both(whole, self._there(index)), item.scale <= found.scale)

        self._for_all(fact)

    def _best(self) -> Symbolic:
        loop, context = self._loop, self._context
        is_by, is_least = loop.kind.endswith("_by"), loop.kind.startswith("min")
        none = self._none()
        place = self._place("best item")
        if not is_by:
            self._evaluator.fail(loop.index, "empty_collection", none, loop.kind)
        best = self.at(place).value
        is_whole = both(self._is_whole, negated(none))
        context.assume(implied(is_whole, self._there(place)))
        if is_orderable(loop.value.type):

            def fact(index: Term) -> Term:
                value = self.at(index).value
                ordered = at_most(context, best, value) if is_least else at_most(context, value, best)
                return TRUE if ordered is None else implied(both(is_whole, self._there(index)), ordered)

            self._for_all(fact)
        if not is_by:
            return best
        item = self._array.at(context, place)
        if isinstance(item, OptionalTerm):
            return OptionalTerm(item.type, either(none, item.is_null), item.value)
        return OptionalTerm(OptionalOf(item.type), none, item)

    def _average(self) -> Symbolic:
        """Return an average: no item is larger than all, none smaller."""
        found = self._symbol()
        if not isinstance(found, DecimalTerm):
            return found
        low, high = self._place("smaller item"), self._place("larger item")
        whole = both(self._is_whole, negated(self._none()))
        lower, higher = _as_real(self.at(low).value), _as_real(self.at(high).value)
        # SEMANTICS: the average is rounded to 34 digits; the sign is exact.
        self._context.assume(
            implied(both(whole, found.value < 0), both(self._there(low), lower < 0)),
            implied(both(whole, found.value > 0), both(self._there(high), higher > 0)),
        )
        return found

    def _chosen(self) -> Symbolic:
        """Return an array of the items in another order, or of some of them."""
        loop, context = self._loop, self._context
        assert isinstance(loop.type, ArrayOf)
        identity = self._function("array", sort_of(context, loop.type))
        length = self._count("count")
        if loop.kind == "distinct_by":
            length, before = self._function("distinct", z3.IntSort()), length
            is_whole = self._is_whole
            context.assume(
                length >= 0,
                implied(is_whole, both(length <= before, is_same(is_same(length, ZERO), is_same(before, ZERO)))),
            )

        def read(index: Term) -> Symbolic:
            place = self._function("source", z3.IntSort(), index)
            context.assume(implied(both(self._is_whole, index >= 0, index < length), self._there(place)))
            return self._array.at(context, place)

        return ArrayTerm(loop.type, length, read, lambda: identity)

    def _keyed(self) -> Symbolic:
        """Return a map whose entries come from items that take part."""
        loop, context = self._loop, self._context
        found = self._symbol()
        assert isinstance(found, MapTerm)

        def know(key: Symbolic, has: Term, value: Symbolic) -> None:
            place = self._function("place of key", z3.IntSort(), *components(context, key))
            entry = self.at(place)
            own = entry.value if entry.key is None else entry.key
            if loop.kind == "count_by":
                assert isinstance(value, Scalar)
                fits = both(value.term >= 1, value.term <= self._array.length)
            else:
                fits = same(context, value, entry.value if entry.key is not None else self._array.at(context, place))
            from_item = both(self._there(place), equal(context, key, own), fits)
            context.assume(implied(both(self._is_whole, has), from_item))

        if found.entries is None:
            context.entry_facts[found.identity.get_id()] = (found.identity, know)
        for is_there, key, value in found.entries or ():
            know(key, is_there, value)
        return found

    def _part(self) -> Symbolic:
        """Return the items before, or from, the first for which the value is false."""
        loop, context = self._loop, self._context
        if loop.where is not None:
            return self._symbol()
        assert isinstance(loop.type, ArrayOf)
        identity = self._function("array", sort_of(context, loop.type))
        place = self._place("first item without")
        length, is_whole = self._array.length, self._is_whole

        def value(index: Term) -> Term:
            found = self.at(index).value
            assert isinstance(found, Scalar)
            return found.term

        context.assume(
            place >= 0,
            implied(is_whole, place <= length),
            implied(both(is_whole, place < length), negated(value(place))),
        )
        self._for_all(lambda index: implied(both(is_whole, self._array.has(index), index < place), value(index)))
        if loop.kind == "take_while":
            return ArrayTerm(loop.type, place, lambda index: self._array.at(context, index), lambda: identity)
        return ArrayTerm(
            loop.type, length - place, lambda index: self._array.at(context, add(index, place)), lambda: identity
        )


def _number_of(value: Symbolic) -> Term:
    if isinstance(value, DecimalTerm):
        return value.value
    assert isinstance(value, Scalar)
    return value.term


def _as_real(value: Symbolic) -> Term:
    from vesper.proof.terms import as_real

    return as_real(_number_of(value))


def name_of(terms: Sequence[Term], generic: Sequence[Term]) -> tuple[str, list[Term]]:
    """Return a text of terms over generic constants, and the largest parts that are free of them.

    Terms that differ only in these parts have equal texts.
    """
    own = {each.get_id() for each in generic}
    depends: dict[int, bool] = {}
    names: dict[int, str] = {}
    lines: list[str] = []
    operands: list[Term] = []
    simplified = [z3.simplify(each) for each in terms]
    for root in simplified:
        _mark(root, own, depends)
        _describe(root, depends, own, names, lines, operands)
    lines.append(" ".join(names[root.get_id()] for root in simplified))
    return "\n".join(lines), operands


def _mark(root: Term, own: set[int], depends: dict[int, bool]) -> None:
    """Note for every part of a term whether it depends on a generic constant."""
    waiting = [root]
    while waiting:
        term = waiting[-1]
        children = term.children()
        missing = [each for each in children if each.get_id() not in depends]
        if missing and term.get_id() not in depends:
            waiting += missing
            continue
        waiting.pop()
        depends[term.get_id()] = term.get_id() in own or any(depends[each.get_id()] for each in children)


def _describe(
    root: Term,
    depends: dict[int, bool],
    own: set[int],
    names: dict[int, str],
    lines: list[str],
    operands: list[Term],
) -> None:
    waiting = [root]
    while waiting:
        term = waiting[-1]
        key = term.get_id()
        if key in names:
            waiting.pop()
            continue
        if not depends[key]:
            waiting.pop()
            if is_number(term) or z3.is_true(term) or z3.is_false(term):
                names[key] = f"{term.sort()}:{term}"
            else:
                names[key] = f"#{len(operands)}:{term.sort()}"
                operands.append(term)
            continue
        children = [] if key in own else term.children()
        missing = [each for each in children if each.get_id() not in names]
        if missing:
            waiting += reversed(missing)
            continue
        waiting.pop()
        names[key] = f"n{len(names)}"
        declaration = term.decl()
        head = f"{declaration.name()} {declaration.kind()} {term.sort()}"
        lines.append(f"{names[key]} = {head} {' '.join(names[each.get_id()] for each in children)}")
