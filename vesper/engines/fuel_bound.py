"""Compute an upper bound of the fuel of a node from its IR. Below the limit, nothing has to be counted.

The rounds of a loop are bounded by the length of its collection: a literal, a range of literals, a type with few
values, an input with a length constraint; else by the maximum length of a collection.
"""

from __future__ import annotations

from collections.abc import Mapping

from vesper.codegen.ranges import integer_range
from vesper.language.ir import nodes as ir
from vesper.language.ir.new_values import max_price, price_collected, price_item, price_key
from vesper.values.model import MAX_ENTRIES
from vesper.values.prices import STRAND_BYTES
from vesper.values.types import BOOLEAN, Enum, MapOf, SetOf, Type, without_null

_NO_LONGER = frozenset((
    "array.take", "array.drop", "array.slice", "array.replace_at", "array.sort", "array.distinct", "array.zip",
    "array.enumerate", "array.reverse", "array.to_set", "map.keys", "map.values", "map.entries", "map.remove",
    "map.from_entries", "set.intersection", "set.difference", "set.remove", "set.to_array",
))  # fmt: skip
"""Operations whose result has no more items than their first argument."""
_ONE_MORE = frozenset(("array.append", "map.put", "set.put"))
_BOTH = frozenset(("array.concat", "map.merge", "set.union"))
_LENGTHS = frozenset(("array.length", "set.length", "map.length"))

_GROUP_BYTES = 200
_UNBOUNDED = 2**64
"""More than every limit."""
_Name = tuple[str, str]
"""The kind of a reference, and its name."""


def fuel_bound(node: ir.Node, callees: Mapping[str, int]) -> int:
    """Return the bound; `callees` are the bounds of the called nodes, by id."""
    return _Bounds(node, callees).of_node()


def memory_bound(node: ir.Node, callees: Mapping[str, int]) -> int:
    """Return the most bytes that a node's loops take, if no call is large."""
    return _MemoryBounds(node, callees).of_node()


def loop_bounds(node: ir.Node) -> Mapping[str, int]:
    """Return the maximum number of rounds of each loop of a node, by name."""
    bounds = _Bounds(node, dict.fromkeys((each.node for each in node.calls), 0))
    bounds.of_node()
    return bounds.rounds


class _Bounds:
    def __init__(self, node: ir.Node, callees: Mapping[str, int]) -> None:
        self._node = node
        self._callees = callees
        self._sizes: dict[_Name, int] = {
            ("constant", each.name): len(each.value)
            for each in node.constants
            if isinstance(each.value, list | dict | frozenset)
        }
        self._lets = {each.local: each.value for each in node.expressions() if isinstance(each, ir.Let)}
        self._found: dict[int, tuple[int, int]] = {}
        """Cost and length of the value of an expression, by its index."""
        self.rounds: dict[str, int] = {}
        """The most rounds of each loop, by its name; `MAX_ENTRIES` or more where nothing bounds its collection."""

    def of_node(self) -> int:
        node = self._node
        # Each clause before the body is evaluated unconditionally; the lengths that they imply hold after them.
        total = sum(self._cost(clause.holds) for clause in (*node.constraints, *node.preconditions))
        for clause in (*node.constraints, *node.preconditions):
            self._learn(clause.holds)
        total += self._block(node.body)
        return total + sum(self._cost(clause.holds) for clause in (*node.postconditions, *node.invariants))

    def _learn(self, holds: ir.Expression) -> None:
        """Learn lengths from clauses such as `length(xs) <= 10`."""
        match holds:
            case ir.Logical("and", left, right):
                self._learn(left)
                self._learn(right)
            case ir.Call(
                op="integer.less_or_equal" | "integer.less" | "integer.equal",
                args=(ir.Call(op=op, args=(ir.Ref(kind="input", name=name),)), ir.Literal(value=int(most))),
            ) if op in _LENGTHS:
                known = self._sizes.get(("input", name), MAX_ENTRIES)
                self._sizes["input", name] = max(0, min(known, most))
            case _:
                pass

    # -- statements -------------------------------------------------------------------------------

    def _block(self, block: ir.Block) -> int:
        return sum(self._statement(statement) for statement in block)

    def _statement(self, statement: ir.Statement) -> int:
        match statement:
            case ir.Step():
                cost = self._cost(statement.value)
                if not statement.handlers:
                    self._sizes["step", statement.name] = self._size(statement.value)
                return cost + self._handlers(statement.handlers)
            case ir.Return() | ir.Raise():
                return sum(self._cost(value) for _, value in statement.values)
            case ir.Require(clause):
                return self._cost(clause.holds)
            case ir.Branch():
                arms = sum(
                    self._cost(arm.when) + self._block(arm.body) + self._optional(arm.value) for arm in statement.arms
                )
                otherwise = self._block(statement.otherwise) + self._optional(statement.otherwise_value)
                return arms + otherwise + self._handlers(statement.handlers)
            case ir.Loop():
                return self._loop(statement) + self._handlers(statement.handlers)
            case ir.Parallel():
                inside = sum(map(self._block, statement.members)) + self._unit_of_strands(len(statement.members))
                return inside + self._handlers(statement.handlers)
            case ir.Request():
                arguments = sum(self._cost(value) for _, value in statement.arguments)
                return self._optional(statement.key) + arguments + self._handlers(statement.handlers)
            case ir.CallNode():
                inputs = sum(self._cost(value) for _, value in statement.inputs)
                return inputs + 1 + self._callees[statement.node] + self._handlers(statement.handlers)

    def _handlers(self, handlers: tuple[ir.Handler, ...]) -> int:
        return sum(self._block(handler.body) + self._optional(handler.value) for handler in handlers)

    def _loop(self, loop: ir.Loop) -> int:
        before = self._optional(loop.over) + sum(self._cost(each.value) for each in loop.state)
        taken = loop.max if loop.over is None else self._size(loop.over)
        rounds = self.rounds[loop.name] = min(taken, loop.max)
        next_ = sum(self._cost(value) for _, value in loop.next)
        inside = self._block(loop.body) + self._optional(loop.collect) + next_ + self._optional(loop.stop_when)
        # A condition is evaluated once more than there are rounds.
        conditions = (taken + 1) * (self._optional(loop.where) + self._optional(loop.condition))
        strands = self._unit_of_strands(loop.in_flight or 0)
        return before + taken * self._unit_of_loop(loop) + conditions + rounds * inside + strands

    def _unit_of_strands(self, count: int) -> int:
        """Return the cost of open strands without their expressions."""
        return 0

    def _unit_of_loop(self, loop: ir.Loop) -> int:
        """Return the cost of a round without its expressions."""
        return 1

    def _unit_of_for(self, loop: ir.For) -> int:
        """Return the cost of an item without its expressions."""
        return 1

    # -- expressions ------------------------------------------------------------------------------

    def _optional(self, expression: ir.Expression | None) -> int:
        return 0 if expression is None else self._cost(expression)

    def _cost(self, root: ir.Expression) -> int:
        for part in ir.walk(root):
            # Operands precede their operation, and the value of a name precedes its uses.
            self._found[part.index] = self._own_cost(part), min(self._own_size(part), _max_length(part.type))
        return self._found[root.index][0]

    def _size(self, expression: ir.Expression) -> int:
        return self._found[expression.index][1]

    def _own_cost(self, expression: ir.Expression) -> int:
        cost = self._known_cost
        match expression:
            case ir.For(over=over, with_=with_, where=where, key=key, value=value):
                return (
                    cost(over)
                    + cost(with_)
                    + self._size(over) * (self._unit_of_for(expression) + cost(where) + cost(key) + cost(value))
                )
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                return cost(condition) + max(cost(then), cost(otherwise))
            case ir.Apply():
                return _UNBOUNDED
            case _:
                return sum(cost(part) for part in ir.children(expression))

    def _known_cost(self, expression: ir.Expression | None) -> int:
        return 0 if expression is None else self._found[expression.index][0]

    def _own_size(self, expression: ir.Expression) -> int:
        match expression:
            case ir.Literal(value=list() | dict() | frozenset() as value):
                return len(value)
            case ir.Array(items=items):
                return len(items)
            case ir.Ref(kind=kind, name=name):
                return self._sizes.get((kind, name), MAX_ENTRIES)
            case ir.Local(number=number) if number in self._lets:
                return self._size(self._lets[number])
            case ir.Let(body=body):
                return self._size(body)
            case ir.If(then=then, otherwise=otherwise):
                return max(self._size(then), self._size(otherwise))
            case ir.For(kind=kind, over=over) if kind != "fold":
                return self._size(over)
            case ir.Call():
                return self._size_of_call(expression)
            case _:
                return MAX_ENTRIES

    def _size_of_call(self, call: ir.Call) -> int:
        if call.op == "array.range" and len(call.args) > 1:
            # Whatever the step is, there are no more numbers than from one end to the other.
            (least_start, most_start), (least_end, most_end) = map(integer_range, call.args[:2])
            return max(0, most_end - least_start, most_start - least_end)
        if call.op == "array.take":
            return max(0, min(self._size(call.args[0]), integer_range(call.args[1])[1]))
        if call.op in _NO_LONGER:
            return self._size(call.args[0])
        if call.op in _ONE_MORE:
            return self._size(call.args[0]) + 1
        if call.op in _BOTH:
            return self._size(call.args[0]) + self._size(call.args[1])
        return MAX_ENTRIES


class _MemoryBounds(_Bounds):
    """Bounds in bytes: an item costs the price of the values that its loop keeps."""

    def _unit_of_loop(self, loop: ir.Loop) -> int:
        return 0 if loop.collect is None else max_price(price_collected(loop))

    def _unit_of_strands(self, count: int) -> int:
        return count * STRAND_BYTES

    def _unit_of_for(self, loop: ir.For) -> int:
        price = price_item(loop)
        if price is None:
            return 0
        groups = _GROUP_BYTES if loop.kind in ("group_by", "count_by") else 0
        return max_price(price) + groups + (0 if loop.key is None else max_price(price_key(loop)))


def _max_length(type_: Type) -> int:
    """Return the maximum length of a value of this type."""
    match without_null(type_):
        case SetOf(Enum(members)) | MapOf(Enum(members), _):
            return len(members)
        case SetOf(key) | MapOf(key, _) if key == BOOLEAN:
            return 2
        case _:
            return MAX_ENTRIES
