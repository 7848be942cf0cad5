"""The value model of docs/spec/values.md: which Python object is which value, and its one text.

In: objects that a caller, a node or an engine gives. Out: values in their Python form, or the kind of problem.
Nothing here calls a method that a caller's subclass could have overridden.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from enum import StrEnum
from typing import TypeAlias, TypeGuard, TypeVar

from vesper.spec.types import BOOLEAN, DECIMAL, INTEGER, STRING, Enum, SetOf, Type

MAX_DIGITS = 1000
MAX_SCALE = 1000
MIN_INTEGER = -(2**63)
MAX_INTEGER = 2**63 - 1

_Kind = TypeVar("_Kind")
Scalar: TypeAlias = bool | int | Decimal | str
Value: TypeAlias = Scalar | frozenset[Scalar]
Json: TypeAlias = "bool | int | str | list[Json]"


class ProblemKind(StrEnum):
    """Why an input does not fit; the closed list of docs/spec/values.md."""

    MISSING = "missing"
    UNKNOWN = "unknown"
    WRONG_TYPE = "wrong_type"
    OUT_OF_RANGE = "out_of_range"
    MALFORMED = "malformed"
    NOT_A_MEMBER = "not_a_member"


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


def _is_a(given: object, kind: type[_Kind]) -> TypeGuard[_Kind]:
    """Like `isinstance`, which believes what an object says of its own class; this does not."""
    return issubclass(type(given), kind)


def accept(type_: Type, given: object) -> Value:
    """The value of this type that a caller's object stands for, or a problem."""
    if type_ == DECIMAL:
        return _accept_decimal(given)
    if type_ == INTEGER:
        return _accept_integer(given)
    if type_ == BOOLEAN:
        if given is True or given is False:
            return given
        raise ValueProblem(ProblemKind.WRONG_TYPE)
    if not _is_a(given, str):
        raise ValueProblem(ProblemKind.WRONG_TYPE)
    text = given if type(given) is str else str.__str__(given)
    if isinstance(type_, Enum):
        if text not in type_.members:
            raise ValueProblem(ProblemKind.NOT_A_MEMBER)
        return text
    assert type_ == STRING, f"no input has type {type_}"
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueProblem(ProblemKind.MALFORMED)
    return text


def _accept_integer(given: object) -> int:
    if not _is_a(given, int) or given is True or given is False:
        raise ValueProblem(ProblemKind.WRONG_TYPE)
    number = given if type(given) is int else int.__int__(given)
    if not MIN_INTEGER <= number <= MAX_INTEGER:
        raise ValueProblem(ProblemKind.OUT_OF_RANGE)
    return number


def _accept_decimal(given: object) -> Decimal:
    if _is_a(given, Decimal):
        return normal_decimal(given)
    if _is_a(given, str):
        return parse_decimal(str.__str__(given))
    if not _is_a(given, int) or given is True or given is False:
        raise ValueProblem(ProblemKind.WRONG_TYPE)
    number = given if type(given) is int else int.__int__(given)
    # 1,000 digits need at most 3,322 bits; checked first because making digits of a huge integer takes quadratic time.
    if number.bit_length() > 3322:
        raise ValueProblem(ProblemKind.OUT_OF_RANGE)
    return normal_decimal(Decimal(number))


def accept_inputs(
    declared: Sequence[tuple[str, Type, Value | None]], given: Mapping[str, object]
) -> tuple[dict[str, Value], list[Problem]]:
    """Convert a whole call: the values in declared order, and every problem there is."""
    if not _is_a(given, dict):
        raise TypeError(f"inputs must be a dict, not {type(given).__name__}")
    if type(given) is not dict or any(type(key) is not str for key in given):
        given = _plain(given)
    values: dict[str, Value] = {}
    problems: list[Problem] = []
    for name, type_, default in declared:
        if name not in given:
            if default is None:
                problems.append(Problem(name, ProblemKind.MISSING))
            else:
                values[name] = default
            continue
        try:
            values[name] = accept(type_, given[name])
        except ValueProblem as problem:
            problems.append(Problem(name, problem.kind))
    known = {name for name, _, _ in declared}
    problems.extend(Problem(name, ProblemKind.UNKNOWN) for name in sorted(set(given) - known))
    return values, problems


def _plain(given: dict[str, object]) -> dict[str, object]:
    """The same inputs in a plain dict under plain names, so that no look-up calls what a subclass overrides."""
    plain: dict[str, object] = {}
    for key, value in dict.items(given):
        if not _is_a(key, str):
            raise TypeError(f"input names must be str, not {type(key).__name__}")
        plain[str.__str__(key)] = value
    return plain


def to_json(type_: Type, value: Value) -> Json:
    """The JSON form of a value."""
    if isinstance(type_, SetOf):
        assert isinstance(value, frozenset)
        return [to_json(type_.element, member) for member in ordered(type_, value)]
    assert not isinstance(value, frozenset)
    return decimal_text(value) if isinstance(value, Decimal) else value


def from_json(type_: Type, form: object) -> Value:
    """The value that a JSON form spells; only the canonical form is taken."""
    if isinstance(type_, SetOf):
        if not isinstance(form, list):
            raise ValueProblem(ProblemKind.WRONG_TYPE)
        value: Value = frozenset(_scalar_from_json(type_.element, member) for member in form)
    elif type_ == DECIMAL and not isinstance(form, str):
        raise ValueProblem(ProblemKind.WRONG_TYPE)
    else:
        value = accept(type_, form)
    if to_json(type_, value) != form:
        raise ValueProblem(ProblemKind.MALFORMED)
    return value


def _scalar_from_json(type_: Type, form: object) -> Scalar:
    value = from_json(type_, form)
    assert not isinstance(value, frozenset), "no set holds sets"
    return value


def ordered(type_: SetOf, members: frozenset[Scalar]) -> list[Scalar]:
    """A set's members in the order of the specification."""
    element = type_.element
    if isinstance(element, Enum):
        return [member for member in element.members if member in members]
    return sorted(members, key=_order)


def _order(member: Scalar) -> tuple[int, str]:
    """Numbers by value, strings by code point; the members of one set are all of one kind."""
    assert not isinstance(member, Decimal), "no set holds decimals"
    return (0, member) if isinstance(member, str) else (member, "")


def same(left: object, right: object) -> bool:
    """True when two values are indistinguishable: of one type, equal, and of the same text."""
    if type(left) is not type(right):
        return False
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return decimal_text(left) == decimal_text(right)
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    return left == right


def show(value: object) -> str:
    """A value as a person reads it in a message."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        # A caller's own Decimal may have a huge exponent: writing that out would take all the memory there is.
        is_plain = value.is_finite() and abs(value.adjusted()) <= 2 * MAX_DIGITS
        return decimal_text(value) if is_plain else str(value)
    return f'"{printable(value)}"' if isinstance(value, str) else repr(value)


def printable(text: str) -> str:
    """A text on one line, with nothing in it that a terminal would act on."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)
