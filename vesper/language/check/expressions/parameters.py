"""Parameters with `AT`, whose values change with time, and scales.

`vat_rate AT d` becomes `LET` with a balanced tree of comparisons of the date: no operation of its own, so every engine
has it. `marginal` and `single_amount` become a fold over the brackets.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from vesper.language.check.expressions.checker_part import CheckerPart
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.source import Span
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.values.model import Value
from vesper.values.types import BOOLEAN, DATE, DECIMAL, ArrayOf, OptionalOf, Record, Type

SCALES = {
    "marginal": Record((("from", DECIMAL), ("rate", DECIMAL))),
    "single_amount": Record((("from", DECIMAL), ("amount", DECIMAL))),
}
"""Type of a bracket by kind of scale, which is also the name of its function."""
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class DatedValue:
    """The value from a date on; None where no value is in force."""

    since: date
    value: Value
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter without errors."""

    name: str
    type: Type
    entries: tuple[DatedValue, ...]
    """In the order of their dates, which are distinct."""
    unit: str | None = None
    reference: str | None = None

    def note(self) -> ir.ParameterUse:
        """Return the facts of the parameter that explanations show."""
        entries = tuple((each.since.isoformat(), each.reference) for each in self.entries)
        return ir.ParameterUse(self.name, self.unit, self.reference, entries)


class Parameters(CheckerPart):
    """The part of the expression checker for parameters and scales."""

    parameters: dict[str, Parameter | None]
    """Parameters by name; None for a faulty one, whose uses are not reported."""
    silent: list[Span]

    @abstractmethod
    def count_inlined(self, size: int, span: Span) -> None: ...

    def at_date(self, expression: ast.AtDate) -> ir.Expression | None:
        """Check `parameter AT date`."""
        name = expression.parameter
        declared = self.scope.find(name.text)
        moment = self.check(expression.date, DATE)
        if declared is None or declared.kind != "parameter":
            help_ = did_you_mean(name.text, self.parameters)
            self.bag.error(Code.UNKNOWN_NAME, name.span, kinds="no parameter", name=name.text, help=help_)
            return None
        declared.used = True
        parameter = self.parameters[name.text]
        if parameter is None or moment is None:
            return None
        self.count_inlined(4 * len(parameter.entries), expression.span)
        self.silent.append(expression.span)
        place, number = self.place(expression.span), self.fresh_local()
        local = ir.Local(number, "date", DATE, place)
        found = _search(parameter, 0, len(parameter.entries) + 1, local, place)
        value = ir.Call("optional.in_force", (parameter.type,), (found,), parameter.type, place)
        return ir.Let(number, "date", moment, value, place, note=parameter.note())

    def scale(self, expression: ast.Call) -> ir.Expression | None:
        """Check `marginal(amount, scale)` or `single_amount(amount, scale)`."""
        kind, bracket = expression.function.text, SCALES[expression.function.text]
        if len(expression.arguments) != 2 or expression.binding is not None or expression.named:
            self.bag.error(
                Code.FUNCTION_ARGUMENTS, expression.function.span, name=kind, expected="2 arguments",
                found=str(len(expression.arguments)), help=f"it is `{kind}(amount, scale)`",
            )  # fmt: skip
            return None
        amount = self.check(expression.arguments[0], DECIMAL)
        scale = self.check(expression.arguments[1], ArrayOf(bracket))
        if amount is None or scale is None:
            return None
        self.silent.append(expression.span)
        fold = _marginal if kind == "marginal" else _single_amount
        place, number = self.place(expression.span), self.fresh_local()
        local = ir.Local(number, "amount", DECIMAL, place)
        body = fold(local, scale, bracket, (self.fresh_local(), self.fresh_local()), place)
        return ir.Let(number, "amount", amount, body, place)


def _search(parameter: Parameter, first: int, end: int, moment: ir.Local, place: ir.Place) -> ir.Expression:
    """Return the expression of the value at a date, among the values `first` to `end`.

    Value 0 is null, before all dates.
    """
    type_ = OptionalOf(parameter.type)
    if end - first == 1:
        return ir.Literal(type_, None if first == 0 else parameter.entries[first - 1].value, place)
    middle = (first + end) // 2
    since = ir.Literal(DATE, parameter.entries[middle - 1].since, place)
    is_before = ir.Call("date.less", (), (moment, since), BOOLEAN, place)
    before = _search(parameter, first, middle, moment, place)
    return ir.If(is_before, before, _search(parameter, middle, end, moment, place), type_, place)


def _call(op: str, left: ir.Expression, right: ir.Expression, type_: Type, place: ir.Place) -> ir.Expression:
    return ir.Call(op, (), (left, right), type_, place)


def _marginal(
    amount: ir.Local, scale: ir.Expression, bracket: Record, locals_: tuple[int, int], place: ir.Place
) -> ir.Expression:
    """Return the sum over the brackets: each rate times the part of the amount inside.

    The brackets are read from the highest down.
    """
    state = Record((("tax", DECIMAL), ("upper", DECIMAL)))
    item, so_far = ir.Local(locals_[0], "bracket", bracket, place), ir.Local(locals_[1], "so_far", state, place)
    start = ir.Field(item, "from", DECIMAL, place)
    upper, tax = ir.Field(so_far, "upper", DECIMAL, place), ir.Field(so_far, "tax", DECIMAL, place)
    inside = _call("decimal.subtract", upper, start, DECIMAL, place)
    part = _call("decimal.multiply", inside, ir.Field(item, "rate", DECIMAL, place), DECIMAL, place)
    more = ir.RecordValue((("tax", _call("decimal.add", tax, part, DECIMAL, place)), ("upper", start)), place)
    is_reached = _call("decimal.less", start, upper, BOOLEAN, place)
    value = ir.If(is_reached, more, so_far, state, place)
    initial = ir.RecordValue((("tax", ir.Literal(DECIMAL, _ZERO, place)), ("upper", amount)), place)
    over = ir.Call("array.reverse", (bracket,), (scale,), scale.type, place)
    names = ("bracket", "so_far")
    found = ir.For("fold", locals_, names, over, None, None, value, state, place, with_=initial)
    return ir.Field(found, "tax", DECIMAL, place)


def _single_amount(
    amount: ir.Local, scale: ir.Expression, bracket: Record, locals_: tuple[int, int], place: ir.Place
) -> ir.Expression:
    """Return the amount of the last bracket that begins at or below the given amount.

    It is zero below the first bracket.
    """
    item, so_far = ir.Local(locals_[0], "bracket", bracket, place), ir.Local(locals_[1], "so_far", DECIMAL, place)
    is_reached = _call("decimal.less_or_equal", ir.Field(item, "from", DECIMAL, place), amount, BOOLEAN, place)
    value = ir.If(is_reached, ir.Field(item, "amount", DECIMAL, place), so_far, DECIMAL, place)
    zero = ir.Literal(DECIMAL, _ZERO, place)
    names = ("bracket", "so_far")
    return ir.For("fold", locals_, names, scale, None, None, value, DECIMAL, place, with_=zero)
