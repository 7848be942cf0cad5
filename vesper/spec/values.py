"""The value model of docs/spec/values.md: which Python object is which value, and its one text.

In: objects that a caller, a node or an engine gives. Out: values in their Python form, or the kind of problem.
Nothing here calls a method that a caller's subclass could have overridden.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from enum import StrEnum
from itertools import islice
from typing import TypeAlias, TypeGuard, TypeVar

from vesper.spec.types import (
    BOOLEAN,
    DECIMAL,
    INTEGER,
    STRING,
    ArrayOf,
    Enum,
    MapOf,
    OptionalOf,
    Record,
    SetOf,
    Type,
    is_key,
)

MAX_DIGITS = 1000
MAX_SCALE = 1000
MIN_INTEGER = -(2**63)
MAX_INTEGER = 2**63 - 1

_Kind = TypeVar("_Kind")
Key: TypeAlias = bool | int | str
Scalar: TypeAlias = bool | int | Decimal | str
Value: TypeAlias = "Scalar | list[Value] | frozenset[Key] | dict[Key, Value] | dict[str, Value] | None"
Json: TypeAlias = "bool | int | str | list[Json] | dict[str, Json] | None"
MAX_ENTRIES = 1_000_000
MAX_TEXT = 10_000_000


class ProblemKind(StrEnum):
    """Why an input does not fit; the closed list of docs/spec/values.md."""

    MISSING = "missing"
    UNKNOWN = "unknown"
    WRONG_TYPE = "wrong_type"
    OUT_OF_RANGE = "out_of_range"
    MALFORMED = "malformed"
    NOT_A_MEMBER = "not_a_member"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True)
class Problem:
    path: str
    kind: ProblemKind


class ValueProblem(Exception):
    """Raised by `accept` and `parse_decimal`; carries only the kind, the caller knows the path."""

    def __init__(self, kind: ProblemKind) -> None:
        super().__init__(kind.value)
        self.kind = kind


# The caller's context decides neither what can be read nor what an error is.
_READING = Context(traps=[InvalidOperation])
_DECIMAL_TEXT = re.compile(r"[+-]?(?P<mantissa>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE](?P<exponent>[+-]?[0-9]+))?")


def parse_decimal(text: str) -> Decimal:
    """The decimal that this text spells, within the limits, with scale ≥ 0 and no negative zero."""
    match = _DECIMAL_TEXT.fullmatch(text)
    if match is None:
        raise ValueProblem(ProblemKind.MALFORMED)
    digits = match["mantissa"].replace(".", "").lstrip("0")
    if len(digits) > MAX_DIGITS:  # an exponent never makes a coefficient shorter
        raise ValueProblem(ProblemKind.OUT_OF_RANGE)
    try:
        return normal_decimal(Decimal(text, _READING))
    except InvalidOperation:
        # An exponent past what `decimal` itself can hold; only zero survives a huge positive one.
        if digits or match["exponent"].startswith("-"):
            raise ValueProblem(ProblemKind.OUT_OF_RANGE) from None
        return Decimal(0)


def normal_decimal(number: Decimal) -> Decimal:
    """The same number with scale ≥ 0 and no negative zero, or a problem where it is over a limit."""
    sign, digits, exponent = Decimal.as_tuple(number)
    if not isinstance(exponent, int):
        raise ValueProblem(ProblemKind.MALFORMED)
    is_zero = digits == (0,) or not any(digits)
    if exponent > 0:
        if is_zero:
            return Decimal(0)
        if len(digits) + exponent > MAX_DIGITS:
            raise ValueProblem(ProblemKind.OUT_OF_RANGE)
        return Decimal((sign, digits + (0,) * exponent, 0))
    if len(digits) > MAX_DIGITS or -exponent > MAX_SCALE:
        raise ValueProblem(ProblemKind.OUT_OF_RANGE)
    if is_zero:
        return Decimal((0, (0,), exponent))
    return number if type(number) is Decimal else Decimal((sign, digits, exponent))


def decimal_text(number: Decimal) -> str:
    """Plain notation with exactly *scale* places. Says `-0` if it is given one: that would be a bug to see."""
    return format(number, "f")


def is_a(given: object, kind: type[_Kind]) -> TypeGuard[_Kind]:
    """Like `isinstance`, which believes what an object says of its own class; this does not."""
    return issubclass(type(given), kind)


def accept(type_: Type, given: object) -> Scalar:
    """The value of a scalar type that a caller's object stands for, or a problem."""
    if type_ == DECIMAL:
        return _accept_decimal(given)
    if type_ == INTEGER:
        return _accept_integer(given)
    if type_ == BOOLEAN:
        if given is True or given is False:
            return given
        raise ValueProblem(ProblemKind.WRONG_TYPE)
    if not is_a(given, str):
        raise ValueProblem(ProblemKind.WRONG_TYPE)
    text = given if type(given) is str else str.__str__(given)
    if isinstance(type_, Enum):
        if text not in type_.members:
            raise ValueProblem(ProblemKind.NOT_A_MEMBER)
        return text
    assert type_ == STRING, f"{type_} is not a scalar type"
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueProblem(ProblemKind.MALFORMED)
    if len(text) > MAX_TEXT:
        raise ValueProblem(ProblemKind.OUT_OF_RANGE)
    return text


def _accept_integer(given: object) -> int:
    if not is_a(given, int) or given is True or given is False:
        raise ValueProblem(ProblemKind.WRONG_TYPE)
    number = given if type(given) is int else int.__int__(given)
    if not MIN_INTEGER <= number <= MAX_INTEGER:
        raise ValueProblem(ProblemKind.OUT_OF_RANGE)
    return number


def _accept_decimal(given: object) -> Decimal:
    if is_a(given, Decimal):
        return normal_decimal(given)
    if is_a(given, str):
        return parse_decimal(str.__str__(given))
    if not is_a(given, int) or given is True or given is False:
        raise ValueProblem(ProblemKind.WRONG_TYPE)
    number = given if type(given) is int else int.__int__(given)
    # 1,000 digits need at most 3,322 bits; checked first because making digits of a huge integer takes quadratic time.
    if number.bit_length() > 3322:
        raise ValueProblem(ProblemKind.OUT_OF_RANGE)
    return normal_decimal(Decimal(number))


def sorted_map(type_: MapOf, entries: Mapping[Key, Value]) -> dict[Key, Value]:
    """A map with its keys in the order of the specification."""
    return {key: entries[key] for key in in_order(type_.key, entries)}


def in_order(type_: Type, keys: Iterable[Key]) -> list[Key]:
    """Keys of a map or members of a set, of this type, in the order of the specification."""
    assert is_key(type_)
    if isinstance(type_, Enum):
        present = set(keys)
        return [member for member in type_.members if member in present]
    return sorted(keys, key=_order)


def _order(member: Key) -> tuple[int, str]:
    """Numbers by value, strings by code point; the keys of one collection are all of one type."""
    return (0, member) if isinstance(member, str) else (member, "")


def to_json(type_: Type, value: Value) -> Json:
    """The JSON form of a value."""
    match type_, value:
        case OptionalOf(inner), _:
            return None if value is None else to_json(inner, value)
        case SetOf(element), frozenset():
            return list(in_order(element, value))
        case ArrayOf(element), list():
            return [to_json(element, item) for item in value]
        case MapOf(key, of), dict():
            return [[each, to_json(of, value[each])] for each in in_order(key, value)]  # type: ignore[index]
        case Record(fields), dict():
            return {name: to_json(field, value[name]) for name, field in fields}
        case _:
            assert isinstance(value, bool | int | Decimal | str)
            return decimal_text(value) if isinstance(value, Decimal) else value


def from_json(type_: Type, form: object) -> Value:
    """The value that a JSON form spells; only the canonical form is taken."""
    value = _from_json(type_, form)
    if to_json(type_, value) != form:
        raise ValueProblem(ProblemKind.MALFORMED)
    return value


def _from_json(type_: Type, form: object) -> Value:
    match type_, form:
        case OptionalOf(inner), _:
            return None if form is None else _from_json(inner, form)
        case SetOf(element), list():
            return frozenset(accept_key(element, item) for item in form)
        case ArrayOf(element), list():
            return [_from_json(element, item) for item in form]
        case MapOf(key, of), list() if all(isinstance(item, list) and len(item) == 2 for item in form):
            return {accept_key(key, item[0]): _from_json(of, item[1]) for item in form}
        case Record(fields), dict() if list(form) == [name for name, _ in fields] or set(form) == {
            n for n, _ in fields
        }:
            return {name: _from_json(field, form[name]) for name, field in fields}
        case ((SetOf() | ArrayOf() | MapOf() | Record()), _):
            raise ValueProblem(ProblemKind.WRONG_TYPE)
        case _:
            if type_ == DECIMAL and not isinstance(form, str):
                raise ValueProblem(ProblemKind.WRONG_TYPE)
            return accept(type_, form)


def accept_key(type_: Type, given: object) -> Key:
    key = accept(type_, given)
    assert not isinstance(key, Decimal), "no key is a decimal"
    return key


def same(left: object, right: object) -> bool:
    """True when two values are indistinguishable: of one type, equal, and of the same text."""
    if type(left) is not type(right):
        return False
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return decimal_text(left) == decimal_text(right)
    if isinstance(left, dict) and isinstance(right, dict):
        keys, others = list(left), list(right)
        return same(keys, others) and all(same(left[key], right[key]) for key in keys)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, frozenset) and isinstance(right, frozenset):
        return {(type(each), each) for each in left} == {(type(each), each) for each in right}
    return left == right


def show(value: object) -> str:
    """A value as a person reads it in a message."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        # A caller's own Decimal may have a huge exponent: writing that out would take all the memory there is.
        is_plain = value.is_finite() and abs(value.adjusted()) <= 2 * MAX_DIGITS
        return decimal_text(value) if is_plain else str(value)
    match value:
        case None:
            return "null"
        case str():
            return f'"{printable(value)}"'
        case list() | tuple():
            return f"[{_shown(value)}]"
        case frozenset() | set():
            return f"{{{_shown(sorted(value, key=str))}}}"
        case dict():
            entries = [f"{key}: {show(each)}" for key, each in islice(value.items(), _SHOWN)]
            return f"{{{', '.join(entries)}{', …' if len(value) > _SHOWN else ''}}}"
        case _:
            return repr(value)


_SHOWN = 8


def _shown(items: Sequence[object]) -> str:
    """The first few of many."""
    return ", ".join(show(each) for each in items[:_SHOWN]) + (", …" if len(items) > _SHOWN else "")


def printable(text: str) -> str:
    """A text on one line, with nothing in it that a terminal would act on."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)
