"""Generated floats, bytes, times and JSON: literals of the node and edges of each type."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Sequence
from copy import deepcopy
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

from vesper.values.model import Value, scalar_text
from vesper.values.period import MAX_MONTHS, Period
from vesper.values.times import MAX_DURATION
from vesper.values.types import BYTES, DATE, DURATION, FLOAT, JSON, PERIOD, TIME_OF_DAY, TIMESTAMP, Type
from vesper.verify.inputs.bounds import Bounds
from vesper.verify.inputs.json_shapes import JsonShapes

_FLOATS = (
    0.0, -0.0, 1.0, -1.0, 0.1, 0.5, 1.5, 2.5, 2.0**31, 2.0**53 - 1, 2.0**53, 2.0**53 + 2, 2.0**63, -(2.0**63), 1e16,
    1e22, 1e23, 1e-5, 1e-7, 5e-324, 2.2250738585072014e-308, 2.225073858507201e-308, 1.7976931348623157e308,
)  # fmt: skip
_NOT_FINITE = (math.nan, math.inf, -math.inf)
_BYTES = (b"", b"\x00", b"a", b"ab", b"\xff", b"\xc3\xa9", b"\xed\xa0\x80", b"\x00\xff" * 4)
_EXTREMES = 2
"""Number of leading edges that are the first and last values of a type; most arithmetic with them overflows."""
_MOMENTS = (
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2024, 2, 29, 12, 30, 0, 500000, UTC),
    datetime(2000, 2, 29, 23, 59, 59, 999999, UTC),
    datetime(2023, 12, 31, 23, 59, 59, 999999, UTC),
    datetime(2024, 3, 31, 0, 0, 0, 1, UTC),
)
_SIZES = (15, 16, 22, 23, 24, 31, 32, 33, 55, 56, 63, 64, 65, 119, 120, 255, 256)
"""Lengths around sizes of storage, and of blocks of a digest."""
_STEPS = (timedelta(0), timedelta(microseconds=1), timedelta(seconds=-1), timedelta(days=1))
_DAYS = (
    date(1, 1, 1), date(9999, 12, 31), date(1900, 2, 28), date(1970, 1, 1), date(2000, 2, 29), date(2023, 2, 28),
    date(2024, 1, 31), date(2024, 2, 29), date(2024, 4, 30), date(2024, 12, 31),
)  # fmt: skip
_LENGTHS = (
    MAX_DURATION,
    -MAX_DURATION,
    timedelta(0),
    timedelta(microseconds=1),
    timedelta(microseconds=-1),
    timedelta(seconds=90),
    timedelta(days=1),
    timedelta(days=-30, seconds=1),
)
_JSONS: tuple[object, ...] = (
    None, True, False, 0, 1, -1, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 10**20, Decimal("0.0000000000000000001"),
    Decimal("1.0"), Decimal("1.50"), Decimal("-0.5"), 0.1, 1e22, "", "a", "1.5", "é",
    "2024-02-29", [], {}, [1, "a", None], {"a": 1}, {"b": {"a": [1, 2]}, "a": None}, {"": 0, "x/y": 1, "~": 2},
)  # fmt: skip
_CAST_SHARE = 0.7
_KEYS = ("a", "b", "id", "", "é", "x/y")


class ScalarSource:
    """Generator of floats, bytes, times and JSON; `known` are the node's literals, by Python form."""

    def __init__(self, source: random.Random, known: list[Value], casts: Sequence[Type] = ()) -> None:
        """Create a source; `casts` are the types to which the node casts JSON."""
        self._random = source
        self._casts, self._shapes = [*casts], JsonShapes(source)
        self._floats = [each for each in known if isinstance(each, float)]
        self._bytes = [each for each in known if isinstance(each, bytes)]
        self._moments = [each for each in known if isinstance(each, datetime)]
        self._days = [each for each in known if isinstance(each, date) and not isinstance(each, datetime)]
        self._lengths = [each for each in known if isinstance(each, timedelta)]
        self._clocks = [each for each in known if isinstance(each, time)]
        self._periods = [each for each in known if isinstance(each, Period)]
        self._texts = [each for each in known if isinstance(each, str)]

    def draw(self, type_: Type, is_tame: bool, bounds: Bounds) -> object:
        if type_ == FLOAT:
            return self._float(is_tame, bounds)
        if type_ == BYTES:
            return self._some_bytes(is_tame)
        if type_ == DATE:
            return self._day(is_tame)
        if type_ == TIMESTAMP:
            return self._moment(is_tame)
        if type_ == DURATION:
            return self._length(is_tame)
        if type_ == TIME_OF_DAY:
            return self._clock()
        if type_ == PERIOD:
            return self._period(is_tame)
        assert type_ == JSON, f"{type_} is generated elsewhere"
        if self._casts and self._random.random() < _CAST_SHARE:
            return self._shapes.draw(self._random.choice(self._casts))
        return self._json(3)

    def as_text(self, value: object) -> object:
        """Return a value, sometimes as the text that a caller may pass instead."""
        if isinstance(value, bytes | date | timedelta | time | Period) and self._random.random() < 0.1:
            return scalar_text(value)
        return value

    def _float(self, is_tame: bool, bounds: Bounds) -> float:
        if is_tame:
            low = 0.0 if bounds.low is None else float(bounds.low)
            high = low + 1000 if bounds.high is None else float(bounds.high)
            if low <= high:
                return round(self._random.uniform(low, high), self._random.choice((0, 1, 2, 2, 17)))
        pick = self._random.random()
        if pick < 0.3 and self._floats:
            edge = self._random.choice(self._floats)
            return self._random.choice((edge, math.nextafter(edge, math.inf), math.nextafter(edge, -math.inf), -edge))
        if pick < 0.6:
            return self._random.choice((*_FLOATS, *_NOT_FINITE))
        if pick < 0.9:
            return round(self._random.uniform(-1000, 1000), self._random.choice((0, 1, 2, 17)))
        number: float = struct.unpack("<d", struct.pack("<Q", self._random.getrandbits(64)))[0]
        return number

    def _some_bytes(self, is_tame: bool) -> bytes:
        known = [*self._bytes, *_BYTES]
        if self._random.random() < 0.6:
            return self._random.choice(known)
        length = self._random.randrange(6) if is_tame else self._random.choice((*range(8), *_SIZES))
        return self._random.randbytes(length)

    def _day(self, is_tame: bool) -> date:
        usual = _DAYS[_EXTREMES:] if is_tame else _DAYS
        days = [*self._days, *self._days, *usual] if self._random.random() < 0.5 else None
        if days is None:
            return date.fromordinal(self._random.randint(date(1990, 1, 1).toordinal(), date(2040, 1, 1).toordinal()))
        edge = self._random.choice(days).toordinal() + self._random.choice((-1, 0, 0, 1))
        return date.fromordinal(min(max(edge, 1), date.max.toordinal()))

    def _moment(self, is_tame: bool) -> datetime:
        if self._random.random() < 0.5:
            usual = _MOMENTS[_EXTREMES:] if is_tame else _MOMENTS
            edge = self._random.choice([*self._moments, *self._moments, *usual])
            try:
                return edge + self._random.choice(_STEPS)
            except OverflowError:
                return edge
        seconds = self._random.randrange(2_200_000_000)
        micros = self._random.choice((0, 0, 1, 500_000, 999_999))
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds, microseconds=micros)

    def _length(self, is_tame: bool) -> timedelta:
        if self._random.random() < (0.3 if is_tame else 0.6):
            return self._random.choice(
                [*self._lengths, *self._lengths, *(_LENGTHS[_EXTREMES:] if is_tame else _LENGTHS)]
            )
        size = self._random.choice((1_000, 86_400, 10_000_000))
        length = timedelta(seconds=self._random.randrange(size), microseconds=self._random.choice((0, 0, 1, 200_000)))
        return length if self._random.random() < 0.8 else -length

    def _clock(self) -> time:
        if self._random.random() < 0.5:
            return self._random.choice([*self._clocks, *self._clocks, time(0), time(12), time.max])
        second = self._random.randrange(86_400)
        micros = self._random.choice((0, 0, 1, 500_000))
        return time(second // 3600, second // 60 % 60, second % 60, micros)

    def _period(self, is_tame: bool) -> Period:
        if self._random.random() < 0.5:
            edges = (0, 1, -1, 12, 24) if is_tame else (0, 1, -1, 11, 12, 13, MAX_MONTHS, -MAX_MONTHS)
            return self._random.choice([*self._periods, *self._periods, *map(Period, edges)])
        return Period(self._random.randint(-12, 600))

    def _json(self, depth: int) -> object:
        pick = self._random.random()
        if depth == 0 or pick < 0.4:
            return deepcopy(self._random.choice(_JSONS))  # a caller may change what it is given
        if pick < 0.5:
            return self._random.choice([*self._texts, "a"])
        if pick < 0.7:
            return [self._json(depth - 1) for _ in range(self._random.randrange(4))]
        names = [*_KEYS, *self._names()]
        return {self._random.choice(names): self._json(depth - 1) for _ in range(self._random.randrange(5))}

    def _names(self) -> list[str]:
        """Return the words in the node's texts that may be keys or parts of paths."""
        return [part for text in self._texts for part in text.split("/")]
