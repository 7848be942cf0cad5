"""Values as JSON text for stores outside the process, and back by the type that a step declares.

The text is the JSON form of docs/spec/values.md, so that a program in another language reads and writes equal texts.
The writer knows no type: an effect's argument has none, and the value alone decides the form in all cases but one. An
empty map with keys that are no strings is written as `{}`, and the reader accepts that.

A value is read back unchanged: decimals and the numbers of a json with all their places, -0.0 as -0.0.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

from vesper.effects.performer import EffectFailed
from vesper.values.inputs import Refusal, read_inputs
from vesper.values.json_forms import has_names, input_of_json
from vesper.values.json_value import Json, json_string
from vesper.values.model import Value, plain, scalar_text
from vesper.values.numbers import decimal_text, float_text
from vesper.values.period import Period
from vesper.values.problem import ProblemKind
from vesper.values.strict_json import JsonContent
from vesper.values.types import FLOAT, ArrayOf, MapOf, OptionalOf, Record, SetOf, Type


class TooLong(Exception):
    """The text would exceed the limit; it was not completed."""


def stored_text(value: Value, limit: int) -> str:
    """Return the JSON text of a value. Raises `TooLong` for more than `limit` bytes.

    The bytes are counted while the text is written: a small value with shared parts may have a text too large for
    memory.
    """
    pieces: list[str] = []
    left = limit
    for piece in _pieces(value):
        left -= len(piece) if piece.isascii() else len(piece.encode())
        if left < 0:
            raise TooLong
        pieces.append(piece)
    return "".join(pieces)


def _pieces(value: Value) -> Iterator[str]:
    match value:
        case None:
            yield "null"
        case bool() | int():
            yield scalar_text(value)
        case float():
            yield float_text(value) if math.isfinite(value) else json_string(float_text(value))
        case str() | bytes() | Decimal() | date() | timedelta() | time() | Period():
            yield json_string(scalar_text(value))
        case Json():
            yield from _content_pieces(value.content)
        case frozenset():
            ordered: Any = value  # the members of one set are all of one type
            yield from _array(_pieces(each) for each in sorted(ordered))
        case list():
            yield from _array(_pieces(each) for each in value)
        case dict() if all(isinstance(key, str) for key in value):
            yield from _object((str(key), _pieces(value[key])) for key in sorted(map(str, value)))
        case dict():
            yield from _array(_array(iter((_pieces(key), _pieces(each)))) for key, each in value.items())


def _content_pieces(content: JsonContent) -> Iterator[str]:
    match content:
        case None:
            yield "null"
        case bool():
            yield "true" if content else "false"
        case Decimal():
            yield decimal_text(content)
        case str():
            yield json_string(content)
        case tuple():
            yield from _array(_content_pieces(each) for each in content)
        case dict():
            yield from _object((key, _content_pieces(each)) for key, each in content.items())


def _array(items: Iterator[Iterator[str]]) -> Iterator[str]:
    yield "["
    for index, item in enumerate(items):
        if index:
            yield ","
        yield from item
    yield "]"


def _object(entries: Iterator[tuple[str, Iterator[str]]]) -> Iterator[str]:
    yield "{"
    for index, (name, item) in enumerate(entries):
        yield ("," if index else "") + json_string(name) + ":"
        yield from item
    yield "}"


# -- back -----------------------------------------------------------------------------------------


class _NotJson(ValueError):
    pass


def stored_value(type_: Type, text: str, what: str) -> object:
    """Return the value of a JSON text, in its Python form. Raises `EffectFailed` with `bad_response` for another type.

    Fields that a record does not declare are ignored, as in all data from outside.
    """
    try:
        form = json.loads(
            text,
            parse_float=Decimal,
            parse_int=lambda digits: Decimal("-0") if digits == "-0" else int(digits),
            parse_constant=_no_constant,
            object_pairs_hook=_without_repeats,
        )
    except (ValueError, RecursionError):
        raise EffectFailed("bad_response", f"{what} is not JSON") from None
    return checked_value(type_, _fit_form(type_, form), what)


def checked_value(type_: Type, given: object, what: str) -> Value:
    """Return an object as a value of the type, in its Python form.

    Raises `EffectFailed` with `bad_response`, which names the first part that does not fit.
    """
    return plain(_read(type_, given, what))


def _read(type_: Type, given: object, what: str) -> Value:
    values, refusals = read_inputs([("value", type_, None)], {"value": given})
    if refusals:
        raise EffectFailed("bad_response", _problem(type_, refusals[0], what))
    return values["value"]


def _problem(type_: Type, refusal: Refusal, what: str) -> str:
    place = refusal.problem.path.removeprefix("value").removeprefix(".")
    match refusal.problem.kind:
        case ProblemKind.MISSING:
            return f"{what} has no `{place}`, which is declared as {refusal.expected}"
        case ProblemKind.UNKNOWN:
            return f"{what} has `{place}`, which nobody declares"
        case kind:
            return f"{what}{f', at `{place}`,' if place else ''} is no {refusal.expected or type_}: {kind}"


def _no_constant(name: str) -> object:
    raise _NotJson(name)


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _NotJson("a key occurs twice")
    return found


def _fit_form(type_: Type, form: Any) -> object:
    """Return the Python form that a caller would pass for this JSON. Parts that do not fit are unchanged and refused
    later.
    """
    match type_, form:
        case OptionalOf(inner), _:
            return None if form is None else _fit_form(inner, form)
        case ((ArrayOf(element) | SetOf(element)), list()):
            return [_fit_form(element, item) for item in form]
        case MapOf(key, of), list() if not has_names(key) and all(_is_pair(item) for item in form):
            keys = [pair[0] for pair in form]
            if len(set(map(str, keys))) < len(keys):
                return form  # a key occurs twice
            return {pair[0]: _fit_form(of, pair[1]) for pair in form}
        case MapOf(key, of), dict() if has_names(key):
            return {name: _fit_form(of, item) for name, item in form.items()}
        case Record(fields), dict():
            return {name: _fit_form(field, form[name]) for name, field in fields if name in form}
        case _ if type_ == FLOAT:
            return input_of_json(type_, form)
        case _:
            return int(form) if isinstance(form, Decimal) and form.is_zero() and _is_whole(form) else form


def _is_pair(form: object) -> bool:
    return isinstance(form, list) and len(form) == 2 and isinstance(form[0], bool | int | str)


def _is_whole(number: Decimal) -> bool:
    return number.as_tuple().exponent == 0
