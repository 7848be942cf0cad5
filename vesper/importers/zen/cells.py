"""Cells of zen's tables as cells of a decision table, where both have the same meaning."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

from vesper.importers.zen.parser import COLUMN
from vesper.importers.zen.syntax import Array, Binary, Boolean, Interval, Node, Null, Number, String, Unary
from vesper.importers.zen.terms import Term, number_literal
from vesper.importers.zen.types import BOOLEAN, NUMBER, TEXT, Type, Variable, resolve

_BARE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?: [A-Za-z0-9_-]+)*")
_LOWER, _UPPER = (">", ">="), ("<", "<=")


def cell_text(node: Node, column: Term, *, is_optional: bool) -> str | None:
    """Return the text of a cell that matches where the condition holds; None if only an expression can state it.

    A null matches neither a literal nor a range, as in zen. It matches `not(…)`, also as in zen.
    """
    type_ = resolve(column.type)
    if isinstance(type_, Variable):
        return None
    return _Cell(type_, is_optional or column.is_nullable, column.is_integer).tests(node)


class _Cell:
    def __init__(self, type_: Type, is_optional: bool, is_integer: bool) -> None:
        self.type = type_
        self.is_optional = is_optional
        self.is_integer = is_integer

    def tests(self, node: Node) -> str | None:
        match node:
            case Binary("or", left, right):
                return _joined((self.tests(left), self.tests(right)))
            case Binary("and", left, right):
                return self._range(left, right)
            case Binary("==", left, right) if left == COLUMN:
                if isinstance(right, Null):
                    return "null" if self.is_optional else None
                return self.literal(right)
            case Binary("!=", left, right) if left == COLUMN and not isinstance(right, Null):
                return _negated(self.literal(right))
            case Binary(operator, left, right) if left == COLUMN and operator in (*_LOWER, *_UPPER):
                number = self.number(right)
                return None if number is None else f"{operator} {number}"
            case Binary("in", left, Interval(low, high, has_low, has_high)) if left == COLUMN:
                return self._between(self.number(low), self.number(high), has_low, has_high)
            case Binary("in" | "not in" as operator, left, Array(items)) if left == COLUMN and items:
                if len(items) == 1 and isinstance(items[0], Interval):
                    return self.tests(Binary(operator, left, items[0]))
                listed = _joined(self.literal(item) for item in items)
                return listed if operator == "in" else _negated(listed)
        return None

    def _range(self, left: Node, right: Node) -> str | None:
        """Return the range of two comparisons: `> 2 and < 5` is `(2..5)`."""
        match left, right:
            case Binary(first, a, low), Binary(second, b, high) if a == b == COLUMN:
                if first in _UPPER and second in _LOWER:
                    first, low, second, high = second, high, first, low
                if first in _LOWER and second in _UPPER:
                    return self._between(self.number(low), self.number(high), first == ">=", second == "<=")
        return None

    def _between(self, low: str | None, high: str | None, has_low: bool, has_high: bool) -> str | None:
        if low is None or high is None or Decimal(low) > Decimal(high):
            return None
        if Decimal(low) == Decimal(high) and not (has_low and has_high):
            return None
        return f"{'[' if has_low else '('}{low}..{high}{']' if has_high else ')'}"

    def literal(self, node: Node) -> str | None:
        """Return a literal of the column's type as a test."""
        match node:
            case String(text) if self.type == TEXT:
                return _quoted(text)
            case Boolean(value) if self.type == BOOLEAN:
                return "true" if value else "false"
        return self.number(node)

    def number(self, node: Node) -> str | None:
        if self.type != NUMBER:
            return None
        match node:
            case Number(text):
                found = number_literal(text)
            case Unary("-", Number(text)):
                found = f"-{number_literal(text)}"
            case _:
                return None
        return None if self.is_integer and "." in found else found


def _joined(tests: Iterable[str | None]) -> str | None:
    listed = list(tests)
    known = [test for test in listed if test is not None]
    return ", ".join(known) if len(known) == len(listed) else None


def _negated(tests: str | None) -> str | None:
    return None if tests is None else f"not({tests})"


def _quoted(text: str) -> str | None:
    """Return a text as a literal of a cell: in quotes where it could be read as something else."""
    if _BARE.fullmatch(text) and text not in ("null", "not"):
        return text
    if "\n" in text or "\r" in text:
        return None
    return '"' + text.replace('"', '""') + '"'
