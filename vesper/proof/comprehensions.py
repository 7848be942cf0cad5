"""`for` expressions: unrolled over collections of known capacity, and by witness items over others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import z3

from vesper.language.ir import nodes as ir
from vesper.language.ir.failures import codes_of_expression
from vesper.proof.arithmetic import overflows
from vesper.proof.constants import are_in_order
from vesper.proof.equality import equal, is_orderable, less
from vesper.proof.evaluation import Evaluator
from vesper.proof.symbols import (
    RANGES,
    ArrayTerm,
    DecimalTerm,
    MapTerm,
    OptionalTerm,
    Scalar,
    SetTerm,
    Symbolic,
    boolean,
    default,
    listed,
    merge,
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
    choose,
    either,
    integer,
    is_less,
    is_number,
    is_same,
    larger,
    negated,
    real,
    whole,
)
from vesper.values.types import DECIMAL, DURATION, INTEGER, ArrayOf, MapOf, SetOf, Type, type_text

_SUMMED = (INTEGER, DECIMAL, DURATION)
_UNROLLED = frozenset(
    ("array", "set", "map", "forall", "exists", "sum", "count", "min", "max", "fold", "min_by", "max_by", "take_while",
     "index_by")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Round:
    """One item: whether it takes part, its key and its value."""

    is_there: Term
    items: tuple[Symbolic, ...]
    key: Symbolic | None
    value: Symbolic


def evaluate_for(evaluator: Evaluator, loop: ir.For) -> Symbolic:
    """Return the value of a `for`."""
    over = evaluator.value(loop.over)
    start = None if loop.with_ is None else evaluator.value(loop.with_)
    items = items_of(evaluator, loop, over)
    if items is not None and loop.kind in _UNROLLED and _is_supported(loop):
        return _unroll(evaluator, loop, items, start)
    from vesper.proof.witnesses import evaluate_by_witnesses

    return evaluate_by_witnesses(evaluator, loop, over, start)


def items_of(evaluator: Evaluator, loop: ir.For, over: Symbolic) -> list[tuple[Term, tuple[Symbolic, ...]]] | None:
    """Return the possible items in order, each with whether it exists; None where there may be any number."""
    bounds = evaluator.context.bounds
    most = max(bounds.max_items * 3, 12) if bounds.is_finding else bounds.max_unrolled
    if isinstance(over, ArrayTerm) and over.items is not None:
        count = len(over.items)
        if is_number(over.length):
            count = min(count, whole(over.length))
        if count <= most:
            return [(is_less(integer(n), over.length), (over.items[n],)) for n in range(count)]
    if isinstance(over, SetTerm) and over.members is not None and len(over.members) <= most:
        if _is_ordered(evaluator, loop, over.type.element, [each for _, each in over.members]):
            return [(there, (each,)) for there, each in over.members]
    if isinstance(over, MapTerm) and over.entries is not None and len(over.entries) <= most:
        if _is_ordered(evaluator, loop, over.type.key, [key for _, key, _ in over.entries]):
            return [(there, (key, value)[: len(_own_locals(loop))]) for there, key, value in over.entries]
    return None


_ANY_ORDER = frozenset(("forall", "exists", "set"))
"""Kinds that neither the order of the candidates nor a repeated one changes, where no round fails."""


def _is_ordered(evaluator: Evaluator, loop: ir.For, type_: Type, keys: list[Symbolic]) -> bool:
    """Return whether candidates are in the order of the language, or the order does not matter.

    The order of candidates that are not constants is unknown, and two of them may be equal. A search for an input
    permits more loops over them than a proof.
    """
    if are_in_order(evaluator.context, type_, keys):
        return True
    if evaluator.context.bounds.is_finding:
        return loop.kind in _ANY_ORDER or loop.kind == "count"
    parts = [each for each in (loop.where, loop.value) if each is not None]
    return loop.kind in _ANY_ORDER and not any(codes_of_expression(each) for each in parts)


def _own_locals(loop: ir.For) -> tuple[int, ...]:
    return loop.locals[:-1] if loop.kind == "fold" else loop.locals


def _is_supported(loop: ir.For) -> bool:
    if loop.kind in ("min", "max", "min_by", "max_by"):
        return is_orderable(loop.value.type)
    return loop.kind != "sum" or loop.value.type in _SUMMED


def _unroll(
    evaluator: Evaluator, loop: ir.For, items: list[tuple[Term, tuple[Symbolic, ...]]], start: Symbolic | None
) -> Symbolic:
    rounds: list[Round] = []
    combine = _COMBINED.get(loop.kind)
    state = _State(evaluator, loop, start)
    for there, parts in items:
        entered = both(there, state.goes_on)
        if z3.is_false(entered):
            continue

        def evaluate(parts: tuple[Symbolic, ...] = parts, entered: Term = entered) -> Round | None:
            bind(evaluator, loop, parts, state.value)
            is_there = TRUE
            if loop.where is not None:
                is_there = evaluator.truth(loop.where)
                evaluator.condition(loop.where.index, is_there)
            if z3.is_false(is_there):
                return None

            def rest() -> Round:
                key = None if loop.key is None else evaluator.value(loop.key)
                found = Round(both(entered, is_there), parts, key, evaluator.value(loop.value))
                state.take(found, rounds)
                return found

            return evaluator.where(is_there, rest)

        found = evaluator.where(entered, evaluate)
        if found is not None:
            rounds.append(found)
    return state.result(rounds) if combine is None else combine(evaluator, loop, rounds)


def bind(evaluator: Evaluator, loop: ir.For, parts: tuple[Symbolic, ...], state: Symbolic | None) -> None:
    for number, part in zip(_own_locals(loop), parts, strict=False):
        evaluator.names.locals[number] = part
    if loop.kind == "fold":
        assert state is not None
        evaluator.names.locals[loop.locals[-1]] = state


class _State:
    """The state of a `for` between two items."""

    def __init__(self, evaluator: Evaluator, loop: ir.For, start: Symbolic | None) -> None:
        self._evaluator = evaluator
        self._loop = loop
        self.goes_on: Term = TRUE
        self.value: Symbolic | None = start
        match loop.kind:
            case "forall" | "exists":
                self.value = boolean(TRUE if loop.kind == "forall" else FALSE)
            case "count":
                self.value = Scalar(INTEGER, ZERO)
            case "sum":
                self.value = DecimalTerm(real(0), ZERO) if loop.type == DECIMAL else Scalar(loop.type, ZERO)

    def take(self, found: Round, rounds: list[Round]) -> None:
        """Add the round of one item to the state, under the condition that the item takes part."""
        context, value = self._evaluator.context, found.value
        match self._loop.kind:
            case "forall" | "exists":
                assert isinstance(value, Scalar)
                ends = negated(value.term) if self._loop.kind == "forall" else value.term
                ended = both(found.is_there, ends)
                self.goes_on = both(self.goes_on, negated(ended))
            case "take_while":
                assert isinstance(value, Scalar)
                self.goes_on = both(self.goes_on, negated(both(found.is_there, negated(value.term))))
            case "count":
                assert isinstance(self.value, Scalar)
                self.value = Scalar(INTEGER, add(self.value.term, choose(found.is_there, integer(1), ZERO)))
            case "sum":
                self._add(found)
            case "fold":
                assert self.value is not None
                self.value = merge(context, found.is_there, value, self.value)
            case "map" | "index_by":
                own = found.key if self._loop.kind == "map" else value
                assert own is not None
                keys = [(each.is_there, each.key if self._loop.kind == "map" else each.value) for each in rounds]
                again = [both(there, equal(context, own, key)) for there, key in keys if key is not None]
                self._evaluator.fail(self._loop.index, "duplicate_key", either(*again), "for")

    def _add(self, found: Round) -> None:
        evaluator, loop = self._evaluator, self._loop
        if isinstance(found.value, DecimalTerm):
            assert isinstance(self.value, DecimalTerm)
            total = add(self.value.value, found.value.value)
            scale = larger(self.value.scale, found.value.scale)
            evaluator.fail(loop.index, "decimal_overflow", overflows(evaluator.context, total, scale), "sum")
            added: Symbolic = DecimalTerm(total, scale)
        else:
            assert isinstance(self.value, Scalar)
            assert isinstance(found.value, Scalar)
            term = add(self.value.term, found.value.term)
            low, high = RANGES[loop.type]
            code = "integer_overflow" if loop.type == INTEGER else "time_overflow"
            outside = either(is_less(term, integer(low)), is_less(integer(high), term))
            evaluator.fail(loop.index, code, outside, "sum")
            added = Scalar(loop.type, term)
        self.value = merge(evaluator.context, found.is_there, added, self.value)

    def result(self, rounds: list[Round]) -> Symbolic:
        match self._loop.kind:
            case "forall":
                return boolean(self.goes_on)
            case "exists":
                return boolean(negated(self.goes_on))
            case _:
                assert self.value is not None
                return self.value


def _build_array(evaluator: Evaluator, loop: ir.For, rounds: list[Round]) -> Symbolic:
    assert isinstance(loop.type, ArrayOf)
    return compact(evaluator, loop.type, [(each.is_there, each.value) for each in rounds])


def compact(evaluator: Evaluator, type_: ArrayOf, candidates: list[tuple[Term, Symbolic]]) -> ArrayTerm:
    """Return the array of the candidates that are there, in order."""
    context = evaluator.context
    before: Term = ZERO
    places: list[Term] = []
    is_prefix = True
    for n, (there, _) in enumerate(candidates):
        places.append(before)
        is_prefix = is_prefix and (n == 0 or candidates[n - 1][0].eq(there) or _follows(candidates[n - 1][0], there))
        before = add(before, choose(there, integer(1), ZERO))
    if is_prefix:
        return listed(context, type_, before, tuple(value for _, value in candidates))
    items = []
    for position in range(len(candidates)):
        found = candidates[-1][1]
        for n in range(len(candidates) - 2, position - 1, -1):
            there, value = candidates[n]
            found = merge(context, both(there, is_same(places[n], integer(position))), value, found)
        items.append(found)
    return listed(context, type_, before, tuple(items))


def _follows(earlier: Term, later: Term) -> bool:
    """Return whether `later` visibly implies `earlier`.

    Either `earlier` is true, or both compare a constant index with the same length.
    """
    if z3.is_true(earlier):
        return True
    if not (z3.is_lt(earlier) and z3.is_lt(later) and earlier.arg(1).eq(later.arg(1))):
        return False
    first, second = earlier.arg(0), later.arg(0)
    return is_number(first) and is_number(second) and whole(first) <= whole(second)


def _take_while(evaluator: Evaluator, loop: ir.For, rounds: list[Round]) -> Symbolic:
    """Return the items until the first for which the value is false."""
    assert isinstance(loop.type, ArrayOf)
    kept = []
    for each in rounds:
        assert isinstance(each.value, Scalar)
        kept.append((both(each.is_there, each.value.term), each.items[0]))
    return compact(evaluator, loop.type, kept)


def _best(evaluator: Evaluator, loop: ir.For, rounds: list[Round]) -> Symbolic:
    """Return the first of the smallest or largest values, or the item that has it."""
    context = evaluator.context
    is_least = loop.kind.startswith("min")
    is_by = loop.kind.endswith("_by")
    none: Term = TRUE
    best: tuple[Symbolic, Symbolic] | None = None
    for each in rounds:
        if best is None:
            best, none = (each.value, each.items[0]), negated(each.is_there)
            continue
        first = less(context, each.value, best[0]) if is_least else less(context, best[0], each.value)
        assert first is not None
        wins = both(each.is_there, either(none, first))
        best = merge(context, wins, each.value, best[0]), merge(context, wins, each.items[0], best[1])
        none = both(none, negated(each.is_there))
    if not is_by:
        evaluator.fail(loop.index, "empty_collection", none, loop.kind)
        return symbol(context, loop.type, "no value") if best is None else best[0]
    item = default(context, loop.type) if best is None else best[1]
    if isinstance(item, OptionalTerm):
        return OptionalTerm(item.type, either(none, item.is_null), item.value)
    from vesper.values.types import OptionalOf

    return OptionalTerm(OptionalOf(item.type), none, item)


def _set_of(evaluator: Evaluator, loop: ir.For, rounds: list[Round]) -> Symbolic:
    assert isinstance(loop.type, SetOf)
    members = tuple((each.is_there, each.value) for each in rounds)
    return SetTerm(loop.type, _collection_term(evaluator, loop, members), members)


def _map_of(evaluator: Evaluator, loop: ir.For, rounds: list[Round]) -> Symbolic:
    assert isinstance(loop.type, MapOf)
    entries = []
    for each in rounds:
        key = each.key if loop.kind == "map" else each.value
        assert key is not None
        entries.append((each.is_there, key, each.value if loop.kind == "map" else each.items[0]))
    flat = tuple((there, part) for there, key, value in entries for part in (key, value))
    return MapTerm(loop.type, _collection_term(evaluator, loop, flat), tuple(entries))


def _collection_term(evaluator: Evaluator, loop: ir.For, parts: tuple[tuple[Term, Symbolic], ...]) -> Term:
    """Return the term of a whole set or map, a function of its parts."""
    from vesper.proof.symbols import components

    context = evaluator.context
    args: list[Term] = []
    for there, each in parts:
        args += [there, *components(context, each, there)]
    return context.apply(
        f"{len(parts)} in {type_text(loop.type, has_outside=False)}", args, sort_of(context, loop.type)
    )


_COMBINED: dict[str, Callable[[Evaluator, ir.For, list[Round]], Symbolic]] = {
    "array": _build_array,
    "take_while": _take_while,
    "min": _best,
    "max": _best,
    "min_by": _best,
    "max_by": _best,
    "set": _set_of,
    "map": _map_of,
    "index_by": _map_of,
}
