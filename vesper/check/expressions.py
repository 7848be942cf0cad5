"""Does every expression have exactly one type? In: an expression of the AST. Out: the same as typed IR.

Operators become operations here, by the declared types of `schemas/ops`; an integer that meets a decimal is converted
in plain sight (`decimal.from_integer`). An expression that is wrong gives None, and nothing is reported about what it
is part of.
"""

from __future__ import annotations

from vesper.check.scope import Declared, Scope
from vesper.diagnostics.codes import Code
from vesper.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.diagnostics.source import SourceFile, Span
from vesper.diagnostics.suggest import did_you_mean, suggestions
from vesper.ir import nodes as ir
from vesper.spec.operation import OpSpec
from vesper.spec.operations import OPERATIONS
from vesper.spec.types import (
    BOOLEAN,
    DECIMAL,
    INTEGER,
    STRING,
    Enum,
    SetOf,
    Type,
    fits_bound,
    match_parameter,
    substitute,
)
from vesper.spec.values import MAX_INTEGER, ValueProblem, parse_decimal
from vesper.syntax import ast


def place_of(source: SourceFile, span: Span) -> ir.Place:
    return ir.Place(*source.position(span.start), *source.position(span.end))


def _operations_by_operator() -> dict[str, list[OpSpec]]:
    table: dict[str, list[OpSpec]] = {}
    for spec in OPERATIONS.values():
        if spec.operator is not None:
            table.setdefault(spec.operator, []).append(spec)
    return table


_BY_OPERATOR = _operations_by_operator()


class ExpressionChecker:
    """Checks expressions of one node; the scope changes as the node's steps go by."""

    def __init__(self, scope: Scope, bag: DiagnosticBag) -> None:
        self._scope = scope
        self._bag = bag

    def check(self, expression: ast.Expression, expected: Type) -> ir.Expression | None:
        """The expression as a value of the expected type."""
        found = self.infer(expression, expected)
        return None if found is None else self.fit(found, expected, expression.span)

    def fit(self, found: ir.Expression, expected: Type, span: Span) -> ir.Expression | None:
        """A value where another type may be expected: equal types fit, an integer becomes a decimal."""
        if found.type == expected:
            return found
        if found.type == INTEGER and expected == DECIMAL:
            return self._to_decimal(found)
        self._bag.error(Code.TYPE_MISMATCH, span, f"this is {found.type}", expected=expected, found=found.type)
        return None

    def infer(self, expression: ast.Expression, expected: Type | None) -> ir.Expression | None:
        """The expression with the type it has. What is expected only decides what literals and bare words mean."""
        match expression:
            case ast.Number():
                return self._number(expression, expected)
            case ast.String():
                return self._string(expression, expected)
            case ast.Boolean():
                return ir.Literal(BOOLEAN, expression.value, self._place(expression.span))
            case ast.Name():
                return self._name(expression, expected)
            case ast.Member():
                return self._member(expression)
            case ast.If():
                return self._if(expression, expected)
            case ast.Prefix():
                return self._prefix(expression, expected)
            case ast.Infix(operator=ast.Word(text="AND" | "OR")):
                return self._logical(expression)
            case ast.Infix():
                return self._infix(expression)

    def _place(self, span: Span) -> ir.Place:
        return place_of(self._bag.source, span)

    # -- literals and names -----------------------------------------------------------------------

    def _number(self, expression: ast.Number, expected: Type | None) -> ir.Expression | None:
        place = self._place(expression.span)
        if "." in expression.text or expected == DECIMAL:
            try:
                return ir.Literal(DECIMAL, parse_decimal(expression.text), place)
            except ValueProblem:
                problem = "has more than 1,000 digits or places"
        elif len(digits := expression.text.lstrip("0")) <= 19 and int(digits or "0") <= MAX_INTEGER:
            return ir.Literal(INTEGER, int(digits or "0"), place)
        else:
            problem = "does not fit 64 bits"
        self._bag.error(Code.BAD_NUMBER, expression.span, text=expression.text, problem=problem)
        return None

    def _string(self, expression: ast.String, expected: Type | None) -> ir.Expression | None:
        place = self._place(expression.span)
        if not isinstance(expected, Enum):
            return ir.Literal(STRING, expression.text, place)
        if expression.text in expected.members:
            return ir.Literal(expected, expression.text, place)
        help_ = did_you_mean(expression.text, expected.members)
        self._bag.error(Code.NOT_A_MEMBER, expression.span, name=expression.text, type=expected, help=help_)
        return None

    def _name(self, expression: ast.Name, expected: Type | None) -> ir.Expression | None:
        declared = self._scope.find(expression.text)
        is_member = isinstance(expected, Enum) and expression.text in expected.members
        if declared is not None and is_member:
            also = (Label(declared.span, f"{declared.describe()} is declared here"),)
            help_ = f"write `'{expression.text}'` for the member"
            self._bag.error(
                Code.AMBIGUOUS_WORD, expression.span, also=also, help=help_,
                name=expression.text, one=declared.describe(),
            )  # fmt: skip
            return None
        if declared is not None:
            return self._reference(declared, expression.span)
        if is_member:
            assert expected is not None
            return ir.Literal(expected, expression.text, self._place(expression.span))
        self._unknown(expression, expected)
        return None

    def _member(self, expression: ast.Member) -> ir.Expression | None:
        scope, name = expression.scope.text, expression.name.text
        if scope not in ("input", "output"):
            what = "a field of a value"
            self._bag.error(Code.NOT_IN_THIS_VERSION, expression.span, what=what)
            return None
        declared = self._scope.member(scope, name)
        if declared is None:
            table = self._scope.outputs if scope == "output" else self._scope.names
            names = [n for n, d in table.items() if d.kind == scope] if self._may_use(scope) else []
            kinds = f"no {scope}" if self._may_use(scope) else "outside postconditions no output"
            help_ = did_you_mean(name, names)
            self._bag.error(Code.UNKNOWN_NAME, expression.name.span, kinds=kinds, name=name, help=help_)
            return None
        return self._reference(declared, expression.span)

    def _may_use(self, scope: str) -> bool:
        return scope == "input" or self._scope.in_postcondition

    def _reference(self, declared: Declared, span: Span) -> ir.Expression | None:
        declared.used = True
        if declared.type is None:
            return None
        return ir.Ref(declared.kind, declared.name, declared.type, self._place(span))

    def _unknown(self, word: ast.Name, expected: Type | None) -> None:
        visible = {each.name: each for each in self._scope.visible()}
        kinds, candidates = self._scope.kinds(), [*visible]
        if isinstance(expected, Enum):
            kinds += f" is, and no member of {expected}"
            candidates += expected.members
        close_names = suggestions(word.text, candidates)
        close = next((visible[name] for name in close_names if name in visible), None)
        also = () if close is None else (Label(close.span, f"`{close.name}` is declared here"),)
        help_ = did_you_mean(word.text, close_names)
        self._bag.error(
            Code.UNKNOWN_NAME, word.span, "unknown name", also=also, help=help_, kinds=kinds, name=word.text
        )

    # -- operators --------------------------------------------------------------------------------

    def _if(self, expression: ast.If, expected: Type | None) -> ir.Expression | None:
        condition = self.check(expression.condition, BOOLEAN)
        branches = self._same_type(expression.then, expression.otherwise, expected)
        if condition is None or branches is None:
            return None
        return ir.If(condition, *branches, branches[0].type, self._place(expression.span))

    def _same_type(
        self, left: ast.Expression, right: ast.Expression, expected: Type | None
    ) -> tuple[ir.Expression, ir.Expression] | None:
        """Two alternatives brought to one type."""
        first = self.infer(left, expected)
        hint = expected if first is None or expected is not None else first.type
        second = self.infer(right, hint)
        if first is None or second is None:
            return None
        if first.type == INTEGER and second.type == DECIMAL:
            return self._to_decimal(first), second
        fitted = self.fit(second, first.type, right.span)
        return None if fitted is None else (first, fitted)

    def _logical(self, expression: ast.Infix) -> ir.Expression | None:
        left, right = self.check(expression.left, BOOLEAN), self.check(expression.right, BOOLEAN)
        if left is None or right is None:
            return None
        return ir.Logical(expression.operator.text.lower(), left, right, self._place(expression.span))

    def _prefix(self, expression: ast.Prefix, expected: Type | None) -> ir.Expression | None:
        operator = expression.operator.text
        if operator == "unary -" and isinstance(expression.operand, ast.Number):
            return self._negative_number(expression, expression.operand, expected)
        operand = self.infer(expression.operand, None)
        return None if operand is None else self._call(expression.operator, (operand,), expression.span)

    def _negative_number(
        self, expression: ast.Prefix, number: ast.Number, expected: Type | None
    ) -> ir.Expression | None:
        """`-5` is a literal, so that the smallest integer can be written; its digits alone do not fit."""
        if "." not in number.text and expected != DECIMAL and number.text.lstrip("0") == str(MAX_INTEGER + 1):
            return ir.Literal(INTEGER, -MAX_INTEGER - 1, self._place(expression.span))
        literal = self._number(number, expected)
        if literal is None:
            return None
        assert isinstance(literal, ir.Literal)
        assert not isinstance(literal.value, str | frozenset)
        negative = parse_decimal(f"-{literal.value:f}") if literal.type == DECIMAL else -literal.value
        return ir.Literal(literal.type, negative, self._place(expression.span))

    def _infix(self, expression: ast.Infix) -> ir.Expression | None:
        """Each operand says what a literal or a bare word on the other side means; the place around them does not.

        So `qty * 2` is one operation on integers wherever it stands, and only its result becomes a decimal.
        """
        if self._is_open(expression.left) and not self._is_open(expression.right):
            right = self.infer(expression.right, None)
            left = None if right is None else self.infer(expression.left, _hint_from(right))
        else:
            left = self.infer(expression.left, None)
            right = None if left is None else self.infer(expression.right, _hint_from(left))
        if left is None or right is None:
            return None
        return self._call(expression.operator, (left, right), expression.span)

    def _is_open(self, expression: ast.Expression) -> bool:
        """True for what may need the other side to know its type: a literal, or a word that is nobody's name."""
        if isinstance(expression, ast.Name):
            return self._scope.find(expression.text) is None
        if isinstance(expression, ast.Prefix):
            return self._is_open(expression.operand)
        return isinstance(expression, ast.String | ast.Number)

    def _call(self, operator: ast.Word, operands: tuple[ir.Expression, ...], span: Span) -> ir.Expression | None:
        call = self._exact_call(operator.text, operands, span)
        if call is None and any(operand.type == INTEGER for operand in operands):
            call = self._exact_call(operator.text, tuple(self._promoted(operand) for operand in operands), span)
        if call is not None:
            return call
        types = " and ".join(str(operand.type) for operand in operands)
        sign = operator.text.removeprefix("unary ")
        self._bag.error(Code.OPERATOR_TYPES, operator.span, f"between {types}" if len(operands) > 1 else "",
                        operator=sign, types=types)  # fmt: skip
        return None

    def _exact_call(self, operator: str, operands: tuple[ir.Expression, ...], span: Span) -> ir.Call | None:
        calls = (self._instance(spec, operands, span) for spec in _BY_OPERATOR[operator])
        return next((call for call in calls if call is not None), None)

    def _instance(self, spec: OpSpec, operands: tuple[ir.Expression, ...], span: Span) -> ir.Call | None:
        """The call of this operation on these operands, where its types fit exactly."""
        bindings: dict[str, Type] = {}
        if len(spec.params) != len(operands):
            return None
        for (_, pattern), operand in zip(spec.params, operands, strict=True):
            if not match_parameter(pattern, operand.type, bindings):
                return None
        if not all(fits_bound(bindings[name], bound) for name, bound in spec.type_params):
            return None
        of = tuple(bindings[name] for name, _ in spec.type_params)
        return ir.Call(spec.name, of, operands, substitute(spec.returns, bindings), self._place(span))

    def _promoted(self, operand: ir.Expression) -> ir.Expression:
        return self._to_decimal(operand) if operand.type == INTEGER else operand

    def _to_decimal(self, operand: ir.Expression) -> ir.Expression:
        if isinstance(operand, ir.Literal) and isinstance(operand.value, int):
            return ir.Literal(DECIMAL, parse_decimal(str(operand.value)), operand.place)
        return ir.Call("decimal.from_integer", (), (operand,), DECIMAL, operand.place)


def _hint_from(other: ir.Expression) -> Type | None:
    """What one operand says about the other; a set says it of its members."""
    type_ = other.type.element if isinstance(other.type, SetOf) else other.type
    return type_ if isinstance(type_, Enum) or type_ == DECIMAL else None
