"""Hit policies: the value of a table from its rows."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from vesper.language.check.tables.findings import TableFacts
from vesper.language.check.tables.lowered import LoweredRow
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.source import Span
from vesper.language.ir import nodes as ir
from vesper.values.types import (
    BOOLEAN,
    DECIMAL,
    DURATION,
    FLOAT,
    INTEGER,
    ArrayOf,
    OptionalOf,
    Record,
    Type,
    is_ordered,
    optional,
)

if TYPE_CHECKING:
    from vesper.language.check.expressions.checker import ExpressionChecker

_MAX_CHAIN = 100
"""Maximum number of rows in one chain of `if`; longer tables are chains of chains."""
_LINK = 64
"""Number of rows in each part of a longer table."""
_SUMS = (INTEGER, DECIMAL, FLOAT, DURATION)


class Combiner:
    """Combines the rows of one table. The default row, if any, is the last one."""

    def __init__(
        self,
        checker: ExpressionChecker,
        hit: str,
        span: Span,
        rows: list[LoweredRow],
        ranks: list[tuple[int, ...]] | None,
        facts: TableFacts,
        type_: Type,
    ) -> None:
        self._checker = checker
        self._hit = hit
        self._span = span
        self._place = checker.place(span)
        self._rows = [row for row in rows if row.condition is not None]
        self._default = next((row.value for row in rows if row.condition is None), None)
        if ranks is not None:
            order = sorted(range(len(self._rows)), key=lambda position: (ranks[position], position))
            self._rows = [self._rows[position] for position in order]
        self._facts = facts
        self._type = type_
        self._has_hit = self._default is not None or facts.is_complete

    def combine(self) -> ir.Expression | None:
        """Return the value of the table, or None after reporting an error."""
        match self._hit:
            case "first" | "priority":
                return self._first_result()
            case "unique" | "any":
                return self._first_result() if self._facts.is_single else self._agreed_result()
            case "sum":
                return self._sum()
            case "min" | "max":
                return self._extreme_result()
            case "count":
                return self._length(self._hits())
            case _:
                return self._hits()

    # -- one row decides --------------------------------------------------------------------------

    def _first_result(self) -> ir.Expression:
        rows = [(row.condition, row.value) for row in self._rows]
        if self._default is not None:
            return self._chain(rows, self._default)
        if self._facts.is_complete:
            # The rows match every value, so the last one needs no test.
            return self._chain(rows[:-1], rows[-1][1])
        type_ = optional(self._type)
        return self._chain(
            [(condition, self._convert(value, type_)) for condition, value in rows],
            ir.Literal(type_, None, self._place),
        )

    def _chain(self, rows: list[tuple[ir.Expression | None, ir.Expression]], last: ir.Expression) -> ir.Expression:
        if len(rows) <= _MAX_CHAIN:
            return _chain(rows, last)
        # A chain of 1,000 rows is too deep for one expression: each part yields its result or null.
        for start in reversed(range(0, len(rows), _LINK)):
            part = [(condition, self._wrap(value)) for condition, value in rows[start : start + _LINK]]
            found = _chain(part, ir.Literal(part[0][1].type, None, self._place))
            number = self._checker.fresh_local()
            last = ir.Let(number, "found", found, self._unless_null(number, found.type, last), self._place)
        return last

    def _wrap(self, value: ir.Expression) -> ir.Expression:
        """Return a result as an optional. A result that may itself be null becomes a record first."""
        if isinstance(value.type, OptionalOf):
            value = ir.RecordValue((("result", value),), value.place)
        return self._convert(value, optional(value.type))

    def _unless_null(self, number: int, type_: Type, below: ir.Expression) -> ir.Expression:
        assert isinstance(type_, OptionalOf)
        local = ir.Local(number, "found", type_, self._place)
        is_null = self._is_null(local, type_.inner)
        value: ir.Expression = ir.Call("optional.unwrap", (type_.inner,), (local,), type_.inner, self._place)
        if isinstance(below.type, OptionalOf):
            assert isinstance(type_.inner, Record)
            value = ir.Field(value, "result", below.type, self._place)
        return ir.If(is_null, below, value, below.type, self._place)

    def _is_null(self, value: ir.Expression, inner: Type) -> ir.Expression:
        return ir.Call("optional.is_null", (inner,), (value,), BOOLEAN, self._place)

    def _convert(self, value: ir.Expression, type_: Type) -> ir.Expression:
        found = self._checker.convert(value, type_)
        assert found is not None
        return found

    # -- all matching rows count ------------------------------------------------------------------

    def _matching_results(self) -> ir.Expression:
        """Return the results of the matching rows."""
        array = ArrayOf(self._type)
        items = tuple(
            ir.If(
                row.condition,
                ir.Array((row.value,), self._type, row.value.place),
                ir.Array((), self._type, row.condition.place),
                array,
                row.condition.place,
            )
            for row in self._rows
            if row.condition is not None
        )
        listed = ir.Array(items, array, self._place)
        return ir.Call("array.flatten", (self._type,), (listed,), array, self._place)

    def _hits(self) -> ir.Expression:
        """Return the results of the matching rows, or of the default row if none matches."""
        array = ArrayOf(self._type)
        hits = self._matching_results()
        if self._default is None:
            return hits
        default = ir.Array((self._default,), self._type, self._default.place)
        number = self._checker.fresh_local()
        local = ir.Local(number, "hits", array, self._place)
        body = ir.If(self._is_empty(local), default, local, array, self._place)
        return ir.Let(number, "hits", hits, body, self._place)

    def _agreed_result(self) -> ir.Expression:
        op = "table.only" if self._hit == "unique" else "table.same"
        found = ir.Call(op, (self._type,), (self._hits(),), optional(self._type), self._place)
        if not self._has_hit or isinstance(self._type, OptionalOf):
            return found
        return ir.Call("optional.unwrap", (self._type,), (found,), self._type, self._place)

    def _sum(self) -> ir.Expression | None:
        if self._type not in _SUMS:
            self._refuse("numbers or durations")
            return None
        return self._aggregate("sum", self._hits())

    def _extreme_result(self) -> ir.Expression | None:
        if not is_ordered(self._type):
            self._refuse("results with an order")
            return None
        hits = self._hits()
        if self._has_hit:
            return self._aggregate(self._hit, hits)
        number, type_ = self._checker.fresh_local(), optional(self._type)
        local = ir.Local(number, "hits", hits.type, self._place)
        found = self._convert(self._aggregate(self._hit, local), type_)
        body = ir.If(self._is_empty(local), ir.Literal(type_, None, self._place), found, type_, self._place)
        return ir.Let(number, "hits", hits, body, self._place)

    def _aggregate(self, kind: str, hits: ir.Expression) -> ir.Expression:
        number = self._checker.fresh_local()
        value = ir.Local(number, "result", self._type, self._place)
        return ir.For(kind, (number,), ("result",), hits, None, None, value, self._type, self._place)

    def _length(self, hits: ir.Expression) -> ir.Expression:
        return ir.Call("array.length", (self._type,), (hits,), INTEGER, self._place)

    def _is_empty(self, hits: ir.Expression) -> ir.Expression:
        zero = ir.Literal(INTEGER, 0, self._place)
        return ir.Call("integer.equal", (), (self._length(hits), zero), BOOLEAN, self._place)

    def _refuse(self, expected: str) -> None:
        self._checker.bag.error(
            Code.TYPE_MISMATCH, self._span, expected=f"{expected} under `{self._hit}`", found=self._type
        )


def _chain(rows: list[tuple[ir.Expression | None, ir.Expression]], last: ir.Expression) -> ir.Expression:
    def link(below: ir.Expression, row: tuple[ir.Expression | None, ir.Expression]) -> ir.Expression:
        condition, then = row
        assert condition is not None
        return ir.If(condition, then, below, then.type, condition.place)

    return reduce(link, reversed(rows), last)
