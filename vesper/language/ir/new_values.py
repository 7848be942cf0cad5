"""New values of a loop, and the memory that they take (docs/spec/limits.md, "Memory").

A plan (`vesper.values.prices`) selects the parts of a value that are new since a scope began: a round of a loop. Names
that were bound before refer to older values.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements, expressions_of
from vesper.values.generated.operations import OPERATIONS
from vesper.values.limits import FREE_SIZE
from vesper.values.prices import (
    ENTRY_BYTES,
    FRESH,
    KEPT,
    MEMBER_BYTES,
    SLOT_BYTES,
    Plan,
    parts,
    plan_of_result,
    price_of,
)
from vesper.values.types import (
    BYTES,
    STRING,
    ArrayOf,
    MapOf,
    OptionalOf,
    Parameter,
    Record,
    SetOf,
    Type,
    declared_type,
    type_text,
)

ItemPrice = int | tuple[int, str, Plan]
"""A fixed price; or a fixed part, the type of a value and the plan of its parts."""

CONVERSIONS = frozenset(("json.cast", "json.from_value", "json.parse"))
"""Operations whose large calls are those with a large result."""
_SAME_JSON = frozenset(("json.get", "json.field", "json.item"))
_PLACES = {
    "array": SLOT_BYTES,
    "avg": SLOT_BYTES,
    "group_by": SLOT_BYTES,
    "set": MEMBER_BYTES,
    "map": ENTRY_BYTES,
    "index_by": ENTRY_BYTES,
    "distinct_by": ENTRY_BYTES,
    "sort_by": 2 * SLOT_BYTES,
    "count_by": 0,
}
"""Price of the place of an item, by the kind of `for`."""
_MAX_ROUNDS = 64
_MAX_RECORD_BYTES = 184 + 24 * 256
_UNBOUNDED = 2**40


class Planner:
    """Finds the new parts of values within one scope."""

    def __init__(self, plan_apply: Plan = FRESH) -> None:
        self.plan_apply = plan_apply
        """Plan of the value of a recursive function. A function pays for it when it returns."""
        self.locals: dict[int, Plan] = {}
        self.steps: dict[str, Plan] = {}

    def plan(self, expression: ir.Expression) -> Plan:
        match expression:
            case ir.Literal() | ir.Now():
                return KEPT
            case ir.Ref(kind=kind, name=name):
                return self.steps.get(name, KEPT) if kind == "step" else KEPT
            case ir.Local(number=number):
                return self.locals.get(number, KEPT)
            case ir.Call():
                return self._plan_call(expression)
            case ir.If(then=then, otherwise=otherwise):
                return join(self.plan(then), self.plan(otherwise))
            case ir.Let(local=local, value=value, body=body):
                self.locals[local] = self.plan(value)
                return self.plan(body)
            case ir.Array(items=items):
                return (join_all(map(self.plan, items)),)
            case ir.RecordValue(fields=fields):
                return tuple(self.plan(value) for _, value in fields)
            case ir.Field(of=of, name=name):
                assert isinstance(of.type, Record)
                place = [each for each, _ in of.type.fields].index(name)
                return parts(of.type, self.plan(of))[place]
            case ir.For():
                over = parts(expression.over.type, self.plan(expression.over))
                names = expression.locals[:-1] if expression.kind == "fold" else expression.locals
                self.locals.update(zip(names, over, strict=False))
                return self._plan_for(expression, over[0])
            case ir.Apply():
                return self.plan_apply
            case ir.Result() | ir.Logical():
                return FRESH

    def _plan_call(self, call: ir.Call) -> Plan:
        if call.op == "json.cast":
            return FRESH
        if call.op in _SAME_JSON:
            return self.plan(call.args[0])
        spec = OPERATIONS[call.op]
        of_parameter: Plan = KEPT
        for argument, (_, declared) in zip(call.args, spec.params, strict=False):
            if _mentions_parameter(_parse_type(declared)) and self.plan(argument) is not KEPT:
                of_parameter = FRESH
        return plan_of_result(_parse_type(spec.returns), of_parameter)

    def _plan_for(self, loop: ir.For, item: Plan) -> Plan:
        match loop.kind:
            case "array" | "set":
                return (self.plan(loop.value),)
            case "map":
                assert loop.key is not None
                return self.plan(loop.key), self.plan(loop.value)
            case "min" | "max":
                return self.plan(loop.value)
            case "sort_by" | "distinct_by" | "take_while" | "drop_while":
                return (item,)
            case "min_by" | "max_by":
                return item
            case "group_by":
                return self.plan(loop.value), (item,)
            case "count_by":
                return self.plan(loop.value), FRESH
            case "index_by":
                return self.plan(loop.value), item
            case "fold":
                assert loop.with_ is not None
                return self.plan_state(loop, self.plan(loop.with_))
            case _:
                return FRESH

    def plan_state(self, fold: ir.For, first: Plan) -> Plan:
        """Return the plan of the state of a fold after any number of rounds."""
        state = first
        for _ in range(_MAX_ROUNDS):
            self.locals[fold.locals[-1]] = state
            following = join(state, self.plan(fold.value))
            if following == state:
                return state
            state = following
        return FRESH

    def bind(self, block: ir.Block) -> None:
        """Bind the steps of a block."""
        for statement in block:
            match statement:
                case ir.Step(name=name, value=value, handlers=handlers):
                    plan = self.plan(value)
                    for handler in handlers:
                        self.bind(handler.body)
                        plan = join(KEPT if handler.value is None else self.plan(handler.value), plan)
                    self.steps[name] = plan
                case ir.Branch(name=name, arms=arms, otherwise=otherwise):
                    for arm in arms:
                        self.bind(arm.body)
                    self.bind(otherwise)
                    self.steps[name] = FRESH
                case ir.Parallel(members=members):
                    for member in members:
                        self.bind(member)
                case ir.Loop(name=name) | ir.Request(name=name) | ir.CallNode(name=name):
                    self.steps[name] = FRESH
                case _:
                    pass


def join(left: Plan, right: Plan) -> Plan:
    """Return the plan of a value that has one of two plans."""
    if left is KEPT:
        return right
    if right is KEPT:
        return left
    if left is FRESH or right is FRESH:
        return FRESH
    assert isinstance(left, tuple)
    assert isinstance(right, tuple)
    return tuple(join(each, other) for each, other in zip(left, right, strict=True))


def join_all(plans: Iterable[Plan]) -> Plan:
    found: Plan = KEPT
    for plan in plans:
        found = join(found, plan)
    return found


def price_item(loop: ir.For) -> ItemPrice | None:
    """Return the price of each item that a `for` keeps. None if it keeps none."""
    if loop.kind in ("take_while", "drop_while"):
        return SLOT_BYTES
    place = _PLACES.get(loop.kind)
    return None if place is None else price_new(Planner(), loop.value, place)


def price_key(loop: ir.For) -> ItemPrice:
    """Return the price of the key of each entry."""
    assert loop.key is not None
    return price_new(Planner(), loop.key, 0)


def price_new(planner: Planner, value: ir.Expression, place: int) -> ItemPrice:
    """Return the price of a value that a round passes on, with its place."""
    return _price(value.type, planner.plan(value), place)


def price_fold(fold: ir.For) -> ItemPrice | None:
    """Return the price of the state of a fold. None if it is fixed."""
    return _price_unless_fixed(_price(fold.value.type, Planner().plan_state(fold, KEPT), 0))


def price_states(loop: ir.Loop) -> list[ItemPrice]:
    """Return the prices of the state of a loop. Empty if all are fixed."""
    planner = Planner()
    nexts = dict(loop.next)
    plans: list[Plan] = [KEPT for _ in loop.state]
    for _ in range(_MAX_ROUNDS):
        planner.locals.update(zip((each.local for each in loop.state), plans, strict=True))
        planner.bind(loop.body)
        following = [
            join(plan, planner.plan(nexts[each.local]) if each.local in nexts else KEPT)
            for each, plan in zip(loop.state, plans, strict=True)
        ]
        if following == plans:
            break
        plans = following
    prices = [_price(each.value.type, plan, 0) for each, plan in zip(loop.state, plans, strict=True)]
    return [] if all(isinstance(price, int) for price in prices) else prices


def price_function(function: ir.Function) -> ItemPrice | None:
    """Return the price of the value that a recursive call created.

    None if it is fixed. The values of inner calls are older: those calls paid for them.
    """
    return _price_unless_fixed(_price(function.returns, Planner(KEPT).plan(function.value), 0))


def price_collected(loop: ir.Loop) -> ItemPrice:
    assert loop.collect is not None
    planner = Planner()
    planner.bind(loop.body)
    return price_new(planner, loop.collect, SLOT_BYTES)


def takes_memory(expression: ir.Expression | None) -> bool:
    """Return whether evaluating an expression may take memory."""
    return expression is not None and any(map(_takes_memory, ir.walk(expression)))


def loop_takes_memory(loop: ir.Loop) -> bool:
    """Return whether a round may take memory."""
    inside = (loop.where, loop.condition, loop.collect, loop.stop_when, *(value for _, value in loop.next))
    return (
        any(map(takes_memory, inside))
        or any(isinstance(each, ir.Loop | ir.CallNode | ir.Request) for each in all_statements(loop.body))
        or any(map(takes_memory, expressions_of(loop.body)))
    )


def _takes_memory(expression: ir.Expression) -> bool:
    match expression:
        case ir.For() | ir.Apply():
            return True
        case ir.Call(op=op):
            spec = OPERATIONS[op]
            returns = _parse_type(spec.returns)
            is_varying = not isinstance(price_of(returns, plan_of_result(returns, KEPT)), int)
            return op in CONVERSIONS or (bool(spec.work) and is_varying)
        case _:
            return False


def max_price(price: ItemPrice) -> int:
    """Return the maximum for a value of this price. It holds if no call of its node was large."""
    if isinstance(price, int):
        return price
    fixed, type_, plan = price
    return fixed + _max_price(declared_type(type_), plan)


def _max_price(type_: Type, plan: Plan) -> int:
    price = price_of(type_, plan)
    if isinstance(price, int):
        return price
    match type_:
        case OptionalOf(inner):
            return _max_price(inner, plan)
        case Record(fields):
            inner_plans = zip(fields, parts(type_, plan), strict=True)
            return _MAX_RECORD_BYTES + sum(_max_price(each, part) for (_, each), part in inner_plans)
        case _ if type_ in (STRING, BYTES):
            return 80 + 4 * FREE_SIZE
        case _:
            return _UNBOUNDED


def _price(type_: Type, plan: Plan, place: int) -> ItemPrice:
    price = price_of(type_, plan)
    return place + price if isinstance(price, int) else (place, type_text(type_, has_outside=False), plan)


def _price_unless_fixed(price: ItemPrice) -> ItemPrice | None:
    return None if isinstance(price, int) else price


@cache
def _parse_type(text: str) -> Type:
    return declared_type(text)


def _mentions_parameter(declared: Type) -> bool:
    match declared:
        case Parameter():
            return True
        case ArrayOf(inner) | SetOf(inner) | OptionalOf(inner):
            return _mentions_parameter(inner)
        case MapOf(key, value):
            return _mentions_parameter(key) or _mentions_parameter(value)
        case Record(fields):
            return any(_mentions_parameter(each) for _, each in fields)
        case _:
            return False
