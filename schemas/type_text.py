"""Types as declarations write them: parser, and test of example values.

`map<string, array<T>>`, `enum[a, b]`, `{key: K, value: V}`, `optional<T>`, `fn(T) -> K`. A single capital word is a
type parameter. Output formats are not known here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PRIMITIVES = (
    "boolean", "integer", "decimal", "float", "string", "bytes", "timestamp", "date", "duration", "time_of_day",
    "period", "json",
)  # fmt: skip
APPLIED = {"array": 1, "set": 1, "optional": 1, "map": 2}
KEYS = frozenset({"string", "integer", "boolean", "date", "timestamp", "bytes", "enum"})
ORDERED = KEYS | {"decimal", "float", "duration", "time_of_day", "period"}
NUMBERS = frozenset({"integer", "decimal", "float"})
EVERY = frozenset({*PRIMITIVES, *APPLIED, "enum", "record"})
BOUNDS = {
    "any": EVERY,
    "key": KEYS,
    "ordered": ORDERED,
    "number": NUMBERS,
    "enum": frozenset({"enum"}),
    "record": frozenset({"record"}),
}
"""Heads of types that each bound admits, compared with `Type.head`."""

_WORD = re.compile(r"\s*(->|[A-Za-z_][A-Za-z0-9_]*|[<>\[\](){},:])")


class TypeTextError(Exception):
    """The text is no type."""


@dataclass(frozen=True, slots=True)
class Type:
    """A type; `head` is a primitive, a word of `APPLIED`, `enum`, `record`, `fn` or `parameter`."""

    head: str
    parts: tuple[Type, ...] = ()
    names: tuple[str, ...] = ()
    """Members of an enum, fields of a record, or the name of a parameter."""


def parse(text: str) -> Type:
    """Return the type of a text, or raise `TypeTextError`."""
    words = _WORD.findall(text)
    if "".join(words) != "".join(text.split()):
        raise TypeTextError(f"`{text}` is not a type")
    try:
        found, rest = _read(words)
    except (IndexError, ValueError, TypeTextError):
        raise TypeTextError(f"`{text}` is not a type") from None
    if rest:
        raise TypeTextError(f"`{text}` is not a type: `{rest[0]}` is left over")
    return found


def _read(words: list[str]) -> tuple[Type, list[str]]:
    head, rest = words[0], words[1:]
    if head == "enum":
        end = rest.index("]")
        return Type("enum", names=tuple(word for word in rest[1:end] if word != ",")), rest[end + 1 :]
    if head == "{":
        return _read_record(rest)
    if head == "fn":
        parameters, rest = _read_list(_expect(rest, "("), ")")
        result, rest = _read(_expect(rest, "->"))
        return Type("fn", (*parameters, result)), rest
    if head in APPLIED:
        parts, rest = _read_list(_expect(rest, "<"), ">")
        if len(parts) != APPLIED[head]:
            raise TypeTextError
        return Type(head, parts), rest
    if head in PRIMITIVES:
        return Type(head), rest
    if head[0].isupper():
        return Type("parameter", names=(head,)), rest
    raise TypeTextError


def _read_list(words: list[str], end: str) -> tuple[tuple[Type, ...], list[str]]:
    found: list[Type] = []
    while words[0] != end:
        part, words = _read(words)
        found.append(part)
        words = words[1:] if words[0] == "," else words
    return tuple(found), words[1:]


def _read_record(words: list[str]) -> tuple[Type, list[str]]:
    names: list[str] = []
    parts: list[Type] = []
    while words[0] != "}":
        names.append(words[0])
        part, words = _read(_expect(words[1:], ":"))
        parts.append(part)
        words = words[1:] if words[0] == "," else words
    return Type("record", tuple(parts), tuple(names)), words[1:]


def _expect(words: list[str], word: str) -> list[str]:
    if words[0] != word:
        raise TypeTextError
    return words[1:]


def substitute(type_: Type, arguments: Mapping[str, Type]) -> Type:
    """Return the type with its parameters replaced; an optional of an optional is one optional."""
    if type_.head == "parameter":
        return arguments[type_.names[0]]
    parts = tuple(substitute(part, arguments) for part in type_.parts)
    if type_.head == "optional" and parts[0].head == "optional":
        return parts[0]
    return Type(type_.head, parts, type_.names)


def heads(type_: Type, bounds: Mapping[str, str]) -> frozenset[str]:
    """Return the heads that a type may have once its parameters are known."""
    return BOUNDS[bounds[type_.names[0]]] if type_.head == "parameter" else frozenset({type_.head})


def can_overlap(left: Type, left_bounds: Mapping[str, str], right: Type, right_bounds: Mapping[str, str]) -> bool:
    """Return whether a type may match both; may be true without such a type."""
    if not heads(left, left_bounds) & heads(right, right_bounds):
        return False
    if left.head != right.head or "parameter" in (left.head, right.head):
        return True
    if left.head in ("enum", "record"):
        return left.names == right.names
    return len(left.parts) == len(right.parts) and all(
        can_overlap(a, left_bounds, b, right_bounds) for a, b in zip(left.parts, right.parts, strict=True)
    )


# A TOML value fits a type if it is its JSON form; a float may also be a TOML float.

DECIMAL_TEXT = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_FORMS = {
    "bytes": re.compile(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"),
    "timestamp": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{6})?Z"),
    "date": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    "duration": re.compile(r"-?P(?=.)([0-9]+D)?(T(?=.)([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]{1,6})?S)?)?"),
    "time_of_day": re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{6})?"),
    "period": re.compile(r"-?P(?=.)([0-9]+Y)?([0-9]+M)?"),
    "decimal": DECIMAL_TEXT,
}
NULL = {"null": True}
"""Notation of null in examples, which TOML lacks."""


def fits(type_: Type, value: Any) -> bool:
    """Return whether a TOML value fits a type."""
    match type_.head:
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return type(value) is int and -(2**63) <= value < 2**63
        case "float":
            return isinstance(value, float)
        case "string" | "fn":
            return isinstance(value, str)
        case "decimal" | "bytes" | "timestamp" | "date" | "duration" | "time_of_day" | "period":
            return isinstance(value, str) and _FORMS[type_.head].fullmatch(value) is not None
        case "enum":
            return value in type_.names
        case "array" | "set":
            return isinstance(value, list) and all(fits(type_.parts[0], item) for item in value)
        case "map":
            return isinstance(value, list) and all(
                isinstance(pair, list)
                and len(pair) == 2
                and fits(type_.parts[0], pair[0])
                and fits(type_.parts[1], pair[1])
                for pair in value
            )
        case "record":
            return (
                isinstance(value, dict)
                and tuple(value) == type_.names
                and all(fits(part, value[name]) for name, part in zip(type_.names, type_.parts, strict=True))
            )
        case "optional":
            return value == NULL or fits(type_.parts[0], value)
        case "json":
            return isinstance(value, str)  # JSON text
    return False


def float_text(value: float) -> str:
    """Return a float in the language's notation; Python writes non-finite values differently."""
    if value != value:
        return "NaN"
    return repr(value).replace("inf", "Infinity")
