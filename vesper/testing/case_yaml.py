"""Values as YAML of a case, which the reader of literals reads back as the same values.

The reader is `vesper.language.check.expressions.literals`. A mapping or list is written on one line if it fits,
otherwise with one entry per line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from vesper.values.json_value import Json, depth_of, exact_text
from vesper.values.model import Scalar, Value, in_order, scalar_text
from vesper.values.strict_json import JsonContent
from vesper.values.types import JSON, ArrayOf, MapOf, OptionalOf, Record, SetOf, Type

_MAX_LINE = 110
_MAX_DEPTH = 12
"""Depth beyond which JSON is written as JSON text, because YAML readers limit nesting."""
_PLAIN = re.compile(r"[A-Za-z/](?:[A-Za-z0-9_./-]| (?=[A-Za-z0-9/]))*", re.ASCII)
_PLAIN_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?", re.ASCII)
_PLAIN_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.]+Z)?", re.ASCII)
_WORD_OF_JSON = re.compile("true|false|null", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Entries:
    """A mapping with keys as they are written."""

    pairs: Sequence[tuple[str, Node]]


Node: TypeAlias = "str | list[Node] | Entries"
"""YAML to write: a scalar as it appears in the file, a list or a mapping."""


def to_yaml(type_: Type, value: Value) -> Node:
    """Return a value as YAML of a case."""
    match type_, value:
        case OptionalOf(inner), _:
            return "null" if value is None else to_yaml(inner, value)
        case ArrayOf(element), list():
            return [to_yaml(element, item) for item in value]
        case SetOf(element), frozenset():
            return [to_yaml(element, item) for item in in_order(element, value)]
        case MapOf(key, of), dict():
            return Entries([(_key(to_yaml(key, cast(Value, each))), to_yaml(of, item)) for each, item in value.items()])
        case Record(fields), dict():
            named = cast(dict[str, Value], value)
            return Entries([(name, to_yaml(field, named[name])) for name, field in fields])
        case _ if type_ == JSON:
            assert isinstance(value, Json)
            content = value.content
            is_deep = not isinstance(content, dict | tuple) or depth_of(content) > _MAX_DEPTH
            return scalar(exact_text(value)) if is_deep else _json(content)
        case _:
            return scalar(scalar_text(cast(Scalar, value)))


def scalar(text: str) -> str:
    """Return a scalar plain if YAML and the reader read it back unchanged, else quoted."""
    is_word = _PLAIN.fullmatch(text) is not None and text != "null"
    return text if is_word or _PLAIN_NUMBER.fullmatch(text) or _PLAIN_TIME.fullmatch(text) else _quote(text)


def lines(key: str, node: Node, indent: int) -> list[str]:
    """Return the lines of `key: node`, indented by `indent` spaces."""
    space = " " * indent
    flat = f"{space}{key}: {_flow(node)}"
    if len(flat) <= _MAX_LINE or isinstance(node, str) or _is_empty(node):
        return [flat]
    if isinstance(node, Entries):
        found = [f"{space}{key}:"]
        for name, inner in node.pairs:
            found += lines(name, inner, indent + 2)
        return found
    found = [f"{space}{key}:"]
    for item in node:
        found += _item(item, indent + 2)
    return found


def _item(node: Node, indent: int) -> list[str]:
    """Return the lines of one list item."""
    space = " " * indent
    flat = f"{space}- {_flow(node)}"
    if len(flat) <= _MAX_LINE or not isinstance(node, Entries) or _is_empty(node):
        return [flat]
    found: list[str] = []
    for name, inner in node.pairs:
        found += lines(name, inner, indent + 2)
    return [f"{space}- {found[0].lstrip()}", *found[1:]]


def _is_empty(node: list[Node] | Entries) -> bool:
    return not (node.pairs if isinstance(node, Entries) else node)


def _flow(node: Node) -> str:
    if isinstance(node, str):
        return node
    if isinstance(node, Entries):
        return f"{{{', '.join(f'{key}: {_flow(each)}' for key, each in node.pairs)}}}"
    return f"[{', '.join(map(_flow, node))}]"


def _key(node: Node) -> str:
    assert isinstance(node, str), "a key is a scalar"
    return node


def _json(content: JsonContent) -> Node:
    """Return JSON content. A text is plain only where YAML reads it as text."""
    match content:
        case dict():
            return Entries([(scalar(name), _json(each)) for name, each in content.items()])
        case tuple():
            return [_json(each) for each in content]
        case str():
            is_word = _PLAIN.fullmatch(content) is not None and not _WORD_OF_JSON.fullmatch(content)
            return content if is_word else _quote(content)
        case _:
            return exact_text(Json(content))


def _quote(text: str) -> str:
    """Return any text as a double-quoted scalar on one line."""
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable() and character != "\ufeff":
        return character
    code = ord(character)
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"
