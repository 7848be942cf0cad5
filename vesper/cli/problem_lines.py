"""Inputs that do not fit, for a person: each with its path, what was expected there and what came."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

from vesper.diagnostics.suggest import did_you_mean
from vesper.ir.nodes import Node
from vesper.spec.types import DECIMAL, ArrayOf, Enum, MapOf, OptionalOf, Record, SetOf, Type
from vesper.spec.values import Problem, ProblemKind, Scalar, printable, scalar_text, show

_STEP = re.compile(r"\.(?P<field>[^.\[]+)|\[(?P<text>\"(?:[^\"\\]|\\.)*\")\]|\[(?P<key>[^\]]*)\]")
_ABSENT = object()


def problem_lines(node: Node, problems: Sequence[Problem], inputs: Mapping[str, object]) -> list[str]:
    """Every offending input, or part of one."""
    types: dict[str, Type] = {each.name: each.type for each in node.inputs}
    return [f"{printable(each.path)}: {_text(each, types, inputs)}" for each in problems]


def _text(problem: Problem, types: Mapping[str, Type], inputs: Mapping[str, object]) -> str:
    if problem.kind is ProblemKind.UNKNOWN:
        return _unknown(problem.path, types)
    type_, given = _at(problem.path, types, inputs)
    expected = "another value" if type_ is None else str(type_)
    if problem.kind is ProblemKind.MISSING:
        return f"missing; expected {expected}"
    came = "" if given is _ABSENT else f", got {_came(given)}"
    inner = type_.inner if isinstance(type_, OptionalOf) else type_
    if problem.kind is ProblemKind.NOT_A_MEMBER and isinstance(inner, Enum):
        hint = did_you_mean(given, inner.members) if isinstance(given, str) else None
        return f"expected one of {', '.join(inner.members)}{came}" + (f"; {hint}" if hint else "")
    text = f"expected {expected}{came} ({problem.kind.value.replace('_', ' ')})"
    if inner == DECIMAL and isinstance(given, float):
        text += f'; give it as text, "{given!r}", because a float is not exact'
    return text


def _unknown(path: str, types: Mapping[str, Type]) -> str:
    """A name that nothing has: an input, or a field of a record somewhere in one."""
    steps = list(_STEP.finditer(path))
    parent = None if not steps else _type_at(path[: steps[-1].start()], types)
    if isinstance(parent, OptionalOf):
        parent = parent.inner
    if isinstance(parent, Record):
        names, word, what = [name for name, _ in parent.fields], steps[-1]["field"] or "", "field"
    else:
        names, word, what = list(types), path, "input"
    hint = did_you_mean(word, names)
    if hint is None:
        hint = f"the {what}s are {', '.join(names)}" if names else f"there are no {what}s"
    return f"no such {what}; {hint}"


def _type_at(path: str, types: Mapping[str, Type]) -> Type | None:
    return _at(path, types, {})[0]


def _at(path: str, types: Mapping[str, Type], inputs: Mapping[str, object]) -> tuple[Type | None, object]:
    """The type that is expected at a path, and what was given there."""
    if path in types:
        return types[path], inputs.get(path, _ABSENT)
    name = re.split(r"[.\[]", path, maxsplit=1)[0]
    type_: Type | None = types.get(name)
    given = inputs.get(name, _ABSENT)
    for step in _STEP.finditer(path, len(name)):
        type_ = type_.inner if isinstance(type_, OptionalOf) else type_
        match type_:
            case Record(fields):
                type_ = dict(fields).get(step["field"] or "")
            case ArrayOf(element) | SetOf(element):
                type_ = element
            case MapOf(key, value):
                type_ = key if step["key"] == "?" else value
            case _:
                type_ = None
        given = _part(given, step)
    return type_, given


def _part(given: object, step: re.Match[str]) -> object:
    if isinstance(given, list | tuple):
        key = step["key"] or ""
        return given[int(key)] if key.isdigit() and int(key) < len(given) else _ABSENT
    if isinstance(given, dict):
        wanted = step["field"] or (json.loads(step["text"]) if step["text"] else None)
        if wanted is not None:
            return given.get(wanted, _ABSENT)
        return next((item for key, item in given.items() if _key_text(key) == step["key"]), _ABSENT)
    return _ABSENT


def _key_text(key: object) -> str | None:
    return scalar_text(key) if isinstance(key, Scalar) else None


def _came(given: object) -> str:
    shown = show(given)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    # Of most values one sees what they are; a float looks like a decimal, and bytes like a text.
    is_plain = given is None or isinstance(given, bool | int | Decimal | str | list | dict)
    return shown if is_plain else f"{type(given).__name__} {shown}"
