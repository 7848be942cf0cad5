"""Equality and order of symbolic values: as the language compares, and as outcomes are compared."""

from __future__ import annotations

from collections.abc import Callable

import z3

from vesper.proof.context import ABSTRACT, Context
from vesper.proof.symbols import (
    RANGES,
    ArrayTerm,
    DecimalTerm,
    MapTerm,
    OptionalTerm,
    RecordTerm,
    Scalar,
    SetTerm,
    Symbolic,
)
from vesper.proof.terms import (
    FALSE,
    TRUE,
    Term,
    both,
    choose,
    either,
    implied,
    integer,
    is_at_most,
    is_less,
    is_same,
    negated,
)
from vesper.values.types import BOOLEAN, DECIMAL, FLOAT, JSON, STRING, Enum, OptionalOf, Record, Type, type_text

Pair = Callable[[Symbolic, Symbolic], Term]


def same(context: Context, left: Symbolic, right: Symbolic) -> Term:
    """Return whether two values are indistinguishable: decimals with their scales."""
    return _compare(context, left, right, is_exact=True)


def equal(context: Context, left: Symbolic, right: Symbolic) -> Term:
    """Return whether `==` of the language holds."""
    return _compare(context, left, right, is_exact=False)


def _compare(context: Context, left: Symbolic, right: Symbolic, is_exact: bool) -> Term:
    if left is right and (is_exact or not _has_float(left)):
        return TRUE
    match left, right:
        case Scalar(type_, term), Scalar(other_type, other):
            if term.sort() != other.sort() or isinstance(type_, Enum) != isinstance(other_type, Enum):
                return FALSE
            if not is_exact and type_ in (FLOAT, JSON):
                return _abstract_equality(context, f"{type_} equal", term, other, reflexive=type_ == JSON)
            return is_same(term, other)
        case DecimalTerm(), DecimalTerm():
            values = is_same(left.value, right.value)
            return both(values, is_same(left.scale, right.scale)) if is_exact else values
        case OptionalTerm(_, is_null, value), OptionalTerm(_, other_null, other):
            inner = _compare(context, value, other, is_exact)
            return either(both(is_null, other_null), both(negated(is_null), negated(other_null), inner))
        case RecordTerm(_, fields), RecordTerm(_, others):
            if list(fields) != list(others):
                return FALSE
            return both(*(_compare(context, fields[name], others[name], is_exact) for name in fields))
        case ArrayTerm(), ArrayTerm():
            return _same_arrays(context, left, right, is_exact)
        case SetTerm(), SetTerm():
            return _same_sets(context, left, right)
        case MapTerm(), MapTerm():
            return _same_maps(context, left, right, is_exact)
        case _:
            return FALSE


def _has_float(value: Symbolic) -> bool:
    return "float" in type_text(value.type, has_outside=False)


def _abstract_equality(context: Context, name: str, left: Term, right: Term, reflexive: bool) -> Term:
    """Return an uninterpreted, symmetric equality. If it is reflexive, identical values are equal."""
    if left.eq(right) and reflexive:
        return TRUE
    first, second = (left, right) if left.get_id() <= right.get_id() else (right, left)
    found = context.apply(f"{ABSTRACT}{name}", (first, second), z3.BoolSort())
    if reflexive:
        context.assume(implied(is_same(left, right), found))
    return found


def _same_arrays(context: Context, left: ArrayTerm, right: ArrayTerm, is_exact: bool) -> Term:
    """Return whether two arrays have equal items.

    Where one has any length, a position at which they differ exists if they differ, and all items are equal if not.
    """
    lengths = is_same(left.length, right.length)
    bounded = left if left.items is not None else right
    if bounded.items is not None:
        found = [lengths]
        for position in range(len(bounded.items)):
            index = integer(position)
            items = _compare(context, left.at(context, index), right.at(context, index), is_exact)
            found.append(implied(is_less(index, bounded.length), items))
        return both(*found)
    if left.identity.eq(right.identity) and (is_exact or not _has_float(left)):
        return TRUE
    kind = "same" if is_exact else "equal"
    operands = (left.identity, right.identity)
    found_same = context.apply(f"{ABSTRACT}{kind} arrays", operands, z3.BoolSort())
    place = context.apply(f"{ABSTRACT}place of {kind} arrays", operands, z3.IntSort())
    at_place = _compare(context, left.at(context, place), right.at(context, place), is_exact)
    context.assume(
        implied(found_same, lengths),
        either(found_same, negated(lengths), both(left.has(place), negated(at_place))),
    )
    if is_exact:
        context.assume(implied(is_same(left.identity, right.identity), found_same))

    def at_all(index: Term) -> Term:
        items = _compare(context, left.at(context, index), right.at(context, index), is_exact)
        return implied(both(found_same, left.has(index)), items)

    left.hold_for_all(context, at_all)
    right.hold_for_all(context, at_all)
    return found_same


def _same_sets(context: Context, left: SetTerm, right: SetTerm) -> Term:
    if left.members is None or right.members is None:
        return is_same(left.identity, right.identity)
    parts = [implied(there, _among(context, each, right)) for there, each in left.members]
    parts += [implied(there, _among(context, each, left)) for there, each in right.members]
    return both(*parts)


def _among(context: Context, member: Symbolic, of: SetTerm) -> Term:
    return either(*(both(there, equal(context, member, each)) for there, each in of.members or ()))


def _same_maps(context: Context, left: MapTerm, right: MapTerm, is_exact: bool) -> Term:
    if left.entries is None or right.entries is None:
        if is_exact:
            return is_same(left.identity, right.identity)
        if left.identity.eq(right.identity) and not _has_float(left):
            return TRUE
        return _abstract_equality(
            context, f"maps equal {left.type}", left.identity, right.identity, not _has_float(left)
        )
    parts = []
    for one, other in ((left, right), (right, left)):
        for there, key, value in one.entries or ():
            found = [
                both(present, equal(context, key, each), _compare(context, value, of, is_exact))
                for present, each, of in other.entries or ()
            ]
            parts.append(implied(there, either(*found)))
    return both(*parts)


def less(context: Context, left: Symbolic, right: Symbolic) -> Term | None:
    """Return whether the left value comes first in the order of the language; None where it has no encoding."""
    match left, right:
        case DecimalTerm(), DecimalTerm():
            return is_less(left.value, right.value)
        case Scalar(type_, term), Scalar(_, other):
            if type_ in RANGES:
                return is_less(term, other)
            if type_ == BOOLEAN:
                return both(negated(term), other)
            if isinstance(type_, Enum):
                return is_less(_position(context, type_, term), _position(context, type_, other))
            if type_ == STRING:
                return both(negated(is_same(term, other)), is_less(rank(context, term), rank(context, other)))
            return None
        case OptionalTerm(_, is_null, value), OptionalTerm(_, other_null, other):
            inner = less(context, value, other)
            if inner is None:
                return None
            return both(negated(other_null), either(is_null, inner))
        case RecordTerm(_, fields), RecordTerm(_, others):
            found: Term = FALSE
            for name in reversed(list(fields)):
                first = less(context, fields[name], others[name])
                if first is None:
                    return None
                found = either(first, both(equal(context, fields[name], others[name]), found))
            return found
        case _:
            return None


def at_most(context: Context, left: Symbolic, right: Symbolic) -> Term | None:
    """Return whether the right value does not come before the left one."""
    if isinstance(left, DecimalTerm) and isinstance(right, DecimalTerm):
        return is_at_most(left.value, right.value)
    if isinstance(left, Scalar) and isinstance(right, Scalar) and left.type in RANGES:
        return is_at_most(left.term, right.term)
    found = less(context, right, left)
    return None if found is None else negated(found)


def _position(context: Context, type_: Enum, term: Term) -> Term:
    """Return the position of a member as declared."""
    codes = [context.member(each) for each in type_.members]
    if all(code - position == codes[0] for position, code in enumerate(codes)):
        return term
    found = integer(len(codes) - 1)
    for position in range(len(codes) - 2, -1, -1):
        found = choose(is_same(term, integer(codes[position])), integer(position), found)
    return found


def rank(context: Context, term: Term) -> Term:
    """Return the place of a text in the order of all texts: different texts have different ones."""
    found = context.apply("rank of text", (term,), z3.RealSort())
    context.assume(context.apply("text of rank", (found,), term.sort()) == term)
    value = context.literal_value("text", term)
    if value is not None and str(value) not in context.ranked:
        for other, other_rank in context.ranked.items():
            context.assume(found < other_rank if str(value) < other else other_rank < found)
        context.ranked[str(value)] = found
    return found


def is_orderable(type_: Type) -> bool:
    """Return whether the order of a type has an encoding."""
    match type_:
        case OptionalOf(inner):
            return is_orderable(inner)
        case Record(fields):
            return all(is_orderable(each) for _, each in fields)
        case _:
            return type_ in RANGES or type_ in (BOOLEAN, STRING, DECIMAL) or isinstance(type_, Enum)
