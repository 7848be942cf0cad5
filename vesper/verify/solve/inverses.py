"""Inverses of single operations: arguments that give a wanted result.

Each inverse takes the current arguments and the wanted result, and returns options as (number of the argument, value).
An option may be wrong for special arguments; the search evaluates it.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from vesper.kernels import date as dates
from vesper.kernels import decimal as decimals
from vesper.kernels import regex
from vesper.kernels import text as texts
from vesper.values.model import scalar_text
from vesper.verify.solve.numbers import from_number

Options: TypeAlias = list[tuple[int, Any]]
Inverse: TypeAlias = Callable[[Sequence[Any], Any], Options]

_DAYS_SEARCHED = range(-31, 32)
_MAX_OPTIONS = 8

_MAX_LENGTH = 1_000
"""Longest text that is made to have a part at a place."""


def inverse_of(op: str, args: Sequence[Any], target: Any) -> Options:
    """Return the options for a wanted result; none for an operation without an inverse."""
    inverse = _INVERSES.get(op)
    return [] if inverse is None else inverse(args, target)


def splice(text: Any, start: int, end: int, part: Any) -> Any:
    """Return a text or list with a part replaced."""
    return text[:start] + part + text[end:]


def _same(_args: Sequence[Any], target: Any) -> Options:
    return [(0, target)]


def _written(_args: Sequence[Any], target: Any) -> Options:
    """Invert the parsing of a text."""
    return [(0, scalar_text(target))]


def _parsed(parse: Callable[[str], Any]) -> Inverse:
    return lambda _args, target: [(0, parse(target))]


def _absolute(_args: Sequence[Any], target: Any) -> Options:
    return [(0, target), (0, -target)]


def _least(args: Sequence[Any], target: Any) -> Options:
    return [(0, target)] if args[0] <= args[1] else [(1, target)]


def _greatest(args: Sequence[Any], target: Any) -> Options:
    return [(0, target)] if args[0] >= args[1] else [(1, target)]


def _remainder(args: Sequence[Any], target: Any) -> Options:
    value, divisor = args
    return [(0, value - value % divisor + target)]


def _quotient(args: Sequence[Any], target: Any) -> Options:
    value, divisor = args
    return [(0, target * divisor + value % divisor), (0, target * divisor)]


def _scale(args: Sequence[Any], target: Any) -> Options:
    return [(0, decimals.round(args[0], target, "half_even"))] if target >= 0 else []


def _root(args: Sequence[Any], target: Any) -> Options:
    base, exponent = args
    root = abs(float(target)) ** (1 / exponent) if exponent else 1.0
    return [(0, from_number(base, Fraction(root)))]


def _sum_of_array(args: Sequence[Any], target: Any) -> Options:
    (values,) = args
    if not values:
        return [(0, [target])]
    gap = target - sum(values[1:], values[0])
    return [(0, [*values[:at], each + gap, *values[at + 1 :]]) for at, each in enumerate(values[:_MAX_OPTIONS])]


def _extreme_of_array(is_least: bool) -> Inverse:
    def inverse(args: Sequence[Any], target: Any) -> Options:
        values = [max(each, target) if is_least else min(each, target) for each in args[0]]
        if target in values:
            return [(0, values)]
        return [(0, [*values[:at], target, *values[at + 1 :]]) for at in range(min(len(values) + 1, _MAX_OPTIONS))]

    return inverse


# -- texts ----------------------------------------------------------------------------------------


def _concat(args: Sequence[Any], target: Any) -> Options:
    left, right = args
    found: Options = []
    if target[len(target) - len(right) :] == right:
        found.append((0, target[: len(target) - len(right)]))
    if target[: len(left)] == left:
        found.append((1, target[len(left) :]))
    return found or [(0, target), (1, target)]


def _slice(args: Sequence[Any], target: Any) -> Options:
    value, start, end = args
    return [(0, splice(value, min(start, len(value)), min(end, len(value)), target))]


def _take(args: Sequence[Any], target: Any) -> Options:
    return [(0, splice(args[0], 0, min(args[1], len(args[0])), target))]


def _drop(args: Sequence[Any], target: Any) -> Options:
    return [(0, args[0][: args[1]] + target)]


def _at(args: Sequence[Any], target: Any) -> Options:
    value, index = args
    part = target if isinstance(value, str) else [target]
    found: Options = [(0, splice(value, index, index + 1, part))] if index <= len(value) and target is not None else []
    return found + [(1, at) for at, each in enumerate(value) if each == target]


def _first(args: Sequence[Any], target: Any) -> Options:
    return [(0, [])] if target is None else [(0, [target, *args[0][1:]])]


def _last(args: Sequence[Any], target: Any) -> Options:
    return [(0, [])] if target is None else [(0, [*args[0][:-1], target])]


def _join(args: Sequence[Any], target: Any) -> Options:
    separator = args[1]
    if separator:
        return [(0, target.split(separator))]
    return [(0, list(target))]


def _split(args: Sequence[Any], target: Any) -> Options:
    return [(0, args[1].join(target))]


def _index_of_text(args: Sequence[Any], target: Any) -> Options:
    value, part = args
    without = value.replace(part, "") if part else value
    if target is None:
        return [(0, without)]
    if target > _MAX_LENGTH:
        return []
    without += "a" * max(0, target - len(without))
    return [(0, splice(without, target, target, part))]


def _index_of_item(args: Sequence[Any], target: Any) -> Options:
    values, item = args
    without = [each for each in values if each != item]
    return [(0, without)] if target is None else [(0, splice(without, target, target, [item]))]


def _padded(args: Sequence[Any], target: Any) -> Options:
    return [(0, target), (0, target.strip(args[2]) if len(args) > 2 else target.strip())]


def _found(args: Sequence[Any], target: Any) -> Options:
    """Invert a search by pattern: the wanted match inside the text, or a text without one."""
    if target is None:
        return [(0, "")]
    value, pattern = args
    old = regex.find(value, pattern)
    return [(0, value.replace(old, target, 1) if old else target)]


def _groups(args: Sequence[Any], target: Any) -> Options:
    """Invert the groups of a match: replace the groups that differ inside the text."""
    value, pattern = args
    if target is None:
        return [(0, "")]
    old = regex.groups(value, pattern)
    if old is None:
        return []
    for before, after in zip(old[1:], target[1:], strict=True):
        if before and after is not None and before != after:
            value = value.replace(before, after, 1)
    return [(0, value)]


# -- times ----------------------------------------------------------------------------------------


def _replace_part(part: str) -> Inverse:
    def inverse(args: Sequence[Any], target: Any) -> Options:
        (value,) = args
        if part == "day":
            return [(0, value.replace(day=target))]
        year, month = (target, value.month) if part == "year" else (value.year, target)
        if part in ("year", "month"):
            day = min(value.day, monthrange(year, month)[1])
            return [(0, value.replace(year=year, month=month, day=day))]
        return [(0, value.replace(**{part: target}))]

    return inverse


def _nearby_day(function: Callable[..., Any]) -> Inverse:
    """Invert a function of a date by trying the days around it."""

    def inverse(args: Sequence[Any], target: Any) -> Options:
        value, *more = args
        days = [value + timedelta(days=shift) for shift in _DAYS_SEARCHED]
        found = [each for each in days if function(each, *more) == target]
        return [(0, each) for each in found]

    return inverse


def _between(step: Callable[[date, int], date]) -> Inverse:
    def inverse(args: Sequence[Any], target: Any) -> Options:
        start, end = args
        slacks = [timedelta(days=days) for days in (0, 1, 20)]
        ends = [(1, step(start, target) + slack) for slack in slacks]
        return [*ends, *((0, step(end, -target) - slack) for slack in slacks)]

    return inverse


def _stepped(step: Callable[[date, int], date]) -> Inverse:
    def inverse(args: Sequence[Any], target: Any) -> Options:
        return [(0, step(target, -args[1]))]

    return inverse


def _from_parts(args: Sequence[Any], target: Any) -> Options:
    parts = (target.year, target.month, target.day)
    return [(number, part) for number, part in enumerate(parts) if args[number] != part]


# -- collections ----------------------------------------------------------------------------------


def _map_at(args: Sequence[Any], target: Any) -> Options:
    entries, key = args
    if target is None:
        return [(0, {each: value for each, value in entries.items() if each != key})]
    return [(0, {**entries, key: target}), *((1, each) for each, value in entries.items() if value == target)]


def _map_values(args: Sequence[Any], target: Any) -> Options:
    keys = list(args[0])
    return [(0, dict(zip(keys, target, strict=True)))] if len(keys) == len(target) else []


def _map_keys(args: Sequence[Any], target: Any) -> Options:
    values = list(args[0].values())
    return [(0, dict(zip(target, values, strict=False)))] if len(values) >= len(target) else []


def _to_set(_args: Sequence[Any], target: Any) -> Options:
    return [(0, sorted(target))]


def _to_array(_args: Sequence[Any], target: Any) -> Options:
    return [(0, frozenset(target))]


def _clamp(_args: Sequence[Any], target: Any) -> Options:
    return [(0, target), (1, target), (2, target)]


_ALIKE = (
    "optional.some", "optional.unwrap", "optional.require", "optional.in_force", "text.lower", "text.upper",
    "text.trim", "text.trim_start", "text.trim_end", "text.replace", "array.sort", "array.distinct", "enum.text",
    "regex.replace", "date.start_of_month", "date.end_of_month",
)  # fmt: skip
"""Operations whose result is often a possible argument with the same result."""
_INVERSES: dict[str, Inverse] = {
    **dict.fromkeys(_ALIKE, _same),
    **{f"{family}.parse": _written for family in ("integer", "decimal", "float", "date", "timestamp", "duration")},
    **{f"{family}.abs": _absolute for family in ("integer", "decimal", "float", "duration")},
    **{f"{family}.pow": _root for family in ("integer", "decimal")},
    **{f"{family}.sum": _sum_of_array for family in ("integer", "decimal", "float", "duration")},
    **{f"date.{part}": _replace_part(part) for part in ("year", "month", "day")},
    **{f"timestamp.{part}": _replace_part(part) for part in ("year", "month", "day")},
    **{f"timestamp.{part}": _replace_part(part) for part in ("hour", "minute", "second", "microsecond")},
    **{f"{family}.concat": _concat for family in ("text", "array", "bytes")},
    **{f"{family}.slice": _slice for family in ("text", "array", "bytes")},
    **{f"{family}.reverse": lambda _args, target: [(0, target[::-1])] for family in ("text", "array")},
    "integer.text": _parsed(int),
    "decimal.text": _parsed(decimals.parse),
    "date.text": _parsed(date.fromisoformat),
    "timestamp.text": _parsed(lambda text: datetime.fromisoformat(text).astimezone(UTC)),
    "boolean.text": _parsed(lambda text: text == "true"),
    "value.min": _least,
    "value.max": _greatest,
    "value.clamp": _clamp,
    "integer.mod": _remainder,
    "integer.rem": _remainder,
    "integer.quot": _quotient,
    "integer.div_floor": _quotient,
    "decimal.scale": _scale,
    "array.min": _extreme_of_array(is_least=True),
    "array.max": _extreme_of_array(is_least=False),
    "array.take": _take,
    "array.drop": _drop,
    "array.at": _at,
    "array.get": _at,
    "array.first": _first,
    "array.last": _last,
    "array.append": lambda _args, target: [(0, target[:-1]), (1, target[-1])] if target else [],
    "array.index_of": _index_of_item,
    "array.to_set": _to_set,
    "set.to_array": _to_array,
    "text.at": _at,
    "text.join": _join,
    "text.split": _split,
    "text.words": lambda _args, target: [(0, " ".join(target))],
    "text.index_of": _index_of_text,
    "text.pad_start": _padded,
    "text.pad_end": _padded,
    "text.code_point": lambda _args, target: [(0, texts.from_code_point(target))],
    "text.from_code_point": lambda _args, target: [(0, ord(target))] if len(target) == 1 else [],
    "regex.find": _found,
    "regex.groups": _groups,
    "date.from_parts": _from_parts,
    "date.add_months": _stepped(dates.add_months),
    "date.add_years": _stepped(dates.add_years),
    "date.months_between": _between(dates.add_months),
    "date.years_between": _between(dates.add_years),
    "date.weekday": _nearby_day(dates.weekday),
    "date.weekday_number": _nearby_day(dates.weekday_number),
    "date.day_of_year": lambda args, target: [(0, date(args[0].year, 1, 1) + timedelta(days=target - 1))],
    "date.is_business_day": _nearby_day(dates.is_business_day),
    "map.at": _map_at,
    "map.get": _map_at,
    "map.values": _map_values,
    "map.keys": _map_keys,
    "bytes.utf8": lambda _args, target: [(0, target.decode())],
    "decimal.sign": lambda args, target: [(0, Decimal(target) * abs(args[0] or 1))],
    "integer.sign": lambda args, target: [(0, target * abs(args[0] or 1))],
}  # fmt: skip
