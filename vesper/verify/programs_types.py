"""Random types, and random literals of them, as a node writes both. The lowest layer of `programs`.

What is drawn leans toward edges: the ends of 64 bits, zeros with places, text that YAML or Python could misread.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping

from vesper.spec.types import (
    BOOLEAN,
    DECIMAL,
    INTEGER,
    STRING,
    ArrayOf,
    Enum,
    MapOf,
    OptionalOf,
    Primitive,
    Record,
    SetOf,
    Type,
)
from vesper.spec.values import MAX_INTEGER, MIN_INTEGER
from vesper.syntax.tokens import WORDS

SCALARS: tuple[Primitive, ...] = (BOOLEAN, INTEGER, DECIMAL, STRING)
"""The primitive types that nodes have today; one more needs its literals in `_LITERALS`."""
_KEYS: tuple[Type, ...] = (STRING, INTEGER, BOOLEAN)
_MEMBERS = (
    "low", "high", "open", "closed", "status", "kind", "NO", "on", "A", "x1", "input", "null", "IN", "true",
    "two words", "é", "it's", 'a "b"', "#1", "- x", "a: b", "0", "None",
)  # fmt: skip
_INTEGERS = (0, 0, 1, 1, 2, 3, 5, 7, 10, 100, 1000, 2**31, 2**53 + 1, MAX_INTEGER, MAX_INTEGER - 1)
_NEGATIVES = (-1, -1, -2, -10, -(2**31), MIN_INTEGER + 1, MIN_INTEGER)
_DECIMALS = (
    "0.0", "0.00", "1.0", "1.00", "0.1", "0.10", "0.01", "2.5", "0.5", "100.0", "99.99", "1000.00", "0.000001", "00.5",
    "12345678901234567890.123456789", "0.0000000000000000000000000001", "99999999999999999999999999999999999999.9",
)  # fmt: skip
_STRINGS = (
    "", "", "a", "b", "ab", "A", "USD", "é", "e\u0301", "😀", "it's", 'say "x"', "a: b", " #", "{", "- ", " a ", "\\n",
    "null", "true", "0", "%", "\t", "\x7f", "\u0085", "\u2028", "\ufeff", "\x01", "\U0010ffff", "zz",
)  # fmt: skip
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def is_word(text: str) -> bool:
    """True for what an expression may say bare."""
    return _WORD.fullmatch(text) is not None and text not in WORDS


def type_text(type_: Type) -> str:
    """The type as a node writes it. `str` of a type is for readers: it does not quote the members of an enum."""
    match type_:
        case Enum(members):
            return f"enum[{', '.join(each if is_word(each) else quoted(each) for each in members)}]"
        case ArrayOf(element):
            return f"array<{type_text(element)}>"
        case SetOf(element):
            return f"set<{type_text(element)}>"
        case MapOf(key, value):
            return f"map<{type_text(key)}, {type_text(value)}>"
        case OptionalOf(inner):
            return f"optional<{type_text(inner)}>"
        case _:
            return str(type_)


def quoted(text: str) -> str:
    """A string of an expression; it has no escapes, so the text may hold one kind of quote and no line break."""
    return f'"{text}"' if "'" in text else f"'{text}'"


class TypeSource:
    """Draws types and literals; `records` are those that the node declares so far."""

    def __init__(self, source: random.Random) -> None:
        self.random = source
        self.records: list[Record] = []

    # -- types ------------------------------------------------------------------------------------

    def type(self, depth: int = 3) -> Type:
        pick = self.random.random()
        if depth <= 0 or pick < 0.4:
            return self.random.choice(SCALARS)
        if pick < 0.5:
            return self.enum()
        if pick < 0.62 and self.records:
            return self.random.choice(self.records)
        if pick < 0.74:
            return ArrayOf(self.type(depth - 1))
        if pick < 0.81:
            return SetOf(self.key())
        if pick < 0.88:
            return MapOf(self.key(), self.type(depth - 1))
        inner = self.type(depth - 1)
        return inner if isinstance(inner, OptionalOf) else OptionalOf(inner)

    def key(self) -> Type:
        return self.enum() if self.random.random() < 0.25 else self.random.choice(_KEYS)

    def enum(self) -> Enum:
        members = self.random.sample(_MEMBERS, self.random.choice((1, 2, 2, 3, 4)))
        return Enum(tuple(members))

    # -- literals in expressions ------------------------------------------------------------------

    def literal(self, type_: Type, hint: Type | None, names: frozenset[str]) -> str | None:
        """A scalar as an expression writes it, given what its place says; None where it cannot be written."""
        if type_ == DECIMAL and hint == DECIMAL and self.random.random() < 0.5:
            return self._signed(str(self.random.choice(_INTEGERS)))
        if type_ == INTEGER and hint == DECIMAL:
            return None  # it would be read as a decimal
        if isinstance(type_, Enum):
            member = self.random.choice(type_.members)
            if hint != type_:
                return None
            is_bare = is_word(member) and member not in names and self.random.random() < 0.7
            return member if is_bare else quoted(member)
        if type_ == STRING and isinstance(hint, Enum):
            return None
        write = _LITERALS.get(type_)
        return None if write is None else write(self)

    def _boolean(self) -> str:
        return self.random.choice(("true", "false"))

    def _integer(self) -> str:
        if self.random.random() < 0.25:
            return str(self.random.choice(_NEGATIVES))
        return ("00" if self.random.random() < 0.02 else "") + str(self.random.choice(_INTEGERS))

    def _decimal(self) -> str:
        return self._signed(self.random.choice(_DECIMALS))

    def _signed(self, digits: str) -> str:
        return "-" + digits if self.random.random() < 0.2 else digits

    def _string(self) -> str:
        text = self.random.choice(_STRINGS)
        return f'"{text}"' if "'" in text or ('"' not in text and self.random.random() < 0.3) else f"'{text}'"

    # -- literals in YAML -------------------------------------------------------------------------

    def yaml(self, type_: Type) -> str:
        """A value of any type in a literal slot, in flow style."""
        match type_:
            case OptionalOf(inner):
                return "null" if self.random.random() < 0.3 else self.yaml(inner)
            case ArrayOf(element):
                return f"[{', '.join(self.yaml(element) for _ in range(self._count()))}]"
            case SetOf(element):
                return f"[{', '.join(self._distinct(element))}]"
            case MapOf(key, value):
                return "{" + ", ".join(f"{each}: {self.yaml(value)}" for each in self._distinct(key)) + "}"
            case Record(fields):
                return "{" + ", ".join(f"{name}: {self.yaml(field)}" for name, field in fields) + "}"
            case Enum(members):
                return yaml_quoted(self.random.choice(members))
            case _ if type_ == STRING:
                return yaml_quoted(self.random.choice(_STRINGS))
            case _ if type_ == INTEGER:
                return str(self.random.choice((*_INTEGERS, *_NEGATIVES)))
            case _:
                return _LITERALS[type_](self)

    def _count(self) -> int:
        return self.random.choice((0, 1, 2, 2, 3))

    def _distinct(self, key: Type) -> list[str]:
        """Literals of a key type, each value once."""
        if key == BOOLEAN:
            return self.random.choice((["true"], ["false", "true"], []))
        if key == INTEGER:
            return [str(each) for each in {self.random.choice((*_INTEGERS, *_NEGATIVES)) for _ in range(self._count())}]
        texts = key.members if isinstance(key, Enum) else _STRINGS
        found = dict.fromkeys(self.random.choice(texts) for _ in range(self._count()))
        return [yaml_quoted(each) for each in found]


_LITERALS: Mapping[Type, Callable[[TypeSource], str]] = {
    BOOLEAN: TypeSource._boolean,
    INTEGER: TypeSource._integer,
    DECIMAL: TypeSource._decimal,
    STRING: TypeSource._string,
}


def yaml_quoted(text: str) -> str:
    """Any text as a double-quoted YAML scalar on one line."""
    return '"' + "".join(_escaped(each) for each in text) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable() and character != "\ufeff":
        return character
    code = ord(character)
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"
