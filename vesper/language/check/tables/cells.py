"""Cells of a decision table, lowered to conditions over the value of their column."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from vesper.language.check.expressions.narrowing import NOTHING, Facts, path_of
from vesper.language.check.scope import Declared
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.source import Span
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.language.syntax.expression_parser import parse_tokens
from vesper.language.syntax.scalar_text import PlacedText
from vesper.language.syntax.tokens import tokenize
from vesper.language.tables.axis import Ranges
from vesper.language.tables.cell_values import has_literals, literal_of, literal_ranges
from vesper.language.tables.cells import Between, CellProblem, Compare, Condition, IsNull, Not, Operand, Test
from vesper.values.types import BOOLEAN, DECIMAL, FLOAT, INTEGER, Enum, OptionalOf, Type, without_null

_NUMBERS = re.compile(r"([0-9]+(?:\.[0-9]+)?) *(?:-|–|\.\.|to) *([0-9]+(?:\.[0-9]+)?)")

if TYPE_CHECKING:
    from vesper.language.check.expressions.checker import ExpressionChecker


@dataclass(slots=True)
class CheckedColumn:
    """A column with its type. `value` is the expression that its cells test: a name or a bound local."""

    name: ast.Word
    source: ast.Expression
    value: ir.Expression
    bound: tuple[tuple[int, ir.Expression], ...] = ()
    """Locals bound around the rows, with their values."""
    allowed: Ranges | None = None

    @property
    def type(self) -> Type:
        return self.value.type


def all_of(conditions: list[ir.Expression], place: ir.Place) -> ir.Expression:
    """Return the conjunction. Conditions are evaluated from the left; the tree is balanced."""
    return _join("and", conditions, place)


def any_of(conditions: list[ir.Expression], place: ir.Place) -> ir.Expression:
    """Return the disjunction. Conditions are evaluated from the left; the tree is balanced."""
    return _join("or", conditions, place)


def _join(kind: str, conditions: list[ir.Expression], place: ir.Place) -> ir.Expression:
    if not conditions:
        return ir.Literal(BOOLEAN, kind == "and", place)
    if len(conditions) == 1:
        return conditions[0]
    middle = (len(conditions) + 1) // 2
    return ir.Logical(kind, _join(kind, conditions[:middle], place), _join(kind, conditions[middle:], place), place)


class CellChecker:
    """Lowers the cells of one table."""

    def __init__(self, checker: ExpressionChecker) -> None:
        self._checker = checker
        self._bag = checker.bag

    def condition(self, column: CheckedColumn, cell: ast.Cell) -> ir.Expression | None:
        """Return the condition of a cell other than `-`; None after reporting an error."""
        is_guarded = len(cell.tests) > 1 and all(_needs_value(test) for test in cell.tests)
        tests = [self._test(column, cell, test, is_guarded) for test in cell.tests]
        known = [test for test in tests if test is not None]
        if len(known) < len(tests):
            return None
        found = any_of(known, self._checker.place(cell.span))
        return self._guard_null(column, found) if is_guarded else found

    def ranges(self, column: CheckedColumn, cells: Iterable[ast.Cell]) -> Ranges | None:
        """Return the values that any of the cells matches. None if a test is an expression."""
        try:
            return literal_ranges(tuple(test for cell in cells for test in cell.tests), column.type)
        except CellProblem:  # reported where the cell is lowered
            return None

    def facts(self, column: CheckedColumn, cell: ast.Cell, holds: bool) -> Facts:
        """Return the facts about null where the cell matches, or where it does not."""
        path = path_of(column.source, self._checker.scope)
        if path is None or not isinstance(column.type, OptionalOf):
            return NOTHING
        if holds:
            is_value = bool(cell.tests) and all(_needs_value(test) for test in cell.tests)
        else:
            is_value = any(isinstance(test, IsNull) for test in cell.tests)
        return frozenset({path}) if is_value else NOTHING

    # -- tests ------------------------------------------------------------------------------------

    def _test(
        self, column: CheckedColumn, cell: ast.Cell, test: Test, is_guarded: bool = False
    ) -> ir.Expression | None:
        """Return one test. With `is_guarded` null is excluded for the whole cell."""
        match test:
            case IsNull(start=start, end=end):
                return self._is_null(column, cell.text.span(start, end))
            case Not(tests=tests):
                inner = [self._test(column, cell, each) for each in tests]
                known = [each for each in inner if each is not None]
                if len(known) < len(inner):
                    return None
                place = self._checker.place(cell.span)
                return ir.Call("boolean.not", (), (any_of(known, place),), BOOLEAN, place)
            case Condition(start=start, end=end):
                return self._condition(column, cell, start, end)
            case Between(low=low, high=high):
                above = self._compare(column, cell, ">=" if test.is_low_closed else ">", low)
                below = self._compare(column, cell, "<=" if test.is_high_closed else "<", high)
                if above is None or below is None or not self._check_ascending(column, cell, test):
                    return None
                place = self._checker.place(cell.text.span(low.start - 1, high.end + 1))
                within = all_of([above, below], place)
                return within if is_guarded else self._guard_null(column, within)
            case Compare(operator=operator, operand=operand, is_bare=is_bare):
                found = self._compare(column, cell, operator, operand, is_bare)
                if found is None or is_guarded:
                    return found
                return self._guard_null(column, found, is_negated=operator == "!=")

    def _is_null(self, column: CheckedColumn, span: Span) -> ir.Expression | None:
        if not isinstance(column.type, OptionalOf):
            expected = f"a test of {column.type}"
            help_ = f"the column `{column.name.text}` is never null"
            self._bag.error(Code.EXPRESSION_SYNTAX, span, expected=expected, found="`null`", help=help_)
            return None
        place = self._checker.place(span)
        value = replace(column.value, place=place)
        return ir.Call("optional.is_null", (column.type.inner,), (value,), BOOLEAN, place)

    def _guard_null(self, column: CheckedColumn, test: ir.Expression, is_negated: bool = False) -> ir.Expression:
        """Return the test with a guard against null. Null matches `!=` and no other comparison."""
        if not isinstance(column.type, OptionalOf):
            return test
        value = replace(column.value, place=test.place)
        op = "optional.is_null" if is_negated else "optional.is_not_null"
        guard = ir.Call(op, (column.type.inner,), (value,), BOOLEAN, test.place)
        return ir.Logical("or" if is_negated else "and", guard, test, test.place)

    def _value(self, column: CheckedColumn, place: ir.Place) -> ir.Expression:
        value = replace(column.value, place=place)
        if not isinstance(column.type, OptionalOf):
            return value
        return ir.Call("optional.unwrap", (column.type.inner,), (value,), column.type.inner, place)

    def _compare(
        self, column: CheckedColumn, cell: ast.Cell, operator: str, operand: Operand, is_bare: bool = False
    ) -> ir.Expression | None:
        span = cell.text.span(operand.start, operand.end)
        place = self._checker.place(span)
        literal = literal_of(operand, column.type, is_bare)
        other: ir.Expression | None
        if literal is not None:
            other = ir.Literal(without_null(column.type), literal, place)
        elif is_bare or operand.is_quoted:
            self._report_literal(column, operand, span)
            return None
        else:
            self._warn_of_difference(column, operand, span)
            other = self._operand(column, cell, operand)
        if other is None:
            return None
        value = self._value(column, place)
        if literal is True and operator == "==":
            return value
        if literal is False and operator == "==":
            return ir.Call("boolean.not", (), (value,), BOOLEAN, place)
        return self._checker.operation(ast.Word(operator, span), (value, other), span)

    def _operand(self, column: CheckedColumn, cell: ast.Cell, operand: Operand) -> ir.Expression | None:
        expression = self._parse(cell.text, operand.start, operand.end)
        if expression is None:
            return None
        return self._checker.infer(expression, without_null(column.type))

    def _parse(self, text: PlacedText, start: int, end: int) -> ast.Expression | None:
        inside = PlacedText(text.text[start:end], text.offsets[start:end], text.span(start, end).end)
        tokens = tokenize(inside, self._bag)
        return None if tokens is None else parse_tokens(tokens, self._bag)

    def _report_literal(self, column: CheckedColumn, operand: Operand, span: Span) -> None:
        inner = without_null(column.type)
        if isinstance(inner, Enum):
            help_ = did_you_mean(operand.text, inner.members)
            self._bag.error(Code.NOT_A_MEMBER, span, name=operand.text, type=inner, help=help_)
            return
        help_ = "an expression follows an operator, as in `== limit`, or stands in braces, as in `{value IN allowed}`"
        span_of_numbers = _NUMBERS.fullmatch(operand.text)
        if span_of_numbers is not None and inner in (INTEGER, DECIMAL, FLOAT):
            low, high = span_of_numbers.groups()
            help_ = f'`{operand.text}` is not a number; a range is written `"[{low}..{high}]"`'
        if not has_literals(inner):
            help_ = "such a column has `-`, `null`, and conditions in braces over `value`"
        expected = f"a value of type {inner}"
        self._bag.error(Code.BAD_LITERAL, span, text=operand.text, expected=expected, help=help_)

    def _warn_of_difference(self, column: CheckedColumn, operand: Operand, span: Span) -> None:
        """Warn of `== 0-100`, which is the number -100 and looks like a range."""
        numbers = _NUMBERS.fullmatch(operand.text)
        if numbers is None or "-" not in operand.text or without_null(column.type) not in (INTEGER, DECIMAL):
            return
        low, high = numbers.groups()
        value = f"{Decimal(low) - Decimal(high):f}"
        help_ = f'write `{value}` for the number; a range is written `"[{low}..{high}]"`'
        self._bag.warning(Code.CONSTANT_COMPARISON, span, help=help_, text=operand.text, always=value)

    def _check_ascending(self, column: CheckedColumn, cell: ast.Cell, test: Between) -> bool:
        """Report a range with literal ends in the wrong order.

        It matches nothing. Returns whether the order is right.
        """
        try:
            is_empty = literal_ranges((test,), column.type) == ()
        except CellProblem:
            return True
        if is_empty:
            span = cell.text.span(test.low.start - 1, test.high.end + 1)
            expected = "a range from a lower to a higher value"
            self._bag.error(Code.BAD_LITERAL, span, text=cell.text.text.strip(), expected=expected)
        return not is_empty

    def _condition(self, column: CheckedColumn, cell: ast.Cell, start: int, end: int) -> ir.Expression | None:
        """Check a condition in braces, in which `value` is the value of the column."""
        expression = self._parse(cell.text, start, end)
        if expression is None:
            return None
        assert isinstance(column.value, ir.Local), "the column of a condition is bound"
        scope = self._checker.scope
        outer = scope.locals.get("value")
        scope.locals["value"] = Declared(
            "local", column.value.name, column.type, cell.span, column.value.number, used=True
        )
        try:
            return self._checker.check(expression, BOOLEAN)
        finally:
            if outer is None:
                del scope.locals["value"]
            else:
                scope.locals["value"] = outer


def has_conditions(tests: Iterable[Test]) -> bool:
    """Return whether a test is a condition in braces."""
    return any(isinstance(test, Condition) or (isinstance(test, Not) and has_conditions(test.tests)) for test in tests)


def _needs_value(test: Test) -> bool:
    return isinstance(test, Between) or (isinstance(test, Compare) and test.operator != "!=")
