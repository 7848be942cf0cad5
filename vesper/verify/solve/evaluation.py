"""Values of a node's expressions on candidate inputs.

A solver reads the value of every part of a condition after every change of an input. Each expression therefore becomes
one closure over the kernels, which needs no generated code and no execution.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

from vesper.codegen.spelling import BY_ORDER, BY_TYPE
from vesper.kernels.raised import Raised
from vesper.kernels.runtime import forms
from vesper.language.ir.nodes import (
    Apply,
    Array,
    Branch,
    Call,
    Expression,
    Field,
    For,
    If,
    Let,
    Literal,
    Local,
    Logical,
    Loop,
    Node,
    RecordValue,
    Ref,
    Return,
    Step,
    walk,
)
from vesper.language.ir.statements import all_statements
from vesper.values.types import ArrayOf, Enum, MapOf, OptionalOf, Record, Type, type_text

Closure: TypeAlias = "Callable[[Scope], Any]"
_MAX_DEPTH = 16
"""Calls of recursive functions that a solver follows; each takes several frames of Python."""


class CannotEvaluate(Exception):
    """An expression has no value on these inputs, or depends on more than the inputs."""


FAILURES = (CannotEvaluate, Raised, ArithmeticError, TypeError, ValueError, LookupError, AttributeError)
"""Exceptions of an expression without a value; a kernel behind an unmet condition may get a null."""


@dataclass(slots=True)
class Binding:
    """The value of a local, and the expression that a new value must be assigned to."""

    value: Any
    source: Expression
    index: Any = None
    """Place of the item in the collection `source`, as (kind, key); None for a LET."""
    scope: Scope | None = None


_MAX_ROUNDS = 200_000
"""Maximum number of items that the evaluation of one candidate reads."""


@dataclass(slots=True)
class Scope:
    """Candidate inputs, with the locals of enclosing expressions."""

    inputs: dict[str, Any]
    locals: dict[int, Binding] = field(default_factory=dict)
    steps: dict[str, Any] = field(default_factory=dict)
    """Values of steps, until an input changes."""
    depth: int = 0
    """Number of active calls of recursive functions."""
    rounds: list[int] = field(default_factory=lambda: [0])
    """Number of items read so far, shared by the scopes of one candidate."""

    def bind(self, bindings: dict[int, Binding]) -> Scope:
        return Scope(self.inputs, self.locals | bindings, self.steps, self.depth, self.rounds)

    def copy(self) -> Scope:
        return Scope(dict(self.inputs))


class Evaluator:
    """Closures of the expressions of one node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._closures: dict[int, tuple[Expression, Closure]] = {}
        """Closures by the identity of their expressions, which stay alive; those of a goal have no index."""
        self._functions = {each.name: each for each in node.functions}
        self._constants = {each.name: each.value for each in node.constants}
        named = [each for each in all_statements(node.body) if isinstance(each, Step | Branch)]
        self.steps: dict[str, Step | Branch] = {each.name: each for each in named}
        """Steps whose values follow from the inputs."""
        loops = [each for each in all_statements(node.body) if isinstance(each, Loop)]
        inside = [each for loop in loops for each in all_statements(loop.body)]
        self._in_loops = {each.name for each in inside if isinstance(each, Step | Branch)}
        ends = [each for each in all_statements(node.body) if isinstance(each, Return)]
        self._outputs = dict(ends[0].values) if len(ends) == 1 else {}

    def sources(self, ref: Ref) -> list[Expression]:
        """Return the expressions from which a step or an output has its value."""
        if ref.kind == "output" and ref.name in self._outputs:
            return [self._outputs[ref.name]]
        statement = self.steps.get(ref.name) if ref.kind == "step" else None
        if statement is None:
            return []
        return [statement.value] if isinstance(statement, Step) else _parts_of(statement)

    def value(self, expression: Expression, scope: Scope) -> Any:
        """Return the value of an expression, or raise one of `FAILURES`."""
        return self.closure(expression)(scope)

    def closure(self, expression: Expression) -> Closure:
        found = self._closures.get(id(expression))
        if found is None:
            found = self._closures[id(expression)] = (expression, self._compile(expression))
        return found[1]

    def is_value(self, condition: Expression, wanted: bool, scope: Scope) -> bool:
        """Return whether a condition has a value on the inputs."""
        try:
            return self.closure(condition)(scope) is wanted
        except FAILURES:
            return False

    def holds(self, condition: Expression, scope: Scope) -> bool:
        return self.is_value(condition, True, scope)

    def items(self, collection: Expression, scope: Scope) -> list[tuple[Any, tuple[Any, ...]]]:
        """Return the items of a collection as (place, values of the locals)."""
        value = self.value(collection, scope)
        scope.rounds[0] += len(value)
        if scope.rounds[0] > _MAX_ROUNDS:
            raise CannotEvaluate
        if isinstance(collection.type, MapOf):
            return [(("key", key), (key, found)) for key, found in value.items()]
        kind = "item" if isinstance(value, list) else "member"
        members = value if isinstance(value, list) else sorted(value)
        return [((kind, at if kind == "item" else member), (member,)) for at, member in enumerate(members)]

    def bind_item(self, locals_: tuple[int, ...], over: Expression, scope: Scope, place: Any, values: Any) -> Scope:
        """Return a scope in which the locals are the item at a place of a collection."""
        kind, key = place
        if kind == "key":
            places = (("map_key", key), ("map_value", key))
            return scope.bind({n: Binding(v, over, p, scope) for n, v, p in zip(locals_, values, places, strict=False)})
        return scope.bind({locals_[0]: Binding(values[0], over, place, scope)})

    # -- closures ----------------------------------------------------------------------------------

    def _compile(self, expression: Expression) -> Closure:
        match expression:
            case Literal(value=value):
                return lambda _: value
            case Ref(kind="input", name=name):
                return lambda scope: scope.inputs[name]
            case Ref(kind="constant", name=name):
                constant = self._constants[name]
                return lambda _: constant
            case Ref(kind="output", name=name) if name in self._outputs:
                return self.closure(self._outputs[name])
            case Ref(kind="step", name=name):
                return lambda scope: self._step(name, scope)
            case Call():
                return self._call(expression)
            case Logical(kind=kind, left=left, right=right):
                first, second = self.closure(left), self.closure(right)
                if kind == "and":
                    return lambda scope: first(scope) and second(scope)
                return lambda scope: first(scope) or second(scope)
            case If(condition=condition, then=then, otherwise=otherwise):
                test, yes, no = self.closure(condition), self.closure(then), self.closure(otherwise)
                return lambda scope: yes(scope) if test(scope) else no(scope)
            case Local(number=number):
                return lambda scope: scope.locals[number].value
            case Let(local=local, value=value_, body=body):
                given, rest = self.closure(value_), self.closure(body)
                return lambda scope: rest(scope.bind({local: Binding(given(scope), value_, None, scope)}))
            case Field(of=of, name=name):
                record = self.closure(of)
                return lambda scope: record(scope)[name]
            case Array(items=items):
                parts = [self.closure(each) for each in items]
                return lambda scope: [each(scope) for each in parts]
            case RecordValue(fields=fields):
                named = [(name, self.closure(each)) for name, each in fields]
                return lambda scope: {name: each(scope) for name, each in named}
            case For():
                return lambda scope: self._for(expression, scope)
            case Apply():
                return lambda scope: self._apply(expression, scope)
            case _:
                return _unknown

    def _apply(self, apply: Apply, scope: Scope) -> Any:
        function = self._functions[apply.function]
        values = [self.value(each, scope) for each in apply.args]
        inner = Scope(scope.inputs, steps=scope.steps, depth=scope.depth + 1, rounds=scope.rounds)
        if inner.depth > min(function.max_depth, _MAX_DEPTH):
            raise CannotEvaluate
        for parameter, source, value in zip(function.parameters, apply.args, values, strict=True):
            inner.locals[parameter.local] = Binding(value, source, None, scope)
        return self.value(function.value, inner)

    def _call(self, call: Call) -> Closure:
        function, more = kernel(call.op), _type_arguments(call)
        args = [self.closure(each) for each in call.args]
        if call.op == "optional.unwrap":
            (only,) = args
            return lambda scope: _not_null(only(scope))
        if more:
            return lambda scope: function(*[each(scope) for each in args], *more)
        if len(args) == 1:
            (only,) = args
            return lambda scope: function(only(scope))
        if len(args) == 2:
            left, right = args
            return lambda scope: function(left(scope), right(scope))
        return lambda scope: function(*[each(scope) for each in args])

    def _step(self, name: str, scope: Scope) -> Any:
        if name in scope.steps:
            return scope.steps[name]
        statement = self.steps.get(name)
        if statement is None:  # its value does not follow from the inputs
            return _unknown(scope)
        value = statement.value if isinstance(statement, Step) else self.taken_value(statement, scope)
        found = _unknown(scope) if value is None else self.value(value, scope)
        if name not in self._in_loops:  # a step inside a loop has one value for each round
            scope.steps[name] = found
        return found

    def taken_value(self, branch: Branch, scope: Scope) -> Expression | None:
        """Return the value of the arm that is taken."""
        for arm in branch.arms:
            if self.value(arm.when, scope):
                return arm.value
        return branch.otherwise_value

    def _for(self, loop: For, scope: Scope) -> Any:
        values = self._values(loop, scope)
        match loop.kind:
            case "forall":
                return all(value for value, _ in values)
            case "exists":
                return any(value for value, _ in values)
            case "array" | "set":
                found = [value for value, _ in values]
                return found if loop.kind == "array" else frozenset(found)
            case "count":
                return sum(1 for _ in values)
            case "sum" | "avg":
                family = {"integer": "integer", "float": "float", "duration": "duration"}.get(
                    type_text(loop.value.type), "decimal"
                )
                return kernel(f"{family}.{loop.kind}")([value for value, _ in values])
            case "min" | "max":
                return kernel(f"array.{loop.kind}")([value for value, _ in values], *_members_of(loop.value))
            case "fold" | "map":
                return self._fold_or_map(loop, scope)
            case _:
                return self._by_key(loop, list(values))

    def _values(self, loop: For, scope: Scope) -> Iterator[tuple[Any, Any]]:
        """Yield the value and the item of every round."""
        where = None if loop.where is None else self.closure(loop.where)
        value = self.closure(loop.value)
        # One scope for all rounds: nothing is assigned while values are read.
        bound = {number: Binding(None, loop.over) for number in loop.locals}
        inner = scope.bind(bound)
        bindings = list(bound.values())
        for _, item in self.items(loop.over, scope):
            for binding, part in zip(bindings, item, strict=False):
                binding.value = part
            if where is None or where(inner):
                yield value(inner), item[0]

    def _fold_or_map(self, loop: For, scope: Scope) -> Any:
        entries: dict[Any, Any] = {}
        state = None if loop.with_ is None else self.value(loop.with_, scope)
        for place, item in self.items(loop.over, scope):
            inner = self.bind_item(loop.locals, loop.over, scope, place, item)
            if loop.kind == "fold":
                inner = inner.bind({loop.locals[-1]: Binding(state, loop.value)})
            if loop.where is not None and not self.value(loop.where, inner):
                continue
            state = self.value(loop.value, inner)
            if loop.key is not None:
                entries[self.value(loop.key, inner)] = state
        return state if loop.kind == "fold" else entries

    def _by_key(self, loop: For, pairs: list[tuple[Any, Any]]) -> Any:
        keys = iter([key for key, _ in pairs])
        items = [item for _, item in pairs]
        members = _members_of(loop.value)

        def next_key(_: Any) -> Any:
            return next(keys)

        match loop.kind:
            case "sort_by":
                order = loop.with_.value if isinstance(loop.with_, Literal) else "ascending"
                return forms.sorted_by(next_key, items, str(order), *members)
            case "distinct_by":
                return forms.distinct_by(next_key, items)
            case "min_by":
                return forms.least_by(next_key, items, *members)
            case "max_by":
                return forms.greatest_by(next_key, items, *members)
            case "group_by":
                return forms.grouped_by(next_key, items, *members)
            case "count_by":
                return forms.counted_by(next_key, items, *members)
            case "index_by":
                return dict(zip(keys, items, strict=True))
            case "take_while":
                return forms.taken_while(next_key, items)
            case _:
                return forms.dropped_while(next_key, items)


@cache
def kernel(op: str) -> Callable[..., Any]:
    """Return the kernel of an operation."""
    family, _, verb = op.partition(".")
    module = importlib.import_module(f"vesper.kernels.{family}")
    found: Callable[..., Any] = getattr(module, verb, None) or getattr(module, f"{verb}_")
    return found


def _type_arguments(call: Call) -> tuple[Any, ...]:
    if call.op in BY_TYPE:
        return (type_text(call.of[0]),)
    return _order_of(call.of[0]) if call.op in BY_ORDER and call.of else ()


def _members_of(value: Expression) -> tuple[Any, ...]:
    return _order_of(value.type)


def _order_of(type_: Type) -> tuple[Any, ...]:
    """Return the arguments that a kernel needs to compare values of a type."""
    match type_:
        case Enum(members):
            return (members,)
        case ArrayOf() | Record() | OptionalOf():
            return (type_text(type_),)
        case _:
            return ()


def _not_null(value: Any) -> Any:
    if value is None:
        raise CannotEvaluate
    return value


def _unknown(_: Scope) -> Any:
    raise CannotEvaluate


def mentioned_inputs(evaluator: Evaluator, expression: Expression) -> list[str]:
    """Return the inputs that an expression depends on, directly or through steps and outputs."""
    found: dict[str, None] = {}
    waiting, seen = [expression], set[tuple[str, str]]()
    while waiting:
        for part in walk(waiting.pop()):
            if not isinstance(part, Ref) or (part.kind, part.name) in seen:
                continue
            seen.add((part.kind, part.name))
            if part.kind == "input":
                found[part.name] = None
            waiting += evaluator.sources(part)
    return list(found)


def _parts_of(branch: Branch) -> list[Expression]:
    parts = [part for arm in branch.arms for part in (arm.when, arm.value)]
    return [part for part in (*parts, branch.otherwise_value) if part is not None]
