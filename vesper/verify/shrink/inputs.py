"""Greedy shrinking of a failing input while the same failure remains.

It starts from the failing input, which a generator-driven shrinker cannot take (docs/adr/0005). Each input in turn is
replaced by the simplest value that keeps the failure, until a round changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite, trunc

from vesper.language.ir.nodes import Node
from vesper.values.model import decimal_text
from vesper.values.numbers import float_text
from vesper.values.period import Period
from vesper.values.times import duration_text
from vesper.values.types import Enum

MAX_TRIES = 5000


def shrink(
    node: Node, inputs: Mapping[str, object], still_fails: Callable[[dict[str, object]], bool]
) -> dict[str, object]:
    """Return the smallest input found for which `still_fails` holds, as it must for `inputs`."""
    current = dict(inputs)
    tries = 0
    improved = True
    while improved:
        improved = False
        for name in list(current):
            for candidate in _candidates(node, name, current):
                tries += 1
                if tries > MAX_TRIES:
                    return current
                if still_fails(candidate):
                    current = candidate
                    improved = True
                    break
    return current


def _candidates(node: Node, name: str, current: dict[str, object]) -> Iterator[dict[str, object]]:
    """Yield simpler inputs, simplest first: without this input, then with simpler values of it."""
    if name in node.flagged or all(each.name != name or each.default is not None for each in node.inputs):
        yield {key: value for key, value in current.items() if key != name}
    members: tuple[str, ...] = next(
        (each.type.members for each in node.inputs if each.name == name and isinstance(each.type, Enum)), ()
    )
    for simpler in simpler_values(current[name], members):
        yield current | {name: simpler}


def simpler_values(value: object, members: tuple[str, ...] = ()) -> Iterator[object]:
    """Yield simpler values, simplest first, always of the same type, so that a wrong type stays wrong."""
    match value:
        case bool():
            if value:
                yield False
        case int():
            yield from (each for each in _simpler_integers(value) if _size(each) < _size(value))
        case Decimal():
            if value.is_finite():
                yield from _simpler_decimals(value)
        case float():
            yield from (each for each in _simpler_floats(value) if _float_size(each) < _float_size(value))
        case bytes():
            yield from (each for each in _simpler_bytes(value) if _bytes_size(each) < _bytes_size(value))
        case datetime() | date():
            yield from _simpler_days(value)
        case timedelta():
            yield from (each for each in _simpler_lengths(value) if _length_size(each) < _length_size(value))
        case time():
            if value != time(0):
                yield from (time(0), value.replace(microsecond=0), value.replace(minute=0, second=0, microsecond=0))
        case Period():
            if value.months:
                yield from (Period(0), Period(value.months // 2 if value.months > 0 else -value.months))
        case str() if members:
            yield from members[: members.index(value)] if value in members else members
        case str():
            yield from (each for each in _simpler_strings(value) if _text_size(each) < _text_size(value))
        case list():
            yield from simpler_lists(value, simpler_values)
        case dict():
            for key, part in value.items():
                yield {each: found for each, found in value.items() if each != key}
                yield from (value | {key: simpler} for simpler in simpler_values(part))
        case set() | frozenset():
            yield from (value - {member} for member in sorted(value, key=repr))


def simpler_lists(value: list[object], simpler_items: Callable[[object], Iterator[object]]) -> Iterator[list[object]]:
    """Yield the empty list, each half, then for each item the list without it and with it simpler."""
    if value:
        yield []
    if len(value) > 1:
        yield value[: len(value) // 2]
        yield value[len(value) // 2 :]
    for index, item in enumerate(value):
        yield value[:index] + value[index + 1 :]
        yield from ([*value[:index], simpler, *value[index + 1 :]] for simpler in simpler_items(item))


def _float_size(number: float) -> tuple[int, float, int]:
    """Order floats by digits, size and sign; non-finite ones last."""
    text = float_text(number)
    return len(text), abs(number) if isfinite(number) else 0.0, int(text.startswith("-"))


def _simpler_floats(value: float) -> Iterator[float]:
    yield from (0.0, 1.0)
    if isfinite(value):
        yield from (abs(value), float(trunc(value)), *(round(value, places) for places in range(4)), value / 2)


def _bytes_size(value: bytes) -> tuple[int, bytes]:
    return len(value), value


def _simpler_bytes(value: bytes) -> Iterator[bytes]:
    half = len(value) // 2
    yield from (b"", value[:half], value[half:], value[1:], value[:-1], bytes(len(value)), b"a" * len(value))


_PLAIN_DAY = {"microsecond": 0, "second": 0, "minute": 0, "hour": 0, "day": 1, "month": 1, "year": 2000}


def _simpler_days(value: date) -> Iterator[date]:
    """Yield 1 January 2000 at midnight, then dates with single fields replaced."""
    fields = {name: plain for name, plain in _PLAIN_DAY.items() if getattr(value, name, plain) != plain}
    if not fields:
        return
    yield value.replace(**fields)
    for name, plain in fields.items():
        with suppress(ValueError):  # 29 February is not in every year
            yield value.replace(**{name: plain})


def _length_size(length: timedelta) -> tuple[int, timedelta, int]:
    return len(duration_text(length)), abs(length), int(length < timedelta(0))


def _simpler_lengths(value: timedelta) -> Iterator[timedelta]:
    yield from (timedelta(0), timedelta(seconds=1), abs(value), timedelta(days=value.days))
    yield from (timedelta(days=value.days, seconds=value.seconds), timedelta(seconds=value.seconds))


def _size(number: int) -> tuple[int, int]:
    return abs(number), int(number < 0)


def _simpler_integers(value: int) -> Iterator[int]:
    yield from (0, 1, abs(value))
    digits = str(abs(value))
    sign = -1 if value < 0 else 1
    for kept in range(1, len(digits)):
        yield sign * int(digits[0] + "0" * kept if kept < len(digits) - 1 else digits[:-1])
    yield sign * int(digits[0] + "0" * (len(digits) - 1))
    for step in (1000, 100, 10, 1):
        yield value - sign * step


def _decimal_size(number: Decimal) -> tuple[int, Decimal, int, int]:
    """Order decimals by digits, size, places and sign."""
    size = number.copy_abs()  # `abs` would round to the current context
    text = decimal_text(size)
    return len(text.replace(".", "")), size, len(text.partition(".")[2]), int(number < 0)


def _simpler_decimals(value: Decimal) -> Iterator[Decimal]:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    half = len(digits) // 2
    shapes = [
        (0, digits, exponent),
        (sign, digits[:-1], min(exponent + 1, 0)),
        (sign, digits[1:], exponent),
        (sign, digits[: half + 1], exponent),
        (sign, digits[half:], exponent),
        (sign, digits, min(exponent + 1, 0)),
        (sign, digits, exponent // 2),
        (sign, digits, 0),
    ]
    shapes += [
        (sign, (*digits[:position], lower, *digits[position + 1 :]), exponent)
        for position, digit in enumerate(digits)
        for lower in {0, 1, digit - 1}
        if 0 <= lower < digit
    ]
    if any(digits):  # 10 is simplified to 9 in no other way
        below = int("".join(map(str, digits))) - 1
        shapes.append((sign, tuple(map(int, str(below))), exponent))
    constants = [Decimal(text) for text in ("0", "1", "10", "0.1", "0.01")]
    # Keyed by text: 100.0 and 100.00 are equal numbers, but different inputs.
    found = {decimal_text(each): each for each in (*constants, *(Decimal(shape) for shape in shapes if shape[1]))}
    smaller = [each for each in found.values() if _decimal_size(each) < _decimal_size(value)]
    yield from sorted(smaller, key=_decimal_size)


def _text_size(text: str) -> tuple[int, list[int]]:
    """Order texts by length, then visible letters first, `a` before all others."""
    return len(text), [ord(c) - ord("a") if "a" <= c <= "z" else 1000 + ord(c) for c in text]


def _simpler_strings(value: str) -> Iterator[str]:
    yield from ("", "a", "a" * len(value), value[: len(value) // 2], value[len(value) // 2 :], value[1:], value[:-1])
    for position in range(min(len(value), 64)):
        yield value[:position] + "a" + value[position + 1 :]
