"""Numbers for the expressions of a node: expressions with equal numbers have equal values.

Values never change and operations are pure, so a fact about `balance - amount` applies wherever the same expression
occurs. A name for an expression (`LET`, a step) has that expression's number.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from vesper.language.check.reachability.intervals import (
    ANY_ORDER,
    DECIMALS,
    INTEGERS,
    Interval,
    Known,
    Nullable,
    Sized,
    Texts,
    join,
    meet,
    negative,
    of_type,
    of_value,
    plus,
    swap_orders,
)
from vesper.language.ir import nodes as ir
from vesper.values.generated.operations import OPERATIONS
from vesper.values.model import Value
from vesper.values.types import Type

MAX_FACTS = 100
"""Maximum number of facts, since they are copied at every condition."""
_MAX_BACK = 8
"""Maximum number of operations through which a fact propagates back to operands."""


@dataclass(slots=True)
class Term:
    """The structure of a numbered expression: a form and the numbers of its parts."""

    form: str
    """Operation of a call, or kind of expression."""
    parts: tuple[int, ...]
    type: Type


_INVERTIBLE = frozenset(
    (
        "decimal.from_integer", "integer.negate", "decimal.negate", "integer.add", "decimal.add", "integer.subtract",
        "decimal.subtract", "text.length", "array.length", "set.length", "map.length", "optional.unwrap",
        "optional.require", "optional.in_force", "optional.some",
    )
)  # fmt: skip
"""Operations whose result restricts their operands, as `Terms._operand_sets` computes."""


_PURE = frozenset(name for name, spec in OPERATIONS.items() if spec.effects == "pure")


class Terms:
    """Numbers for the expressions of one node, assigned root by root in program order."""

    def __init__(self, node: ir.Node) -> None:
        self._numbers: dict[Hashable, int] = {}
        self.by_index: dict[int, int] = {}
        """Number of every added expression, by its index."""
        self._locals: dict[int, int] = {}
        """Index of the value of each local that a `let` binds, by local number."""
        self._named: dict[tuple[str, str], int] = {}
        self._constants = {each.name: each for each in node.constants}
        self.terms: list[Term] = []
        self.always: list[Known] = []
        """Value set of each term at every position. A literal or constant has its value, any other term its type."""

    def add(self, root: ir.Expression) -> int:
        """Number an expression and all its parts."""
        parts = ir.walk(root)
        numbers = self.by_index
        for part in parts:
            if type(part) is ir.Let:
                self._locals[part.local] = part.value.index
        for part in parts:
            if type(part) is ir.Call and part.op in _PURE:  # half of the parts are pure calls
                of = tuple([numbers[each.index] for each in part.args])
                numbers[part.index] = self._number((part.op, part.of, of), part.op, of, part.type)
            elif type(part) is ir.Ref:
                numbers[part.index] = self._reference(part.kind, part.name, part.type)
            elif type(part) is ir.Literal:
                numbers[part.index] = self._literal(part.type, part.value)
            else:
                numbers[part.index] = self._part_number(part)
        return numbers[root.index]

    def add_step(self, step: ir.Step) -> int:
        """Number the value of a step and give its name that number."""
        number = self.add(step.value)
        self._named["step", step.name] = number
        return number

    def number(self, expression: ir.Expression) -> int:
        return self.by_index[expression.index]

    def constant(self, name: str) -> Value:
        return self._constants[name].value

    def output(self, name: str, type_: Type) -> int:
        """Return the number of an output."""
        return self._number(("output", name), "output", (), type_)

    def _part_number(self, part: ir.Expression) -> int:
        match part:
            case ir.Local(local, _, type_):
                if local in self._locals:
                    return self.by_index[self._locals[local]]
                return self._number(("local", local), "local", (), type_)
            case ir.Let(body=body):
                return self.by_index[body.index]
            case ir.Field(of=ir.RecordValue(fields=fields), name=name):
                return self.by_index[next(value for field_name, value in fields if field_name == name).index]
            case ir.Field(of=of, name=name, type=type_):
                inner = self.by_index[of.index]
                return self._number(("field", inner, name), "field", (inner,), type_)
            case ir.If(condition, then, otherwise, type_):
                parts = tuple(self.by_index[each.index] for each in (condition, then, otherwise))
                return self._number(("if", parts), "if", parts, type_)
            case ir.Logical(kind, left, right):
                parts = (self.by_index[left.index], self.by_index[right.index])
                return self._number((kind, parts), kind, parts, part.type)
            case _:
                return self._number(("expression", part.index), "other", (), part.type)

    def _literal(self, type_: Type, value: Value) -> int:
        before = len(self.terms)
        number = self._number(("literal", type_, repr(value)), "literal", (), type_)
        if number == before:
            self.always[number] = of_value(type_, value)
        return number

    def _reference(self, kind: str, name: str, type_: Type) -> int:
        if kind == "step" and ("step", name) in self._named:
            return self._named["step", name]
        before = len(self.terms)
        number = self._number((kind, name), kind, (), type_)
        if kind == "constant" and number == before:
            self.always[number] = of_value(type_, self._constants[name].value)
        return number

    def _number(self, key: Hashable, form: str, parts: tuple[int, ...], type_: Type) -> int:
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.terms)
            self.terms.append(Term(form, parts, type_))
            self.always.append(of_type(type_))
        return found

    # -- facts ------------------------------------------------------------------------------------

    def known(self, number: int, facts: Facts) -> Known:
        """Return the known values of a term, without conclusions from its operands."""
        # A learnt set already includes `always`, because `learn` intersects with it.
        learnt = facts.values.get(number)
        return self.always[number] if learnt is None else learnt

    def is_fixed(self, number: int) -> bool:
        """Return whether the term is a literal, about which nothing can be learnt."""
        return self.terms[number].form == "literal"

    def relates_names(self, facts: Facts) -> bool:
        """Return whether an order between two terms is known, neither of them a literal."""
        return any(self.terms[one].form != "literal" != self.terms[other].form for one, other in facts.orders)

    def learn(self, facts: Facts, number: int, value: Known, depth: int = _MAX_BACK) -> Facts | None:
        """Return the facts with one added; None on a contradiction. The fact propagates back to the operands."""
        values = facts.values
        before = values.get(number)
        if before is None:
            before = self.always[number]
        now = meet(before, value)
        if now is before:
            return facts
        if now is None:
            return None
        if now == before:
            return facts
        if len(values) >= MAX_FACTS and number not in values:
            return facts
        learnt: Facts | None = Facts({**values, number: now}, facts.orders)
        term = self.terms[number]
        if depth > 0 and term.form in _INVERTIBLE:
            for part, follows in self._operand_sets(term, now):
                learnt = None if learnt is None else self.learn(learnt, part, follows, depth - 1)
        return learnt

    def _operand_sets(self, term: Term, value: Known) -> list[tuple[int, Known]]:
        """Return the value sets of the operands that a term's value implies."""
        match term.form, value:
            case "decimal.from_integer", Interval():
                follows = meet(INTEGERS, value)
                return [] if follows is None else [(term.parts[0], follows)]
            case "integer.negate" | "decimal.negate", Interval():
                return [(term.parts[0], negative(value))]
            case "integer.add" | "decimal.add", Interval():
                return self._sum_operand_sets(term, value, is_difference=False)
            case "integer.subtract" | "decimal.subtract", Interval():
                return self._sum_operand_sets(term, value, is_difference=True)
            case "text.length", Interval():
                return [(term.parts[0], Texts(value))]
            case "array.length" | "set.length" | "map.length", Interval():
                return [(term.parts[0], Sized(value))]
            case "optional.unwrap" | "optional.require" | "optional.in_force", _:
                return [(term.parts[0], Nullable(False, value))]
            case "optional.some", Nullable(value=inner) if inner is not None:
                return [(term.parts[0], inner)]
            case _:
                return []

    def _sum_operand_sets(self, term: Term, value: Interval, is_difference: bool) -> list[tuple[int, Known]]:
        """Return the value sets of a sum's operands. `x + 5 > 10` implies `x > 5`, if one side has a constant set."""
        left, right = term.parts
        found: list[tuple[int, Known]] = []
        other = self.always[right]
        if isinstance(other, Interval) and other is not DECIMALS:
            found.append((left, plus(value, other if is_difference else negative(other))))
        other = self.always[left]
        if isinstance(other, Interval) and other is not DECIMALS:
            found.append((right, plus(other, negative(value)) if is_difference else plus(value, negative(other))))
        return found


@dataclass(slots=True)
class Facts:
    """Facts at one position, beyond the sets that hold everywhere. Other terms may have any value of their set.

    INVARIANT: never changed; not frozen, for the reason given in `intervals`.
    """

    values: dict[int, Known] = field(default_factory=dict)
    orders: dict[tuple[int, int], int] = field(default_factory=dict)
    """Possible orders of two terms; the pair has the smaller number first."""

    def order(self, one: int, other: int) -> int:
        """Return the possible orders of two terms."""
        if one <= other:
            return self.orders.get((one, other), ANY_ORDER)
        return swap_orders(self.orders.get((other, one), ANY_ORDER))

    def with_order(self, one: int, other: int, orders: int) -> Facts:
        """Return the facts with new orders of two terms. They stay unchanged at the limit of facts."""
        if self.order(one, other) == orders or len(self.orders) >= MAX_FACTS:
            return self
        key, orders = ((one, other), orders) if one <= other else ((other, one), swap_orders(orders))
        return Facts(self.values, {**self.orders, key: orders})


def either(one: Facts | None, other: Facts | None) -> Facts | None:
    """Return the facts that hold where one or the other set of facts holds."""
    if one is None or other is None or one is other:
        return other if one is None else one
    values = {
        number: join(value, other.values[number]) for number, value in one.values.items() if number in other.values
    }
    orders = {pair: orders | other.orders[pair] for pair, orders in one.orders.items() if pair in other.orders}
    return Facts(values, {pair: each for pair, each in orders.items() if each != ANY_ORDER})
