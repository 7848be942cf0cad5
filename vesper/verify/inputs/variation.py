"""Variations of given inputs: one part redrawn, moved slightly, left out or duplicated.

A node that takes a signed token or ordered shifts rejects almost all inputs drawn by type; inputs of its author pass,
and so do most variations of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Context, Decimal

from vesper.values.model import MAX_INTEGER, MIN_INTEGER
from vesper.values.period import MAX_MONTHS, Period
from vesper.values.types import JSON, ArrayOf, MapOf, OptionalOf, Record, SetOf, Type

_UNCHANGED_SHARE = 0.35
"""Share of the inputs that stay unchanged while another one changes."""
_SMALL_STEPS = (timedelta(microseconds=1), timedelta(seconds=1), timedelta(minutes=15), timedelta(hours=1))
_WIDE = Context(prec=10_000, Emax=100_000, Emin=-100_000)
_CHARACTERS = "aZ09 _-.é😀"


class Variation:
    def __init__(self, source: random.Random, draw: Callable[[str, Type], object]) -> None:
        """Create a variation source. `draw` returns a new value of a type for a named input or field."""
        self._random = source
        self._draw = draw

    def vary_inputs(self, example: Mapping[str, object], types: Mapping[str, Type]) -> dict[str, object]:
        """Return the example with one input changed, rarely two, including omitted ones."""
        inputs = dict(example)
        for _ in range(self._random.choice((1, 1, 1, 2)) if types else 0):
            name = self._random.choice(list(types))
            if name in inputs:
                inputs[name] = self.vary_value(name, types[name], inputs[name])
            elif self._random.random() >= _UNCHANGED_SHARE:
                inputs[name] = self._draw(name, types[name])
        return inputs

    def vary_value(self, name: str, type_: Type, value: object) -> object:
        """Return a value of the same type, close to the given one or new."""
        if self._random.random() < 0.15:
            return self._draw(name, type_)
        match type_, value:
            case OptionalOf(inner), _:
                return self._draw(name, type_) if value is None else self.vary_value(name, inner, value)
            case ArrayOf(element), list():
                return self._items(name, element, value)
            case SetOf(element), set() | frozenset():
                members = sorted(value, key=repr)
                return set(self._items(name, element, members))
            case MapOf(_, of), dict() if value:
                key = self._random.choice(list(value))
                if self._random.random() < 0.3:
                    return {each: found for each, found in value.items() if each != key}
                return value | {key: self.vary_value(name, of, value[key])}
            case Record(fields), dict() if value:
                field, of = self._random.choice(fields)
                return value | {field: self.vary_value(field, of, value.get(field))}
            case _:
                return self._json(value) if type_ == JSON else self._draw_near(name, type_, value)

    def _items(self, name: str, element: Type, items: list[object]) -> list[object]:
        pick = self._random.random()
        if not items or pick < 0.15:
            return [*items, self._draw(name, element)]
        at = self._random.randrange(len(items))
        if pick < 0.3:
            return items[:at] + items[at + 1 :]
        if pick < 0.4:
            return [*items[:at], items[at], *items[at:]]
        if pick < 0.45:
            return items[::-1]
        return [*items[:at], self.vary_value(name, element, items[at]), *items[at + 1 :]]

    def _json(self, value: object) -> object:
        """Return JSON content with one part changed."""
        match value:
            case dict() if value and self._random.random() < 0.9:
                key = self._random.choice(list(value))
                if self._random.random() < 0.15:
                    return {each: found for each, found in value.items() if each != key}
                return value | {key: self._json(value[key])}
            case list() if value and self._random.random() < 0.9:
                at = self._random.randrange(len(value))
                return [*value[:at], self._json(value[at]), *value[at + 1 :]]
            case bool() | int() | Decimal() | str() if self._random.random() < 0.6:
                return self._scalar(value)
            case _:
                return self._draw("", JSON)

    def _draw_near(self, name: str, type_: Type, value: object) -> object:
        moved = self._scalar(value)
        return self._draw(name, type_) if moved is None else moved

    def _scalar(self, value: object) -> object:
        """Return a scalar close to the given one; None for types without neighbours."""
        match value:
            case bool():
                return not value
            case int():
                return min(max(value + self._random.choice((-1, 1, 10)), MIN_INTEGER), MAX_INTEGER)
            case Decimal() if value.is_finite() and abs(value.adjusted()) < 900:
                return _move_decimal(value, self._random.choice((-1, 1)), self._random.choice((0, 1, 2)))
            case datetime() | timedelta():
                return self._move(value, self._random.choice(_SMALL_STEPS))
            case date():
                return self._move(value, timedelta(days=1))
            case time():
                return value.replace(microsecond=(value.microsecond + 1) % 1_000_000)
            case Period():
                step = self._random.choice((-1, 1))
                return Period(min(max(value.months + step, -MAX_MONTHS), MAX_MONTHS))
            case str() if value:
                at = self._random.randrange(len(value))
                return value[:at] + self._random.choice(("", self._random.choice(_CHARACTERS))) + value[at + 1 :]
            case _:
                return None

    def _move(self, value: date | timedelta, step: timedelta) -> object:
        try:
            return value + step if self._random.random() < 0.5 else value - step
        except OverflowError:
            return value


def _move_decimal(value: Decimal, sign: int, places: int) -> Decimal:
    """Return the decimal plus or minus one unit of its last place, exactly."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    last = min(exponent, -places)
    moved = int(value.scaleb(-last, _WIDE)) + sign * 10 ** (-places - last)
    return Decimal((int(moved < 0), tuple(int(digit) for digit in str(abs(moved))), last))
