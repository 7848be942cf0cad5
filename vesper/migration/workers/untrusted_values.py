"""Values that an engine in another process says it has: none is over the limits of the language."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from vesper.values.json_value import MAX_JSON_DEPTH
from vesper.values.model import (
    MAX_BYTES,
    MAX_DIGITS,
    MAX_ENTRIES,
    MAX_INTEGER,
    MAX_TEXT,
    MIN_INTEGER,
    ValueProblem,
    normal_decimal,
)
from vesper.values.times import MAX_DURATION

_SAID_DEPTH = 40 + MAX_JSON_DEPTH
"""Types nest 32 deep (docs/spec/limits.md), what stands around a value a few more, and a json may be at the bottom."""
_MOST_BITS = (10**MAX_DIGITS).bit_length()
"""Of a whole number in a json, which comes as the number that it is: nobody sees whose it is here."""
_DECIMAL = MAX_DIGITS + 20
"""No decimal of the language is longer as Python writes it: its digits, a sign, a point, zeros, an exponent."""


def unpack_said(value: Any, depth: int = 0) -> Any:
    """As `packed.unpack`. What is over the limits is not even compared: the text of a decimal with an exponent of a
    billion has a billion digits."""
    kind = type(value)
    if kind is str and len(value) <= MAX_TEXT:
        return value
    check = _CHECKS.get(kind)
    if check is not None:
        return check(value)
    if kind is not list and kind is not dict:
        return value
    if depth > _SAID_DEPTH:
        raise ValueError(f"a value is nested more than {_SAID_DEPTH} deep, deeper than any type")
    if kind is list:
        return [unpack_said(each, depth + 1) for each in _few(value)]
    if "d" in value:
        return {_key(key): unpack_said(each, depth + 1) for key, each in _few(value["d"])}
    return frozenset(map(_key, _few(value["s"])))


def _key(value: Any) -> Any:
    """Of other kinds there are as many as one likes that all have the same hash: a set of them takes for ever."""
    kind = type(value)
    if kind is int:
        if not MIN_INTEGER <= value <= MAX_INTEGER:
            raise ValueError("a whole number is out of range")
    elif kind not in _KEYS:
        raise ValueError(f"no key of a map, nor a member of a set: {kind.__name__}")
    return unpack_said(value)


def _few(entries: Any) -> Any:
    if len(entries) > MAX_ENTRIES:
        raise ValueError(f"a collection has {len(entries):,} entries, and {MAX_ENTRIES:,} are the most")
    return entries


def _integer(value: int) -> int:
    if value.bit_length() > _MOST_BITS:
        raise ValueError("a whole number is out of range")
    return value


def _decimal(value: Decimal) -> Decimal:
    if len(str(value)) > _DECIMAL:  # before its digits are made one by one
        raise ValueError("a decimal is out of range")
    try:
        normal_decimal(value)
    except ValueProblem as problem:
        raise ValueError(f"a decimal is none of the language: {problem}") from None
    return value


def _text(value: str) -> str:
    raise ValueError(f"a text has {len(value):,} characters, and {MAX_TEXT:,} are the most")


def _bytes(value: bytes) -> bytes:
    if len(value) > MAX_BYTES:
        raise ValueError(f"there are {len(value):,} bytes, and {MAX_BYTES:,} are the most")
    return value


def _duration(value: timedelta) -> timedelta:
    if not -MAX_DURATION <= value <= MAX_DURATION:
        raise ValueError("a duration is out of range")
    return value


_KEYS = frozenset((str, int, bool, date, datetime, bytes))
_CHECKS: dict[type, Callable[[Any], Any]] = {
    str: _text,
    int: _integer,
    Decimal: _decimal,
    bytes: _bytes,
    timedelta: _duration,
}
"""Other kinds have no limit, or were held to theirs when they were read."""
