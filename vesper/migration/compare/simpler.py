"""Simpler values of a declared type, simplest first, for inputs and completions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from vesper.values.model import MAX_INTEGER
from vesper.values.types import ArrayOf, Enum, MapOf, OptionalOf, Record, Type
from vesper.verify.shrink.inputs import simpler_lists, simpler_values


def simpler_of(type_: Type | None, value: object) -> Iterator[object]:
    """Yield simpler values. A value of the type yields values of the type; any other keeps its own form."""
    match type_, value:
        case OptionalOf(inner), _:
            if value is not None:
                yield None
                yield from simpler_of(inner, value)
        case Enum(members), str():
            yield from members[: members.index(value)] if value in members else ()
        case Record(fields), dict() if set(value) == {name for name, _ in fields}:
            for name, field in fields:
                yield from ({**value, name: simpler} for simpler in simpler_of(field, value[name]))
        case ArrayOf(element), list():
            yield from simpler_lists(value, partial(simpler_of, element))
        case MapOf(_, of), dict():
            if value:
                yield {}
            for key in value:
                yield {each: found for each, found in value.items() if each != key}
                yield from ({**value, key: simpler} for simpler in simpler_of(of, value[key]))
        case _, int() if type(value) is int:
            yield from _simpler_integers(value)
        case _:
            yield from simpler_values(value)


def _simpler_integers(value: int) -> Iterator[object]:
    """Yield simpler integers, simplest first.

    These are zero, half, one less in each digit from the first, then values that are easier to read. A large number
    shrinks in tens of steps.
    """
    sign = -1 if value < 0 else 1
    if value:
        yield 0
        yield sign * (abs(value) // 2)
    yield from (value - sign * 10**place for place in reversed(range(len(str(abs(value))))) if 10**place <= abs(value))
    # The smallest integer has no positive counterpart.
    yield from (each for each in simpler_values(value) if each != MAX_INTEGER + 1)
