"""Conversion of PostgreSQL columns to objects of Python.

A joined connection receives columns as text. During a query the session is in UTC with ISO dates and ISO 8601
intervals, so there is one form of each.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

from vesper.effects.database.joined import Unreadable
from vesper.values.numbers import parse_decimal, parse_float
from vesper.values.problem import ProblemKind, ValueProblem
from vesper.values.times import parse_date, parse_timestamp


class JsonText(str):
    """The text of a JSON column, as opposed to a string of the language."""

    __slots__ = ()


_INTERVAL = re.compile(
    r"P(?:(?P<y>-?[0-9]+)Y)?(?:(?P<mo>-?[0-9]+)M)?(?:(?P<d>-?[0-9]+)D)?"
    r"(?:T(?:(?P<h>-?[0-9]+)H)?(?:(?P<m>-?[0-9]+)M)?(?:(?P<s>-?[0-9]+(?:\.[0-9]{1,6})?)S)?)?"
)


def cell_of(oid: int, raw: object) -> object:
    """Return one column of one row as an object of Python, or as `Unreadable`."""
    if raw is None:
        return None
    if not isinstance(raw, bytes):  # of a type that the application has registered on a joined connection
        return Unreadable("a value of a type that only the application reads")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return Unreadable("a text that is not UTF-8")
    read = _READERS.get(oid)
    try:
        # Text, varchar, enums, uuid, inet, and all that has no type of ours, are what they look like.
        return text if read is None else read(text)
    except ValueProblem as problem:
        return Unreadable(f"{_CALLED.get(oid, 'a value')} ({problem.kind.value})")


def _numeric(text: str) -> Decimal:
    if text in ("NaN", "Infinity", "-Infinity"):
        raise ValueProblem(ProblemKind.OUT_OF_RANGE)
    return parse_decimal(text)


def _interval(text: str) -> object:
    found = _INTERVAL.fullmatch(text)
    if found is None:
        raise ValueProblem(ProblemKind.MALFORMED)
    if found["y"] or found["mo"]:
        return Unreadable("an interval with months, which have no fixed length")
    days, hours, minutes = (int(found[unit] or 0) for unit in ("d", "h", "m"))
    microseconds = int(Decimal(found["s"] or 0) * 1_000_000)
    try:
        return timedelta(days=days, hours=hours, minutes=minutes, microseconds=microseconds)
    except OverflowError:
        raise ValueProblem(ProblemKind.OUT_OF_RANGE) from None


def _moment(text: str) -> object:
    # In UTC the offset is always this; infinity, and years before 1 or after 9999, have another form.
    return parse_timestamp(text.removesuffix("+00") + "Z" if text.endswith("+00") else text)


def _bytes(text: str) -> bytes:
    if not text.startswith("\\x"):  # a session that was set to another form
        raise ValueProblem(ProblemKind.MALFORMED)
    return bytes.fromhex(text[2:])


def _without_zone(_text: str) -> object:
    return Unreadable("a timestamp without a time zone (make the column a timestamptz)")


def _array(_text: str) -> object:
    return Unreadable("an array of PostgreSQL (select to_jsonb of it)")


_READERS: dict[int, Callable[[str], object]] = {
    16: "t".__eq__,
    17: _bytes,
    20: int,
    21: int,
    23: int,
    114: JsonText,
    700: parse_float,
    701: parse_float,
    1082: parse_date,
    1114: _without_zone,
    1184: _moment,
    1186: _interval,
    1700: _numeric,
    3802: JsonText,
    **dict.fromkeys(
        # boolean, bytea, integers, json, floats, texts, date, timestamps, interval, numeric, uuid and jsonb
        (1000, 1001, 1005, 1007, 1016, 199, 1021, 1022, 1009, 1014, 1015, 1182, 1115, 1185, 1187, 1231, 2951, 3807),
        _array,
    ),
}
"""By the OIDs that PostgreSQL's own types have had from the beginning."""
_CALLED = {1082: "a date", 1184: "a timestamp", 1186: "an interval", 1700: "a number that no decimal holds"}
