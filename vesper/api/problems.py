"""Describe problems with inputs: the place, the expected type and the given value, in one line each.

Takes the paths and kinds that an engine reports, and the given inputs. The engine decides which inputs fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, time, timedelta
from decimal import Decimal
from math import isfinite

from vesper.api.error_info import InputProblem
from vesper.api.json_source import InputSource, JsonSource, Step, TableRow
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir.nodes import Node, record_of
from vesper.values.json_value import json_string
from vesper.values.model import Problem, ProblemKind, printable, scalar_text, show
from vesper.values.outside_names import spelled_record
from vesper.values.period import Period
from vesper.values.types import DATE, DECIMAL, TIMESTAMP, ArrayOf, Enum, MapOf, Record, SetOf, Type, without_null

_MAX_LENGTH = 60
_MAX_BITS = 256
_ABSENT = object()
_REASONS = {
    ProblemKind.WRONG_TYPE: "",
    ProblemKind.OUT_OF_RANGE: ", which is out of range",
    ProblemKind.MALFORMED: ", which is malformed",
    ProblemKind.DUPLICATE: ", in which something occurs twice",
    ProblemKind.TOO_DEEP: ", which is nested too deep",
}


def describe_problems(
    node: Node, problems: Iterable[Problem], inputs: Mapping[str, object], source: InputSource = None
) -> tuple[InputProblem, ...]:
    """Return every problem with the expected type and the given value; for JSON text with the place in it.

    JSON text and the row of a table have outside names.
    """
    whole = record_of(node.inputs)
    if source is None:
        return tuple(describe_problem(whole, problem, inputs) for problem in problems)
    if isinstance(source, TableRow):
        columns = spelled_record(whole, columns=True)
        return tuple(describe_problem(columns, problem, inputs) for problem in problems)
    return tuple(_in_text(spelled_record(whole), problem, inputs, source) for problem in problems)


def _in_text(whole: Record, problem: Problem, inputs: Mapping[str, object], source: JsonSource) -> InputProblem:
    """Return a problem of a JSON text: with the value as JSON writes it, and its place."""
    if source.mistake is not None:
        place = source.place(source.mistake.offset)
        message = f"JSON text: {source.mistake.what} ({place})"
        return InputProblem("", problem.kind.value, "a JSON object", None, message, place.line, place.column)
    spot, is_there = source.find(_steps(whole, problem.path))
    told = describe_problem(whole, problem, inputs, str(spot) if is_there else None)
    offset = spot.offset
    if problem.kind is ProblemKind.UNKNOWN and is_there and spot.name_offset is not None:
        offset = spot.name_offset
    place = source.place(offset)
    return replace(told, message=f"{told.message} ({place})", line=place.line, column=place.column)


def describe_problem(
    whole: Record, problem: Problem, inputs: Mapping[str, object], came: str | None = None
) -> InputProblem:
    """Return a problem of the fields of a record; `came` is the value as JSON writes it."""
    path, kind = printable(problem.path), problem.kind.value
    if not problem.path:
        got = "" if came is None else f", got {came}"
        return InputProblem(path, kind, "a JSON object", came, f"expected a JSON object with the inputs{got}")
    around, type_, given = _locate(whole, problem.path, inputs)
    if problem.kind is ProblemKind.UNKNOWN:
        what = "input" if around is whole else "field"
        names = [name for name, _ in around.fields] if isinstance(around, Record) else []
        name = problem.path if around is whole else problem.path.rpartition(".")[2]
        none = f"there are no {what}s" if not names else f"the {what}s are {', '.join(names)}"
        return InputProblem(path, kind, "nothing", None, f"no such {what}; {did_you_mean(name, names) or none}")
    expected = "something else" if type_ is None else _expected_type(type_)
    if problem.kind is ProblemKind.MISSING:
        return InputProblem(path, kind, expected, None, f"missing; expected {expected}")
    if given is _ABSENT and came is None:
        return InputProblem(path, kind, expected, None, f"expected {expected} ({kind.replace('_', ' ')})")
    came = _given_text(given) if came is None else came
    reason = _REASONS.get(problem.kind, "")
    if problem.kind is ProblemKind.NOT_A_MEMBER and type_ is not None and type(given) is str:
        inner = without_null(type_)
        hint = did_you_mean(given, inner.members) if isinstance(inner, Enum) else None
        reason = f"; {hint}" if hint else reason
    return InputProblem(path, kind, expected, came, f"expected {expected}, got {came}{reason}{_advice(type_, given)}")


def _expected_type(type_: Type) -> str:
    inner = without_null(type_)
    if isinstance(inner, Enum):
        return f"one of {', '.join(inner.members)}" + (" or null" if inner is not type_ else "")
    return str(type_)


def _advice(type_: Type | None, given: object) -> str:
    """Return advice for common mistakes."""
    inner = None if type_ is None else without_null(type_)
    if inner == DECIMAL and type(given) is float and isfinite(given):
        return f'; give it as text, "{given!r}", or as a Decimal: a float is not exact'
    if inner == TIMESTAMP and isinstance(given, date) and getattr(given, "tzinfo", None) is None:
        return "; say its time zone"
    if inner == DATE and isinstance(given, date):
        return "; take its `.date()`"
    return ""


def _given_text(given: object) -> str:
    """Return type and value of a given object.

    Only the type, where showing the value could call a method of a caller's class.
    """
    if given is None:
        return "null"
    if type(given) is int and given.bit_length() > _MAX_BITS:
        return f"int of {given.bit_length()} bits"
    if type(given) not in _SHOWN or (isinstance(given, date) and getattr(given, "tzinfo", None) is None):
        text = str(given) if type(given) in _DATES else ""
    else:
        text = show(given)
    text = text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 1] + "…"
    return f"{type(given).__name__} {text}".rstrip()


_SHOWN = (bool, int, float, Decimal, str, bytes, timedelta, time, Period)
_DATES = tuple({date, *date.__subclasses__()})


# -- paths ----------------------------------------------------------------------------------------

_PLACE = re.compile(r'\[("(?:[^"\\]|\\.)*"|[^\]]*)\]')


def _locate(whole: Record, path: str, inputs: object) -> tuple[Type, Type | None, object]:
    """Return the type around the end of a path, the type at its end, and the given value.

    Without a known type there, the last two are None and `_ABSENT`.
    """
    around: Type = whole
    type_: Type | None = whole
    given = inputs
    rest = f".{path}"
    while rest and type_ is not None:
        around = without_null(type_)
        step, rest = _step(around, rest)
        type_ = _inner(around, step)
        given = _member(around, given, step)
    return around, type_, given if type_ is not None else _ABSENT


def _steps(whole: Record, path: str) -> list[Step]:
    """Return the parts of a path."""
    steps: list[Step] = []
    type_: Type | None = whole
    rest = f".{path}" if path else ""
    while rest and type_ is not None:
        around = without_null(type_)
        text, rest = _step(around, rest)
        type_ = _inner(around, text)
        steps.append(Step(text, isinstance(around, MapOf)))
    return steps


def _step(around: Type, rest: str) -> tuple[str, str]:
    """Return the next step of a path and the rest. A name may contain any character: the declared names delimit it."""
    if isinstance(around, Record):
        names = (name for name, _ in around.fields)
        fitting = [name for name in names if re.match(rf"\.{re.escape(name)}(?=[.\[]|$)", rest)]
        name = max(fitting, key=len, default=rest[1:])
        return name, rest[len(name) + 1 :]
    place = _PLACE.match(rest)
    return (rest, "") if place is None else (place[1], rest[place.end() :])


def _inner(around: Type, step: str) -> Type | None:
    match around:
        case Record():
            return around.field(step)
        case ArrayOf(element) | SetOf(element):
            return element
        case MapOf(key, value):
            return key if step == "?" else value
        case _:
            return None


def _member(around: Type, given: object, step: str) -> object:
    """Return the member of the given object; `_ABSENT` where it cannot be read."""
    if isinstance(around, Record) and type(given) is dict:
        return given.get(step, _ABSENT)
    if isinstance(around, ArrayOf | SetOf) and type(given) in (list, tuple) and step.isdecimal():
        items: Sequence[object] = given  # type: ignore[assignment]  # mypy does not narrow by `type(…) in`
        return items[int(step)] if int(step) < len(items) else _ABSENT
    if isinstance(around, MapOf) and type(given) is dict:
        return next((value for key, value in given.items() if _key_text(key) == step), _ABSENT)
    return _ABSENT


def _key_text(key: object) -> str | None:
    if type(key) is str:
        return json_string(key)
    return scalar_text(key) if isinstance(key, bool | int | bytes | date) else None
