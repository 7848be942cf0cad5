"""The value model of docs/spec/values.md: the Python object and the text of each value.

Takes objects from a caller, a node or an engine and returns values in their Python form, or the kind of problem.
SAFETY: no method that a caller's subclass may override is called.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any, TypeAlias

from vesper.values.base_types import is_a
from vesper.values.json_value import Json, exact_text, json_of, parse_json, plain_json
from vesper.values.numbers import (
    MAX_DIGITS,
    MAX_SCALE,
    decimal_of_integer,
    decimal_text,
    float_text,
    normal_decimal,
    parse_decimal,
    parse_float,
)
from vesper.values.period import Period
from vesper.values.problem import Problem, ProblemKind, ValueProblem
from vesper.values.strict_json import has_surrogate
from vesper.values.times import (
    MAX_DURATION,
    date_text,
    duration_text,
    parse_date,
    parse_duration,
    parse_period,
    parse_time,
    parse_timestamp,
    shift,
    time_text,
    timestamp_text,
)
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
    is_key,
)

# Names of the value model that are defined in other modules and exported here.
__all__ = [
    "MAX_DIGITS", "MAX_SCALE", "Json", "Problem", "ProblemKind", "ValueProblem", "decimal_text", "is_a",
    "normal_decimal", "parse_decimal",
]  # fmt: skip

MIN_INTEGER = -(2**63)
MAX_INTEGER = 2**63 - 1
MAX_ENTRIES = 1_000_000
MAX_TEXT = 10_000_000
MAX_BYTES = 10_000_000

Key: TypeAlias = bool | int | str | bytes | date
"""Python object of a map key or set member. A `datetime` is a `date` to Python; one collection has one type."""
Scalar: TypeAlias = bool | int | Decimal | float | str | bytes | date | timedelta | time | Period | Json
Value: TypeAlias = "Scalar | list[Value] | frozenset[Key] | dict[Key, Value] | dict[str, Value] | None"
JsonForm: TypeAlias = "bool | int | str | list[JsonForm] | dict[str, JsonForm] | None"


def accept(type_: Type, given: object) -> Scalar:
    """Return the scalar value for a caller's object, or raise `ValueProblem`."""
    if type_ == DECIMAL:
        return _accept_decimal(given)
    if type_ == INTEGER:
        return _accept_integer(given)
    if type_ == BOOLEAN:
        if given is True or given is False:
            return given
        raise ValueProblem(ProblemKind.WRONG_TYPE)
    if type_ == FLOAT:
        return _accept_float(given)
    if type_ == BYTES:
        return _accept_bytes(given)
    if type_ == JSON:
        return given if type(given) is Json else json_of(given)
    if type_ in _TIMES:
        return _accept_time(type_, given)
    if not is_a(given, str):
        raise ValueProblem(ProblemKind.WRONG_TYPE)
    text = given if type(given) is str else str.__str__(given)
    if isinstance(type_, Enum):
        if text not in type_.members:
            raise ValueProblem(ProblemKind.NOT_A_MEMBER)
        return text
    assert type_ == STRING, f"{type_} is not a scalar type"
    if len(text) > MAX_TEXT:
        raise ValueProblem(ProblemKind.OUT_OF_RANGE)
    if has_surrogate(text):
        raise ValueProblem(ProblemKind.MALFORMED)
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
    return decimal_of_integer(given if type(given) is int else int.__int__(given))


def _accept_float(given: object) -> float:
    if is_a(given, float):
        return given if type(given) is float else float.__float__(given)
    if is_a(given, str):
        text = str.__str__(given)
        if text not in ("NaN", "Infinity", "-Infinity"):
            raise ValueProblem(ProblemKind.MALFORMED)
        return parse_float(text)
    if not is_a(given, int) or given is True or given is False:
        raise ValueProblem(ProblemKind.WRONG_TYPE)
    number = int.__int__(given)
    try:
        nearest = float(number)
    except OverflowError:
        raise ValueProblem(ProblemKind.OUT_OF_RANGE) from None
    if int(nearest) != number:
        raise ValueProblem(ProblemKind.OUT_OF_RANGE)
    return nearest


def _accept_bytes(given: object) -> bytes:
    if is_a(given, bytes):
        found = given if type(given) is bytes else bytes.__getitem__(given, slice(None))
    elif is_a(given, bytearray):
        found = bytes(bytearray.__getitem__(given, slice(None)))
    elif is_a(given, memoryview):
        try:
            found = given.tobytes()
        except ValueError:  # the memoryview was released
            raise ValueProblem(ProblemKind.MALFORMED) from None
    elif is_a(given, str):
        found = parse_base64(str.__str__(given))
    else:
        raise ValueProblem(ProblemKind.WRONG_TYPE)
    if len(found) > MAX_BYTES:
        raise ValueProblem(ProblemKind.OUT_OF_RANGE)
    return found


def parse_base64(text: str) -> bytes:
    """Decode exactly the texts that `base64_text` writes."""
    try:
        found = binascii.a2b_base64(text.encode("ascii"))
    except (UnicodeEncodeError, binascii.Error):
        raise ValueProblem(ProblemKind.MALFORMED) from None
    # SEMANTICS: Python's decoder skips invalid characters and ignores leftover bits.
    if base64_text(found) != text:
        raise ValueProblem(ProblemKind.MALFORMED)
    return found


def base64_text(value: bytes) -> str:
    return binascii.b2a_base64(value, newline=False).decode("ascii")


_TIMES = (TIMESTAMP, DATE, DURATION, TIME_OF_DAY, PERIOD)
_PARSERS: dict[Type, Callable[[str], date | timedelta | time | Period]] = {
    DATE: parse_date,
    TIMESTAMP: parse_timestamp,
    DURATION: parse_duration,
    TIME_OF_DAY: parse_time,
    PERIOD: parse_period,
}


def _accept_time(type_: Type, given: object) -> date | timedelta | time | Period:
    if is_a(given, str):
        return _PARSERS[type_](str.__str__(given))
    if type_ == DURATION and is_a(given, timedelta):
        length = timedelta(*(_field(timedelta, name, given) for name in ("days", "seconds", "microseconds")))
        if not -MAX_DURATION <= length <= MAX_DURATION:
            raise ValueProblem(ProblemKind.OUT_OF_RANGE)
        return length
    if type_ == TIMESTAMP and is_a(given, datetime):
        return _moment(given)
    if type_ == DATE and is_a(given, date) and not is_a(given, datetime):
        return date(*(_field(date, name, given) for name in ("year", "month", "day")))
    if type_ == PERIOD and type(given) is Period:
        return given
    if type_ == TIME_OF_DAY and is_a(given, time):
        # SEMANTICS: `fold` says nothing without a zone, and a time with one is not a time of day.
        if vars(time)["tzinfo"].__get__(given) is not None:
            raise ValueProblem(ProblemKind.MALFORMED)
        clock = [_field(time, name, given) for name in ("hour", "minute", "second", "microsecond")]
        return time(clock[0], clock[1], clock[2], clock[3])
    raise ValueProblem(ProblemKind.WRONG_TYPE)


def _moment(given: datetime) -> datetime:
    """Return an aware `datetime` in UTC. Only its time zone object is called."""
    offset = datetime.utcoffset(given)
    if offset is None:
        raise ValueProblem(ProblemKind.MALFORMED)
    year, month, day = (_field(date, name, given) for name in ("year", "month", "day"))
    clock = [_field(datetime, name, given) for name in ("hour", "minute", "second", "microsecond")]
    return shift(datetime(year, month, day, clock[0], clock[1], clock[2], clock[3], UTC), -offset)


def _field(kind: type, name: str, of: object) -> int:
    """Return a field as the base type defines it, ignoring overrides of subclasses."""
    found: int = vars(kind)[name].__get__(of)
    return found


def sorted_map(type_: MapOf, entries: Mapping[Key, Value]) -> dict[Key, Value]:
    """Return a map with its keys in the order of the specification."""
    return {key: entries[key] for key in in_order(type_.key, entries)}


def in_order(type_: Type, keys: Iterable[Key]) -> list[Key]:
    """Return map keys or set members of this type in the order of the specification."""
    assert is_key(type_)
    if isinstance(type_, Enum):
        present = set(keys)
        return [member for member in type_.members if member in present]
    return sorted(keys, key=_order)


def _order(member: Key) -> Any:
    """Return the sort key: Python orders the keys of one type as the language does."""
    return member


def scalar_text(value: Scalar) -> str:
    """Return the text of a scalar, as in the JSON form."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Decimal():
            return decimal_text(value)
        case float():
            return float_text(value)
        case str():
            return value
        case bytes():
            return base64_text(value)
        case datetime():
            return timestamp_text(value)
        case date():
            return date_text(value)
        case timedelta():
            return duration_text(value)
        case time():
            return time_text(value)
        case Period():
            return str(value)
        case Json():
            return exact_text(value)


def to_json(type_: Type, value: Value) -> JsonForm:
    """Return the JSON form of the IR. Maps are arrays of pairs, floats and json are texts."""
    match type_, value:
        case OptionalOf(inner), _:
            return None if value is None else to_json(inner, value)
        case SetOf(element), frozenset():
            return [to_json(element, each) for each in in_order(element, value)]
        case ArrayOf(element), list():
            return [to_json(element, item) for item in value]
        case MapOf(key, of), dict():
            return [[to_json(key, each), to_json(of, value[each])] for each in in_order(key, value)]  # type: ignore[index]
        case Record(fields), dict():
            return {name: to_json(field, value[name]) for name, field in fields}
        case _:
            assert isinstance(value, Scalar)
            return value if isinstance(value, bool | int) else scalar_text(value)


def from_json(type_: Type, form: object) -> Value:
    """Return the value of a JSON form; forms that are not canonical are rejected."""
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
            if type_ not in _OF_TEXT:
                return accept(type_, form)
            if not isinstance(form, str):
                raise ValueProblem(ProblemKind.WRONG_TYPE)
            return parse_float(form) if type_ == FLOAT else parse_json(form) if type_ == JSON else accept(type_, form)


_OF_TEXT = (DECIMAL, FLOAT, JSON)
"""Types whose IR form is a text, although callers may give other objects."""


def accept_key(type_: Type, given: object) -> Key:
    """Return the map key or set member for a caller's object, or raise `ValueProblem`."""
    key = accept(type_, given)
    assert isinstance(key, Key), f"no key is a {type_}"
    return key


def plain(value: Value) -> Value:
    """Return a value as a caller receives it. A json becomes plain objects; everything else is unchanged."""
    match value:
        case Json():
            return plain_json(value)  # type: ignore[return-value]  # of the forms that other values have
        case list():
            return [plain(item) for item in value]
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case _:
            return value


_BY_EQUALITY = frozenset({bool, int, str, bytes, date, timedelta, time, Period, type(None)})
"""Types whose equal values have equal texts."""


def same(left: object, right: object) -> bool:
    """Return whether two values are indistinguishable: same type, equal, and same text."""
    kind = type(left)
    if kind is not type(right):
        return False
    # Tests exact types, frequent ones first: the verifier calls this thousands of times per input.
    if kind in _BY_EQUALITY:
        return left == right
    if kind is Decimal:
        # `str` of a decimal is faster than its text, and as exact.
        return str(left) == str(right) or decimal_text(left) == decimal_text(right)  # type: ignore[arg-type]
    if kind is float:
        # SEMANTICS: two NaN agree, and -0.0 does not agree with 0.0.
        return bool(left == right and left) or float_text(left) == float_text(right)  # type: ignore[arg-type]
    if kind is dict:
        return _same_entries(left, right)  # type: ignore[arg-type]
    if kind is list:
        return _same_items(left, right)  # type: ignore[arg-type]
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return decimal_text(left) == decimal_text(right)
    if isinstance(left, float) and isinstance(right, float):
        return float_text(left) == float_text(right)
    if isinstance(left, datetime) and isinstance(right, datetime):
        return left == right and left.tzinfo == right.tzinfo
    if isinstance(left, Json) and isinstance(right, Json):
        return exact_text(left) == exact_text(right)
    if isinstance(left, dict) and isinstance(right, dict):
        return _same_entries(left, right)
    if isinstance(left, list) and isinstance(right, list):
        return _same_items(left, right)
    if isinstance(left, frozenset) and isinstance(right, frozenset):
        return {(type(each), each) for each in left} == {(type(each), each) for each in right}
    return left == right


def _same_entries(left: dict[Any, Any], right: dict[Any, Any]) -> bool:
    """Compare entries and their order."""
    if len(left) != len(right):
        return False
    for (key, value), (other, others) in zip(left.items(), right.items(), strict=True):
        if not (key is other or same(key, other)) or not (value is others or same(value, others)):
            return False
    return True


def _same_items(left: list[Any], right: list[Any]) -> bool:
    if len(left) != len(right):
        return False
    for value, other in zip(left, right, strict=True):  # noqa: SIM110  # a generator takes twice as long
        if not (value is other or same(value, other)):
            return False
    return True


def show(value: object) -> str:
    """Return a value as text for messages."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        # A caller's Decimal may have a huge exponent, whose plain notation would exhaust memory.
        is_plain = value.is_finite() and abs(value.adjusted()) <= 2 * MAX_DIGITS
        return decimal_text(value) if is_plain else str(value)
    match value:
        case None:
            return "null"
        case str():
            return f'"{printable(value)}"'
        case float() | bytes() | datetime() | date() | timedelta() | time() | Period() | Json():
            return f'"{base64_text(value)}"' if isinstance(value, bytes) else scalar_text(value)
        case list() | tuple():
            return f"[{_show_items(value)}]"
        case frozenset() | set():
            return f"{{{_show_items(sorted(value, key=str))}}}"
        case dict():
            entries = [f"{key}: {show(each)}" for key, each in islice(value.items(), _MAX_SHOWN_ITEMS)]
            return f"{{{', '.join(entries)}{', …' if len(value) > _MAX_SHOWN_ITEMS else ''}}}"
        case _:
            return repr(value)


_MAX_SHOWN_ITEMS = 8


def _show_items(items: Sequence[object]) -> str:
    """Return the first items as text, with `…` for the rest."""
    return ", ".join(show(each) for each in items[:_MAX_SHOWN_ITEMS]) + (", …" if len(items) > _MAX_SHOWN_ITEMS else "")


def printable(text: str) -> str:
    """Return a text on one line with control characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)
