"""A failing input as a case for its node: YAML that reads back as the same values."""

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
from vesper.verify.programs.types import quote_yaml

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
    """Return the lines of a case, indented for `testing.test_cases`.

    The node must accept the inputs. `effects` are request paths with their answers, as `answer_text` writes them.
    """
    declared = node.declared_inputs
    values, problems = accept_inputs(declared, dict(inputs))
    if problems:
        raise ValueError(f"{node.node_id} rejects these inputs: {problems[0].path}")
    given = [(each, type_) for each, type_, _ in declared if each in inputs]
    lines = [f"    - name: {_scalar_literal(name)}"]
    lines += [] if now is None else [f"      now: {timestamp_text(now)}"]
    lines += _mapping("inputs", [(each, literal(type_, values[each])) for each, type_ in given])
    lines += ["      effects:"] if effects else []
    lines += [f"        - {{step: {_scalar_literal(path)}, {answer}}}" for path, answer in effects]
    return "\n".join([*lines, f"      expect: {expect}"])


def answer_text(type_: Type, result: object, failure: str | None) -> str:
    """Return the answer to a request of a case: `returns: …` or `fails: …`."""
    if failure is not None:
        return f"fails: {failure}"
    values, _ = accept_inputs([("returns", type_, None)], {"returns": result})
    return f"returns: {literal(type_, values['returns'])}"


def literal(type_: Type, value: Value) -> str:
    """Return a value as a literal in flow style."""
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
            raise TypeError(f"{value!r} is not a {type_}")


def _scalar_literal(text: str) -> str:
    """Return a scalar plain if YAML and the reader read it back unchanged, else quoted."""
    is_plain = (_WORD.fullmatch(text) and text != "null") or _NUMBER.fullmatch(text)
    return text if is_plain else quote_yaml(text)


def _mapping(key: str, entries: list[tuple[str, str]]) -> list[str]:
    """Return a mapping on one line if it fits, otherwise one entry per line."""
    flat = f"      {key}: {{{', '.join(f'{name}: {text}' for name, text in entries)}}}"
    if len(flat) <= _MAX_LINE:
        return [flat]
    return [f"      {key}:", *(f"        {name}: {text}" for name, text in entries)]
