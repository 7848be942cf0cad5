"""Random decision tables with an oracle that shares no code with the product: tests as Python predicates on a grid.

The grid of a column has every literal of its cells, a value between each two, and values outside: on it every test has
every result that it can have.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

Value = Any
Predicate = Callable[[Value], bool]
COLORS = ("red", "green", "blue")
TYPES = ("integer", "decimal", "date", "string", "float", "boolean", "enum[red, green, blue]")
_LITERALS: dict[str, Callable[[Random], Value]] = {
    "integer": lambda random: random.randint(-3, 6),
    "decimal": lambda random: Decimal(random.randint(-20, 40)) / random.choice((1, 10)),
    "date": lambda random: date(2024, 1, 1) + timedelta(days=random.randint(0, 9)),
    "string": lambda random: random.choice(("a", "b", "ab", "c", "", "b c")),
    "float": lambda random: random.choice((-1.5, 0.0, 0.5, 2.0)),
    "boolean": lambda random: random.random() < 0.5,
    "enum[red, green, blue]": lambda random: random.choice(COLORS),
}
_OUTSIDE: dict[str, tuple[Value, ...]] = {
    "integer": (-100, 100),
    "decimal": (Decimal(-100), Decimal(100)),
    "date": (date(1999, 1, 1), date(2050, 1, 1)),
    "string": ("", "zz"),
    "float": (-math.inf, math.inf, math.nan, -0.0),
    "boolean": (False, True),
    "enum[red, green, blue]": COLORS,
}
_COMPARED: dict[str, Callable[[Value, Value], bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
}


@dataclass
class Column:
    """A column: its name, its type, whether it may be null, and the literals of its cells."""

    name: str
    type: str
    is_optional: bool
    literals: list[Value]

    @property
    def type_text(self) -> str:
        return f"optional<{self.type}>" if self.is_optional else self.type

    def grid(self) -> list[Value]:
        """Return values that distinguish all tests of the column."""
        found = [*self.literals, *_OUTSIDE[self.type]]
        ordered = sorted({value for value in found if value == value})
        if self.type not in ("boolean", "enum[red, green, blue]"):
            found += [_between(*pair) for pair in itertools.pairwise(ordered)]
        unique = {repr(value): value for value in found}
        return [*unique.values(), *([None] if self.is_optional else [])]


@dataclass
class Row:
    """A row: a text and a predicate for each column, and its result."""

    texts: list[str]
    predicates: list[Predicate]
    result: int

    def matches(self, point: tuple[Value, ...]) -> bool:
        return all(holds(value) for holds, value in zip(self.predicates, point, strict=True))


@dataclass
class Table:
    """A drawn table."""

    columns: list[Column]
    rows: list[Row]

    def points(self) -> Iterator[tuple[Value, ...]]:
        return itertools.product(*(column.grid() for column in self.columns))

    def hits(self, point: tuple[Value, ...]) -> list[int]:
        return [number for number, row in enumerate(self.rows) if row.matches(point)]


def draw_table(random: Random, max_rows: int = 6, max_columns: int = 3) -> Table:
    """Return a random table. Half of the tables split a column without gaps, so that both answers are frequent."""
    columns = [
        Column(name, random.choice(TYPES), random.random() < 0.3, [])
        for name in ("a", "b", "c")[: random.randint(1, max_columns)]
    ]
    if random.random() < 0.5:
        rows = _split(random, columns, max_rows)
    else:
        rows = [_row(random, columns) for _ in range(random.randint(1, max_rows))]
    return Table(columns, rows)


def _row(random: Random, columns: list[Column]) -> Row:
    cells = [_cell(random, column) for column in columns]
    return Row([text for text, _ in cells], [holds for _, holds in cells], random.randint(0, 3))


def _split(random: Random, columns: list[Column], max_rows: int) -> list[Row]:
    """Return rows that complement each other in one column; now and then one is left out or another is added."""
    column = random.randrange(len(columns))
    rows: list[Row] = []
    for _ in range(max(1, max_rows // 3)):
        base = _row(random, columns)
        others = [("-", lambda _: True)] if random.random() < 0.4 else [_cell(random, each) for each in columns]
        for position in range(len(columns)):
            if position != column:
                text, holds = others[position % len(others)]
                base.texts[position], base.predicates[position] = text, holds
        for text, predicate in _parts(random, columns[column]):
            texts, predicates = [*base.texts], [*base.predicates]
            texts[column], predicates[column] = text, predicate
            rows.append(Row(texts, predicates, random.randint(0, 3)))
    if random.random() < 0.3:
        rows.pop(random.randrange(len(rows)))
    if random.random() < 0.3 or not rows:
        rows.append(_row(random, columns))
    random.shuffle(rows)
    return rows


def _parts(random: Random, column: Column) -> list[tuple[str, Predicate]]:
    """Return a cell and its complement."""
    text, holds = _cell(random, column)
    while text == "-" or text.startswith("not("):
        text, holds = _cell(random, column)
    return [(text, holds), (f"not({text})", lambda value: not holds(value))]


def _cell(random: Random, column: Column) -> tuple[str, Predicate]:
    if random.random() < 0.15:
        return "-", lambda _: True
    tests = [_test(random, column) for _ in range(random.choice((1, 1, 1, 2, 3)))]
    text = ", ".join(each for each, _ in tests)

    def holds(value: Value) -> bool:
        return any(test(value) for _, test in tests)

    if random.random() < 0.1:
        return f"not({text})", lambda value: not holds(value)
    return text, holds


def _test(random: Random, column: Column) -> tuple[str, Predicate]:
    if column.is_optional and random.random() < 0.2:
        return "null", lambda value: value is None
    is_ordered = column.type not in ("boolean", "enum[red, green, blue]")
    kind = random.random()
    if is_ordered and kind < 0.3:
        low, high = sorted((_literal(random, column), _literal(random, column)))
        is_low, is_high = random.random() < 0.5, random.random() < 0.5
        if low == high or (column.type in ("integer", "date", "string")):
            is_low = is_high = True  # a range without values is an error
        text = f"{'[' if is_low else '('}{_operand(low)}..{_operand(high)}{']' if is_high else ')'}"
        above, below = _COMPARED[">=" if is_low else ">"], _COMPARED["<=" if is_high else "<"]
        return text, lambda value: value is not None and above(value, low) and below(value, high)
    literal = _literal(random, column)
    if kind < 0.7 or not is_ordered:
        operator = "==" if random.random() < 0.85 else "!="
        text = _bare(literal) if operator == "==" else f"!= {_operand(literal)}"
        if operator == "!=":
            return text, lambda value: value is None or value != literal
        return text, lambda value: value is not None and value == literal
    operator = random.choice(("<", "<=", ">", ">="))
    compare = _COMPARED[operator]
    return f"{operator} {_operand(literal)}", lambda value: value is not None and compare(value, literal)


def _literal(random: Random, column: Column) -> Value:
    value = _LITERALS[column.type](random)
    column.literals.append(value)
    return value


def _bare(value: Value) -> str:
    return f'"{value}"' if value in ("", "b c") else _text(value)


def _operand(value: Value) -> str:
    is_text = isinstance(value, str) and value not in COLORS
    return f"'{value}'" if is_text else _text(value)


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, date) else str(value)


def _between(low: Value, high: Value) -> Value:
    if isinstance(low, str):
        return low + "\0" if low + "\0" < high else low
    if isinstance(low, int):
        return (low + high) // 2
    if isinstance(low, date):
        return low + (high - low) // 2
    if isinstance(low, float) and math.isinf(low):
        return high - 1 if not math.isinf(high) else 0.0
    if isinstance(low, float) and math.isinf(high):
        return low + 1
    return (low + high) / 2
