"""Prices of values in bytes, as docs/spec/limits.md defines them: the same on every engine.

A plan selects the parts of a value that are charged. `KEPT` charges nothing, `FRESH` everything; a tuple has one plan
for each part of the type: the item of an array or set, the key and value of a map, the fields of a record.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeAlias

from vesper.values.types import (
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
    MapOf,
    OptionalOf,
    Parameter,
    Record,
    SetOf,
    Type,
)

Plan: TypeAlias = "bool | tuple[Plan, ...]"
Price: TypeAlias = "int | Callable[[Any], int]"

KEPT: Final = False
"""Plan of a value that existed before."""
FRESH: Final = True
"""Plan of a value of which every part is new."""

SLOT_BYTES: Final = 24
"""Place of an item in an array."""
STRAND_BYTES: Final = 16_384
"""Memory of an open strand."""
_SCALARS: Final[dict[Type, int]] = {INTEGER: 32, FLOAT: 24, DECIMAL: 104, DATE: 32, TIMESTAMP: 48, DURATION: 40,
    TIME_OF_DAY: 40, PERIOD: 40,
}  # fmt: skip
_ARRAY_BYTES: Final = 56
_SET_BYTES: Final = 216
MEMBER_BYTES: Final = 64
_MAP_BYTES: Final = 64
ENTRY_BYTES: Final = 104
_RECORD_BYTES: Final = 184
_FIELD_BYTES: Final = 24


def price_text(value: str) -> int:
    return 56 + len(value) if value.isascii() else 80 + 4 * len(value)


def price_bytes(value: bytes) -> int:
    return 40 + len(value)


def price_json(content: Any) -> int:
    """Return the price of a json value, given as its content."""
    total = 0
    waiting = [content]
    while waiting:
        part = waiting.pop()
        match part:
            case None | bool():
                pass
            case str():
                total += price_text(part)
            case tuple():
                total += _ARRAY_BYTES + SLOT_BYTES * len(part)
                waiting.extend(part)
            case dict():
                total += _MAP_BYTES + ENTRY_BYTES * len(part)
                waiting.extend(part)
                waiting.extend(part.values())
            case _:
                total += _SCALARS[DECIMAL]
    return total


@lru_cache(maxsize=4096)
def price_of(type_: Type, plan: Plan = FRESH) -> Price:
    """Return the price of values of this type: a number, or a function where it depends on the value."""
    if plan is KEPT:
        return 0
    match type_:
        case OptionalOf(inner):
            return _price_present(price_of(inner, plan))
        case Record(fields):
            planned = zip(fields, parts(type_, plan), strict=True)
            return _price_record([(name, price_of(of, part)) for (name, of), part in planned])
        case ArrayOf(item):
            return _price_items(_ARRAY_BYTES, SLOT_BYTES, price_of(item, parts(type_, plan)[0]))
        case SetOf(member):
            return _price_items(_SET_BYTES, MEMBER_BYTES, price_of(member, parts(type_, plan)[0]))
        case MapOf(key, value):
            of_key, of_value = parts(type_, plan)
            return _price_entries(price_of(key, of_key), price_of(value, of_value))
        case _ if type_ == STRING:
            return price_text
        case _ if type_ == BYTES:
            return price_bytes
        case _ if type_ == JSON:
            return lambda value: price_json(value.content)
        case _:
            return _SCALARS.get(type_, 0)


def parts(type_: Type, plan: Plan) -> tuple[Plan, ...]:
    """Return the plans of the parts of a type."""
    if isinstance(plan, tuple):
        return plan
    match type_:
        case OptionalOf(inner):
            return parts(inner, plan)
        case Record(fields):
            return (plan,) * len(fields)
        case ArrayOf() | SetOf():
            return (plan,)
        case MapOf():
            return (plan, plan)
        case _:
            return ()


def plan_of_result(declared: Type, of_parameter: Plan) -> Plan:
    """Return which parts of a result are new: all but those whose type is a parameter of the operation."""
    match declared:
        case Parameter():
            return of_parameter
        case OptionalOf(inner):
            return plan_of_result(inner, of_parameter)
        case ArrayOf(item) | SetOf(item):
            return (plan_of_result(item, of_parameter),)
        case MapOf(key, value):
            return plan_of_result(key, of_parameter), plan_of_result(value, of_parameter)
        case Record(fields):
            return tuple(plan_of_result(each, of_parameter) for _, each in fields)
        case _:
            return FRESH


def _price_present(price: Price) -> Price:
    # A number is the price of null too: one compare less, and the same on every engine.
    if isinstance(price, int):
        return price
    return lambda value: 0 if value is None else price(value)


def _price_record(fields: list[tuple[str, Price]]) -> Price:
    fixed = _RECORD_BYTES + _FIELD_BYTES * len(fields) + sum(each for _, each in fields if isinstance(each, int))
    varying = [(name, each) for name, each in fields if not isinstance(each, int)]
    if not varying:
        return fixed
    return lambda value: fixed + sum(each(value[name]) for name, each in varying)


def _price_items(base: int, slot: int, item: Price) -> Price:
    if isinstance(item, int):
        each = slot + item
        return lambda value: base + each * len(value)
    return lambda value: base + slot * len(value) + sum(map(item, value))


def _price_entries(key: Price, value: Price) -> Price:
    fixed = ENTRY_BYTES + sum(each for each in (key, value) if isinstance(each, int))
    of_key = None if isinstance(key, int) else key
    of_value = None if isinstance(value, int) else value

    def price(entries: Any) -> int:
        total = _MAP_BYTES + fixed * len(entries)
        if of_key is not None:
            total += sum(map(of_key, entries))
        if of_value is not None:
            total += sum(map(of_value, entries.values()))
        return total

    return price
