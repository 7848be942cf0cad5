"""The expression checker: gives each expression exactly one type. Takes AST expressions and returns typed IR.

Operators and functions become operations by the types declared in `schemas/ops`. Conversions (integer to decimal, value
to optional) become explicit calls in the IR. A faulty expression yields None, and expressions that contain it are not
reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from vesper.language.check.callees import NoCallees
from vesper.language.check.expressions.calls import Calls, never_null_help, to_decimal
from vesper.language.check.expressions.collections import CollectionForms
from vesper.language.check.expressions.flow_forms import FlowForms
from vesper.language.check.expressions.narrowing import NOTHING, Facts, facts_when, path_of
from vesper.language.check.expressions.node_calls import NodeCalls
from vesper.language.check.expressions.operations import by_function
from vesper.language.check.named_types import TypeResolver
from vesper.language.check.recursive_types import as_record, build, read_field
from vesper.language.check.scope import Declared, Scope
from vesper.language.check.tables.lowered import LoweredTable
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.diagnostics.suggest import did_you_mean, suggestions
from vesper.language.ir import nodes as ir
from vesper.language.ir.lookup_tables import Table
from vesper.language.syntax import ast
from vesper.language.syntax.habits.lookup import help_for_name, meant_functions
from vesper.values.json_value import Json
from vesper.values.literal_text import value_from_text
from vesper.values.model import MAX_INTEGER, ValueProblem, parse_decimal
from vesper.values.numbers import finite_float
from vesper.values.types import (
    BOOLEAN,
    DECIMAL,
    FLOAT,
    INTEGER,
    JSON,
    NULL,
    STRING,
    ArrayOf,
    Enum,
    OptionalOf,
    Record,
    Recursive,
    SetOf,
    Type,
    optional,
    without_null,
)

if TYPE_CHECKING:
    from vesper.language.check.tables.findings import Findings


def place_of(source: SourceFile, span: Span) -> ir.Place:
    """Return the IR location of a span."""
    return ir.Place(*source.positions(span))


class _FactContext(AbstractContextManager[None]):
    """Context of `ExpressionChecker.assuming`.

    A class, because a generator takes four times as long to enter and leave.
    """

    __slots__ = ("_checker", "_facts", "_outer")

    def __init__(self, checker: ExpressionChecker, facts: Facts) -> None:
        self._checker = checker
        self._facts = facts

    def __enter__(self) -> None:
        self._outer = self._checker.known
        self._checker.known = self._outer | self._facts

    def __exit__(self, *_: object) -> None:
        self._checker.known = self._outer


class ExpressionChecker(CollectionForms, Calls, NodeCalls, FlowForms):
    """Checks expressions of one node. The scope changes from step to step."""

    def __init__(self, scope: Scope, bag: DiagnosticBag, types: TypeResolver | None = None) -> None:
        self.scope = scope
        self.bag = bag
        self._types = TypeResolver((), bag) if types is None else types
        self.known: Facts = NOTHING
        self.functions = {}
        self.functions_below = {}
        self.parameters = {}
        self.silent = []
        self.callees = NoCallees()
        self.hoisted = {}
        self.inlined_calls = []
        self.library_id = None
        self._part: Callable[[str], ir.Expression] | None = None
        self.lookup_tables: dict[str, Table] = {}
        """Tables with the rows of files, by hash."""
        self.files: list[tuple[str, str]] = []
        """Files that were read: path and SHA-256."""
        self.tables: list[LoweredTable] = []
        """Decision tables of the node, as lowered."""
        self.analysis_budget = 500_000
        """Number of boxes that analyses of the node's tables may still visit, so that every check is short."""
        self.assumptions: list[ir.Expression] = []
        """Clauses that hold where a table is checked: constraints, preconditions, conditions of steps above."""
        self.examined: list[Findings] = []
        """Findings of the tables whose rows were compared."""
        self.analysed: list[Span] = []
        """Spans of rows and cells about which the analysis of tables reports, and no other one."""
        if bag.observe_checker is not None:
            bag.observe_checker(self)

    def table(self, table: ast.DecisionTable, name: ast.Word, expected: Type | None) -> ir.Expression | None:
        """Check a decision table; `name` is that of its step or function."""
        from vesper.language.check.tables.checker import TableChecker  # which checks rows with this very class

        return TableChecker(self).check(table, name, expected)

    def resolve(self, text: ast.TypeText) -> Type | None:
        """Return the type of a text, or None after reporting an error."""
        return self._types.resolve(text)

    def over_parts(
        self, expression: ast.Expression, part: Callable[[str], ir.Expression], names: Mapping[str, Type]
    ) -> ir.Expression | None:
        """Check a clause of a type for one value. Its bare names mean parts of that value."""
        outer, outer_part = self.scope, self._part
        declared = {name: Declared("field", name, type_, expression.span) for name, type_ in names.items()}
        self.scope, self._part = Scope(names=declared, local_count=outer.local_count), part
        try:
            return self.check(expression, BOOLEAN)
        finally:
            outer.local_count = self.scope.local_count
            self.scope, self._part = outer, outer_part

    def check(self, expression: ast.Expression, expected: Type) -> ir.Expression | None:
        """Return the expression converted to the expected type, or None after reporting an error."""
        found = self.infer(expression, expected)
        return None if found is None else self.fit(found, expected, expression.span)

    def fit(self, found: ir.Expression, expected: Type, span: Span) -> ir.Expression | None:
        """Convert a value to the expected type if the language converts implicitly, else report it."""
        fitted = self.convert(found, expected)
        if fitted is None:
            shown = "null" if found.type == NULL else found.type
            help_: str | None = None
            also: tuple[Label, ...] = ()
            if isinstance(found.type, OptionalOf) and found.type.inner == expected:
                help_ = "it may be null: test it with IS NOT NULL first, or give a default with `??`"
            elif isinstance(found.type, OptionalOf) and expected == BOOLEAN:
                help_ = "a condition is true or false: write `… IS NOT NULL`; a default is written `… ?? default`"
            elif found.type == DECIMAL and expected == INTEGER:
                help_ = "declare it as `decimal`, or convert a whole number with `to_integer(…)`"
                if "/" in self.bag.source.slice(span):
                    help_ = "`/` gives a decimal: write `div_floor(a, b)` for whole numbers, or convert with "
                    help_ += "`to_integer(…)`"
            elif found.type == FLOAT and expected == DECIMAL:
                also = self._float_declarations(found)
                help_ = "a float is not exact: declare money as `decimal`, or convert with `to_decimal(…)`"
            elif isinstance(found.type, Record):
                help_ = self.field_help(found, span, lambda field: self.convert(field, expected) is not None)
            label = f"this is {shown}"
            self.bag.error(Code.TYPE_MISMATCH, span, label, also=also, expected=expected, found=shown, help=help_)
        return fitted

    def _float_declarations(self, found: ir.Expression) -> tuple[Label, ...]:
        """Return labels at the declarations that make an expression a float."""
        names = dict.fromkeys(each.name for each in ir.walk(found) if isinstance(each, ir.Ref) and each.type == FLOAT)
        declared = [each for name in names if (each := self.scope.find(name)) is not None and each.library is None]
        return tuple(Label(each.span, f"{each.describe()} of type float") for each in declared)

    def convert(self, found: ir.Expression, expected: Type) -> ir.Expression | None:
        """Return the value converted to another type. None if the language does not convert implicitly."""
        if found.type == expected:
            return found
        if found.type == INTEGER and expected == DECIMAL:
            return to_decimal(found)
        if isinstance(expected, Recursive):
            return build(found, expected) if found.type == as_record(expected) else None
        if isinstance(expected, OptionalOf):
            if found.type == NULL:
                return ir.Literal(expected, None, found.place)
            inner = self.convert(found, expected.inner)
            return (
                None if inner is None else ir.Call("optional.some", (expected.inner,), (inner,), expected, found.place)
            )
        return None

    def add_facts(self, facts: Facts) -> None:
        """Add facts (paths that are not null) for the rest of the block."""
        self.known |= facts

    def assuming(self, facts: Facts) -> AbstractContextManager[None]:
        """Return a context in which these paths are known not to be null."""
        return _FactContext(self, facts)

    def infer(self, expression: ast.Expression, expected: Type | None) -> ir.Expression | None:
        """Return the expression with its own type.

        The expected type only decides the meaning of literals and bare words.
        """
        hint = expected.inner if type(expected) is OptionalOf else expected
        # Three kinds cover most expressions; `match` tests the others in sequence.
        if type(expression) is ast.Name:
            return self._name(expression, hint)
        if type(expression) is ast.Number:
            return self._number(expression, hint)
        if type(expression) is ast.Infix:
            word = expression.operator.text
            if word in ("AND", "OR", "=>"):
                return self._logical(expression)
            return self._or_else(expression, hint) if word == "??" else self.infix(expression)
        match expression:
            case ast.Unread():
                return None
            case ast.String():
                return self._string(expression, hint)
            case ast.Boolean():
                return ir.Literal(BOOLEAN, expression.value, self.place(expression.span))
            case ast.Null():
                return ir.Literal(NULL, None, self.place(expression.span))
            case ast.Field():
                return self._field(expression)
            case ast.If():
                return self._if(expression, expected)
            case ast.Prefix():
                return self._prefix(expression, hint)
            case ast.InRange():
                return self.in_range(expression)
            case ast.IsNull():
                return self._is_null(expression)
            case ast.Index():
                return self.index(expression)
            case ast.Call(function=ast.Word(text="old" | "now")) | ast.Template() | ast.JsonTree() | ast.JsonLiteral():
                return self.flow_form(expression, expected)
            case ast.Call():
                return self.function(expression, hint)
            case ast.Let():
                return self._let(expression, expected)
            case ast.Cast():
                return self._cast(expression)
            case ast.NodeCall():
                return self.node_call(expression)
            case ast.AtDate():
                return self.at_date(expression)
            case ast.Ascription():
                type_ = self._types.resolve(expression.type)
                return None if type_ is None else self.check(expression.value, type_)
            case _:
                return self.collection_form(expression, hint)

    def place(self, span: Span) -> ir.Place:
        return ir.Place(*self.bag.source.positions(span))

    # -- literals and names -----------------------------------------------------------------------

    def _number(self, expression: ast.Number, expected: Type | None) -> ir.Expression | None:
        place = self.place(expression.span)
        digits = expression.text.lstrip("0") or "0"
        if "e" in expression.text.lower() or expected == FLOAT:
            try:
                return ir.Literal(FLOAT, finite_float(expression.text), place)
            except ValueProblem:
                problem = "is past the largest float"
        elif "." in expression.text or expected == DECIMAL:
            try:
                return ir.Literal(DECIMAL, parse_decimal(expression.text), place)
            except ValueProblem:
                problem = "has more than 1,000 digits or places"
        elif len(digits) <= 19 and int(digits) <= MAX_INTEGER:
            return ir.Literal(INTEGER, int(digits), place)
        else:
            problem = "does not fit 64 bits"
        self.bag.error(Code.BAD_NUMBER, expression.span, text=expression.text, problem=problem)
        return None

    def _string(self, expression: ast.String, expected: Type | None) -> ir.Expression | None:
        place = self.place(expression.span)
        if not isinstance(expected, Enum):
            return ir.Literal(STRING, expression.text, place)
        if expression.text in expected.members:
            return ir.Literal(expected, expression.text, place)
        help_ = did_you_mean(expression.text, expected.members)
        self.bag.error(Code.NOT_A_MEMBER, expression.span, name=expression.text, type=expected, help=help_)
        return None

    def _name(self, expression: ast.Name, expected: Type | None) -> ir.Expression | None:
        declared = self.scope.find(expression.text)
        is_member = isinstance(expected, Enum) and expression.text in expected.members
        if declared is not None and is_member:
            also = (Label(declared.span, f"{declared.describe()} is declared here"),)
            help_ = f"write `'{expression.text}'` for the member"
            one = declared.describe()
            self.bag.error(Code.AMBIGUOUS_WORD, expression.span, also=also, help=help_, name=expression.text, one=one)
            return None
        if declared is not None and declared.kind == "parameter":
            declared.used = True
            help_ = f"a parameter has a value at a date: write `{expression.text} AT date`"
            self.bag.error(
                Code.TYPE_MISMATCH, expression.span, expected="a value", found="a parameter without date", help=help_
            )
            return None
        if declared is not None:
            return self._narrow(self._reference(declared, expression.span), expression)
        if is_member:
            assert expected is not None
            return ir.Literal(expected, expression.text, self.place(expression.span))
        self._report_unknown(expression, expected)
        return None

    def _reference(self, declared: Declared, span: Span) -> ir.Expression | None:
        declared.used = True
        if declared.type is None:
            return None
        if declared.kind == "field":
            assert self._part is not None
            return replace(self._part(declared.name), place=self.place(span))
        if declared.kind == "local":
            return ir.Local(declared.number, declared.name, declared.type, self.place(span))
        return ir.Ref(declared.kind, declared.ir_name or declared.name, declared.type, self.place(span))

    def _narrow(self, found: ir.Expression | None, expression: ast.Expression) -> ir.Expression | None:
        """Unwrap an optional that is known not to be null here."""
        if found is None or not isinstance(found.type, OptionalOf):
            return found
        if path_of(expression, self.scope) not in self.known:
            return found
        return ir.Call("optional.unwrap", (found.type.inner,), (found,), found.type.inner, found.place)

    def _report_unknown(self, word: ast.Name, expected: Type | None) -> None:
        visible = {each.name: each for each in self.scope.visible()}
        kinds, candidates = self.scope.kinds(), [*visible]
        if isinstance(expected, Enum):
            kinds += ", and no member of its enum,"
            candidates += expected.members
        close = next((visible[name] for name in suggestions(word.text, candidates) if name in visible), None)
        also = () if close is None else (Label(close.span, f"`{close.name}` is declared here"),)
        help_ = help_for_name(word.text, candidates)
        holder = None if help_ is not None else _holder_of(word.text, [*visible.values()])
        if holder is not None:  # such as the state of a loop that has ended
            also = (Label(holder.span, f"`{holder.name}` has a field `{word.text}`"),)
            help_ = f"write `{holder.name}.{word.text}`"
        if isinstance(expected, Enum):
            help_ = _help_for_member(word.text, expected.members) or help_ or _list_members(expected.members)
        self.bag.error(Code.UNKNOWN_NAME, word.span, "unknown name", also=also, help=help_, kinds=kinds, name=word.text)

    def _field(self, expression: ast.Field) -> ir.Expression | None:
        if isinstance(expression.base, ast.Name) and expression.base.text in ("input", "output", "error"):
            return self._scoped_name(expression, expression.base.text)
        if self._is_result(expression):
            self._report_result(expression)
            return None
        base = self.infer(expression.base, None)
        if base is None:
            return None
        if isinstance(base.type, Recursive):
            return self._recursive_field(base, base.type, expression)
        if not isinstance(base.type, Record):
            help_ = self._property_help(expression, base.type)
            if isinstance(base.type, OptionalOf):
                help_ = "it may be null: test it with IS NOT NULL first"
            self.bag.error(Code.TYPE_MISMATCH, expression.base.span, expected="a record", found=base.type, help=help_)
            return None
        type_ = base.type.field(expression.name.text)
        if type_ is None:
            help_ = did_you_mean(expression.name.text, [name for name, _ in base.type.fields])
            kinds = f"no field of {base.type}"
            self.bag.error(Code.UNKNOWN_NAME, expression.name.span, kinds=kinds, name=expression.name.text, help=help_)
            return None
        found = ir.Field(base, expression.name.text, type_, self.place(expression.span))
        return self._narrow(found, expression)

    def _report_result(self, expression: ast.Field) -> None:
        span, kinds = expression.base.span, self.scope.kinds()
        help_ = f"an output is named directly: write `{expression.name.text}`"
        self.bag.error(
            Code.UNKNOWN_NAME, span, "unknown name", help=help_, kinds=kinds, name=self.bag.source.slice(span)
        )

    def _is_result(self, expression: ast.Field) -> bool:
        """Return whether an unknown name stands before the name of an output, as in `result.total`."""
        scope = self.scope
        is_output = scope.in_postcondition and not scope.is_start and expression.name.text in scope.outputs
        return is_output and isinstance(expression.base, ast.Name) and scope.find(expression.base.text) is None

    def _property_help(self, expression: ast.Field, type_: Type) -> str | None:
        """Return the help for reading a field of a value that has none.

        For example `name.length` is a call in Vesper.
        """
        name = expression.name.text
        text = " ".join(self.bag.source.slice(expression.base.span).split())
        if type_ == JSON:
            found = self.scope.find(text) if isinstance(expression.base, ast.Name) else None
            is_step = found is not None and found.kind == "step"
            declared = f"declare its fields in the step `{text}`: `expect: {{{name}: string}}`; or " if is_step else ""
            return f"{declared}write `CAST({text} AS T)`, where `T` is a record type with `{name}`"
        if isinstance(type_, ArrayOf | SetOf) and isinstance(type_.element, Record) and type_.element.field(name):
            return f"that is a field of each item: write `[item.{name} FOR item IN {text}]`"
        meant = (name,) if by_function(name) else meant_functions(name)
        return f"only a record has fields: write `{meant[0]}({text})`" if meant else None

    def _recursive_field(self, base: ir.Expression, type_: Recursive, expression: ast.Field) -> ir.Expression | None:
        found = read_field(base, expression.name.text, self.place(expression.span))
        if found is None:
            help_ = did_you_mean(expression.name.text, [name for name, _ in type_.fields])
            kinds = f"no field of {type_}"
            self.bag.error(Code.UNKNOWN_NAME, expression.name.span, kinds=kinds, name=expression.name.text, help=help_)
            return None
        return self._narrow(found, expression)

    def _scoped_name(self, expression: ast.Field, kind: str) -> ir.Expression | None:
        """Check `input.x`, `output.x` or `error.x`."""
        name = expression.name
        declared = self.scope.member(kind, name.text)
        if declared is not None:
            return self._narrow(self._reference(declared, expression.span), expression)
        is_allowed = {"output": self.scope.in_postcondition, "error": self.scope.in_invariant}.get(kind, True)
        table = {"output": self.scope.outputs, "error": self.scope.errors}.get(kind, self.scope.names)
        names = [each for each, found in table.items() if found.kind == kind] if is_allowed else []
        kinds = (
            f"no {kind}"
            if is_allowed
            else f"outside {'postconditions' if kind == 'output' else 'invariants'} no {kind}"
        )
        help_ = did_you_mean(name.text, names)
        self.bag.error(Code.UNKNOWN_NAME, name.span, kinds=kinds, name=name.text, help=help_)
        return None

    # -- conditions -------------------------------------------------------------------------------

    def _if(self, expression: ast.If, expected: Type | None) -> ir.Expression | None:
        condition = self.check(expression.condition, BOOLEAN)
        with self.assuming(facts_when(expression.condition, True, self.scope)):
            then = self.infer(expression.then, expected)
        hint = expected if then is None or expected is not None else then.type
        with self.assuming(facts_when(expression.condition, False, self.scope)):
            otherwise = self.infer(expression.otherwise, hint)
        if condition is None or then is None or otherwise is None:
            return None
        then, otherwise = self._type_null(expected, then), self._type_null(expected, otherwise)
        branches = self.one_type(then, otherwise, expression.otherwise.span)
        if branches is None:
            return None
        return ir.If(condition, *branches, branches[0].type, self.place(expression.span))

    def one_type(
        self, first: ir.Expression, second: ir.Expression, span: Span
    ) -> tuple[ir.Expression, ir.Expression] | None:
        """Convert two alternatives to one type; report a difference at the second."""
        left = self.convert(first, second.type)
        if left is not None:
            return left, second
        if NULL in (first.type, second.type):
            wanted = optional(second.type if first.type == NULL else first.type)
            left, right = self.convert(first, wanted), self.convert(second, wanted)
            return None if left is None or right is None else (left, right)
        fitted = self.fit(second, first.type, span)
        return None if fitted is None else (first, fitted)

    def _type_null(self, expected: Type | None, found: ir.Expression) -> ir.Expression:
        """Give the `null` of a branch or body the expected optional type.

        The form around it stays, because another part may fail.
        """
        if found.type == NULL and isinstance(expected, OptionalOf):
            return ir.Literal(expected, None, found.place)
        return found

    def _logical(self, expression: ast.Infix) -> ir.Expression | None:
        """Check AND, OR and `=>`, where `a => b` is `NOT a OR b`.

        The right side is evaluated only where the left side did not decide, so facts of the left side hold there.
        """
        word = expression.operator.text
        left = self.check(expression.left, BOOLEAN)
        with self.assuming(facts_when(expression.left, word != "OR", self.scope)):
            right = self.check(expression.right, BOOLEAN)
        if left is None or right is None:
            return None
        place = self.place(expression.span)
        if word == "=>":
            left = ir.Call("boolean.not", (), (left,), BOOLEAN, left.place)
        return ir.Logical("and" if word == "AND" else "or", left, right, place)

    def _is_null(self, expression: ast.IsNull) -> ir.Expression | None:
        # Narrowing of the operand itself is removed, since its declared type decides; facts about its base still apply.
        outer = self.known
        path = path_of(expression.operand, self.scope)
        self.known = outer if path is None else outer - {path}
        operand = self.infer(expression.operand, None)
        self.known = outer
        if operand is None:
            return None
        if not isinstance(operand.type, OptionalOf):
            expected, help_ = "a value that may be null", never_null_help(operand.type)
            self.bag.error(
                Code.TYPE_MISMATCH, expression.operand.span, expected=expected, found=operand.type, help=help_
            )
            return None
        place = self.place(expression.span)
        op = "optional.is_not_null" if expression.is_negated else "optional.is_null"
        return ir.Call(op, (operand.type.inner,), (operand,), BOOLEAN, place)

    def _or_else(self, expression: ast.Infix, hint: Type | None) -> ir.Expression | None:
        """Check `a ?? b`: `a` is evaluated once, and `b` only where `a` is null."""
        left = self.infer(expression.left, None)
        if left is not None and left.type == NULL:
            left = self._null_like(left, expression.right, hint)
        if left is None:
            return None
        if not isinstance(left.type, OptionalOf):
            expected, help_ = "a value that may be null", never_null_help(left.type)
            self.bag.error(Code.TYPE_MISMATCH, expression.left.span, expected=expected, found=left.type, help=help_)
            return None
        right = self.infer(expression.right, hint if hint is not None else left.type.inner)
        if right is None:
            return None
        place = self.place(expression.span)
        if isinstance(left, ir.Ref | ir.Local):
            return self._unless_null(left, left.type.inner, right, expression)
        number = self.scope.local_count
        self.scope.local_count += 1
        local = ir.Local(number, "value", left.type, left.place)
        chosen = self._unless_null(local, left.type.inner, right, expression)
        return None if chosen is None else ir.Let(number, "value", left, chosen, place)

    def _null_like(self, null: ir.Expression, other: ast.Expression, hint: Type | None) -> ir.Expression | None:
        """Return the `null` of `null ?? 5` with the optional type of the other side."""
        if hint is None:
            # Only literals are inferred twice, so a chain of `??` stays linear in its length.
            found = self.infer(other, None) if isinstance(other, ast.Number | ast.String | ast.Boolean) else None
            if found is None:
                self.is_bare_null(null, other.span)
                return None
            hint = found.type
        return ir.Literal(optional(hint), None, null.place)

    def _unless_null(
        self, name: ir.Ref | ir.Local, inner: Type, right: ir.Expression, expression: ast.Infix
    ) -> ir.Expression | None:
        """Return `IF name IS NULL THEN right ELSE name`."""
        is_null = ir.Call("optional.is_null", (inner,), (name,), BOOLEAN, name.place)
        value = ir.Call("optional.unwrap", (inner,), (name,), inner, name.place)
        branches = self.one_type(value, right, expression.right.span)
        if branches is None:
            return None
        return ir.If(is_null, branches[1], branches[0], branches[0].type, self.place(expression.span))

    def _let(self, expression: ast.Let, expected: Type | None) -> ir.Expression | None:
        value = self.infer(expression.value, None)
        with self.scope.bind(expression.name, None if value is None else value.type, self.bag) as local:
            body = self.infer(expression.body, expected)
        if value is None or body is None or self.is_bare_null(value, expression.value.span):
            return None
        return ir.Let(local.number, local.name, value, self._type_null(expected, body), self.place(expression.span))

    # -- operators and functions ------------------------------------------------------------------

    def _prefix(self, expression: ast.Prefix, expected: Type | None) -> ir.Expression | None:
        operator = expression.operator.text
        if operator == "unary -" and isinstance(expression.operand, ast.Number):
            return self._negative_number(expression, expression.operand, expected)
        operand = self.infer(expression.operand, None)
        return None if operand is None else self.operation(expression.operator, (operand,), expression.span)

    def _negative_number(
        self, expression: ast.Prefix, number: ast.Number, expected: Type | None
    ) -> ir.Expression | None:
        """Check `-5` as one literal. The digits of the smallest integer alone are out of range."""
        is_integer = expected not in (DECIMAL, FLOAT) and number.text.isdigit()
        if is_integer and number.text.lstrip("0") == str(MAX_INTEGER + 1):
            return ir.Literal(INTEGER, -MAX_INTEGER - 1, self.place(expression.span))
        literal = self._number(number, expected)
        if literal is None:
            return None
        assert isinstance(literal, ir.Literal)
        # The text is parsed with its sign: a float has a negative zero, a decimal does not.
        negative = -int(number.text) if literal.type == INTEGER else value_from_text(literal.type, f"-{number.text}")
        return ir.Literal(literal.type, negative, self.place(expression.span))

    def _cast(self, expression: ast.Cast) -> ir.Expression | None:
        value = self.infer(expression.value, None)
        type_ = self._types.resolve(expression.type)
        if value is None or type_ is None:
            return None
        if value.type != JSON:
            self.bag.error(Code.TYPE_MISMATCH, expression.value.span, expected="json in CAST", found=value.type)
            return None
        place = self.place(expression.span)
        cast = ir.Call("json.cast", (type_,), (value,), type_, place)
        # Inside a constraint CAST checks only the structure, because the constraint may belong to the same type.
        if type_ == JSON or self._part is not None or not self._types.has_constraints(expression.type):
            return cast
        return self._require_constraints(cast, expression.type, place)

    def _require_constraints(self, cast: ir.Call, text: ast.TypeText, place: ir.Place) -> ir.Expression | None:
        """Return the result of a CAST, checked against its type's constraints. It fails with `bad_cast`."""
        from vesper.language.check.type_clauses import value_clauses  # which checks clauses with this very class

        number = self.fresh_local()
        found = ir.Local(number, "cast", cast.type, place)
        clauses = [clause.holds for clause in value_clauses(found, "value", text, self._types, self) if clause]
        if not clauses:
            return None
        inner = without_null(cast.type)
        null = ir.Literal(JSON, Json(None), place)
        # A JSON null is valid for optional types only, so this CAST fails whenever it is evaluated.
        refused = self.convert(ir.Call("json.cast", (inner,), (null,), inner, place), cast.type)
        assert refused is not None
        holds = reduce(lambda left, right: ir.Logical("and", left, right, place), clauses)
        return ir.Let(number, "cast", cast, ir.If(holds, found, refused, cast.type, place), place)


def _holder_of(name: str, visible: Sequence[Declared]) -> Declared | None:
    """Return the only visible record with a field of this name."""
    found = [each for each in visible if isinstance(each.type, Record) and each.type.field(name) is not None]
    return found[0] if len(found) == 1 else None


def _help_for_member(word: str, members: tuple[str, ...]) -> str | None:
    """Return the help for a member in another spelling, such as `ROUND_HALF_UP` for `half_up`."""
    lower = word.lower().replace("-", "_")
    meant = [each for each in members if lower == each.lower() or lower.endswith(f"_{each.lower()}")]
    return f"write `{max(meant, key=len)}`" if meant else None


def _list_members(members: tuple[str, ...]) -> str:
    shown = ", ".join(f"`{each}`" for each in members[:10])
    return f"the members are {shown}" + (" and others" if len(members) > 10 else "")
