"""JSON content in the shape of a type, for casts. It fits, has a wrong part at any depth, or another spelling.

JSON drawn without a type almost never has the shape that a cast requests, so only failed casts would be compared.
"""

from __future__ import annotations

import random
from decimal import Decimal

from vesper.language.ir.nodes import Call, Node
from vesper.values.json_value import json_string
from vesper.values.model import MAX_INTEGER, MIN_INTEGER
from vesper.values.numbers import decimal_text
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
    Outside,
    Record,
    SetOf,
    Type,
    mentions,
)

_WRONG_SHARES = (0.0, 0.0, 0.0, 0.05, 0.2)
_COUNTS = (0, 1, 1, 2, 2, 3, 5)
_EXTREME_SHARE = 0.15
_NESTED_SHARE = 0.9
_MAX_NESTED = 3
SCALARS: dict[Type, tuple[object, ...]] = {
    BOOLEAN: (True, False),
    INTEGER: (0, 1, -1, 2, 7, 100, Decimal("1.0"), Decimal("-3.00"), 2**31, 2**53 + 1),
    DECIMAL: (0, 1, Decimal("1.50"), "1.50", "-0.5", Decimal("0.10"), "7", Decimal("12.000"), "0.00"),
    FLOAT: (0, Decimal("0.5"), Decimal("1.5"), 2, Decimal("-0.25"), "NaN", "-Infinity", 2**53 + 1, "0.1"),
    STRING: ("", "a", "b", "é", "e\u0301", "😀", "1", "null", "a" * 23, "ab" * 16),
    BYTES: ("", "AA==", "YWI=", "/w==", "AP8A/w=="),
    DATE: ("2024-02-29", "0001-01-01", "9999-12-31", "1970-01-01"),
    TIMESTAMP: ("2024-02-29T12:30:00Z", "2024-02-29T10:30:00.5+02:00", "0001-01-01T00:00:00Z"),
    DURATION: ("PT0S", "90s", "P1DT2H", "-PT0.000001S", "P3652059D"),
    TIME_OF_DAY: ("00:00:00", "23:59:59.999999", "08:30:00.5"),
    PERIOD: ("P0M", "P1Y2M", "-P14M", "P9999Y"),
    JSON: (None, 0, "a", [], {}, {"a": [1, None]}),
}
_EXTREMES: dict[Type, tuple[object, ...]] = {
    INTEGER: (MAX_INTEGER, MIN_INTEGER, MAX_INTEGER + 1, MIN_INTEGER - 1, Decimal("1.5"), "1",
        Decimal("9223372036854775807.0")),
    DECIMAL: (
        2**63, 10**38, 10**39, Decimal("0.0000000000000000001"), Decimal("9223372036854775807.1"), "1e3", "NaN", "",
        "1_0",
        "9" * 1000, "9" * 1001,
    ),
    FLOAT: ("nan", "inf", "1e400", 10**400, Decimal("1.7976931348623157e308"), "5e-324", True),
    STRING: (0, None, "a" * 257, "\x00", "\U0010ffff"),
    BYTES: ("AA", "AA=", "A", "/w==\n", 0),
    DATE: ("2023-02-29", "2024-2-29", "2024-02-29T00:00:00Z", 20240229, "0000-01-01"),
    TIMESTAMP: ("2024-02-29T24:00:00Z", "2024-02-29T12:30:00", "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59.999999Z"),
    DURATION: ("P3652060D", "P1M", "", 90, "1.5us"),
    TIME_OF_DAY: ("24:00:00", "8:30:00", "08:30", "08:30:00Z", 830),
    PERIOD: ("P10000Y", "P1D", "P", 12, "P1M1Y"),
    BOOLEAN: (0, 1, "true", None),
}  # fmt: skip
_OTHERS: tuple[object, ...] = (None, True, 0, 1, Decimal("1.5"), "", "x", [], [0], {}, {"a": 0})


def cast_types(node: Node) -> list[Type]:
    """Return the types to which a node casts JSON.

    Each field of a recursive type is cast as a record of its own. Half of the types are therefore the record of all
    such fields.
    """
    found = list(
        dict.fromkeys(each.type for each in node.expressions() if isinstance(each, Call) and each.op == "json.cast")
    )
    single = [each for each in found if isinstance(each, Record) and len(each.fields) == 1]
    fields = dict(field for each in single for field in each.fields)
    names = tuple(name for each in single if each.outside is not None for name in each.outside.names)
    merged = Record(tuple(fields.items()), None, Outside(names) if names else None)
    return found + [merged] * len(found) if len(fields) > 1 else found


class JsonShapes:
    """Generator of JSON content by type."""

    def __init__(self, source: random.Random) -> None:
        self._random = source
        self._wrong_share = 0.0
        self._around: Type | None = None
        """The record that is drawn, which a json in it may repeat."""
        self._depth = 0

    def draw(self, type_: Type) -> object:
        """Return content for a cast to this type; two in five have parts that do not fit it."""
        self._wrong_share = self._random.choice(_WRONG_SHARES)
        self._around = type_ if isinstance(type_, Record) and mentions(type_, JSON) else None
        return self._content(type_)

    def _content(self, type_: Type) -> object:
        if self._is_wrong():
            return self._random.choice(_OTHERS)
        match type_:
            case Enum(members):
                return self._random.choice(members)
            case OptionalOf(inner):
                return None if self._random.random() < 0.3 else self._content(inner)
            case ArrayOf(element):
                counts = _COUNTS if self._depth < _MAX_NESTED else (0,)
                return [self._content(element) for _ in range(self._random.choice(counts))]
            case SetOf(element):
                return self._distinct([self._content(element) for _ in range(self._random.choice(_COUNTS))])
            case MapOf(key, value):
                return self._map(key, value)
            case Record(fields):
                return self._record(fields)
            case _ if type_ == JSON and self._around is not None and self._random.random() < _NESTED_SHARE:
                return self._nested(self._around)
            case _:
                is_extreme = self._wrong_share > 0 and self._random.random() < _EXTREME_SHARE and type_ in _EXTREMES
                return self._random.choice((_EXTREMES if is_extreme else SCALARS)[type_])

    def _record(self, fields: tuple[tuple[str, Type], ...]) -> dict[str, object]:
        """Return an object: optional fields may be absent, and fields that the record does not have are ignored."""
        found: dict[str, object] = {}
        for name, type_ in fields:
            is_absent = self._random.random() < 0.3 if isinstance(type_, OptionalOf) else self._is_wrong()
            if not is_absent:
                found[name] = self._content(type_)
        if self._random.random() < 0.2:
            found["no_such_field"] = self._random.choice(_OTHERS)
        return dict(reversed(found.items())) if self._random.random() < 0.2 else found

    def _nested(self, type_: Type) -> object:
        """Return content of a nested type; an empty object beyond the maximum depth."""
        if self._depth >= _MAX_NESTED:
            return {}
        self._depth += 1
        try:
            return self._content(type_)
        finally:
            self._depth -= 1

    def _map(self, key: Type, value: Type) -> object:
        """Return an object for keys that are texts, otherwise an array of pairs; sometimes the other form."""
        keys = self._distinct([self._content(key) for _ in range(self._random.choice(_COUNTS))])
        is_object = (key == STRING or isinstance(key, Enum)) != self._is_wrong()
        if is_object:
            return {str(each): self._content(value) for each in keys}
        pairs = [[each, self._content(value)] for each in keys]
        if pairs and self._is_wrong():
            pairs[-1] = self._random.choice(([], pairs[-1][:1], [*pairs[-1], 0]))
        return pairs

    def _distinct(self, items: list[object]) -> list[object]:
        """Return items without repetitions, unless a wrong part is drawn."""
        return items if self._is_wrong() else list({json_text(each): each for each in items}.values())

    def _is_wrong(self) -> bool:
        return self._wrong_share > 0 and self._random.random() < self._wrong_share


def json_text(content: object) -> str:
    """Return JSON content as text; numbers keep their places."""
    match content:
        case None:
            return "null"
        case bool():
            return "true" if content else "false"
        case Decimal():
            return decimal_text(content)
        case str():
            return json_string(content)
        case list():
            return f"[{','.join(map(json_text, content))}]"
        case dict():
            return "{" + ",".join(f"{json_string(str(key))}:{json_text(each)}" for key, each in content.items()) + "}"
        case _:
            return str(content)
