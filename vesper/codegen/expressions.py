"""IR expressions to Python expressions: operations by their spelling or their kernel, parentheses where Python needs
them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import libcst as cst

from vesper.codegen.naming import Naming, kernel_name
from vesper.codegen.negative_zero import may_be_negative_zero
from vesper.codegen.ranges import cannot_overflow
from vesper.codegen.scalars import scalar_literal, string_literal
from vesper.codegen.spelling import (
    BY_EQUALITY,
    BY_ORDER,
    BY_TYPE,
    CHECKED,
    SPELLINGS,
    Function,
    Infix,
    IsNone,
    Itself,
    Prefix,
)
from vesper.ir import nodes as ir
from vesper.spec.operations import OPERATIONS
from vesper.spec.types import (
    DECIMAL,
    FLOAT,
    ArrayOf,
    Enum,
    MapOf,
    Record,
    SetOf,
    Type,
    mentions,
    type_text,
    without_null,
)
from vesper.spec.values import Value, in_order

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
        self.traced = traced
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
            case ir.Local():
                return Written(cst.Name(self._naming.local(expression.number, expression.name)), ATOM)
            case ir.Let():
                return self._let(expression)
            case ir.For():
                return self._for(expression)
            case ir.Array():
                items = [cst.Element(self.stored(item).node) for item in expression.items]
                return Written(cst.List(items), ATOM)
            case ir.RecordValue():
                return Written(self.record([(name, self.stored(value)) for name, value in expression.fields]), ATOM)
            case ir.Field():
                base = self._inside(expression.of, ATOM)
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

    def value(self, value: Value, of: ir.Literal | ir.Constant) -> Written:
        """A literal value; decimals are named once for the module, so that no call builds them again."""
        return self._literal(of.type, value)

    def _literal(self, type_: Type, value: Value) -> Written:
        if value is None:
            return Written(cst.Name("None"), ATOM)
        if isinstance(value, bool):
            return Written(cst.Name(str(value)), ATOM)
        if isinstance(value, int):
            digits = cst.Integer(str(abs(value)))
            return Written(digits, ATOM) if value >= 0 else Written(cst.UnaryOperation(cst.Minus(), digits), SIGN)
        if isinstance(value, Decimal):
            name = self._naming.decimal(value)
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
                members = [cst.Element(self._literal(element, each).node) for each in in_order(element, value)]
                return cst.Call(cst.Name("frozenset"), [cst.Arg(cst.Set(members))] if members else [])
            case ArrayOf(element), list():
                return cst.List([cst.Element(self._literal(element, each).node) for each in value])
            case MapOf(key, of), dict():
                return cst.Dict(
                    [
                        cst.DictElement(self._literal(key, each).node, self._literal(of, found).node)
                        for each, found in value.items()
                    ]
                )
            case Record(fields), dict():
                return self.record([(name, self._literal(field, value[name])) for name, field in fields])
            case _:
                raise AssertionError(f"{value!r} is no {type_}")

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
        spelling = None if call.op in BY_EQUALITY and mentions(call.of[0], FLOAT) else SPELLINGS.get(call.op)
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
            case Prefix("not") if isinstance(call.args[0], ir.Call) and call.args[0].op == "optional.is_null":
                operand = self._inside(call.args[0].args[0], SUM)
                comparison = cst.Comparison(operand, [cst.ComparisonTarget(cst.IsNot(), cst.Name("None"))])
                written = Written(comparison, COMPARISON)
            case Prefix("not"):
                written = Written(cst.UnaryOperation(cst.Not(), self._inside(call.args[0], NOT)), NOT)
            case Prefix():
                written = Written(cst.UnaryOperation(cst.Minus(), self._inside(call.args[0], SIGN)), SIGN)
            case Itself():
                return self.write(call.args[0])
            case IsNone():
                operand = self._inside(call.args[0], SUM)
                written = Written(
                    cst.Comparison(operand, [cst.ComparisonTarget(cst.Is(), cst.Name("None"))]), COMPARISON
                )
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

    def _let(self, let: ir.Let) -> Written:
        """`[body for name in [value]][0]`: Python has no shorter expression that evaluates a value first and once."""
        target = cst.Name(self._naming.local(let.local, let.name))
        value = cst.List([cst.Element(self.stored(let.value).node)])
        loop = cst.CompFor(target=target, iter=value)
        return Written(_item(cst.ListComp(self.write(let.body).node, loop), cst.Integer("0")), ATOM)

    def _for(self, expression: ir.For) -> Written:
        if expression.kind in ("count", "sum", "min", "max") and _is_every_item(expression):
            return self._of_all(expression)
        loop = self._loop(expression)
        # A sum starts from a zero without sign, and adding to that never gives one with it.
        value = (self.write if expression.kind == "sum" else self.stored)(expression.value).node
        match expression.kind:
            case "array":
                return Written(cst.ListComp(value, loop), ATOM)
            case "count":
                return Written(cst.Call(cst.Name("len"), [cst.Arg(cst.ListComp(value, loop))]), ATOM)
            case "set":
                return Written(_of_generator("frozenset", value, loop), ATOM)
            case "forall" | "exists":
                return Written(_of_generator("all" if expression.kind == "forall" else "any", value, loop), ATOM)
            case "sum" | "min" | "max":
                call = self._aggregate(expression, cst.GeneratorExp(value, loop))
            case _:
                call = self._map(expression, value, loop)
        self.sites[call] = expression.index
        return Written(call, ATOM)

    def _of_all(self, expression: ir.For) -> Written:
        """An aggregate of all the items of an array: Python needs no loop of its own."""
        items = self.write(expression.over).node
        if expression.kind == "count":
            return Written(cst.Call(cst.Name("len"), [cst.Arg(items)]), ATOM)
        call = self._aggregate(expression, items)
        self.sites[call] = expression.index
        return Written(call, ATOM)

    def _aggregate(self, expression: ir.For, items: cst.BaseExpression) -> cst.Call:
        """A sum, a smallest or a largest of what an expression gives one by one."""
        if expression.kind == "sum" and expression.type == DECIMAL:
            zero = cst.Arg(self._literal(DECIMAL, Decimal(0)).node)
            return cst.Call(cst.Name("sum"), [cst.Arg(items), zero])
        if expression.kind == "sum" and expression.type == FLOAT:
            self.kernels.add("float.sum")
            return cst.Call(cst.Name(kernel_name("float.sum")), [cst.Arg(items)])
        name = {"sum": "checked_sum", "min": "smallest", "max": "largest"}[expression.kind]
        if isinstance(items, cst.GeneratorExp):
            items = items.with_changes(lpar=[], rpar=[])
        return cst.Call(cst.Name(name), [cst.Arg(items)])

    def _map(self, expression: ir.For, value: cst.BaseExpression, loop: cst.CompFor) -> cst.Call:
        assert expression.key is not None
        pair = cst.Tuple([cst.Element(self.write(expression.key).node), cst.Element(value)])
        if not isinstance(expression.key.type, Enum):
            return _of_generator("map_of", pair, loop)
        members = _members(expression.key.type)
        return cst.Call(cst.Name("map_of_members"), [cst.Arg(members), cst.Arg(cst.GeneratorExp(pair, loop))])

    def _loop(self, expression: ir.For) -> cst.CompFor:
        names = [
            cst.Name(self._naming.local(number, name))
            for number, name in zip(expression.locals, expression.names, strict=True)
        ]
        over = self.items(expression.over, len(names))
        target: cst.Name | cst.Tuple = names[0]
        if len(names) > 1:
            target = cst.Tuple([cst.Element(name) for name in names], lpar=[], rpar=[])
        conditions = []
        if expression.where is not None:
            where = _in_parentheses(self.condition(expression.where), OR)
            conditions.append(cst.CompIf(where))
        return cst.CompFor(target=target, iter=over, ifs=conditions)

    def items(self, collection: ir.Expression, names: int) -> cst.BaseExpression:
        """A collection as a loop goes over it: in the order of the language, with one or two names for an item."""
        over = self._inside(collection, OR)
        match collection.type:
            case SetOf(Enum() as enum):
                # SEMANTICS: a set is walked in the order of its members, which Python's sets do not have.
                return cst.Call(cst.Name("members_in_order"), [cst.Arg(_members(enum)), cst.Arg(over)])
            case SetOf():
                return cst.Call(cst.Name("sorted"), [cst.Arg(over)])
            case MapOf() if names > 1:
                return cst.Call(cst.Name("entries_of"), [cst.Arg(over)])
            case _:
                return over

    def _function(self, name: str, call: ir.Call, *more: cst.BaseExpression) -> Written:
        # A kernel may give an argument back or put it in a collection, so it takes what could be stored.
        arguments = [*(self.stored(argument).node for argument in call.args), *more]
        return Written(cst.Call(cst.Name(name), [cst.Arg(argument) for argument in arguments]), ATOM)

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


def _told(call: ir.Call) -> list[cst.BaseExpression]:
    """What a kernel must be told of its types: the members of the enum by whose order it goes, or a type as text."""
    if call.op in BY_TYPE:
        return [cst.SimpleString(string_literal(type_text(call.of[0])))]
    match call.of:
        case (Enum() as enum, *_) if call.op in BY_ORDER:
            return [_members(enum)]
        case _:
            return []


def _members(enum: Enum) -> cst.Tuple:
    return cst.Tuple([cst.Element(cst.SimpleString(string_literal(member))) for member in enum.members])


def _is_every_item(expression: ir.For) -> bool:
    """True where the values are the items of an array, all of them: then Python needs no loop of its own."""
    return (
        expression.where is None
        and isinstance(expression.over.type, ArrayOf)
        and isinstance(expression.value, ir.Local)
        and expression.value.number == expression.locals[0]
    )


def _item(base: cst.BaseExpression, index: cst.BaseExpression) -> cst.Subscript:
    return cst.Subscript(base, [cst.SubscriptElement(cst.Index(index))])


def _of_generator(function: str, value: cst.BaseExpression, loop: cst.CompFor) -> cst.Call:
    """`function(value for …)`."""
    generator = cst.GeneratorExp(value, loop, lpar=[], rpar=[])
    return cst.Call(cst.Name(function), [cst.Arg(generator)])


def _in_parentheses(written: Written, binds: int) -> cst.BaseExpression:
    if written.binds >= binds:
        return written.node
    return written.node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
