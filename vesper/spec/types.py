"""The types of the language as values: equality, text, and what fits where.

A type is written as text in three places: in nodes, in `schemas/ops` and in messages. `str(type)` is that
text; the front end has its own parser for nodes, because there every part needs a span.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Primitive:
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Enum:
    members: tuple[str, ...]

    def __str__(self) -> str:
        return f"enum[{', '.join(self.members)}]"


@dataclass(frozen=True, slots=True)
class SetOf:
    element: Type

    def __str__(self) -> str:
        return f"set<{self.element}>"


Type: TypeAlias = Primitive | Enum | SetOf

BOOLEAN = Primitive("boolean")
INTEGER = Primitive("integer")
DECIMAL = Primitive("decimal")
STRING = Primitive("string")
PRIMITIVES: Mapping[str, Primitive] = {t.name: t for t in (BOOLEAN, INTEGER, DECIMAL, STRING)}


def is_key(type_: Type) -> bool:
    """True for the types a set may hold: those with one obvious equality and order."""
    return type_ in (STRING, INTEGER, BOOLEAN) or isinstance(type_, Enum)


def fits_bound(type_: Type, bound: str) -> bool:
    """True when the type may stand for a type parameter with this bound (`key`, `enum`)."""
    return is_key(type_) if bound == "key" else isinstance(type_, Enum)


def match_parameter(pattern: str, actual: Type, bindings: dict[str, Type]) -> bool:
    """Match a type against the text of a declared parameter, filling in type parameters as it goes.

    `match_parameter("set<T>", SetOf(STRING), {})` is true and binds `T` to string.
    """
    if pattern.startswith("set<"):
        return isinstance(actual, SetOf) and match_parameter(pattern[4:-1], actual.element, bindings)
    if pattern in PRIMITIVES:
        return actual == PRIMITIVES[pattern]
    return bindings.setdefault(pattern, actual) == actual


def substitute(pattern: str, bindings: Mapping[str, Type]) -> Type:
    """The type that a declared text means once its type parameters are known."""
    if pattern.startswith("set<"):
        return SetOf(substitute(pattern[4:-1], bindings))
    return PRIMITIVES[pattern] if pattern in PRIMITIVES else bindings[pattern]
