"""Operators and functions: selection of the operation by the types of the operands.

Operators and functions become operations here, by the types declared in `schemas/ops`. Conversions (integer to decimal,
value to optional) become explicit calls in the IR.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import combinations

from vesper.language.check.expressions.binders import AGGREGATES, with_array
from vesper.language.check.expressions.functions import NodeFunctions
from vesper.language.check.expressions.literal_arguments import check_literal_arguments
from vesper.language.check.expressions.narrowing import path_of
from vesper.language.check.expressions.operations import (
    argument_hint,
    by_function,
    by_operator,
    find_choice,
    form_of,
    function_names,
    is_declared_member,
    matching_call,
    operations_named,
    remember_choice,
)
from vesper.language.check.expressions.parameters import SCALES, Parameters
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import Label
from vesper.language.diagnostics.source import Span
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.language.syntax.habits.lookup import meant_functions, note_on_function
from vesper.values.model import parse_decimal
from vesper.values.operation import OpSpec
from vesper.values.types import (
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    INTEGER,
    NULL,
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
    without_null,
)

_OF_DECIMALS = {
    "div_floor": "floor({0} / {1})",
    "mod": "{0} - {1} * floor({0} / {1})",
    "trunc": "round({0}, {1}, down)",
    "floor": "round({0}, {1}, floor)",
    "ceil": "round({0}, {1}, ceiling)",
}
"""What to write for two decimals in place of a function that does not take them."""
_OTHER_OPERATORS = ("//", "%", "div", "mod")
"""Operators of other languages that are read as functions of integers."""
_ROUNDING = re.compile(r"round_?(half|down|up|floor|ceiling)_?(even|up|down)?", re.ASCII)
"""Names of functions that round in one mode: `round_half_up`, `ROUNDDOWN`."""
_IN_PARENTHESES = re.compile(r"\([^()]*\)")
_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?", re.ASCII)
_LITERALS = (ast.ArrayLiteral, ast.RecordLiteral, ast.MapLiteral)


class Calls(NodeFunctions, Parameters):
    """The part of the expression checker for operators and functions."""

    # -- operators --------------------------------------------------------------------------------

    def infix(self, expression: ast.Infix) -> ir.Expression | None:
        """Check an operator.

        Each operand suggests the type of a literal or bare word on the other side. The expected type of the whole
        expression is not used: `qty * 2` is one operation on integers everywhere, and only its result is converted to a
        decimal.
        """
        is_equality = expression.operator.text in ("==", "!=")
        if is_equality and (isinstance(expression.left, ast.Null) or isinstance(expression.right, ast.Null)):
            return self._equal_to_null(expression)
        if self._is_open(expression.left) and not self._is_open(expression.right):
            right = self.infer(expression.right, None)
            is_member = expression.operator.text == "IN"
            left = None if right is None else self.infer(expression.left, _hint_from(right, expression.left, is_member))
        else:
            left = self.infer(expression.left, None)
            is_member = expression.operator.text == "CONTAINS"
            hint = None if left is None else _hint_from(left, expression.right, is_member)
            is_list = expression.operator.text == "IN" and isinstance(expression.right, ast.ArrayLiteral)
            if left is not None and is_list and left.type != NULL:
                hint = ArrayOf(left.type)
            elif expression.operator.text == "IN" and isinstance(expression.right, ast.Name | ast.If):
                hint = None  # the right side is a collection, so a word in it is a name and never a member
            right = None if left is None else self.infer(expression.right, hint)
        if left is None or right is None:
            return None
        if is_equality:
            left, right = self._convert_to_optionals(expression, left, right)
        return self.operation(expression.operator, (left, right), expression.span)

    def in_range(self, expression: ast.InRange) -> ir.Expression | None:
        """Check `value IN [low..high)` as two comparisons with a value that is evaluated once."""
        if self._is_open(expression.value):
            low = self.infer(expression.low, None)
            value = None if low is None else self.infer(expression.value, low.type)
        else:
            value = self.infer(expression.value, None)
            low = None if value is None else self.infer(expression.low, value.type)
        high = None if value is None else self.infer(expression.high, value.type)
        if value is None or low is None or high is None:
            return None
        place = self.place(expression.span)
        is_name = isinstance(value, ir.Ref | ir.Local)
        number = 0 if is_name else self.fresh_local()
        name = value if is_name else ir.Local(number, "value", value.type, value.place)
        signs = (">=" if expression.includes_low else ">", "<=" if expression.includes_high else "<")
        left = self.operation(ast.Word(signs[0], expression.span), (name, low), expression.span)
        right = self.operation(ast.Word(signs[1], expression.span), (name, high), expression.span)
        if left is None or right is None:
            return None
        both = ir.Logical("and", left, right, place)
        return both if is_name else ir.Let(number, "value", value, both, place)

    def _equal_to_null(self, expression: ast.Infix) -> ir.Expression | None:
        """Check `x == null`. As with IS NULL, narrowing does not apply: the declared type of `x` decides."""
        operand = expression.right if isinstance(expression.left, ast.Null) else expression.left
        outer = self.known
        path = path_of(operand, self.scope)
        self.known = outer if path is None else outer - {path}
        found = self.infer(operand, None)
        self.known = outer
        if found is None:
            return None
        if not isinstance(found.type, OptionalOf):
            expected, help_ = "a value that may be null", never_null_help(found.type)
            self.bag.error(Code.TYPE_MISMATCH, operand.span, expected=expected, found=found.type, help=help_)
            return None
        null = ir.Literal(found.type, None, self.place(expression.span))
        # SEMANTICS: a literal cannot fail, so the order of the operands is unobservable.
        return self.operation(expression.operator, (found, null), expression.span)

    def _convert_to_optionals(
        self, expression: ast.Infix, left: ir.Expression, right: ir.Expression
    ) -> tuple[ir.Expression, ir.Expression]:
        """Convert one operand of an equality to an optional where the other is one."""
        if isinstance(left.type, OptionalOf) == isinstance(right.type, OptionalOf):
            return left, right
        may_be_null, value = (left, right) if isinstance(left.type, OptionalOf) else (right, left)
        if expression.operator.text == "==":
            self.scope.equal_to_a_value.add(id(expression))
        fitted = self.convert(value, may_be_null.type)
        if fitted is None:
            return left, right
        return (left, fitted) if may_be_null is left else (fitted, right)

    def _is_open(self, expression: ast.Expression) -> bool:
        """Return whether the type may depend on the other operand. It may for literals and undeclared words."""
        if isinstance(expression, ast.Name):
            return self.scope.find(expression.text) is None
        if isinstance(expression, ast.Infix):
            return False
        if isinstance(expression, ast.Prefix):
            return self._is_open(expression.operand)
        if isinstance(expression, _LITERALS):
            return all(self._is_open(part) for part in ast.parts(expression))
        return isinstance(expression, (ast.String, ast.Number))

    def index(self, expression: ast.Index) -> ir.Expression | None:
        """Check `base[index]`."""
        base = self.infer(expression.base, None)
        hint = base.type.key if base is not None and isinstance(base.type, MapOf) else None
        index = self.infer(expression.index, hint)
        if base is None or index is None:
            return None
        call = self._choose_overload(by_function("at"), (base, index), expression.span)
        if call is None:
            types = f"{base.type} and {index.type}"
            self.bag.error(Code.OPERATOR_TYPES, expression.index.span, operator="[ ]", types=types)
        return call

    def operation(self, operator: ast.Word, operands: tuple[ir.Expression, ...], span: Span) -> ir.Expression | None:
        """Return the operation of an operator for these operands; None after reporting an error."""
        specs = by_operator(operator.text)
        sign = operator.text.removeprefix("unary ")
        if not specs:
            self.bag.error(Code.NOT_IN_THIS_VERSION, operator.span, what=f"`{sign}` in an expression")
            return None
        call = self._choose_overload(specs, operands, span)
        if call is None:
            types = " and ".join(str(operand.type) for operand in operands)
            label = f"between {types}" if len(operands) > 1 else ""
            help_ = (self._text_help(operands) if sign == "+" else None) or self._moment_help(operands, sign)
            if any(isinstance(operand.type, OptionalOf) for operand in operands):
                help_ = self._null_help(operands, sign)
            at = self._operand_to_change(operands, help_)
            if at is not None:
                span = self._span_of(at.place)
                label, also = f"this is {at.type}", self._declaration_of(at)
                self.bag.error(Code.OPERATOR_TYPES, span, label, also=also, operator=sign, types=types, help=help_)
                return None
            self.bag.error(Code.OPERATOR_TYPES, operator.span, label, operator=sign, types=types, help=help_)
        return call

    def _text_help(self, operands: tuple[ir.Expression, ...]) -> str | None:
        """Return the help for joining a text and another value. None if the text is a number in quotes."""
        others = tuple(each for each in operands if each.type != STRING)
        texts = [each for each in operands if each.type == STRING]
        if len(others) != 1 or len(texts) != 1 or matching_call(by_function("text"), others, others[0].place) is None:
            return None
        if isinstance(texts[0], ir.Literal) and _NUMBER.fullmatch(str(texts[0].value)):
            return None
        return f"`+` joins two texts: write `text({self._source_at(others[0].place)})`"

    def _moment_help(self, operands: tuple[ir.Expression, ...], sign: str) -> str | None:
        """Return the help for operators on dates and times: the functions to call instead."""
        types, written = [each.type for each in operands], [self._source_at(each.place) for each in operands]
        if sign in "+-" and types == [DATE, INTEGER]:
            days = written[1] if re.fullmatch(r"\w+", written[1]) or sign == "+" else f"({written[1]})"
            return f"write `add_days({written[0]}, {'-' * (sign == '-')}{days})`"
        if sign == "-" and types == [DATE, DATE]:
            return f"write `days_between({written[1]}, {written[0]})`"
        for operand, other in (operands, operands[::-1]) if len(operands) == 2 else ():
            function = next((name for type_, name in _MOMENTS.items() if type_ == without_null(other.type)), None)
            if function is not None and isinstance(operand, ir.Literal) and isinstance(operand.value, str):
                return f"write `{function}('{operand.value}')`"
            if function in ("date", "timestamp") and operand.type == STRING:
                return f"convert the text: `parse_{function}(…)`"
        return None

    def _null_help(self, operands: tuple[ir.Expression, ...], sign: str) -> str:
        """Return the help for an operator with an operand that may be null: the expression with a default."""
        nullable = [each for each in operands if isinstance(each.type, OptionalOf)]
        names = " and ".join(f"`{self._source_at(each.place)}`" for each in nullable)
        values = tuple(_without_null(each) for each in operands)
        shown, meant = [self._source_at(each.place) for each in operands], ""
        is_simple = len(nullable) == 1 and len(shown) == 2 and all(_IS_OPERAND.fullmatch(text) for text in shown)
        for index, each in enumerate(operands):
            if isinstance(each.type, OptionalOf):
                shown[index] = f"({shown[index]} ?? {_DEFAULTS.get(each.type.inner, '…')})"
                meant += f"{' and ' * bool(meant)}`{shown[index]}`"
        if is_simple:
            meant = f"`{shown[0]} {sign} {shown[1]}`"
        if self._choose_overload(by_operator(sign), values, Span(0, 0)) is None:
            meant = "a default with `??` in parentheses, and convert it"
        return f"{names} may be null, and `{sign}` does not take null: write {meant}, or test it with IS NOT NULL first"

    def _operand_to_change(self, operands: tuple[ir.Expression, ...], help_: str | None) -> ir.Expression | None:
        """Return the operand that the help puts into a call."""
        call = _CALL_HELP.search(help_ or "")
        found = [
            each for each in operands if call is not None and self._source_at(each.place) in (call[1], f"'{call[1]}'")
        ]
        return found[0] if len(found) == 1 else None

    def _declaration_of(self, operand: ir.Expression) -> tuple[Label, ...]:
        """Return a label at the declaration of the operand, if it is a name."""
        declared = self.scope.find(operand.name) if isinstance(operand, ir.Ref) else None
        if declared is None or declared.library is not None:
            return ()
        return (Label(declared.span, f"{declared.describe()} of type {operand.type}"),)

    def _span_of(self, place: ir.Place) -> Span:
        source = self.bag.source
        return Span(source.offset(place.line, place.column), source.offset(place.end_line, place.end_column))

    def _source_at(self, place: ir.Place) -> str:
        """Return the source at a place on one line."""
        return " ".join(self.bag.source.slice(self._span_of(place)).split())

    def _choose_overload(
        self, specs: tuple[OpSpec, ...], operands: tuple[ir.Expression, ...], span: Span
    ) -> ir.Call | None:
        """Return the operation that accepts the operands, after converting integers to decimals if necessary.

        None if no operation does. The operation with the fewest conversions wins, then the leftmost one.
        """
        place = self.place(span)
        known = find_choice(specs, operands)
        if known is not None:
            for position in known.as_decimals:
                operands = (*operands[:position], to_decimal(operands[position]), *operands[position + 1 :])
            return ir.Call(known.op, known.of, operands, known.returns, place)
        integers = [position for position, operand in enumerate(operands) if operand.type == INTEGER]
        for count in range(len(integers) + 1):
            for chosen in combinations(integers, count):
                candidate = tuple(
                    to_decimal(operand) if position in chosen else operand for position, operand in enumerate(operands)
                )
                call = matching_call(specs, candidate, place)
                if call is not None:
                    remember_choice(specs, operands, chosen, call)
                    return call
        return None

    # -- functions --------------------------------------------------------------------------------

    def function(self, expression: ast.Call, hint: Type | None) -> ir.Expression | None:
        """Check a call of a node function, a form or a library function."""
        name = expression.function.text
        if name in self.functions or name in self.functions_below:
            return self.own_call(expression)
        if name in SCALES:
            return self.scale(expression)
        form = form_of(name)
        if form is not None and form.form is not None:
            return self.form(form.form, expression, form.call or name, hint)
        specs = by_function(name)
        if not specs and operations_named(name):
            self.bag.error(Code.NOT_IN_THIS_VERSION, expression.function.span, what=f"the function `{name}`")
            return None
        if not specs:
            help_ = self._help_for_function(expression)
            self.bag.error(Code.UNKNOWN_NAME, expression.function.span, kinds="no function", name=name, help=help_)
            return None
        if expression.named:
            self.bag.error(Code.EXPRESSION_SYNTAX, expression.named[0][0].span, expected="a value", found="`=`")
            return None
        if expression.binding is not None and name in AGGREGATES and len(expression.arguments) == 1:
            # `sum(e FOR …)` is `SUM(e FOR …)`: values are added one by one, without an array.
            return self.bound_form(name, expression.binding, expression.arguments[0], expression.span)
        return self._library(with_array(expression), specs)

    def _help_for_function(self, expression: ast.Call) -> str | None:
        """Return the help for an unknown function: Vesper's function for it, or a close name.

        Argument types select among several functions.
        """
        name = expression.function.text
        mode = _ROUNDING.fullmatch(name.lower())
        if mode is not None and len(expression.arguments) in (1, 2):
            value, places = (*map(self._source_of, expression.arguments), "0")[:2]
            return f"write `round({value}, {places}, {mode[1]}{'_' if mode[2] else ''}{mode[2] or ''})`"
        if name == "ROUND" and len(expression.arguments) == 2:
            value, places = map(self._source_of, expression.arguments)
            return f"write `round({value}, {places}, half_up)`: Excel rounds a tie away from zero, which is `half_up`"
        meant = meant_functions(name)
        if len(meant) > 1:
            given = [self.infer(argument, None) for argument in expression.arguments]
            known = tuple(each for each in given if each is not None)
            fitting = (each for each in meant if self._choose_overload(by_function(each), known, expression.span))
            meant = (next(fitting, meant[0]),)
        if meant:
            return f"write `{meant[0]}(…)`"
        return note_on_function(name) or did_you_mean(name, (*self.functions, *SCALES, *function_names()))

    def _library(self, expression: ast.Call, specs: tuple[OpSpec, ...]) -> ir.Expression | None:
        name = expression.function.text
        arguments: list[ir.Expression | None] = []
        for position, argument in enumerate(expression.arguments):
            known = [found for found in arguments if found is not None]
            # Literals are typed by all declared operations, including those that no engine implements yet.
            hint = argument_hint(operations_named(name), position, known) if len(known) == len(arguments) else None
            if len(known) < len(arguments) and self._may_be_member(argument, operations_named(name), position):
                arguments.append(
                    None
                )  # an earlier argument is already faulty, so a word such as `half_up` is not reported
                continue
            arguments.append(self.infer(argument, hint))
        given = tuple(argument for argument in arguments if argument is not None)
        if len(given) < len(arguments):
            return None
        call = self._choose_overload(specs, given, expression.span)
        if call is None:
            types = ", ".join(str(argument.type) for argument in given) or "no arguments"
            help_ = None
            if any(isinstance(argument.type, OptionalOf) for argument in given):
                help_ = "a value that may be null: test it with IS NOT NULL first, or use `??`"
            forms = " or ".join(f"`{name}({', '.join(text for _, text in spec.params)})`" for spec in specs[:3])
            if name == "concat" and all(argument.type == STRING for argument in given):
                help_ = "join texts with `+`"
            help_ = help_ or self._comma_help(expression) or self._decimal_help(expression, given)
            help_ = help_ or self._record_help(expression, given, specs) or f"it is {forms}"
            self._report_argument_types(expression, types, help_)
            return None
        return check_literal_arguments(call, expression.arguments, self.bag)

    def _report_argument_types(self, expression: ast.Call, types: str, help_: str) -> None:
        """Report a function or an operator of another language in its place, such as `//`, for its arguments."""
        span, name = expression.function.span, expression.function.text
        written = self.bag.source.slice(span)
        if written in _OTHER_OPERATORS:
            self.bag.retract_inside([span])  # the operator of integers is no help for other numbers
            name = written
        self.bag.error(Code.OPERATOR_TYPES, span, operator=name, types=types, help=help_)

    def _comma_help(self, expression: ast.Call) -> str | None:
        """Return the help for a number with a comma, which is read as two arguments."""
        from vesper.language.syntax.habits.commas import comma_numbers  # for a faulty file only

        found = comma_numbers(self.bag.source.slice(expression.span))
        return next((each.help for each in found if each.is_grouped), None)

    def _record_help(
        self, expression: ast.Call, given: tuple[ir.Expression, ...], specs: tuple[OpSpec, ...]
    ) -> str | None:
        """Return the help for a record in the place of one of its fields."""
        for index, (value, argument) in enumerate(zip(given, expression.arguments, strict=False)):
            if isinstance(value.type, Record):
                before, after = given[:index], given[index + 1 :]

                def fits(
                    field: ir.Expression,
                    before: tuple[ir.Expression, ...] = before,
                    after: tuple[ir.Expression, ...] = after,
                ) -> bool:
                    return self._choose_overload(specs, (*before, field, *after), expression.span) is not None

                return self.field_help(value, argument.span, fits)
        return None

    def _decimal_help(self, expression: ast.Call, given: tuple[ir.Expression, ...]) -> str | None:
        """Return the help for a function of integers, or of one number, that is called as one of two decimals."""
        form = _OF_DECIMALS.get(expression.function.text)
        if form is None or len(given) != 2 or not all(each.type in (DECIMAL, FLOAT, INTEGER) for each in given):
            return None
        texts = [
            f"({text})" if "/" in form and isinstance(each, ast.Infix) and not _IN_PARENTHESES.fullmatch(text) else text
            for each in expression.arguments
            for text in (self._source_of(each),)
        ]
        return f"write `{form.format(*texts)}`"

    def _source_of(self, expression: ast.Expression) -> str:
        """Return the source of an expression on one line."""
        return " ".join(self.bag.source.slice(expression.span).split())

    def _may_be_member(self, argument: ast.Expression, specs: Iterable[OpSpec], position: int) -> bool:
        """Return whether an undeclared word is an enum member declared for this position."""
        if not isinstance(argument, ast.Name) or self.scope.find(argument.text) is not None:
            return False
        return is_declared_member(specs, position, argument.text)


def never_null_help(type_: Type) -> str:
    """Return the help for a test of a value that cannot be null."""
    return f"this value is never null: take the test out, or declare it as `optional<{type_}>`"


def to_decimal(operand: ir.Expression) -> ir.Expression:
    """Return an integer expression as a decimal; literals are converted directly."""
    if isinstance(operand, ir.Literal) and isinstance(operand.value, int):
        return ir.Literal(DECIMAL, parse_decimal(str(operand.value)), operand.place)
    return ir.Call("decimal.from_integer", (), (operand,), DECIMAL, operand.place)


def _without_null(operand: ir.Expression) -> ir.Expression:
    """Return an operand as if it could not be null."""
    inner = without_null(operand.type)
    return operand if inner == operand.type else ir.Call("optional.unwrap", (inner,), (operand,), inner, operand.place)


_MOMENTS = {DATE: "date", TIMESTAMP: "timestamp", DURATION: "duration", TIME_OF_DAY: "time_of_day", PERIOD: "period"}


_CALL_HELP = re.compile(r"write `\w+\((.*)\)`$")
_DEFAULTS: dict[Type, str] = {STRING: "''", INTEGER: "0", DECIMAL: "0", FLOAT: "0.0"}
"""Literals that stand for nothing in a help line."""
_IS_OPERAND = re.compile(r"[\w.]+(?:\([^()]*\))?|'[^']*'")


def _hint_from(other: ir.Expression, literal: ast.Expression, is_member: bool) -> Type | None:
    """Return the type that one operand suggests for the other. A collection suggests the type of its members."""
    type_ = without_null(other.type)
    if isinstance(type_, Primitive) and not isinstance(literal, _LITERALS):  # the common case
        return type_ if type_ is DECIMAL or type_ is FLOAT else None
    if isinstance(literal, _LITERALS) and not is_member:
        return type_ if isinstance(type_, ArrayOf | SetOf | MapOf | Record) else None
    type_ = type_.element if isinstance(type_, SetOf | ArrayOf) else type_
    if isinstance(type_, MapOf):
        type_ = type_.key
    if isinstance(literal, _LITERALS):
        return type_
    return type_ if isinstance(type_, Enum) or type_ in (DECIMAL, FLOAT) else None
