"""Statements of a node's body, defined in docs/spec/ir.md.

Blocks nest: a statement may contain statements in arms, loops and handlers. `expressions_of` yields the outermost
expressions in program order, which is the order of the table; `Rebuilder` replaces them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

from vesper.policies.budget import Budget
from vesper.values.types import ArrayOf, Record, Type

if TYPE_CHECKING:
    from vesper.language.ir.nodes import Clause, Expression, Place

Policy: TypeAlias = Mapping[str, int | str | tuple[str, ...] | tuple[Budget, ...]]
"""Settings that the Host reads; docs/spec/ir.md lists them."""


@dataclass(frozen=True, slots=True)
class Handler:
    """Reaction to a failure with one of the codes.

    Without a value, a body that reaches its end passes the failure on.
    """

    codes: tuple[str, ...]
    body: Block
    value: Expression | None


@dataclass(frozen=True, slots=True)
class Step:
    """A named value."""

    name: str
    value: Expression
    place: Place
    handlers: tuple[Handler, ...] = ()


@dataclass(frozen=True, slots=True)
class Return:
    """End of the node with its outputs."""

    values: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Raise:
    """End of the node with a declared error."""

    values: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Require:
    """A clause of a validation step."""

    clause: Clause


@dataclass(frozen=True, slots=True)
class Arm:
    """One branch of a `Branch`: a condition, a block and an optional value."""

    when: Expression
    body: Block
    value: Expression | None


@dataclass(frozen=True, slots=True)
class Branch:
    """A statement that executes its first arm whose condition holds, or `otherwise`."""

    name: str
    arms: tuple[Arm, ...]
    otherwise: Block
    otherwise_value: Expression | None
    place: Place
    handlers: tuple[Handler, ...] = ()


@dataclass(frozen=True, slots=True)
class LoopState:
    """A local that a loop carries from one iteration to the next."""

    local: int
    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop over a collection or while a condition holds, with state and collected values."""

    name: str
    locals: tuple[int, ...]
    names: tuple[str, ...]
    over: Expression | None
    where: Expression | None
    condition: Expression | None
    max: int
    state: tuple[LoopState, ...]
    body: Block
    collect: Expression | None
    next: tuple[tuple[int, Expression], ...]
    stop_when: Expression | None
    place: Place
    handlers: tuple[Handler, ...] = ()
    in_flight: int | None = None
    """The most rounds that are open at the same time; None where one round ends before the next begins."""

    @property
    def type(self) -> Record:
        """Return the type of the loop's value: the final state, and the collected values."""
        fields = tuple((each.name, each.value.type) for each in self.state)
        return Record(fields if self.collect is None else (*fields, ("collected", ArrayOf(self.collect.type))))


@dataclass(frozen=True, slots=True)
class Parallel:
    """Blocks that run in lockstep: their open requests are one wave."""

    name: str
    members: tuple[Block, ...]
    place: Place
    handlers: tuple[Handler, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the Host; `result` is its completion."""

    name: str
    effect: str
    effect_class: str
    key: Expression | None
    fixed: Mapping[str, str]
    arguments: tuple[tuple[str, Expression], ...]
    result: Expression
    policy: Policy
    place: Place
    handlers: tuple[Handler, ...] = ()
    sensitive: bool | tuple[str, ...] = False
    """Whether the completion is sensitive, or the fields of it that are."""


@dataclass(frozen=True, slots=True)
class CallNode:
    """A call of another node; `result` is its outputs."""

    name: str
    node: str
    inputs: tuple[tuple[str, Expression], ...]
    result: Expression
    place: Place
    handlers: tuple[Handler, ...] = ()
    budgets: tuple[Budget, ...] = ()
    """Budgets for which every request of the called node counts, outermost first."""


Statement: TypeAlias = Step | Return | Raise | Require | Branch | Loop | Parallel | Request | CallNode
Block: TypeAlias = tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Machine:
    """A state machine."""

    name: str
    initial: str
    states: tuple[str, ...]
    transitions: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Callee:
    """The interface of a called node."""

    node: str
    semantic_hash: str
    inputs: tuple[tuple[str, Type, bool], ...]
    """Name, type, and whether a call may omit the input."""
    success: tuple[tuple[str, Type], ...]
    error: tuple[tuple[str, Type], ...]


@dataclass(frozen=True, slots=True)
class Grants:
    """Required and denied capabilities, audit level, sensitive inputs, releases and policy of a node."""

    required: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    audit: str = "none"
    sensitive: tuple[str, ...] = ()
    policy: Policy = field(default_factory=dict)
    declassified: tuple[tuple[str, str], ...] = ()
    """Names of released values with the reasons: a step or output `x`, or an error field `error.x`."""
    audit_fields: str | None = None
    """Function of the members of the audit line, in IR form: over `input_x` and `output_x`."""


def value_type(statement: Statement) -> Type | None:
    """Return the type of the value that a statement's name has. Returns None where it has none."""
    match statement:
        case Step(value=value):
            return value.type
        case Branch(arms=arms, otherwise_value=otherwise):
            values = [*(arm.value for arm in arms), otherwise]
            return next((value.type for value in values if value is not None), None)
        case Loop():
            return statement.type
        case Request(result=result) | CallNode(result=result):
            return result.type
        case _:
            return None


def is_strand_statement(statement: Statement) -> TypeGuard[Loop | Parallel]:
    """Return whether the blocks of a statement run as strands, whose requests form waves."""
    return isinstance(statement, Parallel) or (isinstance(statement, Loop) and statement.in_flight is not None)


def visible_statements(block: Block) -> Iterator[Statement]:
    """Yield the statements whose names are visible after the block's statements, members of `parallel` included."""
    for statement in block:
        yield statement
        if isinstance(statement, Parallel):
            for member in statement.members:
                yield from visible_statements(member)


def leaves(block: Block) -> bool:
    """Return whether the block returns or raises on every path."""
    if not block:
        return False
    match block[-1]:
        case Return() | Raise():
            return True
        case Branch(arms=arms, otherwise=otherwise, handlers=handlers):
            return (
                all(leaves(arm.body) for arm in arms)
                and leaves(otherwise)
                and all(leaves(handler.body) for handler in handlers)
            )
        case _:
            return False


def own_blocks(statement: Statement) -> tuple[Block, ...]:
    """Return the blocks whose failures the statement's handlers handle."""
    match statement:
        case Branch(arms=arms, otherwise=otherwise):
            return (*(arm.body for arm in arms), otherwise)
        case Loop(body=body):
            return (body,)
        case Parallel(members=members):
            return members
        case _:
            return ()


def handlers_of(statement: Statement) -> tuple[Handler, ...]:
    return () if isinstance(statement, Return | Raise | Require) else statement.handlers


def inner_blocks(statement: Statement) -> tuple[Block, ...]:
    """Return every block inside a statement, handlers included."""
    return (*own_blocks(statement), *(handler.body for handler in handlers_of(statement)))


def all_statements(block: Block) -> Iterator[Statement]:
    """Yield every statement, each before the statements nested in it."""
    for statement in block:
        yield statement
        for inner in inner_blocks(statement):
            yield from all_statements(inner)


def expressions_of(block: Block) -> Iterator[Expression]:
    """Yield the outermost expressions in program order."""
    for statement in block:
        match statement:
            case Step(value=value):
                yield value
            case Return(values) | Raise(values):
                yield from (value for _, value in values)
            case Require(clause):
                yield clause.holds
            case Branch(arms=arms, otherwise=otherwise, otherwise_value=last):
                for arm in arms:
                    yield arm.when
                    yield from expressions_of(arm.body)
                    yield from () if arm.value is None else (arm.value,)
                yield from expressions_of(otherwise)
                yield from () if last is None else (last,)
            case Loop():
                parts = (statement.over, *(s.value for s in statement.state), statement.where, statement.condition)
                yield from (part for part in parts if part is not None)
                yield from expressions_of(statement.body)
                ends = (statement.collect, *(value for _, value in statement.next), statement.stop_when)
                yield from (part for part in ends if part is not None)
            case Parallel(members=members):
                for member in members:
                    yield from expressions_of(member)
            case Request(key=key, arguments=given, result=result):
                yield from () if key is None else (key,)
                yield from (value for _, value in given)
                yield result
            case CallNode(inputs=given, result=result):
                yield from (value for _, value in given)
                yield result
        for handler in handlers_of(statement):
            yield from expressions_of(handler.body)
            yield from () if handler.value is None else (handler.value,)


Bound: TypeAlias = dict[int, int]
Rebuild: TypeAlias = "Callable[[Expression, Bound], Expression]"


class Rebuilder:
    """Copies statements in program order, with new expressions and new locals."""

    def __init__(self, expression: Rebuild, new_local: Callable[[], int]) -> None:
        self._expression = expression
        self._new_local = new_local

    def block(self, block: Block, bound: Bound) -> Block:
        """Return a copy of a block; `bound` maps old locals to new ones."""
        return tuple([self._statement(statement, bound) for statement in block])

    def _statement(self, statement: Statement, bound: Bound) -> Statement:
        match statement:
            case Step():
                value = self._expression(statement.value, bound)
                return replace(statement, value=value, handlers=self._handlers(statement.handlers, bound))
            case Return(values):
                return Return(self._named_values(values, bound))
            case Raise(values):
                return Raise(self._named_values(values, bound))
            case Require(clause):
                return Require(replace(clause, holds=self._expression(clause.holds, bound)))
            case Branch():
                arms = tuple([self._arm(arm, bound) for arm in statement.arms])
                otherwise = self.block(statement.otherwise, bound)
                last = self._rebuild_optional(statement.otherwise_value, bound)
                handlers = self._handlers(statement.handlers, bound)
                return replace(statement, arms=arms, otherwise=otherwise, otherwise_value=last, handlers=handlers)
            case Loop():
                return self._loop(statement, bound)
            case Parallel():
                members = tuple([self.block(member, bound) for member in statement.members])
                return replace(statement, members=members, handlers=self._handlers(statement.handlers, bound))
            case Request():
                key = self._rebuild_optional(statement.key, bound)
                arguments = self._named_values(statement.arguments, bound)
                result = self._expression(statement.result, bound)
                handlers = self._handlers(statement.handlers, bound)
                return replace(statement, key=key, arguments=arguments, result=result, handlers=handlers)
            case CallNode():
                inputs = self._named_values(statement.inputs, bound)
                result = self._expression(statement.result, bound)
                return replace(
                    statement, inputs=inputs, result=result, handlers=self._handlers(statement.handlers, bound)
                )

    def _loop(self, loop: Loop, bound: Bound) -> Loop:
        over = self._rebuild_optional(loop.over, bound)
        values = [self._expression(each.value, bound) for each in loop.state]
        inner = bound | {local: self._new_local() for local in loop.locals}
        inner |= {each.local: self._new_local() for each in loop.state}
        where, condition = self._rebuild_optional(loop.where, inner), self._rebuild_optional(loop.condition, inner)
        body = self.block(loop.body, inner)
        collect = self._rebuild_optional(loop.collect, inner)
        next_ = tuple([(inner[local], self._expression(value, inner)) for local, value in loop.next])
        stop_when = self._rebuild_optional(loop.stop_when, inner)
        return replace(
            loop,
            locals=tuple(inner[local] for local in loop.locals),
            over=over,
            where=where,
            condition=condition,
            state=tuple(LoopState(inner[s.local], s.name, v) for s, v in zip(loop.state, values, strict=True)),
            body=body,
            collect=collect,
            next=next_,
            stop_when=stop_when,
            handlers=self._handlers(loop.handlers, bound),
        )

    def _arm(self, arm: Arm, bound: Bound) -> Arm:
        when = self._expression(arm.when, bound)
        return Arm(when, self.block(arm.body, bound), self._rebuild_optional(arm.value, bound))

    def _handlers(self, handlers: tuple[Handler, ...], bound: Bound) -> tuple[Handler, ...]:
        return tuple(
            [replace(h, body=self.block(h.body, bound), value=self._rebuild_optional(h.value, bound)) for h in handlers]
        )

    def _named_values(
        self, values: tuple[tuple[str, Expression], ...], bound: Bound
    ) -> tuple[tuple[str, Expression], ...]:
        return tuple([(name, self._expression(value, bound)) for name, value in values])

    def _rebuild_optional(self, expression: Expression | None, bound: Bound) -> Expression | None:
        return None if expression is None else self._expression(expression, bound)
