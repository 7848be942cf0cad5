"""IR expressions to Python expressions: operations by their spelling or their kernel, parentheses where Python needs
them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import libcst as cst

from vesper.codegen.naming import Naming, kernel_name
from vesper.codegen.ranges import cannot_overflow
from vesper.codegen.spelling import CHECKED, SPELLINGS, Function, Infix, Prefix
from vesper.ir import nodes as ir
from vesper.spec.operations import OPERATIONS
from vesper.spec.types import SetOf
from vesper.spec.values import Value, ordered

# How tight each form binds, loosest first; what stands inside a tighter form gets parentheses.
TERNARY, OR, AND, NOT, COMPARISON, SUM, PRODUCT, SIGN, ATOM = range(9)

_BINARY: dict[str, tuple[cst.BaseBinaryOp, int]] = {
    "+": (cst.Add(), SUM),
    "-": (cst.Subtract(), SUM),
    "*": (cst.Multiply(), PRODUCT),
}
_COMPARE: dict[str, cst.BaseCompOp] = {
    "==": cst.Equal(),
    "!=": cst.NotEqual(),
    "<": cst.LessThan(),
    "<=": cst.LessThanEqual(),
    ">": cst.GreaterThan(),
    ">=": cst.GreaterThanEqual(),
    "in": cst.In(),
}


@dataclass(frozen=True, slots=True)
class Written:
    """A Python expression and how tight it binds."""

    node: cst.BaseExpression
    binds: int


class ExpressionWriter:
    """Writes the expressions of one function and remembers what must be known about them."""

    def __init__(self, naming: Naming, traced: bool) -> None:
        self._naming = naming
        self._traced = traced
        self.decimals: dict[str, Decimal] = {}
        """Decimal literals by the name that the module gives them."""
        self.kernels: set[str] = set()
        """Operations that are written as a call of their kernel."""
        self.sites: dict[cst.BaseExpression, int] = {}
        """Python expressions that can fail, with the index of the IR expression they stand for."""

    def write(self, expression: ir.Expression) -> Written:
        match expression:
            case ir.Literal():
                return self.value(expression.value, expression)
            case ir.Ref():
                return Written(cst.Name(self._naming.name(expression.kind, expression.name)), ATOM)
            case ir.Logical():
                return self._logical(expression)
            case ir.If():
                return self._ternary(expression)
            case ir.Call():
                return self._call(expression)

    def marked(self, expression: ir.Expression, written: Written) -> Written:
        """In the traced form, the expression inside `mark(index, …)`."""
        if not self._traced:
            return written
        arguments = [cst.Arg(cst.Integer(str(expression.index))), cst.Arg(written.node)]
        return Written(cst.Call(cst.Name("mark"), arguments), ATOM)

    def condition(self, expression: ir.Expression) -> Written:
        return self.marked(expression, self.write(expression))

    def value(self, value: Value, of: ir.Literal | ir.Constant) -> Written:
        """A literal value; decimals are named once for the module, so that no call builds them again."""
        if isinstance(value, bool):
            return Written(cst.Name(str(value)), ATOM)
        if isinstance(value, int):
            digits = cst.Integer(str(abs(value)))
            return Written(digits, ATOM) if value >= 0 else Written(cst.UnaryOperation(cst.Minus(), digits), SIGN)
        if isinstance(value, Decimal):
            name = self._naming.decimal(value)
            self.decimals[name] = value
            return Written(cst.Name(name), ATOM)
        if isinstance(value, frozenset):
            assert isinstance(of.type, SetOf)
            members = [cst.Element(self.value(member, of).node) for member in ordered(of.type, value)]
            inner = [cst.Arg(cst.Set(members))] if members else []
            return Written(cst.Call(cst.Name("frozenset"), inner), ATOM)
        return Written(cst.SimpleString(string_literal(value)), ATOM)

    # -- forms ------------------------------------------------------------------------------------

    def _logical(self, expression: ir.Logical) -> Written:
        binds, operator = (AND, cst.And()) if expression.kind == "and" else (OR, cst.Or())
        left, right = self._inside(expression.left, binds), self._inside(expression.right, binds + 1)
        return Written(cst.BooleanOperation(left, operator, right), binds)

    def _ternary(self, expression: ir.If) -> Written:
        test = _in_parentheses(self.condition(expression.condition), OR)
        then = self._inside(expression.then, OR)
        otherwise = self._inside(expression.otherwise, TERNARY)
        return Written(cst.IfExp(test=test, body=then, orelse=otherwise), TERNARY)

    def _call(self, call: ir.Call) -> Written:
        spelling = SPELLINGS.get(call.op)
        match spelling:
            case Infix(sign) if sign in _COMPARE:
                # SEMANTICS: Python chains comparisons; one inside another always gets parentheses.
                left, right = (self._inside(argument, SUM) for argument in call.args)
                comparison = cst.Comparison(left, [cst.ComparisonTarget(_COMPARE[sign], right)])
                written = Written(comparison, COMPARISON)
            case Infix(sign):
                operator, binds = _BINARY[sign]
                left = self._inside(call.args[0], binds)
                right = self._inside(call.args[1], binds + 1)
                written = Written(cst.BinaryOperation(left, operator, right), binds)
            case Prefix("not"):
                written = Written(cst.UnaryOperation(cst.Not(), self._inside(call.args[0], NOT)), NOT)
            case Prefix():
                written = Written(cst.UnaryOperation(cst.Minus(), self._inside(call.args[0], SIGN)), SIGN)
            case Function(name):
                written = self._function(name, call)
            case _:
                self.kernels.add(call.op)
                written = self._function(kernel_name(call.op), call)
        if call.op in CHECKED and not cannot_overflow(call):
            written = Written(cst.Call(cst.Name("checked"), [cst.Arg(written.node)]), ATOM)
        if OPERATIONS[call.op].raises:
            self.sites[written.node] = call.index
        return written

    def _function(self, name: str, call: ir.Call) -> Written:
        arguments = [cst.Arg(self.write(argument).node) for argument in call.args]
        return Written(cst.Call(cst.Name(name), arguments), ATOM)

    def _inside(self, expression: ir.Expression, binds: int) -> cst.BaseExpression:
        """The operand of a form that binds this tight."""
        written = self.write(expression)
        wrapped = _in_parentheses(written, binds)
        self.moved(written.node, wrapped)
        return wrapped

    def moved(self, old: cst.BaseExpression, new: cst.BaseExpression) -> None:
        """An expression was replaced by one that only looks different; its site goes with it."""
        if old in self.sites:
            self.sites[new] = self.sites.pop(old)


def string_literal(text: str) -> str:
    """A Python string that is on one line and shows what it holds; what cannot be seen is escaped."""
    quoted = "".join(
        {"\\": "\\\\", '"': '\\"'}.get(c, c) if c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )
    return f'"{quoted}"'


def _in_parentheses(written: Written, binds: int) -> cst.BaseExpression:
    if written.binds >= binds:
        return written.node
    return written.node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
