"""Possible values of each expression of a node, given the facts at its location.

`value` returns the set of values that an expression can have. `branch` returns the facts where a condition holds and
where it fails; None marks an unreachable position. Each expression is visited once per root that contains it, so the
walk is linear in the size of the node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from vesper.language.check.reachability.intervals import (
    ANY_ORDER,
    BOOLEANS,
    EQUAL,
    FALSE,
    GREATER,
    LENGTHS,
    LESS,
    TRUE,
    UNEQUAL,
    Choice,
    Interval,
    Known,
    Nullable,
    Sized,
    exactly,
    join,
    meet,
    of_type,
    of_value,
    possible_orders,
    restrict,
    swap_orders,
    texts,
)
from vesper.language.check.reachability.terms import Facts, Terms, either
from vesper.language.check.reachability.transfer import result
from vesper.language.ir import nodes as ir
from vesper.values.model import Value
from vesper.values.types import BOOLEAN, DECIMAL, FLOAT, INTEGER, JSON, STRING, Enum, Primitive, Type, without_null

Branches: TypeAlias = tuple[Facts | None, Facts | None]

_ORDERS = {
    "equal": EQUAL,
    "not_equal": UNEQUAL,
    "less": LESS,
    "less_or_equal": LESS | EQUAL,
    "greater": GREATER,
    "greater_or_equal": GREATER | EQUAL,
}
_ORDERED_FAMILIES = ("integer", "decimal", "text", "enum", "boolean", "optional", "date", "timestamp", "duration")
"""Operations on totally ordered types. Floats are excluded, because no comparison with NaN holds."""
_COMPARISONS = {f"{family}.{verb}": orders for family in _ORDERED_FAMILIES for verb, orders in _ORDERS.items()}
_MEMBERSHIP = frozenset(("set.is_member", "array.is_item", "map.is_key"))


@dataclass(frozen=True, slots=True)
class Constant:
    """A condition or comparison with only one possible result."""

    expression: ir.Expression
    holds: bool
    owner: ir.If | None
    """The `if` whose condition it is; None for a comparison inside another expression."""


def orders_of(expression: ir.Expression) -> int | None:
    """Return the orders of two operands for which a comparison is true. None for other expressions."""
    return _COMPARISONS.get(expression.op) if isinstance(expression, ir.Call) else None


class Evaluator:
    """Evaluates expressions of one node, and collects constants in `found`."""

    def __init__(self, node: ir.Node) -> None:
        self.terms = Terms(node)
        self.found: list[Constant] = []
        self._base: Facts | None = None
        """Facts of the contracts while constants are recorded; None otherwise."""

    def note_value(self, expression: ir.Expression, facts: Facts, base: Facts) -> Known | None:
        """Return the value and record constants.

        A comparison is recorded only if `base`, the contracts and the steps above, decides it: rows that repeat
        conditions excluded by rows above are good style.
        """
        self._base = base
        value = self.value(expression, facts)
        self._base = None
        return value

    def note_condition(self, expression: ir.Expression, facts: Facts, base: Facts) -> Branches:
        """Return the branches of a condition. Constants inside it are recorded unless it is constant as a whole."""
        before = len(self.found)
        self._base = base
        holds, fails = self.branch(expression, facts)
        self._base = None
        if (holds is None) != (fails is None):
            del self.found[before:]
        return holds, fails

    # -- values -----------------------------------------------------------------------------------

    def value(self, expression: ir.Expression, facts: Facts) -> Known | None:
        """Return the values that the expression can have. None if it never has a value."""
        terms = self.terms
        kind = type(expression)
        if kind is ir.Ref or kind is ir.Literal or kind is ir.Local:
            return terms.known(terms.by_index[expression.index], facts)
        if expression.type is BOOLEAN:
            holds, fails = self.branch(expression, facts)
            if holds is None:
                return None if fails is None else FALSE
            return TRUE if fails is None else BOOLEANS
        found = self._value(expression, facts)
        known = terms.known(terms.by_index[expression.index], facts)
        return None if found is None else meet(known, found)

    def _value(self, expression: ir.Expression, facts: Facts) -> Known | None:
        if type(expression) is ir.Call:
            operands = self._values(expression.args, facts)
            return None if operands is None else result(expression.op, operands)
        match expression:
            case ir.If():
                return self._if(expression, facts)
            case ir.Let(value=value, body=body):
                bound = self.value(value, facts)
                inner = None if bound is None else self.terms.learn(facts, self.terms.number(value), bound)
                return None if inner is None else self.value(body, inner)
            case ir.For():
                return self._for(expression, facts)
            case ir.Array(items=items):
                return None if self._values(items, facts) is None else Sized(exactly(len(items)))
            case _:
                others = self._values(ir.children(expression), facts)
                return None if others is None else of_type(expression.type)

    def _values(self, expressions: tuple[ir.Expression, ...], facts: Facts) -> tuple[Known, ...] | None:
        found: list[Known] = []
        for each in expressions:
            value = self.value(each, facts)
            if value is None:
                return None
            found.append(value)
        return tuple(found)

    def _if(self, expression: ir.If, facts: Facts) -> Known | None:
        """Return the value of a chain of `if`. The chain is iterated, because a table is as deep as it has rows."""
        whole: Known | None = None
        rest: Facts | None = facts
        below: ir.Expression = expression
        while isinstance(below, ir.If) and rest is not None:
            holds, rest = self._condition(below, rest)
            then = None if holds is None else self.value(below.then, holds)
            whole = then if whole is None else whole if then is None else join(whole, then)
            below = below.otherwise
        last = None if rest is None else self.value(below, rest)
        return last if whole is None else whole if last is None else join(whole, last)

    def _condition(self, expression: ir.If, facts: Facts) -> Branches:
        before = len(self.found)
        holds, fails = self.branch(expression.condition, facts)
        if self._base is not None and (holds is None) != (fails is None):
            del self.found[before:]  # only the condition as a whole is reported
            self.found.append(Constant(expression.condition, fails is None, expression))
        return holds, fails

    def _for(self, expression: ir.For, facts: Facts) -> Known | None:
        over = self.value(expression.over, facts)
        if over is None:
            return None
        length = over.length if isinstance(over, Sized) else LENGTHS
        inner: Facts | None = facts
        if expression.where is not None:
            inner, _ = self.branch(expression.where, facts)
        # The initial value of a fold and the order of a sort are evaluated once, even without items.
        if expression.with_ is not None and self.value(expression.with_, facts) is None:
            return None
        if expression.key is not None and inner is not None:
            self.value(expression.key, inner)
        item = None if inner is None else self.value(expression.value, inner)
        never_empty = expression.where is None and length.low is not None and length.low > 0
        match expression.kind:
            case "forall" | "exists":
                return _quantify(expression.kind, item, length, never_empty)
            case "array" if expression.where is None:
                return Sized(length)
            case "array" | "set" | "map":
                return Sized(Interval(0, length.high, True))
            case "count":
                return Interval(0, length.high, True)
            case "min" | "max":
                return item
            case "sum" if isinstance(item, Interval):
                low = 0 if item.low is not None and item.low >= 0 else None
                high = 0 if item.high is not None and item.high <= 0 else None
                return Interval(low, high, item.is_whole)
            case _:
                return of_type(expression.type)

    # -- conditions -------------------------------------------------------------------------------

    def branch(self, expression: ir.Expression, facts: Facts) -> Branches:
        """Return the facts where the condition holds, and where it fails."""
        before = len(self.found)
        number = self.terms.number(expression)
        holds, fails = self._branch(expression, facts)
        if (type(expression) is not ir.Call or expression.op not in _COMPARISONS) and type(expression) is not ir.Let:
            # A comparison is stored as the order of its operands instead.
            holds = None if holds is None else self.terms.learn(holds, number, TRUE)
            fails = None if fails is None else self.terms.learn(fails, number, FALSE)
        if self._base is not None and (holds is None) != (fails is None) and _is_test(expression):
            self._note(expression, before)
        return holds, fails

    def _note(self, expression: ir.Expression, before: int) -> None:
        """Record the expression if the contracts alone decide it. Findings of its parts are dropped."""
        base = self._base
        assert base is not None
        self._base = None
        holds, fails = self.branch(expression, base)
        self._base = base
        if (holds is None) != (fails is None):
            del self.found[before:]
            self.found.append(Constant(expression, fails is None, None))

    def _branch(self, expression: ir.Expression, facts: Facts) -> Branches:
        if type(expression) is ir.Call and (orders := _COMPARISONS.get(expression.op)) is not None:
            left, right = expression.args
            return self._comparison(left, right, orders, facts)
        match expression:
            case ir.Logical(kind, left, right):
                holds, fails = self.branch(left, facts)
                if kind == "and":
                    both, second = (None, None) if holds is None else self.branch(right, holds)
                    return both, either(fails, second)
                other, neither = (None, None) if fails is None else self.branch(right, fails)
                return either(holds, other), neither
            case ir.Call(op="boolean.not", args=(operand,)):
                holds, fails = self.branch(operand, facts)
                return fails, holds
            case ir.Call(op="optional.is_null" | "optional.is_not_null" as op, args=(operand,)):
                is_null, is_value = self._null(operand, facts)
                return (is_null, is_value) if op == "optional.is_null" else (is_value, is_null)
            case ir.Call(op=op, args=(value, among)) if op in _MEMBERSHIP:
                return self._membership(value, among, facts)
            case ir.If(then=then, otherwise=otherwise):
                holds, fails = self._condition(expression, facts)
                then_holds, then_fails = (None, None) if holds is None else self.branch(then, holds)
                else_holds, else_fails = (None, None) if fails is None else self.branch(otherwise, fails)
                return either(then_holds, else_holds), either(then_fails, else_fails)
            case ir.Let(value=value, body=body):
                bound = self.value(value, facts)
                inner = None if bound is None else self.terms.learn(facts, self.terms.number(value), bound)
                return (None, None) if inner is None else self.branch(body, inner)
            case _:
                found = self._value(expression, facts)
                if found is None:
                    return None, None
                return self._split(found, facts)

    def _split(self, found: Known, facts: Facts) -> Branches:
        values = found.values if isinstance(found, Choice) else BOOLEANS.values
        return (facts if True in values else None), (facts if False in values else None)

    def _null(self, operand: ir.Expression, facts: Facts) -> Branches:
        value = self.value(operand, facts)
        if not isinstance(value, Nullable):
            return (None, None) if value is None else (facts, facts)
        number = self.terms.number(operand)
        is_null = self.terms.learn(facts, number, Nullable(True, None)) if value.has_null else None
        if value.value is None:
            return is_null, None
        return is_null, self.terms.learn(facts, number, Nullable(False, value.value))

    def _membership(self, operand: ir.Expression, among: ir.Expression, facts: Facts) -> Branches:
        values = self._values((operand, among), facts)
        if values is None:
            return None, None
        value, collection = values
        holds: Facts | None = facts
        fails: Facts | None = facts
        if isinstance(collection, Sized):
            if collection.length.high == 0:
                holds = None
            else:
                some = Interval(1, None, True)
                holds = self.terms.learn(facts, self.terms.number(among), Sized(some))
        listed = self._written_members(among)
        if listed is None or not listed:
            return (None if listed is not None else holds), fails
        inside = _enclosing_set(operand.type, listed)
        number = self.terms.number(operand)
        common = None if inside is None else meet(value, inside)
        if inside is not None:
            holds = None if common is None or holds is None else self.terms.learn(holds, number, common)
        if isinstance(value, Choice) and isinstance(inside, Choice):
            rest = value.values - inside.values
            fails = self.terms.learn(facts, number, Choice(rest)) if rest else None
        return holds, fails

    def _written_members(self, among: ir.Expression) -> list[Value] | None:
        """Return the members of a collection that is written in the node, else None."""
        value: Value = None
        match among:
            case ir.Literal(value=found):
                value = found
            case ir.Ref(kind="constant", name=name):
                value = self.terms.constant(name)
            case ir.Array(items=items):
                literals = [each.value for each in items if isinstance(each, ir.Literal)]
                return literals if len(literals) == len(items) else None
        return [*value] if isinstance(value, list | frozenset | dict) else None

    def _comparison(self, left: ir.Expression, right: ir.Expression, wanted: int, facts: Facts) -> Branches:
        first = self.value(left, facts)
        second = None if first is None else self.value(right, facts)
        if first is None or second is None:
            return None, None
        operands = (first, second)
        one, other = self.terms.number(left), self.terms.number(right)
        possible = EQUAL if one == other and _is_equal_to_itself(left.type) else facts.order(one, other)
        possible &= possible_orders(first, second)
        holds = self._learn_order(one, other, operands, possible & wanted, possible, facts)
        fails = self._learn_order(one, other, operands, possible & ~wanted & ANY_ORDER, possible, facts)
        return holds, fails

    def _learn_order(
        self, one: int, other: int, operands: tuple[Known, ...], orders: int, possible: int, facts: Facts
    ) -> Facts | None:
        """Return the facts with two terms in one of the given orders. Returns None where that is impossible."""
        if orders == 0:
            return None
        if orders == possible:
            return facts
        left, right = operands
        learnt: Facts | None = facts
        terms = self.terms
        if not terms.is_fixed(one):
            first = restrict(left, orders, right)
            learnt = None if first is None else terms.learn(facts, one, first)
        if learnt is not None and not terms.is_fixed(other):
            second = restrict(right, swap_orders(orders), left)
            learnt = None if second is None else terms.learn(learnt, other, second)
        return None if learnt is None else learnt.with_order(one, other, orders)


def _is_test(expression: ir.Expression) -> bool:
    """Return whether the expression is a written test: a comparison, alone or combined."""
    match expression:
        case ir.Logical():
            return True
        case ir.Call(op=op):
            return orders_of(expression) is not None or op in _MEMBERSHIP or op.startswith("optional.is_")
        case _:
            return False


def _quantify(kind: str, item: Known | None, length: Interval, never_empty: bool) -> Known:
    """Return the possible results of `forall` or `exists` over items with these values."""
    is_forall = kind == "forall"
    empty, rest = (TRUE, FALSE) if is_forall else (FALSE, TRUE)
    if length.high == 0 or item is None or item == empty:
        return empty
    return rest if item == rest and never_empty else BOOLEANS


def _enclosing_set(type_: Type, values: list[Value]) -> Known | None:
    """Return the smallest set of a scalar type that holds these values. Returns None for other types."""
    if isinstance(type_, Enum):
        return Choice(frozenset(str(value) for value in values))
    if type_ == STRING:
        return texts(frozenset(str(value) for value in values))
    if type_ not in (INTEGER, DECIMAL, BOOLEAN):
        return None
    whole = of_value(type_, values[0])
    for value in values[1:]:
        whole = join(whole, of_value(type_, value))
    return whole


def _is_equal_to_itself(type_: Type) -> bool:
    """Return whether values of the type always equal themselves: scalars except `float` and `json`."""
    inner = without_null(type_)
    return inner not in (FLOAT, JSON) and isinstance(inner, Primitive | Enum)
