"""Random types and literals, as a node writes them.

This is the lowest layer of `programs`. Values are biased to edges: limits of 64 bits, zeros with decimal places, text
that YAML or Python could misread.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping

from vesper.language.syntax.tokens import WORDS
from vesper.values.generated.operations import IMPLEMENTED
from vesper.values.model import MAX_INTEGER, MIN_INTEGER
from vesper.values.types import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    INTEGER,
    JSON,
    STRING,
    TIMESTAMP,
    ArrayOf,
    Enum,
    MapOf,
    OptionalOf,
    Primitive,
    Record,
    SetOf,
    Type,
    declared_type,
)
from vesper.verify.programs.features import Features

SCALARS: tuple[Primitive, ...] = (BOOLEAN, INTEGER, DECIMAL, STRING, FLOAT, BYTES, TIMESTAMP, DATE, DURATION, JSON)
"""Primitive types; each has its literals in `_LITERALS`."""
_COMMON: tuple[Primitive, ...] = (BOOLEAN, INTEGER, DECIMAL, STRING)
_KEYS: tuple[Type, ...] = (STRING, STRING, INTEGER, INTEGER, BOOLEAN, BYTES, DATE, TIMESTAMP)
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
_FLOATS = (
    "0e0", "1e0", "1.5e0", "2.5e-1", "1e-1", "1e16", "1e-5", "9007199254740993e0", "5e-324", "1.7976931348623157e308",
)  # fmt: skip
_BYTES = ("", "00", "61", "6162", "ff", "c3a9", "00ff00ff")
_DATES = ("0001-01-01", "1970-01-01", "2023-02-28", "2024-02-29", "9999-12-31")
_TIMESTAMPS = (
    "0001-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "2024-02-29T12:30:00Z", "2024-02-29t10:30:00.5+02:00",
    "9999-12-31T23:59:59.999999Z",
)  # fmt: skip
_DURATIONS = ("PT0S", "90s", "1h30m", "-P1DT0.5S", "200ms", "1us", "P3652059D", "-P3652059D")
_JSONS = (
    "null", "true", "0", "1.50", "-0.5", "1e3", '""', '"a"', '"2024-02-29"', "[]", "{}", '{"a":1,"b":[null,"x"]}',
    '[1,1.0,"1"]', '{"qty":2,"price":"1.5"}',
)  # fmt: skip
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


_DECLARED_ENUMS = tuple(
    dict.fromkeys(found for spec in IMPLEMENTED.values() if isinstance(found := declared_type(spec.returns), Enum))
)
"""Enums that operations return; a program's own enum is rarely one of these."""


def is_word(text: str) -> bool:
    """Return whether an expression can contain this text unquoted."""
    return _WORD.fullmatch(text) is not None and text not in WORDS


def type_text(type_: Type) -> str:
    """Return the type as a node writes it. `str` of a type does not quote enum members."""
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
    """Return a string literal; literals have no escapes, so a text holds one kind of quote at most."""
    return f'"{text}"' if "'" in text else f"'{text}'"


class TypeSource:
    """Generator of types and literals; `records` are the node's declarations so far."""

    def __init__(self, source: random.Random, features: Features) -> None:
        self.random = source
        self.features = features
        self.records: list[Record] = []

    # -- types ------------------------------------------------------------------------------------

    def type(self, depth: int = 3) -> Type:
        pick = self.random.random()
        if depth <= 0 or pick < 0.4:
            return self.random.choice(_COMMON if self.random.random() < 0.6 else SCALARS)
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
        if self.random.random() < 0.15:
            return self.random.choice(_DECLARED_ENUMS)
        members = self.random.sample(_MEMBERS, self.random.choice((1, 2, 2, 3, 4)))
        return Enum(tuple(members))

    # -- literals in expressions ------------------------------------------------------------------

    def literal(self, type_: Type, hint: Type | None, names: frozenset[str]) -> str | None:
        """Draw a scalar literal for a place with a hint; None if it cannot be written."""
        if type_ == DECIMAL and hint == DECIMAL and self.random.random() < 0.5:
            return self._sign(str(self.random.choice(_INTEGERS)))
        if type_ == FLOAT and hint == FLOAT and self.random.random() < 0.5:
            return self._sign(self.random.choice((*map(str, _INTEGERS), *_DECIMALS)))
        if (type_ == INTEGER and hint == DECIMAL) or (type_ in (INTEGER, DECIMAL) and hint == FLOAT):
            return None  # its place would give it another type
        if isinstance(type_, Enum):
            member = self.random.choice(type_.members)
            if hint != type_:
                return None
            is_bare = is_word(member) and member not in names and self.random.random() < 0.7
            return member if is_bare else quoted(member)
        if type_ == STRING and isinstance(hint, Enum):
            return None
        write = _LITERALS.get(type_)
        return None if write is None or not _can_call(_CALLS.get(type_)) else write(self)

    def _boolean(self) -> str:
        return self.random.choice(("true", "false"))

    def _integer(self) -> str:
        if self.random.random() < 0.25:
            return str(self.random.choice(_NEGATIVES))
        return ("00" if self.random.random() < 0.02 else "") + str(self.random.choice(_INTEGERS))

    def _decimal(self) -> str:
        return self._sign(self.random.choice(_DECIMALS))

    def _sign(self, digits: str) -> str:
        return "-" + digits if self.random.random() < 0.2 else digits

    def _string(self) -> str:
        text = self.random.choice(_STRINGS)
        return f'"{text}"' if "'" in text or ('"' not in text and self.random.random() < 0.3) else f"'{text}'"

    def _float(self) -> str:
        return self._sign(self.random.choice(_FLOATS))

    def _bytes(self) -> str:
        return f"parse_hex('{self.random.choice(_BYTES)}')"

    def _date(self) -> str:
        return f"date('{self.random.choice(_DATES)}')"

    def _timestamp(self) -> str:
        return f"timestamp('{self.random.choice(_TIMESTAMPS)}')"

    def _duration(self) -> str:
        return f"duration('{self.random.choice(_DURATIONS)}')"

    def _json(self) -> str:
        return f"parse_json('{self.random.choice(_JSONS)}')"

    # -- literals in YAML -------------------------------------------------------------------------

    def draw_yaml(self, type_: Type) -> str:
        """Draw a value of any type as a YAML literal in flow style."""
        match type_:
            case OptionalOf(inner):
                return "null" if self.random.random() < 0.3 else self.draw_yaml(inner)
            case ArrayOf(element):
                return f"[{', '.join(self.draw_yaml(element) for _ in range(self._count()))}]"
            case SetOf(element):
                return f"[{', '.join(self._draw_distinct(element))}]"
            case MapOf(key, value):
                return "{" + ", ".join(f"{each}: {self.draw_yaml(value)}" for each in self._draw_distinct(key)) + "}"
            case Record(fields):
                return "{" + ", ".join(f"{name}: {self.draw_yaml(field)}" for name, field in fields) + "}"
            case Enum(members):
                return quote_yaml(self.random.choice(members))
            case _ if type_ == STRING:
                return quote_yaml(self.random.choice(_STRINGS))
            case _ if type_ == INTEGER:
                return str(self.random.choice((*_INTEGERS, *_NEGATIVES)))
            case _ if type_ in _TEXTS:
                return quote_yaml(self.random.choice(_TEXTS[type_]))
            case _:
                return _LITERALS[type_](self)

    def _count(self) -> int:
        return self.random.choice((0, 1, 2, 2, 3))

    def _draw_distinct(self, key: Type) -> list[str]:
        """Draw literals of a key type with distinct values."""
        if key == BOOLEAN:
            return self.random.choice((["true"], ["false", "true"], []))
        if key == INTEGER:
            return [str(each) for each in {self.random.choice((*_INTEGERS, *_NEGATIVES)) for _ in range(self._count())}]
        texts = key.members if isinstance(key, Enum) else _TEXTS.get(key, _STRINGS)
        found = dict.fromkeys(self.random.choice(texts) for _ in range(self._count()))
        return [quote_yaml(each) for each in found]


_LITERALS: Mapping[Type, Callable[[TypeSource], str]] = {
    BOOLEAN: TypeSource._boolean,
    INTEGER: TypeSource._integer,
    DECIMAL: TypeSource._decimal,
    STRING: TypeSource._string,
    FLOAT: TypeSource._float,
    BYTES: TypeSource._bytes,
    TIMESTAMP: TypeSource._timestamp,
    DATE: TypeSource._date,
    DURATION: TypeSource._duration,
    JSON: TypeSource._json,
}
_CALLS: Mapping[Type, str] = {
    BYTES: "parse_hex",
    TIMESTAMP: "timestamp",
    DATE: "date",
    DURATION: "duration",
    JSON: "parse_json",
}
"""Types whose literals in expressions are calls."""
_TEXTS: Mapping[Type, tuple[str, ...]] = {
    FLOAT: (*_FLOATS, "0.5", "1", "-0.0", "NaN", "Infinity", "-Infinity"),
    BYTES: ("", "AA==", "YQ==", "YWI=", "/w==", "w6k=", "AP8A/w=="),
    TIMESTAMP: _TIMESTAMPS,
    DATE: _DATES,
    DURATION: _DURATIONS,
    JSON: _JSONS,
}
"""Texts of literals of these types. Different key texts are different values."""


def _can_call(function: str | None) -> bool:
    return function is None or any(spec.function == function for spec in IMPLEMENTED.values())


def quote_yaml(text: str) -> str:
    """Return any text as a double-quoted YAML scalar on one line."""
    return '"' + "".join(_escape(each) for each in text) + '"'


def _escape(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable() and character != "\ufeff":
        return character
    code = ord(character)
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"
