"""Concrete values as symbolic ones, and symbolic values in a model as concrete ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import z3

from vesper.kernels.decimal import EXACT
from vesper.proof.context import Context
from vesper.proof.symbols import (
    OPAQUE,
    RANGES,
    ArrayTerm,
    DecimalTerm,
    MapTerm,
    OptionalTerm,
    RecordTerm,
    Scalar,
    SetTerm,
    Symbolic,
    default,
    fixed_array,
)
from vesper.proof.terms import Term, integer, is_number, number, real, truth, whole
from vesper.values.json_value import Json, json_of, parse_json
from vesper.values.model import MAX_DIGITS, Value, in_order, scalar_text
from vesper.values.model import Scalar as ScalarValue
from vesper.values.period import Period
from vesper.values.types import (
    BOOLEAN,
    BYTES,
    DATE,
    DURATION,
    FLOAT,
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

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MAX_READ_ITEMS = 200
_MAX_READ_TEXT = 20_000
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


class NoValue(Exception):
    """A model gives no concrete value."""


def constant(context: Context, type_: Type, value: Value) -> Symbolic:
    """Return a concrete value as a symbolic one."""
    match type_, value:
        case OptionalOf(inner), None:
            return OptionalTerm(type_, truth(True), default(context, inner))
        case OptionalOf(inner), _:
            return OptionalTerm(type_, truth(False), constant(context, inner, value))
        case Record(fields), dict():
            return RecordTerm(type_, {name: constant(context, own, value[name]) for name, own in fields})
        case ArrayOf(element), list():
            return fixed_array(context, type_, [constant(context, element, item) for item in value])
        case SetOf(element), frozenset():
            members = tuple((truth(True), constant(context, element, each)) for each in in_order(element, value))
            return SetTerm(type_, _collection(context, type_, value), members)
        case MapOf(key, of), dict():
            ordered = in_order(key, value)
            entries = tuple(
                (truth(True), constant(context, key, each), constant(context, of, value[each]))  # type: ignore[index]
                for each in ordered
            )
            return MapTerm(type_, _collection(context, type_, value), entries)
        case Enum(), str():
            return Scalar(type_, integer(context.member(value)))
        case _ if isinstance(value, Decimal):
            _sign, _digits, exponent = value.as_tuple()
            assert isinstance(exponent, int)
            return DecimalTerm(real(Fraction(value)), integer(-exponent))
        case _ if type_ == BOOLEAN:
            return Scalar(type_, truth(bool(value)))
        case _ if type_ == JSON and not isinstance(value, Json):
            return Scalar(type_, literal(context, type_, json_of(value)))
        case _ if type_ in OPAQUE:
            return Scalar(type_, literal(context, type_, value))
        case _:
            return Scalar(type_, integer(_number(value)))


def literal(context: Context, type_: Type, value: Value) -> Term:
    """Return the constant of a text, float, bytes or json."""
    assert isinstance(value, ScalarValue)
    found = context.literal(OPAQUE[type_], scalar_text(value), value)
    if type_ == STRING:
        assert isinstance(value, str)
        context.assume(context.apply("length of text", (found,), z3.IntSort()) == len(value))
    return found


def _collection(context: Context, type_: SetOf | MapOf, value: Value) -> Term:
    from vesper.values.model import to_json

    return context.literal(type_text(type_, has_outside=False), repr(to_json(type_, value)), value)


def _number(value: Value) -> int:
    match value:
        case datetime():
            return (value - _EPOCH) // _MICROSECOND
        case date():
            return value.toordinal()
        case timedelta():
            return value // _MICROSECOND
        case time():
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
        case Period():
            return value.months
        case _:
            assert isinstance(value, int)
            return value


def _of_number(type_: Type, value: int) -> Value:
    low, high = RANGES[type_]
    if not low <= value <= high:
        raise NoValue
    if type_ == TIMESTAMP:
        return _EPOCH + timedelta(microseconds=value)
    if type_ == DATE:
        return date.fromordinal(value)
    if type_ == DURATION:
        return timedelta(microseconds=value)
    if type_ == TIME_OF_DAY:
        seconds, microsecond = divmod(value, 1_000_000)
        return time(seconds // 3600, seconds // 60 % 60, seconds % 60, microsecond)
    return Period(value) if type_ == PERIOD else value


def decimal_of(value: Fraction, scale: int) -> Decimal:
    """Return the decimal of a number with exactly this scale, or raise `NoValue`."""
    coefficient = value * 10**scale
    if coefficient.denominator != 1 or abs(coefficient.numerator) >= 10**MAX_DIGITS:
        raise NoValue
    return Decimal(coefficient.numerator).scaleb(-scale, EXACT)


class Reading:
    """Reads the values of terms, in a model or, without one, of terms that are constant."""

    def __init__(self, context: Context, model: Any = None) -> None:
        self._context = context
        self._model = model
        self._texts: dict[str, dict[str, Value]] = {}

    def value(self, symbolic: Symbolic) -> Value:
        """Return the concrete value, or raise `NoValue`."""
        match symbolic:
            case Scalar(type_, term):
                return self._scalar(type_, term)
            case DecimalTerm(value, scale):
                return decimal_of(self._fraction(value), self._integer(scale))
            case OptionalTerm(_, is_null, inner):
                return None if self._truth(is_null) else self.value(inner)
            case RecordTerm(_, fields):
                return {name: self.value(each) for name, each in fields.items()}
            case ArrayTerm():
                return self._array(symbolic)
            case SetTerm(_, identity, members):
                if members is None:
                    return self._opaque(symbolic, identity, frozenset())
                return frozenset(self.value(each) for there, each in members if self._truth(there))  # type: ignore[misc]
            case MapTerm(type_, identity, entries):
                if entries is None:
                    return self._opaque(symbolic, identity, {})
                found = {self.value(key): self.value(each) for there, key, each in entries if self._truth(there)}
                return {key: found[key] for key in in_order(type_.key, found)}  # type: ignore[arg-type]

    def _array(self, array: ArrayTerm) -> Value:
        length = self._integer(array.length)
        if length > _MAX_READ_ITEMS or length < 0 or (array.items is not None and length > len(array.items)):
            raise NoValue
        return [self.value(array.at(self._context, integer(index))) for index in range(length)]

    def _opaque(self, symbolic: SetTerm | MapTerm, identity: Term, empty: Value) -> Value:
        found = self._context.literal_value(identity.sort().name(), identity)
        if found is None and self._model is None:
            raise NoValue
        return empty if found is None else found  # type: ignore[return-value]

    def _eval(self, term: Term) -> Term:
        return term if self._model is None else self._model.eval(term, model_completion=True)

    def _truth(self, term: Term) -> bool:
        found = self._eval(term)
        if not z3.is_true(found) and not z3.is_false(found):
            raise NoValue
        return bool(z3.is_true(found))

    def _integer(self, term: Term) -> int:
        found = self._eval(term)
        if not is_number(found):
            raise NoValue
        return whole(found)

    def _fraction(self, term: Term) -> Fraction:
        found = self._eval(term)
        if not is_number(found):
            raise NoValue  # an algebraic number
        return number(found)

    def code(self, term: Term) -> int:
        return self._integer(term)

    def truth(self, term: Term) -> bool:
        return self._truth(term)

    def _scalar(self, type_: Type, term: Term) -> Value:
        if type_ == BOOLEAN:
            return self._truth(term)
        if isinstance(type_, Enum):
            name = self._context.member_name(self._integer(term))
            if name not in type_.members:
                raise NoValue
            return name
        if type_ in RANGES:
            return _of_number(type_, self._integer(term))
        known = self._context.literal_value(OPAQUE[type_], term)
        if known is not None:
            return known  # type: ignore[return-value]
        if self._model is None:
            raise NoValue
        return self._of_element(type_, term)

    def _of_element(self, type_: Type, term: Term) -> Value:
        """Return the value that represents an element of a sort in the model, a different one for each."""
        sort = OPAQUE[type_]
        if sort not in self._texts:
            own = {
                str(self._eval(each)): self._context.literal_value(sort, each)
                for _, each in self._context.literals(sort)
            }
            self._texts[sort] = own  # type: ignore[assignment]
        known = self._texts[sort]
        element = str(self._eval(term))
        if element not in known:
            known[element] = self._new(type_, term, set(map(str, known.values())), len(known))
        return known[element]

    def _new(self, type_: Type, term: Term, taken: set[str], count: int) -> Value:
        if type_ == STRING:
            length = self._integer(self._context.apply("length of text", (term,), z3.IntSort()))
            if not 0 <= length <= _MAX_READ_TEXT:
                raise NoValue
            return _new_text(length, taken)
        if type_ == FLOAT:
            return float(count) + 0.5
        if type_ == BYTES:
            return f"bytes {count}".encode()
        assert type_ == JSON
        return parse_json(f'"json {count}"')


def _new_text(length: int, taken: set[str]) -> str:
    """Return a text of this length that is not used yet."""
    for number_ in range(len(taken) + 1):
        letters, rest = "", number_
        while rest or not letters:
            rest, digit = divmod(rest, len(_ALPHABET))
            letters = _ALPHABET[digit] + letters
        text = letters.rjust(length, "a")
        if len(text) == length and text not in taken:
            return text
    raise NoValue


def are_in_order(context: Context, type_: Type, keys: Sequence[Symbolic]) -> bool:
    """Return whether keys of a set or map are known, each once, in the order in which the language iterates."""
    if len(keys) < 2:
        return True
    reading = Reading(context)
    try:
        values = [reading.value(each) for each in keys]
    except NoValue:
        return False
    return len(set(values)) == len(values) and values == list(in_order(type_, values))  # type: ignore[arg-type]


def is_constant(context: Context, symbolic: Symbolic) -> bool:
    try:
        Reading(context).value(symbolic)
    except NoValue:
        return False
    return True


def values_of(context: Context, symbolics: Mapping[str, Symbolic], model: Any) -> dict[str, Value] | None:
    """Return the values of several names in a model; None where one has none."""
    reading = Reading(context, model)
    try:
        return {name: reading.value(each) for name, each in symbolics.items()}
    except NoValue:
        return None
