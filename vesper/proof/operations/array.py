"""Encodings of arrays: lengths, and items by position."""

from __future__ import annotations

from vesper.proof.context import ABSTRACT
from vesper.proof.equality import equal
from vesper.proof.operations.operation import Operation, encodes
from vesper.proof.symbols import (
    ArrayTerm,
    OptionalTerm,
    RecordTerm,
    Scalar,
    Symbolic,
    boolean,
    components,
    fixed_array,
    listed,
    merge,
    sort_of,
    symbol,
)
from vesper.proof.terms import (
    FALSE,
    ZERO,
    Term,
    add,
    both,
    either,
    implied,
    integer,
    is_at_most,
    is_less,
    is_number,
    is_same,
    larger,
    negated,
    smaller,
    subtract,
    whole,
)
from vesper.values.model import MAX_ENTRIES
from vesper.values.types import INTEGER, ArrayOf, OptionalOf, Record

_MAX_RANGE = 64


def _identity(operation: Operation) -> Term:
    """Return the term of the whole result, a function of the operands."""
    args = [term for each in operation.args for term in components(operation.context, each)]
    return operation.context.apply(operation.call.op, args, sort_of(operation.context, operation.call.type))


def _array(operation: Operation, length: Term, read: object) -> ArrayTerm:
    assert isinstance(operation.call.type, ArrayOf)
    return ArrayTerm(operation.call.type, length, read, lambda: _identity(operation))  # type: ignore[arg-type]


@encodes("array.length", "array.count")
def _length(operation: Operation) -> Symbolic:
    return Scalar(INTEGER, operation.array(0).length)


def outside(array: ArrayTerm, index: Term) -> Term:
    return either(is_less(index, ZERO), is_at_most(array.length, index))


@encodes("array.at")
def _at(operation: Operation) -> Symbolic:
    array, index = operation.array(0), operation.term(1)
    operation.fail("index_out_of_range", outside(array, index))
    return array.at(operation.context, index)


def _optional_item(operation: Operation, index: Term) -> Symbolic:
    array = operation.array(0)
    item = array.at(operation.context, index)
    missing = outside(array, index)
    if isinstance(item, OptionalTerm):
        return OptionalTerm(item.type, either(missing, item.is_null), item.value)
    return OptionalTerm(OptionalOf(item.type), missing, item)


@encodes("array.get")
def _get(operation: Operation) -> Symbolic:
    return _optional_item(operation, operation.term(1))


@encodes("array.first")
def _first(operation: Operation) -> Symbolic:
    return _optional_item(operation, ZERO)


@encodes("array.last")
def _last(operation: Operation) -> Symbolic:
    return _optional_item(operation, subtract(operation.array(0).length, integer(1)))


@encodes("array.append")
def _append(operation: Operation) -> Symbolic:
    array, value, context = operation.array(0), operation.args[1], operation.context
    length = add(array.length, integer(1))
    operation.fail("too_large", is_less(integer(MAX_ENTRIES), length))
    if array.items is not None:
        items = [
            merge(context, is_same(integer(n), array.length), value, array.items[n]) for n in range(len(array.items))
        ]
        return listed(context, array.type, length, (*items, value))
    return _array(
        operation, length, lambda index: merge(context, is_less(index, array.length), array.at(context, index), value)
    )


@encodes("array.concat")
def _concat(operation: Operation) -> Symbolic:
    left, right, context = operation.array(0), operation.array(1), operation.context
    length = add(left.length, right.length)
    operation.fail("too_large", is_less(integer(MAX_ENTRIES), length))

    def read(index: Term) -> Symbolic:
        first = left.at(context, index) if left.items != () else None
        second = right.at(context, subtract(index, left.length)) if right.items != () else None
        if first is None or second is None:
            found = first if second is None else second
            return found if found is not None else symbol(context, left.type.element, "no item")
        return merge(context, is_less(index, left.length), first, second)

    if left.items is not None and right.items is not None:
        most = len(left.items) + len(right.items)
        return listed(context, left.type, length, tuple(read(integer(index)) for index in range(most)))
    return _array(operation, length, read)


@encodes("array.take")
def _take(operation: Operation) -> Symbolic:
    array, count = operation.array(0), operation.term(1)
    operation.fail("invalid_argument", is_less(count, ZERO))
    length = smaller(larger(count, ZERO), array.length)
    if array.items is not None:
        return listed(operation.context, array.type, length, array.items)
    return _array(operation, length, lambda index: array.at(operation.context, index))


@encodes("array.drop")
def _drop(operation: Operation) -> Symbolic:
    array, count = operation.array(0), operation.term(1)
    operation.fail("invalid_argument", is_less(count, ZERO))
    start = smaller(larger(count, ZERO), array.length)
    return _sliced(operation, array, start, subtract(array.length, start), lambda: _identity(operation))


def _sliced(operation: Operation, array: ArrayTerm, start: Term, length: Term, name: object) -> Symbolic:
    context = operation.context

    def read(index: Term) -> Symbolic:
        return array.at(context, add(index, start))

    if array.items is not None:
        return listed(context, array.type, length, tuple(read(integer(n)) for n in range(len(array.items))))
    return ArrayTerm(array.type, length, read, name)  # type: ignore[arg-type]


@encodes("array.slice")
def _slice(operation: Operation) -> Symbolic:
    array, start, end = operation.array(0), operation.term(1), operation.term(2)
    operation.fail("invalid_argument", either(is_less(start, ZERO), is_less(end, ZERO)))
    first = smaller(larger(start, ZERO), array.length)
    last = larger(smaller(larger(end, ZERO), array.length), first)
    return _sliced(operation, array, first, subtract(last, first), lambda: _identity(operation))


@encodes("array.reverse")
def _reverse(operation: Operation) -> Symbolic:
    array, context = operation.array(0), operation.context

    def read(index: Term) -> Symbolic:
        return array.at(context, subtract(subtract(array.length, integer(1)), index))

    if array.items is not None:
        return listed(context, array.type, array.length, tuple(read(integer(n)) for n in range(len(array.items))))
    return _array(operation, array.length, read)


@encodes("array.replace_at")
def _replace_at(operation: Operation) -> Symbolic:
    array, place, value, context = operation.array(0), operation.term(1), operation.args[2], operation.context
    operation.fail("index_out_of_range", outside(array, place))
    if array.items is not None:
        items = [merge(context, is_same(integer(n), place), value, each) for n, each in enumerate(array.items)]
        return listed(context, array.type, array.length, tuple(items))
    return _array(
        operation, array.length, lambda index: merge(context, is_same(index, place), value, array.at(context, index))
    )


@encodes("array.enumerate")
def _enumerate(operation: Operation) -> Symbolic:
    array, context = operation.array(0), operation.context
    assert isinstance(operation.call.type, ArrayOf)
    record = operation.call.type.element
    assert isinstance(record, Record)

    def read(index: Term) -> Symbolic:
        return RecordTerm(record, {"index": Scalar(INTEGER, index), "value": array.at(context, index)})

    if array.items is not None:
        items = tuple(read(integer(n)) for n in range(len(array.items)))
        return listed(context, operation.call.type, array.length, items)
    return _array(operation, array.length, read)


@encodes("array.zip")
def _zip(operation: Operation) -> Symbolic:
    left, right, context = operation.array(0), operation.array(1), operation.context
    operation.fail("invalid_argument", negated(is_same(left.length, right.length)))
    assert isinstance(operation.call.type, ArrayOf)
    record = operation.call.type.element
    assert isinstance(record, Record)

    def read(index: Term) -> Symbolic:
        return RecordTerm(record, {"first": left.at(context, index), "second": right.at(context, index)})

    if left.items is not None and right.items is not None:
        most = min(len(left.items), len(right.items))
        return listed(context, operation.call.type, left.length, tuple(read(integer(n)) for n in range(most)))
    return _array(operation, left.length, read)


@encodes("array.range")
def _range(operation: Operation) -> Symbolic | None:
    start, end, step = (operation.term(n) for n in range(3))
    if not is_number(step) or whole(step) not in (1, -1):
        return None
    operation.fail("invalid_argument", FALSE)
    by = whole(step)
    span = subtract(end, start) if by == 1 else subtract(start, end)
    length = larger(span, ZERO)
    operation.fail("too_large", is_less(integer(MAX_ENTRIES), length))

    def read(index: Term) -> Symbolic:
        return Scalar(INTEGER, add(start, index) if by == 1 else subtract(start, index))

    assert isinstance(operation.call.type, ArrayOf)
    if is_number(length) and whole(length) <= _MAX_RANGE:
        return fixed_array(operation.context, operation.call.type, [read(integer(n)) for n in range(whole(length))])
    if operation.context.bounds.is_finding:
        most = operation.context.bounds.max_items
        operation.evaluator.leave_bounds(is_less(integer(most), length))
        return listed(operation.context, operation.call.type, length, tuple(read(integer(n)) for n in range(most)))
    return _array(operation, length, read)


@encodes("array.is_item", "array.contains")
def _is_item(operation: Operation) -> Symbolic:
    is_first = operation.call.op == "array.is_item"
    value, array = operation.args if is_first else operation.args[::-1]
    assert isinstance(array, ArrayTerm)
    context = operation.context
    if array.items is not None:
        found = [
            both(is_less(integer(n), array.length), equal(context, value, each)) for n, each in enumerate(array.items)
        ]
        return boolean(either(*found))
    operands = [*components(context, value), array.identity]
    is_there = symbol(context, operation.call.type, f"{ABSTRACT}is item", operands)
    place = symbol(context, INTEGER, f"{ABSTRACT}place of item", operands)
    assert isinstance(is_there, Scalar)
    assert isinstance(place, Scalar)
    there, at = is_there.term, place.term
    context.assume(implied(there, both(array.has(at), equal(context, value, array.at(context, at)))))
    array.hold_for_all(
        context,
        lambda index: implied(both(array.has(index), equal(context, value, array.at(context, index))), there),
    )
    return boolean(there)


def _chosen(operation: Operation, array: ArrayTerm, length: Term) -> ArrayTerm:
    """Return an array whose items are items of another one, at positions that are not known."""
    context = operation.context
    identity = _identity(operation)

    def read(index: Term) -> Symbolic:
        place = context.apply(f"{ABSTRACT}source of {operation.call.op}", (identity, index), ZERO.sort())
        context.assume(implied(both(index >= 0, is_less(index, length)), array.has(place)))
        return array.at(context, place)

    return ArrayTerm(array.type, length, read, lambda: identity)


@encodes("array.sort")
def _sort(operation: Operation) -> Symbolic | None:
    array = operation.array(0)
    return _chosen(operation, array, array.length) if array.items is None else None


@encodes("array.distinct")
def _distinct(operation: Operation) -> Symbolic | None:
    array, context = operation.array(0), operation.context
    if array.items is not None:
        return None
    length = context.apply(f"{ABSTRACT}distinct items", (array.identity,), ZERO.sort())
    context.assume(length >= 0, length <= array.length, (length == 0) == (array.length == 0))
    return _chosen(operation, array, length)
