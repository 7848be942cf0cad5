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
from vesper.values.model import MAX_INTEGER, MAX_SCALE, MIN_INTEGER
from vesper.values.types import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    INTEGER,
    JSON,
    PERIOD,
    STRING,
    TIME_OF_DAY,
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

SCALARS: tuple[Primitive, ...] = (
    BOOLEAN, INTEGER, DECIMAL, STRING, FLOAT, BYTES, TIMESTAMP, DATE, DURATION, TIME_OF_DAY, PERIOD, JSON,
)  # fmt: skip
"""Primitive types; each has its literals in `_LITERALS`."""
_COMMON: tuple[Primitive, ...] = (BOOLEAN, INTEGER, DECIMAL, STRING)
_KEYS: tuple[Type, ...] = (STRING, STRING, INTEGER, INTEGER, BOOLEAN, BYTES, DATE, TIMESTAMP)
_MEMBERS = (
    "low", "high", "open", "closed", "status", "kind", "NO", "on", "A", "x1", "input", "null", "IN", "true",
    "two words", "é", "it's", 'a "b"', "#1", "- x", "a: b", "0", "None",
)  # fmt: skip
_INTEGERS = (0, 0, 1, 1, 2, 3, 5, 7, 10, 100, 1000)
_NEGATIVES = (-1, -1, -2, -10)
_WIDE_INTEGERS = (
    2**31 - 1, 2**31, 2**31 + 1, 2**32, 2**53 - 1, 2**53, 2**53 + 1, 3037000499, 3037000500, MAX_INTEGER - 1,
    MAX_INTEGER, -(2**31) - 1, -(2**31), -(2**31) + 1, -(2**53) - 1, -(2**53) + 1, MIN_INTEGER, MIN_INTEGER + 1,
)  # fmt: skip
"""Limits of machine integers and of exact floats, their neighbours, and the root of the largest integer."""
_DECIMALS = (
    "0.0", "0.00", "1.0", "1.00", "0.1", "0.10", "0.01", "2.5", "0.5", "3.5", "100.0", "99.99", "1000.00", "0.000001",
    "00.5", "1.50", "0.25", "10.00",
)  # fmt: skip
_COEFFICIENTS = (
    0, 1, 10, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**18 - 1, 10**18, 10**19, 10**28 - 1, 10**33, 10**34 - 1,
    10**34 + 5, 2**127 - 1, 2**127, 2**128, 10**38, 10**38 - 1, 10**39,
)  # fmt: skip
"""Coefficients of decimals around the widths that engines may treat differently."""
_SCALES = (0, 1, 1, 2, 6, 9, 17, 18, 19, 20, 27, 28, 29, 34, 38, 39)
_LONG_SHARE = 0.05
_LONG_DIGITS = 300
_LONG_DECIMALS = ("9" * (_LONG_DIGITS - 1) + ".9", "1" + "0" * (_LONG_DIGITS - 2) + ".0")
"""Decimals of many digits, within the largest float: where a float is expected, a number is one."""
_MAX_PLACES = (MAX_SCALE - 1, MAX_SCALE)
_STRINGS = (
    "", "", "a", "b", "ab", "A", "USD", "é", "e\u0301", "😀", "it's", 'say "x"', "a: b", " #", "{", "- ", " a ", "\\n",
    "null", "true", "0", "%", "\t", "\x7f", "\u0085", "\u2028", "\ufeff", "\x01", "\U0010ffff", "zz", "12", "-1.5",
    "\ud7ff", "\ue000", "\uffff", "ß", "\u0130", "ǆ", "ς", "K", "a,b,,c", "abcdefg", "abcdefgh", "\u0301", "👩\u200d👧",
)  # fmt: skip
_LENGTHS = (15, 16, 17, 22, 23, 24, 25, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 257)
"""Lengths around sizes at which an engine may store a text in another way."""
_FLOATS = (
    "0e0", "1e0", "1.5e0", "2.5e-1", "1e-1", "1e16", "1e-5", "9007199254740991e0", "9007199254740993e0", "5e-324",
    "2.2250738585072014e-308", "2.225073858507201e-308", "1.7976931348623157e308", "9223372036854775807e0", "4.5e15",
    "1e22", "1e23", "0.5e0", "2.5e0", "1e-7",
)  # fmt: skip
_BYTES = (
    "",
    "00",
    "61",
    "6162",
    "ff",
    "c3a9",
    "00ff00ff",
    "eda080",
    "f09f9880",
    "c080",
    "61" * 31,
    "00" * 32,
    "ff" * 33,
)
_DATES = (
    "1900-02-28", "1969-12-31", "1970-01-01", "2000-02-29", "2023-02-28", "2024-01-31",
    "2024-02-29", "2024-12-31", "2023-12-31", "2100-03-01",
)  # fmt: skip
_WIDE_DATES = ("0001-01-01", "0001-12-31", "9999-01-01", "9999-12-31")
_TIMESTAMPS = (
    "1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00Z", "2024-02-29T12:30:00Z",
    "2024-02-29t10:30:00.5+02:00", "2023-12-31T23:59:59.999999-00:30", "2024-03-31T00:00:00.000001+14:00",
)  # fmt: skip
_WIDE_TIMESTAMPS = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z")
_DURATIONS = (
    "PT0S", "90s", "1h30m", "-P1DT0.5S", "200ms", "1us", "PT24H", "-PT0.000001S", "P30D",
)  # fmt: skip
_WIDE_DURATIONS = ("P3652059D", "-P3652059D", "P3652058DT23H59M59.999999S")
_CLOCKS = ("00:00:00", "08:30:00", "12:00:00.5", "17:00:00", "23:59:59.999999", "23:59:59")
_PERIODS = ("P0M", "P1M", "P1Y", "P1Y2M", "-P1M", "P11M", "-P4Y")
_WIDE_PERIODS = ("P9999Y", "-P9999Y", "P9998Y11M")
_JSONS = (
    "null", "true", "0", "1.50", "-0.5", "1e3", '""', '"a"', '"2024-02-29"', "[]", "{}", '{"a":1,"b":[null,"x"]}',
    '[1,1.0,"1"]', '{"qty":2,"price":"1.5"}', "9223372036854775807", "9223372036854775808", "1.0", "-0.0",
    '{"a":{"a":{}}}', '{"":0,"x/y":1}', "[[],[[]]]", '"1.5"', '{"1":"a","2":"b"}', "0.0000000000000000001",
)  # fmt: skip
_LONG_SHARE = 0.04
_LONG_COUNTS = (16, 17, 20, 21, 22, 33, 50)
"""Counts of items around those at which an algorithm for few items ends."""
_EXTREME_SHARE = 0.3
_MIN_EXTREME_SHARE = 0.03
_WANTED_SHARE = 0.5
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


def is_quotable(text: str) -> bool:
    """Return whether a string literal can hold this text."""
    return not ("'" in text and '"' in text) and "\n" not in text


class TypeSource:
    """Generator of types and literals; `records` are the node's declarations so far."""

    def __init__(self, source: random.Random, features: Features) -> None:
        self.random = source
        self.features = features
        self.records: list[Record] = []
        self.wanted: list[Type] = []
        """Types that are drawn more often than others, in turn."""

    # -- types ------------------------------------------------------------------------------------

    def type(self, depth: int = 3) -> Type:
        if depth > 1 and self.wanted and self.random.random() < _WANTED_SHARE:
            self.wanted.append(self.wanted.pop(0))
            return self.wanted[-1]
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
            return self._sign(str(abs(self._draw_integer())))
        if type_ == FLOAT and hint == FLOAT and self.random.random() < 0.5:
            digits = str(abs(self._draw_integer())) if self.random.random() < 0.5 else self._draw_decimal()
            return self._sign(digits)
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

    def _is_extreme(self) -> bool:
        """Return whether the next value is far from usual ones; results of such values mostly overflow."""
        return self.random.random() < max(self.features.risky(_EXTREME_SHARE), _MIN_EXTREME_SHARE)

    def _draw_integer(self) -> int:
        if self._is_extreme():
            return self.random.choice(_WIDE_INTEGERS)
        return self.random.choice(_NEGATIVES if self.random.random() < 0.2 else _INTEGERS)

    def _draw_decimal(self) -> str:
        """Draw the digits of a decimal without a sign."""
        if not self._is_extreme():
            return self.random.choice(_DECIMALS)
        if self.random.random() < _LONG_SHARE:
            return self.random.choice(_LONG_DECIMALS)
        coefficient = max(0, self.random.choice(_COEFFICIENTS) + self.random.choice((-1, 0, 0, 1)))
        scale = self.random.choice(_SCALES) if self.random.random() < 0.95 else self.random.choice(_MAX_PLACES)
        digits = str(coefficient).zfill(scale + 1)
        return f"{digits[:-scale]}.{digits[-scale:]}" if scale else f"{digits}.0"

    def _draw_edge(self, usual: tuple[str, ...], wide: tuple[str, ...]) -> str:
        return self.random.choice(wide if self._is_extreme() else usual)

    def _draw_text(self) -> str:
        if self.random.random() < 0.9:
            return self.random.choice(_STRINGS)
        length = self.random.choice(_LENGTHS)
        return (self.random.choice(("a", "é", "ab ", "😀", "0", "a\u0301")) * length)[:length]

    def _integer(self) -> str:
        number = self._draw_integer()
        return ("00" if number >= 0 and self.random.random() < 0.02 else "") + str(number)

    def _decimal(self) -> str:
        return self._sign(self._draw_decimal())

    def _sign(self, digits: str) -> str:
        return "-" + digits if self.random.random() < 0.2 else digits

    def _string(self) -> str:
        text = self._draw_text()
        return f'"{text}"' if "'" in text or ('"' not in text and self.random.random() < 0.3) else f"'{text}'"

    def _float(self) -> str:
        return self._sign(self.random.choice(_FLOATS))

    def _bytes(self) -> str:
        return f"parse_hex('{self.random.choice(_BYTES)}')"

    def _date(self) -> str:
        return f"date('{self._draw_edge(_DATES, _WIDE_DATES)}')"

    def _timestamp(self) -> str:
        return f"timestamp('{self._draw_edge(_TIMESTAMPS, _WIDE_TIMESTAMPS)}')"

    def _duration(self) -> str:
        return f"duration('{self._draw_edge(_DURATIONS, _WIDE_DURATIONS)}')"

    def _clock(self) -> str:
        return f"time_of_day('{self.random.choice(_CLOCKS)}')"

    def _period(self) -> str:
        return f"period('{self._draw_edge(_PERIODS, _WIDE_PERIODS)}')"

    def _json(self) -> str:
        return f"parse_json('{self.random.choice(_JSONS)}')"

    # -- literals in YAML -------------------------------------------------------------------------

    def draw_yaml(self, type_: Type) -> str:
        """Draw a value of any type as a YAML literal in flow style."""
        match type_:
            case OptionalOf(inner):
                return "null" if self.random.random() < 0.3 else self.draw_yaml(inner)
            case ArrayOf(element):
                is_long = isinstance(element, Primitive | Enum) and self.random.random() < _LONG_SHARE
                count = self.random.choice(_LONG_COUNTS) if is_long else self._count()
                return f"[{', '.join(self.draw_yaml(element) for _ in range(count))}]"
            case SetOf(element):
                return f"[{', '.join(self._draw_distinct(element))}]"
            case MapOf(key, value):
                return "{" + ", ".join(f"{each}: {self.draw_yaml(value)}" for each in self._draw_distinct(key)) + "}"
            case Record(fields):
                return "{" + ", ".join(f"{name}: {self.draw_yaml(field)}" for name, field in fields) + "}"
            case Enum(members):
                return quote_yaml(self.random.choice(members))
            case _ if type_ == STRING:
                return quote_yaml(self._draw_text())
            case _ if type_ == INTEGER:
                return str(self._draw_integer())
            case _ if type_ in _TEXTS:
                return quote_yaml(self.random.choice(_TEXTS[type_]))
            case _:
                return _LITERALS[type_](self)

    def _count(self) -> int:
        return self.random.choice((0, 1, 2, 2, 3) if self._is_extreme() else (1, 2, 2, 3))

    def _draw_distinct(self, key: Type) -> list[str]:
        """Draw literals of a key type with distinct values."""
        if key == BOOLEAN:
            return self.random.choice((["true"], ["false", "true"], []))
        if key == INTEGER:
            return [str(each) for each in dict.fromkeys(self._draw_integer() for _ in range(self._count()))]
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
    TIME_OF_DAY: TypeSource._clock,
    PERIOD: TypeSource._period,
    JSON: TypeSource._json,
}
_CALLS: Mapping[Type, str] = {
    BYTES: "parse_hex",
    TIMESTAMP: "timestamp",
    DATE: "date",
    DURATION: "duration",
    TIME_OF_DAY: "time_of_day",
    PERIOD: "period",
    JSON: "parse_json",
}
"""Types whose literals in expressions are calls."""
_TEXTS: Mapping[Type, tuple[str, ...]] = {
    FLOAT: (*_FLOATS, "0.5", "1", "-0.0", "NaN", "Infinity", "-Infinity"),
    BYTES: ("", "AA==", "YQ==", "YWI=", "/w==", "w6k=", "AP8A/w=="),
    TIMESTAMP: (*_TIMESTAMPS, *_WIDE_TIMESTAMPS),
    DATE: (*_DATES, *_WIDE_DATES),
    DURATION: (*_DURATIONS, *_WIDE_DURATIONS),
    TIME_OF_DAY: _CLOCKS,
    PERIOD: (*_PERIODS, *_WIDE_PERIODS),
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
