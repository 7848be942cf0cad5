"""Encodings of sets and maps: exact where their members are known."""

from __future__ import annotations

import z3

from vesper.proof.constants import are_in_order
from vesper.proof.context import ABSTRACT, MAX_LEVEL, Context
from vesper.proof.equality import equal
from vesper.proof.operations.operation import Operation, encodes
from vesper.proof.symbols import (
    ArrayTerm,
    MapTerm,
    OptionalTerm,
    Scalar,
    SetTerm,
    Symbolic,
    array_of,
    boolean,
    components,
    fixed_array,
    merge,
    sort_of,
    symbol,
)
from vesper.proof.terms import FALSE, Term, both, either, implied, integer, is_same, negated
from vesper.values.model import MAX_ENTRIES
from vesper.values.types import BOOLEAN, INTEGER, ArrayOf, MapOf, OptionalOf, type_text

_MAX_ENTRIES = 80


def is_in(operation: Operation, value: Symbolic, members: SetTerm) -> Term:
    """Return whether a value is a member of a set."""
    context = operation.context
    if members.members is not None and len(members.members) <= _MAX_ENTRIES:
        return either(*(both(there, equal(context, value, each)) for there, each in members.members))
    found = context.apply(f"{ABSTRACT}is member", (*components(context, value), members.identity), z3.BoolSort())
    context.assume(implied(found, size_of(operation.context, members.identity) >= 1))
    known = context.member_facts.get(members.identity.get_id())
    if not context.mark_described(found):
        return found
    if known is not None:
        context.assume(is_same(found, known[1](value)))
    elif z3.is_app_of(members.identity, z3.Z3_OP_ITE):
        for way in _alternatives(members.identity):
            is_in(operation, value, SetTerm(members.type, way))
    return found


@encodes("set.is_member", "set.contains")
def _is_member(operation: Operation) -> Symbolic:
    is_first = operation.call.op == "set.is_member"
    return boolean(is_in(operation, operation.args[0 if is_first else 1], operation.set(1 if is_first else 0)))


def size_of(context: Context, identity: Term) -> Term:
    """Return the number of entries of a set or map of any size."""
    found = context.apply(f"size of {identity.sort().name()}", (identity,), z3.IntSort())
    context.assume(found >= 0, found <= MAX_ENTRIES)
    return found


def keys_of(context: Context, given: SetTerm | MapTerm) -> ArrayTerm:
    """Return the members of a set, or the keys of a map, in order."""
    key = given.type.element if isinstance(given, SetTerm) else given.type.key
    type_ = ArrayOf(key)
    known = given.members if isinstance(given, SetTerm) else given.entries
    if (
        known is not None
        and all(z3.is_true(each[0]) for each in known)
        and are_in_order(context, key, [each[1] for each in known])
    ):
        return fixed_array(context, type_, [each[1] for each in known])
    identity = context.apply("keys", (given.identity,), sort_of(context, type_))
    found = array_of(context, type_, identity)
    context.assume(found.length == size_of(context, given.identity))
    return found


@encodes("set.length")
def _set_length(operation: Operation) -> Symbolic:
    given = operation.set(0)
    if given.members is None:
        return Scalar(INTEGER, size_of(operation.context, given.identity))
    return Scalar(INTEGER, _count(operation, [(there, each) for there, each in given.members]))


def _count(operation: Operation, candidates: list[tuple[Term, Symbolic]]) -> Term:
    """Return the number of different candidates that are present."""
    total: Term = integer(0)
    for position, (there, each) in enumerate(candidates):
        earlier = [both(present, equal(operation.context, each, other)) for present, other in candidates[:position]]
        is_new = both(there, negated(either(*earlier)))
        if z3.is_true(is_new):
            total = total + 1
        elif not z3.is_false(is_new):
            total = total + z3.If(is_new, 1, 0)
    return z3.simplify(total)


@encodes("set.is_subset")
def _is_subset(operation: Operation) -> Symbolic | None:
    part, whole = operation.set(0), operation.set(1)
    if part.members is None or len(part.members) > _MAX_ENTRIES:
        for each in _alternatives(part.identity):
            if any(each.eq(other) for other in _alternatives(whole.identity)):
                operation.context.assume(_abstract_subset(operation, each, each))
        return None
    return boolean(both(*(implied(there, is_in(operation, each, whole)) for there, each in part.members)))


def _alternatives(identity: Term) -> list[Term]:
    """Return the values between which a choice decides."""
    return (
        [each for way in (1, 2) for each in _alternatives(identity.arg(way))]
        if z3.is_app_of(identity, z3.Z3_OP_ITE)
        else [identity]
    )


def _abstract_subset(operation: Operation, part: Term, whole: Term) -> Term:
    """Return `set.is_subset` as an uninterpreted function, for sets without known members."""
    of = type_text(operation.set(0).type.element, has_outside=False)
    return operation.context.apply(f"{ABSTRACT}set.is_subset<{of}>", (part, whole), z3.BoolSort())


@encodes("set.difference", "set.intersection", "set.union", "set.put", "set.remove")
def _combined(operation: Operation) -> Symbolic:
    found = operation.abstract()
    assert isinstance(found, SetTerm)
    given, op = operation.set(0), operation.call.op
    other = operation.args[1]

    def is_other(value: Symbolic) -> Term:
        return is_in(operation, value, other) if isinstance(other, SetTerm) else equal(operation.context, value, other)

    def is_member(value: Symbolic) -> Term:
        first, second = is_in(operation, value, given), is_other(value)
        if op in ("set.union", "set.put"):
            return either(first, second)
        return both(first, second if op == "set.intersection" else negated(second))

    operation.context.member_facts[found.identity.get_id()] = (found.identity, is_member)
    parts = [given.identity]
    if op in ("set.union", "set.intersection"):
        assert isinstance(other, SetTerm)
        parts.append(other.identity)
    is_larger = op in ("set.union", "set.put")
    for part in parts:
        small, large = (part, found.identity) if is_larger else (found.identity, part)
        operation.know(
            _abstract_subset(operation, small, large),
            size_of(operation.context, small) <= size_of(operation.context, large),
        )
    return found


@encodes("set.is_disjoint")
def _is_disjoint(operation: Operation) -> Symbolic | None:
    left, right = operation.set(0), operation.set(1)
    if left.members is None:
        left, right = right, left
    if left.members is None or len(left.members) > _MAX_ENTRIES:
        return None
    return boolean(both(*(negated(both(there, is_in(operation, each, right))) for there, each in left.members)))


def look_up(context: Context, entries: MapTerm, key: Symbolic) -> tuple[Term, Symbolic]:
    """Return whether a map has a key, and its value."""
    assert isinstance(entries.type, MapOf)
    if entries.entries is not None and 0 < len(entries.entries) <= _MAX_ENTRIES:
        found: Symbolic | None = None
        has: Term = FALSE
        for there, own, value in reversed(entries.entries):
            is_it = both(there, equal(context, key, own))
            found = value if found is None else merge(context, is_it, value, found)
            has = either(is_it, has)
        assert found is not None
        return has, found
    if entries.entries == ():
        return FALSE, symbol(context, entries.type.value, "no value")
    operands = [*components(context, key), entries.identity]
    is_there = symbol(context, BOOLEAN, f"{ABSTRACT}has key", operands)
    value = symbol(context, entries.type.value, f"{ABSTRACT}value of {entries.type}", operands)
    assert isinstance(is_there, Scalar)
    context.assume(implied(is_there.term, size_of(context, entries.identity) >= 1))
    known = context.entry_facts.get(entries.identity.get_id())
    if context.level >= MAX_LEVEL or not context.mark_described(is_there.term):
        return is_there.term, value
    if known is not None:
        context.level += 1
        try:
            known[1](key, is_there.term, value)
        finally:
            context.level -= 1
    elif z3.is_app_of(entries.identity, z3.Z3_OP_ITE):
        # Equal maps have equal entries: what is known of either way holds where it was taken.
        for way in _alternatives(entries.identity):
            look_up(context, MapTerm(entries.type, way), key)
    return is_there.term, value


@encodes("map.at")
def _at(operation: Operation) -> Symbolic:
    has, value = look_up(operation.context, operation.map(0), operation.args[1])
    operation.fail("missing_key", negated(has))
    return value


@encodes("map.get")
def _get(operation: Operation) -> Symbolic:
    has, value = look_up(operation.context, operation.map(0), operation.args[1])
    if isinstance(value, OptionalTerm):
        return OptionalTerm(value.type, either(negated(has), value.is_null), value.value)
    return OptionalTerm(OptionalOf(value.type), negated(has), value)


@encodes("map.is_key", "map.contains")
def _has(operation: Operation) -> Symbolic:
    is_first = operation.call.op == "map.is_key"
    entries, key = operation.map(1 if is_first else 0), operation.args[0 if is_first else 1]
    return boolean(look_up(operation.context, entries, key)[0])


@encodes("map.length")
def _map_length(operation: Operation) -> Symbolic:
    given = operation.map(0)
    if given.entries is None:
        return Scalar(INTEGER, size_of(operation.context, given.identity))
    return Scalar(INTEGER, _count(operation, [(there, key) for there, key, _ in given.entries]))


@encodes("array.to_set")
def _to_set(operation: Operation) -> Symbolic | None:
    from vesper.values.types import SetOf

    array = operation.array(0)
    if array.items is None:
        return None
    assert isinstance(operation.call.type, SetOf)
    found = operation.abstract()
    assert isinstance(found, SetTerm)
    members = tuple((integer(n) < array.length, each) for n, each in enumerate(array.items))
    return SetTerm(operation.call.type, found.identity, members)


@encodes("map.keys", "set.to_array")
def _keys(operation: Operation) -> Symbolic:
    given = operation.args[0]
    assert isinstance(given, SetTerm | MapTerm)
    return keys_of(operation.context, given)
