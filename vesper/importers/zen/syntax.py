"""Tree of an expression of zen, and its tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

MAX_CHARACTERS = 32_768
"""The longest expression that is read; a node has no room for a longer one."""


class ZenSyntaxError(Exception):
    """An expression that the grammar does not produce; the text says what and where."""


@dataclass(frozen=True, slots=True)
class Null:
    pass


@dataclass(frozen=True, slots=True)
class Boolean:
    value: bool


@dataclass(frozen=True, slots=True)
class Number:
    text: str
    """Digits with at most one point: neither separators nor an exponent."""


@dataclass(frozen=True, slots=True)
class String:
    text: str


@dataclass(frozen=True, slots=True)
class Template:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Array:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Object:
    entries: tuple[tuple[Node, Node], ...]


@dataclass(frozen=True, slots=True)
class Name:
    """A name of the context; `$` is the value of a table's column, or the results of an expression node so far."""

    text: str


@dataclass(frozen=True, slots=True)
class Pointer:
    """`#`: the item of the innermost closure."""


@dataclass(frozen=True, slots=True)
class Member:
    base: Node
    key: Node


@dataclass(frozen=True, slots=True)
class Slice:
    base: Node
    start: Node | None
    end: Node | None


@dataclass(frozen=True, slots=True)
class Interval:
    left: Node
    right: Node
    has_left: bool
    has_right: bool


@dataclass(frozen=True, slots=True)
class Conditional:
    condition: Node
    then: Node
    otherwise: Node


@dataclass(frozen=True, slots=True)
class Unary:
    operator: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: tuple[Node, ...]
    alias: str | None = None
    """The name of the item in a closure: `map(items as item, item.price)`."""


@dataclass(frozen=True, slots=True)
class Method:
    base: Node
    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Assignments:
    """`a = 1; b.c = a + 1; b`: values by key, and an expression as result, if it is not the object of all keys."""

    entries: tuple[tuple[str, Node], ...]
    output: Node | None


Node: TypeAlias = (
    Null | Boolean | Number | String | Template | Array | Object | Name | Pointer | Member | Slice | Interval
    | Conditional | Unary | Binary | Call | Method | Assignments
)  # fmt: skip

CLOSURES = frozenset({"all", "some", "none", "one", "filter", "map", "flatMap", "count"})


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    """`number`, `string`, `template`, `name`, `operator` or `end`."""
    text: str
    at: int


_TOKEN = re.compile(
    r"""
    (?P<space>[\ \t\r\n]+)
  | (?P<number>[0-9][0-9_]*(?:\.[0-9][0-9_]*)?(?:[eE][+-]?[0-9]+)?)
  | (?P<string>'[^']*'|"[^"]*")
  | (?P<name>[A-Za-z_$#][A-Za-z0-9_$]*)
  | (?P<operator>\?\?|\.\.|==|!=|<=|>=|[-+*/%^<>=!?:;.,()\[\]{}])
    """,
    re.VERBOSE,
)
_WORDS = {"and": "and", "or": "or", "in": "in", "not": "not"}


def tokens_of(source: str) -> list[Token]:
    """Return the tokens of an expression, ending with one of kind `end`."""
    if len(source) > MAX_CHARACTERS:
        raise ZenSyntaxError(f"the expression has more than {MAX_CHARACTERS} characters")
    found = list(_scan(source))
    merged: list[Token] = []
    for token in found:
        if merged and token.text == "in" and token.kind == "operator" and merged[-1].text == "not":
            merged[-1] = Token("operator", "not in", merged[-1].at)
        else:
            merged.append(token)
    return [*merged, Token("end", "", len(source))]


def _scan(source: str) -> Iterator[Token]:
    at = 0
    while at < len(source):
        if source[at] == "`":
            end = _template_end(source, at + 1)
            yield Token("template", source[at + 1 : end], at)
            at = end + 1
            continue
        match = _TOKEN.match(source, at)
        if match is None:
            raise ZenSyntaxError(f"`{source[at]}` at position {at + 1} starts no token")
        kind, text = str(match.lastgroup), match.group()
        if kind == "name" and text in _WORDS:
            kind = "operator"
        if text == "!":
            text = "not"
        if kind != "space":
            yield Token(kind, text, at)
        at = match.end()


def _template_end(source: str, at: int) -> int:
    """Return the position of the closing backtick; holes `${…}` may contain strings and braces."""
    depth = 0
    while at < len(source):
        character = source[at]
        if depth == 0 and character == "`":
            return at
        if depth == 0 and source.startswith("${", at):
            depth, at = 1, at + 2
            continue
        if depth:
            if character in "'\"":
                at = source.find(character, at + 1)
                if at < 0:
                    break
            depth += (character == "{") - (character == "}")
        at += 1
    raise ZenSyntaxError("a template has no closing backtick")


def template_parts(text: str) -> list[tuple[bool, str]]:
    """Return the parts of a template's text: whether each is an expression, and its text."""
    parts: list[tuple[bool, str]] = []
    at = 0
    while at < len(text):
        start = text.find("${", at)
        if start < 0:
            parts.append((False, text[at:]))
            break
        if start > at:
            parts.append((False, text[at:start]))
        end = _hole_end(text, start + 2)
        parts.append((True, text[start + 2 : end]))
        at = end + 1
    return parts


def _hole_end(text: str, at: int) -> int:
    depth = 1
    while at < len(text):
        character = text[at]
        if character in "'\"":
            at = text.find(character, at + 1)
            if at < 0:
                break
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return at
        at += 1
    raise ZenSyntaxError("a hole of a template has no closing brace")
