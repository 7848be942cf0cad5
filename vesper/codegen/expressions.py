"""Writer of IR expressions as Python expressions.

Operations are written by their spelling or their kernel, with parentheses only where Python needs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal

import libcst as cst

from vesper.codegen.first_use import find_first_use
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
    PythonExpression,
    add_parentheses,
    negate,
    write_string,
)
from vesper.codegen.loops import LoopWriter, write_order
from vesper.codegen.metering import Metering
from vesper.codegen.naming import Naming, kernel_name
from vesper.codegen.negative_zero import may_be_negative_zero
from vesper.codegen.ranges import cannot_overflow
from vesper.codegen.same import is_same_path
from vesper.codegen.scalars import write_scalar
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
from vesper.language.ir.recursion import groups_of
from vesper.values.generated.operations import OPERATIONS
from vesper.values.model import Value, in_order
from vesper.values.types import (
    DECIMAL,
    ArrayOf,
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
_MAX_SHORT = 64


class ExpressionWriter(LoopWriter):
    """Writer of the expressions of one function. It records the decimals, kernels and places that they use."""

    def __init__(
        self, naming: Naming, types: TypeWriter, traced: bool, metering: Metering, functions: Sequence[ir.Function] = ()
    ) -> None:
        self._max_depths = {each.name: each.max_depth for each in functions}
        self._groups = groups_of(functions)
        self._around: tuple[str, str] | None = None
        """The recursive function that is being written, and the name of its depth."""
        self.naming = naming
        self._types = types
        self.is_traced = traced
        self.metering = metering
        self.atoms: dict[int, ir.Expression] = {}
        """Locals that are aliases of a name or a literal, with their target."""
        self._bound_at_first_use: dict[int, ir.Let] = {}
        """Locals whose value is written where they are first read."""
        self._used_once: set[int] = set()
        """Those of them that are read nowhere else, and need no name."""
        self.iterable_depth = 0
        """How many iterables of comprehensions are being written: Python takes no assignment in one."""
        self.decimals: dict[str, Decimal] = {}
        """Decimal literals by the name that the module gives them."""
        self.kernels: set[str] = set()
        """Operations that are written as a call of their kernel."""
        self.sites: dict[cst.BaseExpression, int] = {}
        """Python expressions that can fail, with the index of the IR expression they stand for."""
        self.ends: dict[cst.BaseExpression, int] = {}
        """Statements that end the node with a broken clause or an error, with the line of the node they stand for."""

    def write(self, expression: ir.Expression) -> PythonExpression:
        match expression:
            case ir.Literal():
                return self.write_literal(expression.type, expression.value)
            case ir.Ref():
                return PythonExpression(cst.Name(self.naming.name(expression.kind, expression.name)), ATOM)
            case ir.Logical():
                return self._write_logical(expression)
            case ir.If():
                return self._write_ternary(expression)
            case ir.Call():
                return self._write_call(expression)
            case ir.Local():
                if expression.number in self.atoms:
                    return self.write(self.atoms[expression.number])
                if expression.number in self._bound_at_first_use:
                    return self._write_first_use(self._bound_at_first_use.pop(expression.number))
                return PythonExpression(cst.Name(self.naming.name_local(expression.number, expression.name)), ATOM)
            case ir.Let():
                return self._write_let(expression)
            case ir.For():
                return self.write_loop(expression)
            case ir.Array():
                items = [cst.Element(self.write_stored(item).node) for item in expression.items]
                return PythonExpression(cst.List(items), ATOM)
            case ir.RecordValue():
                return self.write_record(
                    expression.type, [(name, self.write_stored(value)) for name, value in expression.fields]
                )
            case ir.Field():
                base = self.write_operand(expression.of, ATOM)
                return PythonExpression(_write_item(base, cst.SimpleString(write_string(expression.name))), ATOM)
            case ir.Apply():
                return self._write_apply(expression)
            case ir.Now():
                return PythonExpression(cst.Name("now"), ATOM)
            case ir.Result():
                raise AssertionError("a result stands only where its statement names it")

    def write_stored(self, expression: ir.Expression) -> PythonExpression:
        """Write a value that a name, a collection or a record holds: zero has no sign."""
        written = self.write(expression)
        if without_null(expression.type) == DECIMAL and may_be_negative_zero(expression):
            return PythonExpression(cst.Call(cst.Name("unsigned_zero"), [cst.Arg(written.node)]), ATOM)
        return written

    def write_record(self, type_: Type, entries: Sequence[tuple[str, PythonExpression]]) -> PythonExpression:
        """Write a record as a call of its class, which readers and type checkers know: `Plan(total=total)`."""
        assert isinstance(type_, Record)
        arguments = [cst.Arg(self.write_dict(entries))]
        if has_plain_fields(type_):
            arguments = [cst.Arg(each.node, keyword=cst.Name(name), equal=EQUAL) for name, each in entries]
        return PythonExpression(cst.Call(cst.Name(self._types.write_record_class(type_)), arguments), ATOM)

    def write_plain(self, expression: ir.Expression) -> PythonExpression:
        """Write a value whose class does not matter: records are dicts."""
        match expression:
            case ir.RecordValue(fields=fields):
                return PythonExpression(
                    self.write_dict([(name, self.write_plain(value)) for name, value in fields]), ATOM
                )
            case ir.Array(items=items):
                return PythonExpression(cst.List([cst.Element(self.write_plain(item).node) for item in items]), ATOM)
            case ir.Call(op="optional.some", args=(value,)):
                return self.write_plain(value)
            case _:
                return self.write_stored(expression)

    def write_dict(self, entries: Sequence[tuple[str, PythonExpression]]) -> cst.Dict:
        return cst.Dict([cst.DictElement(cst.SimpleString(write_string(key)), each.node) for key, each in entries])

    def add_mark(self, expression: ir.Expression, written: PythonExpression) -> PythonExpression:
        """Wrap an expression in `mark(index, …)` in the traced form."""
        if not self.is_traced:
            return written
        arguments = [cst.Arg(cst.Integer(str(expression.index))), cst.Arg(written.node)]
        return PythonExpression(cst.Call(cst.Name("mark"), arguments), ATOM)

    def write_condition(self, expression: ir.Expression) -> PythonExpression:
        return self.add_mark(expression, self.write(expression))

    def write_opposite(self, written: PythonExpression) -> PythonExpression:
        opposite = negate(written)
        node = opposite.node
        if isinstance(node, cst.UnaryOperation):
            self.move_site(written.node, node.expression)
        return opposite

    def find_locals(self, expression: ir.Expression) -> set[int]:
        """Find the locals that an expression reads, directly or through aliases."""
        read: set[int] = set()
        for each in ir.walk(expression):
            while isinstance(each, ir.Local) and each.number in self.atoms:
                each = self.atoms[each.number]
            read |= {part.number for part in ir.walk(each) if isinstance(part, ir.Local)}
        return read

    def write_literal(self, type_: Type, value: Value) -> PythonExpression:
        """Write a literal. The module names each decimal once, so that no call constructs it again."""
        if value is None:
            return PythonExpression(cst.Name("None"), ATOM)
        if isinstance(value, bool):
            return PythonExpression(cst.Name(str(value)), ATOM)
        if isinstance(value, int):
            digits = cst.Integer(str(abs(value)))
            return (
                PythonExpression(digits, ATOM)
                if value >= 0
                else PythonExpression(cst.UnaryOperation(cst.Minus(), digits), SIGN)
            )
        if isinstance(value, Decimal):
            name = self.naming.name_decimal(value)
            self.decimals[name] = value
            return PythonExpression(cst.Name(name), ATOM)
        if isinstance(value, str):
            return PythonExpression(cst.SimpleString(write_string(value)), ATOM)
        scalar = write_scalar(value)
        if scalar is not None:
            return PythonExpression(scalar, SIGN if isinstance(scalar, cst.UnaryOperation) else ATOM)
        return PythonExpression(self._write_collection(without_null(type_), value), ATOM)

    def _write_collection(self, type_: Type, value: Value) -> cst.BaseExpression:
        match type_, value:
            case SetOf(element), frozenset():
                members = [cst.Element(self.write_literal(element, each).node) for each in in_order(element, value)]
                return cst.Call(cst.Name("frozenset"), [cst.Arg(cst.Set(members))] if members else [])
            case ArrayOf(element), list():
                return cst.List([cst.Element(self.write_literal(element, each).node) for each in value])
            case MapOf(key, of), dict():
                return cst.Dict(
                    [
                        cst.DictElement(self.write_literal(key, each).node, self.write_literal(of, found).node)
                        for each, found in value.items()
                    ]
                )
            case Record(fields), dict():
                return self.write_dict([(name, self.write_literal(field, value[name])) for name, field in fields])
            case _:
                raise AssertionError(f"{value!r} is no {type_}")

    # -- forms ------------------------------------------------------------------------------------

    def _write_logical(self, expression: ir.Logical) -> PythonExpression:
        binds, word = (AND, cst.And()) if expression.kind == "and" else (OR, cst.Or())
        # Python needs no parentheses around an `and` in an `or`; they help readers.
        tight = NOT if expression.kind == "or" else binds
        left = self.write_operand(expression.left, tight if _is_and(expression.left) else binds)
        right = self.write_operand(expression.right, tight if _is_and(expression.right) else binds + 1)
        if expression.kind == "and" and (chained := _chain_comparisons(left, right)) is not None:
            return PythonExpression(chained, COMPARISON)
        if (member := _merge_equalities(left, right, expression.kind)) is not None:
            return PythonExpression(member, COMPARISON)
        return PythonExpression(cst.BooleanOperation(left, word, right), binds)

    def _write_ternary(self, expression: ir.If) -> PythonExpression:
        extreme = None if self.is_traced else _find_extreme(expression)
        if extreme is not None:  # the condition is observed in the traced form alone
            name, *both = extreme
            return PythonExpression(cst.Call(cst.Name(name), [cst.Arg(self.write(each).node) for each in both]), ATOM)
        condition = self.write_condition(expression.condition)
        test = add_parentheses(condition, OR)
        then = self.write_operand(expression.then, OR)
        otherwise = self.write_operand(expression.otherwise, TERNARY)
        return PythonExpression(cst.IfExp(test=test, body=then, orelse=otherwise), TERNARY)

    def _write_call(self, call: ir.Call) -> PythonExpression:
        spelling: Spelling | None = SPELLINGS.get(call.op)
        is_plain = all(has_plain_equality(type_) for type_ in call.of)
        if call.op in EQUALITIES and is_plain:
            spelling = EQUALITIES[call.op]
        if call.op in BY_EQUALITY and not is_plain:
            spelling = None
        if OPERATIONS[call.op].work and not all(map(_is_short, call.args)):
            spelling = None  # the kernel counts the work of large values
        if call.op in ("optional.equal", "optional.not_equal") and _is_null(call.args[-1]):
            spelling = IsNone(is_negated=call.op == "optional.not_equal")
        match spelling:
            case Infix(sign) if sign in _COMPARE:
                # SEMANTICS: Python chains comparisons; one inside another always gets parentheses.
                left, right = (self.write_operand(argument, SUM) for argument in _select_operands(call))
                comparison = cst.Comparison(left, [cst.ComparisonTarget(_COMPARE[sign], right)])
                written = PythonExpression(comparison, COMPARISON)
            case Infix(sign):
                sign_, binds = _BINARY[sign]
                first, second = _select_operands(call)
                left = self.write_operand(first, binds)
                right = self.write_operand(second, binds + 1)
                written = PythonExpression(cst.BinaryOperation(left, sign_, right), binds)
            case Prefix("not"):
                written = self.write_opposite(self.write(call.args[0]))
            case Prefix():
                written = PythonExpression(
                    cst.UnaryOperation(cst.Minus(), self.write_operand(call.args[0], SIGN)), SIGN
                )
            case Itself():
                return self.write(call.args[0])
            case Item():
                entries, key = self.write_operand(call.args[0], ATOM), self.write_stored(call.args[1]).node
                written = PythonExpression(_write_item(entries, key), ATOM)
            case IsNone(is_negated):
                operand = self.write_operand(call.args[0], SUM)
                identity = cst.IsNot() if is_negated else cst.Is()
                comparison = cst.Comparison(operand, [cst.ComparisonTarget(identity, cst.Name("None"))])
                written = PythonExpression(comparison, COMPARISON)
            case Function(name):
                written = self._write_function(name, call)
            case _:
                self.kernels.add(call.op)
                written = self._write_function(kernel_name(call.op), call, *_write_type_arguments(call))
        if call.op in CHECKED and not cannot_overflow(call):
            written = PythonExpression(cst.Call(cst.Name("checked"), [cst.Arg(written.node)]), ATOM)
        if OPERATIONS[call.op].raises:
            self.sites[written.node] = call.index
        return written

    @contextmanager
    def enter_function(self, name: str, depth: str) -> Iterator[None]:
        """Enter the body of a recursive function, in which `depth` is the name of the call's depth."""
        self._around = (name, depth)
        try:
            yield
        finally:
            self._around = None

    def _write_apply(self, apply: ir.Apply) -> PythonExpression:
        """Write a call of a recursive function: `recurse(f, x)`, and inside it `f(x, depth=deeper(depth, 50))`."""
        function: cst.BaseExpression = cst.Name(self.naming.name("function", apply.function))
        form = [
            cst.Arg(cst.Name(each), keyword=cst.Name(each), equal=EQUAL)
            for each, is_used in (("mark", self.is_traced), ("meter", self.metering.is_metered))
            if is_used
        ]
        args = [cst.Arg(self.write_stored(argument).node) for argument in apply.args]
        if self._around is None or self._groups[self._around[0]] != self._groups[apply.function]:
            return PythonExpression(cst.Call(cst.Name("recurse"), [cst.Arg(function), *args, *form]), ATOM)
        limits = [cst.Name(self._around[1]), cst.Integer(str(self._max_depths[apply.function]))]
        limits += [cst.Name("meter")] if self.metering.is_metered else []
        deeper = cst.Call(cst.Name("deeper"), [cst.Arg(each) for each in limits])
        self.sites[deeper] = apply.index
        depth = cst.Arg(deeper, keyword=cst.Name("depth"), equal=EQUAL)
        return PythonExpression(cst.Call(function, [*args, depth, *form]), ATOM)

    # -- names bound on the way, and loops ---------------------------------------------------------

    def is_atom(self, let: ir.Let) -> bool:
        """True for a LET that binds an alias. Its target is then written wherever the name is used."""
        value = let.value
        while True:  # a field of an atom is an atom, and so is an unwrapped one
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
            self.atoms[let.local] = let.value
        return is_atom

    def _write_let(self, let: ir.Let) -> PythonExpression:
        """Bind a name inside of an expression: `0 if (value := get(key)) is None else value`.

        The value is evaluated before the body. If the body reads the name before anything observable happens, the value
        is written at that first read; elsewhere it is the first part of a tuple, or the item of a generator where
        Python allows no assignment.
        """
        if self.is_atom(let):
            return self.write(let.body)
        uses = sum(isinstance(each, ir.Local) and each.number == let.local for each in ir.walk(let.body))
        first_use = find_first_use(let.body, let.local)
        if first_use == "operand" and (uses == 1 or not self.iterable_depth):
            self._bound_at_first_use[let.local] = let
            if uses == 1:
                self._used_once.add(let.local)
            return self.write(let.body)
        if first_use == "iterable" and uses == 1:
            self._bound_at_first_use[let.local] = let
            self._used_once.add(let.local)
            return self.write(let.body)
        if self.iterable_depth:
            target = cst.Name(self.naming.name_local(let.local, let.name))
            loop = cst.CompFor(target=target, iter=cst.List([cst.Element(self.write_stored(let.value).node)]))
            generator = cst.GeneratorExp(self.write(let.body).node, loop, lpar=[], rpar=[])
            return PythonExpression(cst.Call(cst.Name("next"), [cst.Arg(generator)]), ATOM)
        value = self._write_assignment(let).with_changes(lpar=[], rpar=[])
        both = cst.Tuple([cst.Element(value), cst.Element(self.write(let.body).node)])
        return PythonExpression(_write_item(both, cst.Integer("1")), ATOM)

    def _write_first_use(self, let: ir.Let) -> PythonExpression:
        """Write the first use of a local: its value, under its name where it is read again."""
        if let.local in self._used_once:
            return self.write_stored(let.value)
        return PythonExpression(self._write_assignment(let), ATOM)

    def _write_assignment(self, let: ir.Let) -> cst.NamedExpr:
        value = self.write_stored(let.value).node
        target = cst.Name(self.naming.assign_local(let.local, let.name, type_text(let.value.type, has_outside=False)))
        return cst.NamedExpr(target, value, lpar=[cst.LeftParen()], rpar=[cst.RightParen()])

    def _write_function(self, name: str, call: ir.Call, *more: cst.BaseExpression) -> PythonExpression:
        # A kernel may return an argument or store it in a collection, so zero has no sign here.
        written = self.write_plain if call.op in BY_TYPE else self.write_stored
        arguments = [*(written(argument).node for argument in call.args), *more]
        return PythonExpression(cst.Call(cst.Name(name), [cst.Arg(argument) for argument in arguments]), ATOM)

    def write_operand(self, expression: ir.Expression, binds: int) -> cst.BaseExpression:
        """Write an operand, with parentheses if it binds less tightly than `binds`."""
        written = self.write(expression)
        wrapped = add_parentheses(written, binds)
        self.move_site(written.node, wrapped)
        return wrapped

    def move_site(self, old: cst.BaseExpression, new: cst.BaseExpression) -> None:
        """Move the site of an expression that was replaced by an equal one."""
        if old in self.sites:
            self.sites[new] = self.sites.pop(old)


def _merge_equalities(left: cst.BaseExpression, right: cst.BaseExpression, kind: str) -> cst.Comparison | None:
    """Write `a == "x" or a == "y"` as `a in ("x", "y")`, and its opposite. None for anything else."""
    equal, member = (cst.Equal, cst.In) if kind == "or" else (cst.NotEqual, cst.NotIn)
    match left, right:
        case (
            cst.Comparison(left=cst.Name() as name, comparisons=[first], lpar=[]),
            cst.Comparison(left=cst.Name() as again, comparisons=[second], lpar=[]),
        ) if name.value == again.value and isinstance(second.operator, equal):
            members = _find_members(first, equal, member)
            if members is None or not isinstance(second.comparator, cst.SimpleString | cst.Integer):
                return None
            all_of_them = cst.Tuple([*members, cst.Element(second.comparator)])
            return cst.Comparison(name, [cst.ComparisonTarget(member(), all_of_them)])
        case _:
            return None


def _find_members(
    target: cst.ComparisonTarget, equal: type[cst.BaseCompOp], member: type[cst.BaseCompOp]
) -> list[cst.BaseElement] | None:
    """Return the literals that a comparison names; None where it compares with anything else."""
    if isinstance(target.operator, equal) and isinstance(target.comparator, cst.SimpleString | cst.Integer):
        return [cst.Element(target.comparator)]
    if isinstance(target.operator, member) and isinstance(target.comparator, cst.Tuple):
        return list(target.comparator.elements)
    return None


_COMPARED = ("integer", "decimal", "text", "date", "timestamp", "duration")
_EXTREMES = {
    # The operation, whether the left side is taken where it holds; the sides in the order in which equal ones count.
    ("greater", True): ("max", 1, 0),
    ("less", True): ("min", 1, 0),
    ("greater_or_equal", True): ("max", 0, 1),
    ("less_or_equal", True): ("min", 0, 1),
    ("greater", False): ("min", 0, 1),
    ("less", False): ("max", 0, 1),
    ("greater_or_equal", False): ("min", 1, 0),
    ("less_or_equal", False): ("max", 1, 0),
}


def _find_extreme(expression: ir.If) -> tuple[str, ir.Expression, ir.Expression] | None:
    """Find `IF a > b THEN a ELSE b`, which is `max(b, a)`. Both return `b` if the two are equal."""
    condition = expression.condition
    if not isinstance(condition, ir.Call) or len(condition.args) != 2:
        return None
    family, _, verb = condition.op.partition(".")
    sides = condition.args
    is_left = is_same_path(sides[0], expression.then) and is_same_path(sides[1], expression.otherwise)
    is_right = is_same_path(sides[1], expression.then) and is_same_path(sides[0], expression.otherwise)
    if family not in _COMPARED or (verb, is_left) not in _EXTREMES or not (is_left or is_right):
        return None
    name, first, second = _EXTREMES[verb, is_left]
    return name, sides[first], sides[second]


_RISING = (cst.LessThan, cst.LessThanEqual)
_FALLING = (cst.GreaterThan, cst.GreaterThanEqual)


def _chain_comparisons(left: cst.BaseExpression, right: cst.BaseExpression) -> cst.Comparison | None:
    """Write `a <= b and b <= c` as `a <= b <= c`. None for anything else."""
    if not isinstance(left, cst.Comparison) or not isinstance(right, cst.Comparison) or left.lpar or right.lpar:
        return None
    middle, again = left.comparisons[-1].comparator, right.left
    if not isinstance(middle, cst.Name) or not isinstance(again, cst.Name) or middle.value != again.value:
        return None
    targets = [*left.comparisons, *right.comparisons]
    if not any(all(isinstance(target.operator, way) for target in targets) for way in (_RISING, _FALLING)):
        return None
    return left.with_changes(comparisons=targets)


def _is_and(expression: ir.Expression) -> bool:
    return isinstance(expression, ir.Logical) and expression.kind == "and"


def _select_operands(call: ir.Call) -> tuple[ir.Expression, ...]:
    """Return the operands of an infix operator, with an integer beside a decimal left unconverted.

    Python treats an `int` beside a `Decimal` as exactly that number.
    """
    bare = [
        each.args[0] if isinstance(each, ir.Call) and each.op == "decimal.from_integer" else each for each in call.args
    ]
    is_changed = [new is not old for new, old in zip(bare, call.args, strict=True)]
    return call.args if all(is_changed) or not call.op.startswith("decimal.") else tuple(bare)


def _is_short(expression: ir.Expression) -> bool:
    """Return whether a value is never large: a written collection, or a value without a size."""
    match expression:
        case ir.Literal(value=list() | frozenset() | dict() as value):
            return len(value) <= _MAX_SHORT
        case ir.Array(items=items):
            return len(items) <= _MAX_SHORT
        case _:
            return not isinstance(expression.type, ArrayOf | SetOf | MapOf)


def _is_null(expression: ir.Expression) -> bool:
    return isinstance(expression, ir.Literal) and expression.value is None


def _write_type_arguments(call: ir.Call) -> list[cst.BaseExpression]:
    """Write the type arguments of a kernel: the ordered members of an enum, or a type as text."""
    if call.op in BY_TYPE:
        return [cst.SimpleString(write_string(type_text(call.of[0])))]
    order = write_order(call.of[0]) if call.op in BY_ORDER and call.of else None
    return [] if order is None else [order]


def _write_item(base: cst.BaseExpression, index: cst.BaseExpression) -> cst.Subscript:
    return cst.Subscript(base, [cst.SubscriptElement(cst.Index(index))])
