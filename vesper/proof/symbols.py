"""Symbolic values: the terms that represent one value of each type.

A value of a scalar type is one term; a decimal is its number and its scale; an optional, a record and an array are
made of the values in them. Arrays give their items on demand, so an array of any length needs no quantifier.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import z3

from vesper.proof.context import MAX_LEVEL, Context
from vesper.proof.terms import FALSE, ZERO, Term, both, choose, integer, is_number, is_same, real, whole
from vesper.values.model import MAX_ENTRIES, MAX_INTEGER, MAX_SCALE, MIN_INTEGER
from vesper.values.period import MAX_MONTHS
from vesper.values.types import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    INTEGER,
    JSON,
    PERIOD,
    STRING,
    TIME_OF_DAY,
    TIMESTAMP,
    ArrayOf,
    Enum,
    MapOf,
    OptionalOf,
    Record,
    SetOf,
    Type,
    type_text,
)

MICROSECONDS_PER_DAY = 86_400_000_000
MAX_DAY = 3_652_059
FIRST_MOMENT = -62_135_596_800_000_000
LAST_MOMENT = FIRST_MOMENT + MAX_DAY * MICROSECONDS_PER_DAY - 1
RANGES: dict[Type, tuple[int, int]] = {
    INTEGER: (MIN_INTEGER, MAX_INTEGER),
    DATE: (1, MAX_DAY),
    TIMESTAMP: (FIRST_MOMENT, LAST_MOMENT),
    DURATION: (-MAX_DAY * MICROSECONDS_PER_DAY, MAX_DAY * MICROSECONDS_PER_DAY),
    TIME_OF_DAY: (0, MICROSECONDS_PER_DAY - 1),
    PERIOD: (-MAX_MONTHS, MAX_MONTHS),
}
"""Types whose values are integers of a range: days, microseconds, months."""
OPAQUE: dict[Type, str] = {STRING: "text", FLOAT: "float", BYTES: "bytes", JSON: "json"}
"""Types whose values are known by equality, each with its sort."""


@dataclass(frozen=True, slots=True)
class Scalar:
    type: Type
    term: Term


@dataclass(frozen=True, slots=True)
class DecimalTerm:
    value: Term
    scale: Term
    type: Type = DECIMAL


@dataclass(frozen=True, slots=True)
class OptionalTerm:
    """An optional: the condition that it is null, and a value, which is arbitrary there."""

    type: OptionalOf
    is_null: Term
    value: Symbolic


@dataclass(frozen=True, slots=True)
class RecordTerm:
    type: Record
    fields: dict[str, Symbolic]


@dataclass(eq=False, slots=True)
class ArrayTerm:
    """An array by its length and a function from positions to items."""

    type: ArrayOf
    length: Term
    read: Callable[[Term], Symbolic]
    name: Callable[[], Term]
    """Makes the term that stands for the whole value."""
    items: tuple[Symbolic, ...] | None = None
    """All items that it can have, of which the first `length` exist; None for an array of any length."""
    universals: list[Callable[[Term], Term]] = field(default_factory=list)
    """Makers of facts about the item at a position."""
    _read: dict[int, tuple[Term, Symbolic]] = field(default_factory=dict)
    _identity: Term | None = None

    @property
    def identity(self) -> Term:
        if self._identity is None:
            self._identity = self.name()
        return self._identity

    def at(self, context: Context, index: Term) -> Symbolic:
        """Return the item at a position; outside of the array it is any value."""
        if self.items is not None and is_number(index):
            position = whole(index)
            if 0 <= position < len(self.items):
                return self.items[position]
        found = self._read.get(index.get_id())
        if found is None:
            found = self._read[index.get_id()] = (index, self.read(index))
            if context.level < MAX_LEVEL:
                for fact in tuple(self.universals):
                    self._instantiate(context, fact, index)
        return found[1]

    def hold_for_all(self, context: Context, fact: Callable[[Term], Term]) -> None:
        """Add a maker of facts about every item that is read, before or later."""
        self.universals.append(fact)
        for index, _ in tuple(self._read.values()):
            self._instantiate(context, fact, index)
        for position in range(len(self.items or ())):
            self._instantiate(context, fact, integer(position))

    @staticmethod
    def _instantiate(context: Context, fact: Callable[[Term], Term], index: Term) -> None:
        context.level += 1
        try:
            context.assume(fact(index))
        finally:
            context.level -= 1

    def has(self, index: Term) -> Term:
        """Return whether a position is one of the array."""
        return both(index >= 0, index < self.length)


@dataclass(frozen=True, slots=True)
class SetTerm:
    type: SetOf
    identity: Term
    members: tuple[tuple[Term, Symbolic], ...] | None = None
    """Candidates, each with whether it is a member; None where they are not known."""


@dataclass(frozen=True, slots=True)
class MapTerm:
    type: MapOf
    identity: Term
    entries: tuple[tuple[Term, Symbolic, Symbolic], ...] | None = None
    """Candidates of keys, each with whether it is one, and its value. Of present ones no two are equal."""


Symbolic: TypeAlias = Scalar | DecimalTerm | OptionalTerm | RecordTerm | ArrayTerm | SetTerm | MapTerm


def boolean(term: Term) -> Scalar:
    return Scalar(BOOLEAN, term)


def sort_of(context: Context, type_: Type) -> Term:
    """Return the sort of a type whose value is one term."""
    if type_ == BOOLEAN:
        return z3.BoolSort()
    if type_ in RANGES or isinstance(type_, Enum):
        return z3.IntSort()
    return context.sort(OPAQUE.get(type_) or type_text(type_, has_outside=False))


def symbol(
    context: Context, type_: Type, name: str, args: Sequence[Term] = (), sink: list[Term] | None = None
) -> Symbolic:
    """Return a value of which only the type is known: a constant, or a function of its operands.

    The facts that hold for every value of the type are added to `sink`, or to the context without one.
    """
    facts: list[Term] = []
    found = _symbol(context, type_, name, args, facts)
    if sink is None:
        context.assume(*facts)
    else:
        sink += facts
    return found


def _symbol(context: Context, type_: Type, name: str, args: Sequence[Term], facts: list[Term]) -> Symbolic:
    match type_:
        case OptionalOf(inner):
            is_null = context.apply(f"{name} is null", args, z3.BoolSort())
            return OptionalTerm(type_, is_null, _symbol(context, inner, name, args, facts))
        case Record(fields):
            return RecordTerm(
                type_, {each: _symbol(context, own, f"{name}.{each}", args, facts) for each, own in fields}
            )
        case ArrayOf() if context.bounds.is_finding:
            return _short_array(context, type_, name, args, facts)
        case ArrayOf():
            return array_of(context, type_, context.apply(name, args, sort_of(context, type_)))
        case SetOf() | MapOf():
            return _symbolic_keyed(context, type_, name, args, facts)
        case _ if type_ == DECIMAL:
            value = context.apply(f"{name} value", args, z3.RealSort())
            scale = context.apply(f"{name} scale", args, z3.IntSort())
            facts += [scale >= 0, scale <= MAX_SCALE]
            return DecimalTerm(value, scale)
        case _:
            term = context.apply(name, args, sort_of(context, type_))
            if type_ in RANGES:
                low, high = RANGES[type_]
                facts += [term >= low, term <= high]
            elif isinstance(type_, Enum):
                facts.append(context.is_member(term, type_.members))
            return Scalar(type_, term)


def _short_array(context: Context, type_: ArrayOf, name: str, args: Sequence[Term], facts: list[Term]) -> ArrayTerm:
    context.is_bounded = True
    length = context.apply(f"{name} length", args, z3.IntSort())
    most = context.bounds.max_items
    facts += [length >= 0, length <= most]
    items = tuple(_symbol(context, type_.element, f"{name}[{index}]", args, facts) for index in range(most))
    return listed(context, type_, length, items)


def _symbolic_keyed(
    context: Context, type_: SetOf | MapOf, name: str, args: Sequence[Term], facts: list[Term]
) -> SetTerm | MapTerm:
    """Return a set or a map. To find an input it has a few symbolic keys, otherwise it is one term."""
    identity = context.apply(name, args, sort_of(context, type_))
    key_type = type_.element if isinstance(type_, SetOf) else type_.key
    if not context.bounds.is_finding:
        return SetTerm(type_, identity) if isinstance(type_, SetOf) else MapTerm(type_, identity)
    context.is_bounded = True
    size = context.apply(f"{name} size", args, z3.IntSort())
    most = context.bounds.max_items
    facts += [size >= 0, size <= most]
    keys = [_symbol(context, key_type, f"{name} key {index}", args, facts) for index in range(most)]
    terms = [components(context, key)[0] for key in keys]
    facts += [term != other for index, term in enumerate(terms) for other in terms[:index] if not z3.is_bool(term)]
    if key_type == BOOLEAN:
        facts += [size <= 2, z3.Implies(size > 1, terms[0] != terms[1])]
    there = [index < size for index in range(most)]
    if isinstance(type_, SetOf):
        return SetTerm(type_, identity, tuple(zip(there, keys, strict=True)))
    values = [_symbol(context, type_.value, f"{name} value {index}", args, facts) for index in range(most)]
    return MapTerm(type_, identity, tuple(zip(there, keys, values, strict=True)))


def array_of(context: Context, type_: ArrayOf, identity: Term) -> ArrayTerm:
    """Return the array that a term represents, of any length."""
    text = type_text(type_, has_outside=False)
    length = context.apply(f"length of {text}", (identity,), z3.IntSort())
    context.assume(length >= 0, length <= MAX_ENTRIES)

    def read(index: Term) -> Symbolic:
        return symbol(context, type_.element, f"item of {text}", (identity, index))

    return ArrayTerm(type_, length, read, lambda: identity)


def listed(context: Context, type_: ArrayOf, length: Term, items: tuple[Symbolic, ...]) -> ArrayTerm:
    """Return the array of the first `length` of the items."""

    def read(index: Term) -> Symbolic:
        found = items[-1] if items else symbol(context, type_.element, "no item")
        for position in range(len(items) - 2, -1, -1):
            found = merge(context, is_same(index, integer(position)), items[position], found)
        return found

    def name() -> Term:
        args = [length]
        for position, item in enumerate(items):
            args += components(context, item, integer(position) < length if not is_number(length) else None)
        text = type_text(type_, has_outside=False)
        return context.apply(f"{len(items)} items of {text}", args, sort_of(context, type_))

    return ArrayTerm(type_, length, read, name, items)


def fixed_array(context: Context, type_: ArrayOf, items: Sequence[Symbolic]) -> ArrayTerm:
    return listed(context, type_, integer(len(items)), tuple(items))


def default(context: Context, type_: Type) -> Symbolic:
    """Return one fixed value of a type, for places that are not read."""
    match type_:
        case OptionalOf(inner):
            return OptionalTerm(type_, z3.BoolVal(True), default(context, inner))
        case Record(fields):
            return RecordTerm(type_, {name: default(context, own) for name, own in fields})
        case ArrayOf():
            return fixed_array(context, type_, ())
        case SetOf():
            return SetTerm(type_, context.apply("no members", (), sort_of(context, type_)), ())
        case MapOf():
            return MapTerm(type_, context.apply("no entries", (), sort_of(context, type_)), ())
        case Enum(members):
            return Scalar(type_, integer(context.member(members[0])))
        case _ if type_ == DECIMAL:
            return DecimalTerm(real(0), ZERO)
        case _ if type_ == BOOLEAN:
            return Scalar(type_, FALSE)
        case _ if type_ in RANGES:
            return Scalar(type_, integer(max(0, RANGES[type_][0])))
        case _:
            return Scalar(type_, context.apply(f"any {type_}", (), sort_of(context, type_)))


def components(context: Context, value: Symbolic, where: Term | None = None) -> list[Term]:
    """Return the terms that a value consists of, for operands of functions; equal values have equal terms.

    With the condition `where`, they are the terms of a fixed value where it is false.
    """
    found = _components(context, value)
    if where is None or z3.is_true(where):
        return found
    return [choose(where, each, other) for each, other in zip(found, _plain(context, found), strict=True)]


def _components(context: Context, value: Symbolic) -> list[Term]:
    match value:
        case Scalar(_, term):
            return [term]
        case DecimalTerm(number, scale):
            return [number, scale]
        case OptionalTerm(_, is_null, inner):
            return [is_null, *components(context, inner, z3.Not(is_null) if not z3.is_false(is_null) else None)]
        case RecordTerm(_, fields):
            return [term for each in fields.values() for term in _components(context, each)]
        case ArrayTerm() | SetTerm() | MapTerm():
            return [value.identity]


def _plain(context: Context, terms: Sequence[Term]) -> list[Term]:
    """Return a fixed term of the sort of each term."""
    found: list[Term] = []
    for term in terms:
        if z3.is_bool(term):
            found.append(FALSE)
        elif z3.is_int(term):
            found.append(ZERO)
        else:
            found.append(real(0) if z3.is_real(term) else context.apply("any", (), term.sort()))
    return found


def merge(context: Context, condition: Term, then: Symbolic, otherwise: Symbolic) -> Symbolic:
    """Return `then` where the condition holds, else `otherwise`."""
    if z3.is_true(condition) or then is otherwise:
        return then
    if z3.is_false(condition):
        return otherwise
    match then, otherwise:
        case Scalar(type_, left), Scalar(_, right):
            return Scalar(type_, choose(condition, left, right))
        case DecimalTerm(), DecimalTerm():
            return DecimalTerm(
                choose(condition, then.value, otherwise.value), choose(condition, then.scale, otherwise.scale)
            )
        case OptionalTerm(type_, left, value), OptionalTerm(_, right, other):
            is_null = choose(condition, left, right)
            kept = (
                other if z3.is_true(left) else value if z3.is_true(right) else merge(context, condition, value, other)
            )
            return OptionalTerm(type_, is_null, kept)
        case RecordTerm(type_, fields), RecordTerm(_, others):
            return RecordTerm(type_, {name: merge(context, condition, fields[name], others[name]) for name in fields})
        case ArrayTerm(), ArrayTerm():
            return _merged_arrays(context, condition, then, otherwise)
        case SetTerm(type_), SetTerm():
            members = None
            if then.members is not None and otherwise.members is not None:
                members = tuple(
                    [(both(condition, there), each) for there, each in then.members]
                    + [(both(z3.Not(condition), there), each) for there, each in otherwise.members]
                )
            return SetTerm(type_, choose(condition, then.identity, otherwise.identity), members)
        case MapTerm(type_), MapTerm():
            entries = None
            if then.entries is not None and otherwise.entries is not None:
                entries = tuple(
                    [(both(condition, there), key, value) for there, key, value in then.entries]
                    + [(both(z3.Not(condition), there), key, value) for there, key, value in otherwise.entries]
                )
            return MapTerm(type_, choose(condition, then.identity, otherwise.identity), entries)
        case _:
            raise AssertionError(f"a {then.type} and a {otherwise.type}")


def _merged_arrays(context: Context, condition: Term, then: ArrayTerm, otherwise: ArrayTerm) -> ArrayTerm:
    length = choose(condition, then.length, otherwise.length)
    items: tuple[Symbolic, ...] | None = None
    if then.items is not None and otherwise.items is not None:
        count = max(len(then.items), len(otherwise.items))
        items = tuple(
            then.items[n] if n >= len(otherwise.items)
            else otherwise.items[n] if n >= len(then.items)
            else merge(context, condition, then.items[n], otherwise.items[n])
            for n in range(count)
        )  # fmt: skip
        return listed(context, then.type, length, items)
    return ArrayTerm(
        then.type,
        length,
        lambda index: merge(context, condition, then.at(context, index), otherwise.at(context, index)),
        lambda: choose(condition, then.identity, otherwise.identity),
    )
