"""A failing input as a case that can be pasted into its node: YAML that reads back as the very same values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import cast

from vesper.language.ir.nodes import Node
from vesper.values.inputs import accept_inputs
from vesper.values.model import Key, Scalar, Value, in_order, scalar_text
from vesper.values.times import timestamp_text
from vesper.values.types import ArrayOf, Enum, MapOf, OptionalOf, Primitive, Record, SetOf, Type
from vesper.verify.programs.types import yaml_quoted

_MAX_LINE = 110
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def case_text(
    node: Node,
    name: str,
    inputs: Mapping[str, object],
    expect: str,
    now: datetime | None = None,
    effects: Sequence[tuple[str, str]] = (),
) -> str:
    """The lines of a case, indented as `testing.test_cases` wants them. The inputs must be ones that the node takes.

    `effects` are paths of requests and what each is answered, as `answer_text` writes it.
    """
    declared = [(each.name, each.type, each.default) for each in node.inputs]
    values, problems = accept_inputs(declared, dict(inputs))
    if problems:
        raise ValueError(f"these are no inputs of {node.node_id}: {problems[0].path}")
    given = [(each, type_) for each, type_, _ in declared if each in inputs]
    lines = [f"    - name: {_scalar_literal(name)}"]
    lines += [] if now is None else [f"      now: {timestamp_text(now)}"]
    lines += _mapping("inputs", [(each, literal(type_, values[each])) for each, type_ in given])
    lines += ["      effects:"] if effects else []
    lines += [f"        - {{step: {_scalar_literal(path)}, {answer}}}" for path, answer in effects]
    return "\n".join([*lines, f"      expect: {expect}"])


def answer_text(type_: Type, result: object, failure: str | None) -> str:
    """What an effect of a case is answered with: `returns: …`, or `fails: …`."""
    if failure is not None:
        return f"fails: {failure}"
    values, _ = accept_inputs([("returns", type_, None)], {"returns": result})
    return f"returns: {literal(type_, values['returns'])}"


def literal(type_: Type, value: Value) -> str:
    """A value in a literal slot, in flow style."""
    match type_, value:
        case OptionalOf(inner), _:
            return "null" if value is None else literal(inner, value)
        case ArrayOf(element), list():
            return f"[{', '.join(literal(element, item) for item in value)}]"
        case SetOf(element), frozenset():
            return f"[{', '.join(literal(element, item) for item in in_order(element, value))}]"
        case MapOf(key, of), dict():
            entries = [f"{literal(key, each)}: {literal(of, found)}" for each, found in value.items()]
            return f"{{{', '.join(entries)}}}"
        case Record(fields), dict():
            named = cast(dict[str, Value], value)
            return f"{{{', '.join(f'{name}: {literal(field, named[name])}' for name, field in fields)}}}"
        case ((Primitive() | Enum()), _):
            assert isinstance(value, Scalar | Key)
            return _scalar_literal(scalar_text(value))
        case _:
            raise TypeError(f"{value!r} is no {type_}")


def _scalar_literal(text: str) -> str:
    """Plain where YAML and the reader cannot take it for anything else; quotes change no kind."""
    is_plain = (_WORD.fullmatch(text) and text != "null") or _NUMBER.fullmatch(text)
    return text if is_plain else yaml_quoted(text)


def _mapping(key: str, entries: list[tuple[str, str]]) -> list[str]:
    """On one line where it fits, otherwise an entry a line."""
    flat = f"      {key}: {{{', '.join(f'{name}: {text}' for name, text in entries)}}}"
    if len(flat) <= _MAX_LINE:
        return [flat]
    return [f"      {key}:", *(f"        {name}: {text}" for name, text in entries)]
