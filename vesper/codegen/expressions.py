"""IR expressions to Python expressions: operations by their spelling or their kernel, parentheses where Python needs
them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import libcst as cst

from vesper.codegen.layout.python_expression import (
    AND,
    ATOM,
    BITS,
    COMPARISON,
    EQUAL,
    NOT,
    OR,
    PRODUCT,
    SIGN,
    SUM,
    TERNARY,
    Written,
    in_parentheses,
    negated,
    string_literal,
)
from vesper.codegen.loops import LoopWriter, members_of
from vesper.codegen.metering import Metering
from vesper.codegen.naming import Naming, kernel_name
from vesper.codegen.negative_zero import may_be_negative_zero
from vesper.codegen.ranges import cannot_overflow
from vesper.codegen.scalars import scalar_literal
from vesper.codegen.spelling import (
    BY_EQUALITY,
    BY_ORDER,
    BY_TYPE,
    CHECKED,
    EQUALITIES,
    SPELLINGS,
    Function,
    Infix,
    IsNone,
    Item,
    Itself,
    Prefix,
    Spelling,
    has_plain_equality,
)
from vesper.codegen.types import TypeWriter, has_plain_fields
from vesper.language.ir import nodes as ir
from vesper.values.generated.operations import OPERATIONS
from vesper.values.model import Value, in_order
from vesper.values.types import (
    DECIMAL,
    ArrayOf,
    Enum,
    MapOf,
    Record,
    SetOf,
    Type,
    type_text,
    without_null,
)

_BINARY: dict[str, tuple[cst.BaseBinaryOp, int]] = {
    "+": (cst.Add(), SUM),
    "-": (cst.Subtract(), SUM),
    "*": (cst.Multiply(), PRODUCT),
    "&": (cst.BitAnd(), BITS),
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


class ExpressionWriter(LoopWriter):
    """Writes the expressions of one function and remembers what must be known about them."""

    def __init__(self, naming: Naming, types: TypeWriter, traced: bool, metering: Metering) -> None:
        self.naming = naming
        self._types = types
        self.traced = traced
        self.metering = metering
        self._atoms: dict[int, ir.Expression] = {}
        """Locals that are another name for a name or a literal, with what they stand for."""
        self.decimals: dict[str, Decimal] = {}
        """Decimal literals by the name that the module gives them."""
        self.kernels: set[str] = set()
        """Operations that are written as a call of their kernel."""
        self.sites: dict[cst.BaseExpression, int] = {}
        """Python expressions that can fail, with the index of the IR expression they stand for."""
        self.ends: dict[cst.BaseExpression, int] = {}
        """Statements that end the node with a broken clause or an error, with the line of the node they stand for."""

    def write(self, expression: ir.Expression) -> Written:
        match expression:
            case ir.Literal():
                return self.value(expression.value, expression)
            case ir.Ref():
                return Written(cst.Name(self.naming.name(expression.kind, expression.name)), ATOM)
            case ir.Logical():
                return self._logical(expression)
            case ir.If():
                return self._ternary(expression)
            case ir.Call():
                return self._call(expression)
            case ir.Local():
                if expression.number in self._atoms:
                    return self.write(self._atoms[expression.number])
                return Written(cst.Name(self.naming.local(expression.number, expression.name)), ATOM)
            case ir.Let():
                return self._let(expression)
            case ir.For():
                return self.loop(expression)
            case ir.Array():
                items = [cst.Element(self.stored(item).node) for item in expression.items]
                return Written(cst.List(items), ATOM)
            case ir.RecordValue():
                return self.made(expression.type, [(name, self.stored(value)) for name, value in expression.fields])
            case ir.Field():
                base = self.inside(expression.of, ATOM)
                return Written(_item(base, cst.SimpleString(string_literal(expression.name))), ATOM)
            case ir.Now():
                return Written(cst.Name("now"), ATOM)
            case ir.Result():
                raise AssertionError("a result stands only where its statement names it")

    def stored(self, expression: ir.Expression) -> Written:
        """A value as a name, a collection or a record may hold it: zero has no sign."""
        written = self.write(expression)
        if without_null(expression.type) == DECIMAL and may_be_negative_zero(expression):
            return Written(cst.Call(cst.Name("unsigned_zero"), [cst.Arg(written.node)]), ATOM)
        return written

    def made(self, type_: Type, entries: Sequence[tuple[str, Written]]) -> Written:
        """A record by its class, so that readers and type checkers know what it is: `Plan(total=total)`."""
        assert isinstance(type_, Record)
        arguments = [cst.Arg(self.record(entries))]
        if has_plain_fields(type_):
            arguments = [cst.Arg(each.node, keyword=cst.Name(name), equal=EQUAL) for name, each in entries]
        return Written(cst.Call(cst.Name(self._types.record(type_)), arguments), ATOM)

    def plain(self, expression: ir.Expression) -> Written:
        """A value for which only its shape matters, not the names of its types: records are dicts."""
        match expression:
            case ir.RecordValue(fields=fields):
                return Written(self.record([(name, self.plain(value)) for name, value in fields]), ATOM)
            case ir.Array(items=items):
                return Written(cst.List([cst.Element(self.plain(item).node) for item in items]), ATOM)
            case ir.Call(op="optional.some", args=(value,)):
                return self.plain(value)
            case _:
                return self.stored(expression)

    def record(self, entries: Sequence[tuple[str, Written]]) -> cst.Dict:
        return cst.Dict([cst.DictElement(cst.SimpleString(string_literal(key)), each.node) for key, each in entries])

    def marked(self, expression: ir.Expression, written: Written) -> Written:
        """In the traced form, the expression inside `mark(index, …)`."""
        if not self.traced:
            return written
        arguments = [cst.Arg(cst.Integer(str(expression.index))), cst.Arg(written.node)]
        return Written(cst.Call(cst.Name("mark"), arguments), ATOM)

    def condition(self, expression: ir.Expression) -> Written:
        return self.marked(expression, self.write(expression))

    def opposite(self, written: Written) -> Written:
        opposite = negated(written)
        node = opposite.node
        if isinstance(node, cst.UnaryOperation):
            self.moved(written.node, node.expression)
        return opposite

    def value(self, value: Value, of: ir.Literal | ir.Constant) -> Written:
        """A literal value; decimals are named once for the module, so that no call builds them again."""
        return self.literal(of.type, value)

    def literal(self, type_: Type, value: Value) -> Written:
        if value is None:
            return Written(cst.Name("None"), ATOM)
        if isinstance(value, bool):
            return Written(cst.Name(str(value)), ATOM)
        if isinstance(value, int):
            digits = cst.Integer(str(abs(value)))
            return Written(digits, ATOM) if value >= 0 else Written(cst.UnaryOperation(cst.Minus(), digits), SIGN)
        if isinstance(value, Decimal):
            name = self.naming.decimal(value)
            self.decimals[name] = value
            return Written(cst.Name(name), ATOM)
        if isinstance(value, str):
            return Written(cst.SimpleString(string_literal(value)), ATOM)
        scalar = scalar_literal(value)
        if scalar is not None:
            return Written(scalar, SIGN if isinstance(scalar, cst.UnaryOperation) else ATOM)
        return Written(self._collection_literal(without_null(type_), value), ATOM)

    def _collection_literal(self, type_: Type, value: Value) -> cst.BaseExpression:
        match type_, value:
            case SetOf(element), frozenset():
                members = [cst.Element(self.literal(element, each).node) for each in in_order(element, value)]
                return cst.Call(cst.Name("frozenset"), [cst.Arg(cst.Set(members))] if members else [])
            case ArrayOf(element), list():
                return cst.List([cst.Element(self.literal(element, each).node) for each in value])
            case MapOf(key, of), dict():
                return cst.Dict(
                    [
                        cst.DictElement(self.literal(key, each).node, self.literal(of, found).node)
                        for each, found in value.items()
                    ]
                )
            case Record(fields), dict():
                return self.record([(name, self.literal(field, value[name])) for name, field in fields])
            case _:
                raise AssertionError(f"{value!r} is no {type_}")

    # -- forms ------------------------------------------------------------------------------------

    def _logical(self, expression: ir.Logical) -> Written:
        binds, operator = (AND, cst.And()) if expression.kind == "and" else (OR, cst.Or())
        # Python would need no parentheses around an `and` in an `or`; people do.
        tight = NOT if expression.kind == "or" else binds
        left = self.inside(expression.left, tight if _is_and(expression.left) else binds)
        right = self.inside(expression.right, tight if _is_and(expression.right) else binds + 1)
        return Written(cst.BooleanOperation(left, operator, right), binds)

    def _ternary(self, expression: ir.If) -> Written:
        test = in_parentheses(self.condition(expression.condition), OR)
        then = self.inside(expression.then, OR)
        otherwise = self.inside(expression.otherwise, TERNARY)
        return Written(cst.IfExp(test=test, body=then, orelse=otherwise), TERNARY)

    def _call(self, call: ir.Call) -> Written:
        spelling: Spelling | None = SPELLINGS.get(call.op)
        is_plain = all(has_plain_equality(type_) for type_ in call.of)
        if call.op in EQUALITIES and is_plain:
            spelling = EQUALITIES[call.op]
        if call.op in BY_EQUALITY and not is_plain:
            spelling = None
        if call.op in ("optional.equal", "optional.not_equal") and _is_null(call.args[-1]):
            spelling = IsNone(is_negated=call.op == "optional.not_equal")
        match spelling:
            case Infix(sign) if sign in _COMPARE:
                # SEMANTICS: Python chains comparisons; one inside another always gets parentheses.
                left, right = (self.inside(argument, SUM) for argument in _operands(call))
                comparison = cst.Comparison(left, [cst.ComparisonTarget(_COMPARE[sign], right)])
                written = Written(comparison, COMPARISON)
            case Infix(sign):
                operator, binds = _BINARY[sign]
                first, second = _operands(call)
                left = self.inside(first, binds)
                right = self.inside(second, binds + 1)
                written = Written(cst.BinaryOperation(left, operator, right), binds)
            case Prefix("not"):
                written = self.opposite(self.write(call.args[0]))
            case Prefix():
                written = Written(cst.UnaryOperation(cst.Minus(), self.inside(call.args[0], SIGN)), SIGN)
            case Itself():
                return self.write(call.args[0])
            case Item():
                entries, key = self.inside(call.args[0], ATOM), self.stored(call.args[1]).node
                written = Written(_item(entries, key), ATOM)
            case IsNone(is_negated):
                operand = self.inside(call.args[0], SUM)
                asks = cst.IsNot() if is_negated else cst.Is()
                comparison = cst.Comparison(operand, [cst.ComparisonTarget(asks, cst.Name("None"))])
                written = Written(comparison, COMPARISON)
            case Function(name):
                written = self._function(name, call)
            case _:
                self.kernels.add(call.op)
                written = self._function(kernel_name(call.op), call, *_told(call))
        if call.op in CHECKED and not cannot_overflow(call):
            written = Written(cst.Call(cst.Name("checked"), [cst.Arg(written.node)]), ATOM)
        if OPERATIONS[call.op].raises:
            self.sites[written.node] = call.index
        return written

    # -- names bound on the way, and loops ---------------------------------------------------------

    def is_atom(self, let: ir.Let) -> bool:
        """True for a name that is bound to a name or a literal: Python can write that itself wherever it is used."""
        value = let.value
        while True:  # a field of one is as good: it holds what it holds; and so is what is known not to be null
            if isinstance(value, ir.Field):
                value = value.of
            elif isinstance(value, ir.Call) and isinstance(SPELLINGS.get(value.op), Itself):
                (value,) = value.args
            else:
                break
        is_atom = isinstance(value, ir.Ref | ir.Local) or (
            isinstance(value, ir.Literal) and isinstance(value.value, bool | int | Decimal | str)
        )
        if is_atom:
            self._atoms[let.local] = let.value
        return is_atom

    def _let(self, let: ir.Let) -> Written:
        """`[body for name in [value]][0]`: Python has no shorter expression that evaluates a value first and once."""
        if self.is_atom(let):
            return self.write(let.body)
        target = cst.Name(self.naming.local(let.local, let.name))
        value = cst.List([cst.Element(self.stored(let.value).node)])
        loop = cst.CompFor(target=target, iter=value)
        return Written(_item(cst.ListComp(self.write(let.body).node, loop), cst.Integer("0")), ATOM)

    def _function(self, name: str, call: ir.Call, *more: cst.BaseExpression) -> Written:
        # A kernel may give an argument back or put it in a collection, so it takes what could be stored.
        written = self.plain if call.op in BY_TYPE else self.stored
        arguments = [*(written(argument).node for argument in call.args), *more]
        return Written(cst.Call(cst.Name(name), [cst.Arg(argument) for argument in arguments]), ATOM)

    def inside(self, expression: ir.Expression, binds: int) -> cst.BaseExpression:
        """The operand of a form that binds this tight."""
        written = self.write(expression)
        wrapped = in_parentheses(written, binds)
        self.moved(written.node, wrapped)
        return wrapped

    def moved(self, old: cst.BaseExpression, new: cst.BaseExpression) -> None:
        """An expression was replaced by one that only looks different; its site goes with it."""
        if old in self.sites:
            self.sites[new] = self.sites.pop(old)


def _is_and(expression: ir.Expression) -> bool:
    return isinstance(expression, ir.Logical) and expression.kind == "and"


def _operands(call: ir.Call) -> tuple[ir.Expression, ...]:
    """The operands of an infix operator. Beside a `Decimal` Python takes an `int` for exactly that number."""
    bare = [
        each.args[0] if isinstance(each, ir.Call) and each.op == "decimal.from_integer" else each for each in call.args
    ]
    is_changed = [new is not old for new, old in zip(bare, call.args, strict=True)]
    return call.args if all(is_changed) or not call.op.startswith("decimal.") else tuple(bare)


def _is_null(expression: ir.Expression) -> bool:
    return isinstance(expression, ir.Literal) and expression.value is None


def _told(call: ir.Call) -> list[cst.BaseExpression]:
    """What a kernel must be told of its types: the members of the enum by whose order it goes, or a type as text."""
    if call.op in BY_TYPE:
        return [cst.SimpleString(string_literal(type_text(call.of[0])))]
    match call.of:
        case (Enum() as enum, *_) if call.op in BY_ORDER:
            return [members_of(enum)]
        case _:
            return []


def _item(base: cst.BaseExpression, index: cst.BaseExpression) -> cst.Subscript:
    return cst.Subscript(base, [cst.SubscriptElement(cst.Index(index))])
