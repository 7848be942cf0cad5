"""JSON form of every value, for `to_json`, `CAST` and inputs given as JSON.

The IR uses another form (`model.to_json`), in which numbers are integers and maps are arrays of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal

from vesper.values.json_value import Json
from vesper.values.model import (
    Key,
    ProblemKind,
    Scalar,
    Value,
    ValueProblem,
    accept,
    accept_key,
    in_order,
    scalar_text,
    sorted_map,
)
from vesper.values.numbers import normal_decimal, parse_float
from vesper.values.strict_json import MAX_ENTRIES, JsonContent, MinusZero
from vesper.values.types import (
    DECIMAL,
    FLOAT,
    INTEGER,
    JSON,
    STRING,
    ArrayOf,
    Enum,
    MapOf,
    OptionalOf,
    Record,
    SetOf,
    SpelledRecord,
    Type,
)


def has_names(key: Type) -> bool:
    """Return whether maps with such keys are objects in JSON."""
    return key == STRING or isinstance(key, Enum)


# -- to JSON --------------------------------------------------------------------------------------


def json_form(type_: Type, value: Value) -> JsonContent:
    """Return the JSON form of a value. For outside names, both arguments are of a `spelled_type`."""
    match type_, value:
        case OptionalOf(inner), _:
            return None if value is None else json_form(inner, value)
        case SetOf(element), frozenset():
            return tuple([json_form(element, each) for each in in_order(element, value)])
        case ArrayOf(element), list():
            return tuple([json_form(element, item) for item in value])
        case MapOf(key, of), dict() if has_names(key):
            return {name: json_form(of, value[name]) for name in sorted(map(str, value))}
        case MapOf(key, of), dict():
            return tuple([(json_form(key, each), json_form(of, item)) for each, item in value.items()])
        case SpelledRecord() as record, dict():
            types = dict(record.fields)
            return {name: json_form(types.get(name, JSON), value[name]) for name in sorted(map(str, value))}
        case Record(fields), dict():
            return {name: json_form(field, value[name]) for name, field in sorted(fields)}
        case _:
            assert isinstance(value, Scalar)
            return _scalar_form(value)


def _scalar_form(value: Scalar) -> JsonContent:
    match value:
        case bool():
            return value
        case int():
            return Decimal(value)
        case Json():
            return value.content
        case float() if math.isfinite(value):
            return normal_decimal(Decimal(scalar_text(value)))
        case _:
            return scalar_text(value)


# -- from JSON ------------------------------------------------------------------------------------


def value_of_form(type_: Type, form: JsonContent) -> Value:
    """Return the value that CAST makes of a json, or raise its first problem.

    For a `spelled_type`, the value has outside names too.
    """
    match type_:
        case OptionalOf(inner):
            return None if form is None else value_of_form(inner, form)
        case ArrayOf(element):
            return [value_of_form(element, item) for item in _items(form)]
        case SetOf(element):
            return frozenset(_distinct([accept_key(element, _key(element, item)) for item in _items(form)]))
        case MapOf():
            return _map(type_, form)
        case Record():
            return _record(type_, form)
        case _ if type_ == JSON:
            return Json(form)
        case _:
            return _scalar(type_, form)


def input_of_json(type_: Type, form: object) -> object:
    """Return the Python objects of a JSON input, with numbers as int and Decimal.

    Objects that do not fit the type are returned unchanged and rejected later.
    """
    match type_, form:
        case OptionalOf(inner), _:
            return None if form is None else input_of_json(inner, form)
        case ((ArrayOf(element) | SetOf(element)), list()):
            return [input_of_json(element, item) for item in form]
        case MapOf(key, of), list() if not has_names(key) and all(_is_pair(item) for item in form):
            return _dict_of_pairs(key, [(pair[0], input_of_json(of, pair[1])) for pair in form])
        case MapOf(_, of), dict():
            return {name: input_of_json(of, item) for name, item in form.items()}
        case Record() as record, dict():
            types = dict(record.fields)
            if isinstance(record, SpelledRecord) and record.is_open:
                return {name: input_of_json(types.get(name, JSON), item) for name, item in form.items()}
            return {name: input_of_json(types[name], item) if name in types else item for name, item in form.items()}
        case _ if type_ == FLOAT and isinstance(form, int | Decimal) and not isinstance(form, bool):
            nearest = _nearest_float(form)
            return _PAST_EVERY_FLOAT if math.isinf(nearest) else nearest
        case _, MinusZero():
            return 0
        case _:
            return form


def _nearest_float(form: int | Decimal) -> float:
    if isinstance(form, MinusZero):
        return -0.0  # only a float has a negative zero
    if isinstance(form, int) and form.bit_length() > _FLOAT_BITS:
        return math.inf
    return float(str(form))


_FLOAT_BITS = 1024
"""Bits of the largest float as an integer."""
_PAST_EVERY_FLOAT = 10**400
"""Integer for a JSON number beyond the range of floats. It is rejected as out of range."""


def _is_pair(form: object) -> bool:
    return isinstance(form, list) and len(form) == 2 and isinstance(form[0], bool | int | str)


def _dict_of_pairs(key: Type, pairs: list[tuple[object, object]]) -> dict[object, object]:
    found: dict[object, object] = {}
    for name, value in pairs:
        name = 0 if isinstance(name, MinusZero) else name
        if name in found:
            raise ValueError(f"the key {name} of a map with keys of type {key} occurs twice")
        found[name] = value
    return found


def _scalar(type_: Type, form: JsonContent) -> Scalar:
    if not isinstance(form, Decimal):
        if isinstance(form, tuple | dict | None):
            raise ValueProblem(ProblemKind.WRONG_TYPE)
        return accept(type_, form)
    if type_ == INTEGER and form == form.to_integral_value():
        return accept(type_, int(form))
    if type_ == DECIMAL:
        return form
    if type_ == FLOAT:
        nearest = parse_float(scalar_text(form))
        if math.isinf(nearest):
            raise ValueProblem(ProblemKind.OUT_OF_RANGE)
        return nearest
    raise ValueProblem(ProblemKind.WRONG_TYPE)


def _key(type_: Type, form: JsonContent) -> Scalar:
    return _scalar(type_, form)


def _items(form: JsonContent) -> tuple[JsonContent, ...]:
    if not isinstance(form, tuple):
        raise ValueProblem(ProblemKind.WRONG_TYPE)
    if len(form) > MAX_ENTRIES:
        raise ValueProblem(ProblemKind.OUT_OF_RANGE)
    return form


def _distinct(members: Iterable[Key]) -> list[Key]:
    found = list(members)
    if len(set(found)) < len(found):
        raise ValueProblem(ProblemKind.DUPLICATE)
    return found


def _map(type_: MapOf, form: JsonContent) -> Value:
    if has_names(type_.key):
        if not isinstance(form, dict):
            raise ValueProblem(ProblemKind.WRONG_TYPE)
        pairs = [(accept_key(type_.key, name), item) for name, item in form.items()]
    else:
        pairs = [_pair(type_.key, item) for item in _items(form)]
    keys = _distinct(key for key, _ in pairs)
    values = [value_of_form(type_.value, item) for _, item in pairs]
    return sorted_map(type_, dict(zip(keys, values, strict=True)))


def _pair(key: Type, form: JsonContent) -> tuple[Key, JsonContent]:
    if not isinstance(form, tuple) or len(form) != 2:
        raise ValueProblem(ProblemKind.WRONG_TYPE)
    return accept_key(key, _key(key, form[0])), form[1]


def _record(type_: Record, form: JsonContent) -> Value:
    if not isinstance(form, dict):
        raise ValueProblem(ProblemKind.WRONG_TYPE)
    sparse = type_.sparse if isinstance(type_, SpelledRecord) else frozenset()
    found: dict[str, Value] = {}
    for name, field in type_.fields:
        if name in form:
            found[name] = value_of_form(field, form[name])
        elif not isinstance(field, OptionalOf):
            raise ValueProblem(ProblemKind.MISSING)
        elif name not in sparse:
            found[name] = None
    if isinstance(type_, SpelledRecord) and type_.is_open:
        found |= {name: Json(item) for name, item in form.items() if name not in dict(type_.fields)}
    return found
