"""Interesting values of a node: its literals with their neighbours, and the limits of each type."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal, Inexact, Rounded

from vesper.kernels.decimal import EXACT
from vesper.language.ir.nodes import Literal, Node
from vesper.values.model import MAX_INTEGER, MIN_INTEGER, Json, Value, plain
from vesper.values.period import MAX_MONTHS, Period
from vesper.values.times import MAX_DURATION
from vesper.values.types import (
    BOOLEAN,
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    INTEGER,
    PERIOD,
    STRING,
    TIME_OF_DAY,
    TIMESTAMP,
    Enum,
    OptionalOf,
    Type,
)

_MAX_LENGTH = 300
"""Largest integer literal that is tried as a length of a text."""
_DAY, _MICROSECOND = timedelta(days=1), timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Edges:
    """Literals of the node that are worth drawing."""

    decimals: tuple[Decimal, ...]
    integers: tuple[int, ...]
    strings: tuple[str, ...]
    lengths: tuple[int, ...]
    others: tuple[Value, ...] = ()
    """Literals of the other types, unchanged."""

    def values(self, type_: Type) -> list[object]:
        """Return the edges of a scalar type and their neighbours; none for other types."""
        match type_:
            case OptionalOf(inner):
                found = self.values(inner)
                return [None, *found] if found else []
            case Enum(members):
                return list(dict.fromkeys((members[0], members[-1])))
            case _ if type_ == BOOLEAN:
                return [False, True]
            case _ if type_ == INTEGER:
                near = (each + step for each in self.integers for step in (-1, 0, 1))
                return list(dict.fromkeys(each for each in near if MIN_INTEGER <= each <= MAX_INTEGER))
            case _ if type_ == DECIMAL:
                return list(dict.fromkeys(near for each in self.decimals for near in decimal_neighbours(each)))
            case _ if type_ == STRING:
                return [*self.strings]
            case _:
                return self._other_values(type_)

    def _other_values(self, type_: Type) -> list[object]:
        if type_ == FLOAT:
            floats = [0.0, *(each for each in self.others if isinstance(each, float))]
            return [
                near
                for each in floats
                for near in (math.nextafter(each, -math.inf), each, math.nextafter(each, math.inf))
            ]
        if type_ == DURATION:
            lengths = (timedelta(0), *(each for each in self.others if isinstance(each, timedelta)))
            near = (each + step for each in lengths for step in (-_MICROSECOND, timedelta(0), _MICROSECOND))
            return list(dict.fromkeys(each for each in near if -MAX_DURATION <= each <= MAX_DURATION))
        if type_ == PERIOD:
            periods = (each.months for each in (Period(), *self.others) if isinstance(each, Period))
            return [Period(max(min(each + step, MAX_MONTHS), -MAX_MONTHS)) for each in periods for step in (-1, 0, 1)]
        if type_ == TIME_OF_DAY:
            return [time(0), *(each for each in self.others if isinstance(each, time))]
        if type_ not in (DATE, TIMESTAMP):
            return []
        is_moment = type_ == TIMESTAMP
        times = [each for each in self.others if isinstance(each, date) and isinstance(each, datetime) == is_moment]
        step = _MICROSECOND if is_moment else _DAY
        return list(dict.fromkeys(near for each in times for near in _time_neighbours(each, step)))


def decimal_neighbours(edge: Decimal) -> tuple[Decimal, ...]:
    """Return a decimal and those beside it by one unit of its last place."""
    exponent = edge.as_tuple().exponent
    assert isinstance(exponent, int)
    return edge, *(move_decimal(edge, Decimal((sign, (1,), exponent))) for sign in (0, 1))


def move_decimal(edge: Decimal, step: Decimal) -> Decimal:
    """Return the exact sum; the edge itself if the sum has too many digits."""
    try:
        return EXACT.add(edge, step)
    except (Inexact, Rounded):
        return edge


def _time_neighbours(edge: date, step: timedelta) -> Iterator[date]:
    yield edge
    for sign in (-1, 1):
        try:
            yield edge + sign * step
        except OverflowError:
            continue


def find_edges(node: Node) -> Edges:
    decimals, integers, strings = {Decimal(0), Decimal(1)}, {0, 1, MIN_INTEGER, MAX_INTEGER}, {""}
    literals = [each.value for each in node.expressions() if isinstance(each, Literal)]
    others: list[Value] = []
    for each in _parts([*literals, *(each.value for each in node.constants)]):
        if isinstance(each, Decimal):
            decimals.add(each)
            if abs(each) < MAX_INTEGER:
                integers.add(int(each))  # a decimal may be compared with a converted integer
        elif isinstance(each, str):
            strings.add(each)
        elif isinstance(each, int) and not isinstance(each, bool):
            integers.add(each)
        elif each is not None:
            others.append(each)
    near = {each + step for each in integers for step in (-1, 0, 1)}
    lengths = {0, 1} | {each for each in near if 0 <= each <= _MAX_LENGTH}
    return Edges(
        tuple(sorted(decimals)), tuple(sorted(integers)), tuple(sorted(strings)), tuple(sorted(lengths)), tuple(others)
    )


def _parts(values: Iterable[Value]) -> Iterator[Value]:
    """Yield the scalars in values, at any depth."""
    for value in values:
        match value:
            case Json():
                yield from _parts([plain(value)])
            case list():
                yield from _parts(value)
            case frozenset():
                yield from _parts(sorted(value, key=repr))  # the order of a set differs between processes
            case dict():
                yield from _parts(value.keys())
                yield from _parts(value.values())
            case _:
                yield value
