"""Conditions on the inputs under which an execution reaches a branch.

The conditions of a branch are those of the arms and expressions around it, the negated ones of the arms above it, and
those that the statements before it require. Inside a loop an item with them must exist. Conditions on completions and
on later rounds of a loop are not known; an execution shows whether the branch was reached.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import TypeAlias

from vesper.language.ir.nodes import (
    Arm,
    Block,
    Branch,
    Call,
    CallNode,
    Expression,
    For,
    If,
    Let,
    Literal,
    Logical,
    Loop,
    Node,
    Parallel,
    Place,
    Request,
    Require,
    Statement,
    Step,
    children,
)
from vesper.language.ir.statements import expressions_of, leaves
from vesper.values.types import BOOLEAN
from vesper.verify.solve.search import Wanted

Branched: TypeAlias = tuple[int, bool]
"""The index of a condition and its result."""
_Close: TypeAlias = Callable[[list[Wanted]], list[Wanted]]
"""Turns conditions on locals into conditions on inputs."""

_ATTEMPTS = 8
_FIRST_DRAWS = 20
_SHARE = 3


class BranchAims:
    """Selects the branch that the next input should reach."""

    def __init__(self, node: Node) -> None:
        self._goals = branch_goals(node)
        self._left = dict.fromkeys(self._goals, _ATTEMPTS)
        self._drawn = 0

    def next(self, is_covered: Callable[[Branched], bool]) -> list[Wanted]:
        """Return the conditions of a branch that nothing covers; none if this input has no aim.

        The first inputs have none, because they cover most branches, and a branch is given up after some attempts.
        """
        self._drawn += 1
        if self._drawn <= _FIRST_DRAWS or self._drawn % _SHARE:
            return []
        self._left = {each: left for each, left in self._left.items() if left > 0 and not is_covered(each)}
        if not self._left:
            return []
        chosen = max(self._left, key=lambda each: self._left[each])
        self._left[chosen] -= 1
        return self._goals[chosen]


def branch_goals(node: Node) -> dict[Branched, list[Wanted]]:
    """Return the conditions of each branch."""
    return _collect(node, frozenset()).goals


def expression_goals(node: Node, indices: Collection[int]) -> dict[int, list[Wanted]]:
    """Return the conditions under which an execution evaluates each of these expressions of the body."""
    return _collect(node, frozenset(indices)).ways


def _collect(node: Node, indices: frozenset[int]) -> _Collector:
    collector = _Collector(indices)
    collector.block(node.body, [], lambda wanted: wanted)
    return collector


class _Collector:
    def __init__(self, indices: frozenset[int]) -> None:
        self.goals: dict[Branched, list[Wanted]] = {}
        self.ways: dict[int, list[Wanted]] = {}
        """Conditions of the expressions `indices`."""
        self._indices = indices

    def block(self, block: Block, path: list[Wanted], close: _Close) -> None:
        for statement in block:
            self._statement(statement, path, close)
            path = [*path, *_conditions_to_pass(statement)]

    def _statement(self, statement: Statement, path: list[Wanted], close: _Close) -> None:
        match statement:
            case Branch(arms=arms, otherwise=otherwise, otherwise_value=value):
                for arm in arms:
                    self._condition(arm.when, path, close)
                    taken = [*path, (arm.when, True)]
                    self._arm(arm, taken, close)
                    path = [*path, (arm.when, False)]
                self.block(otherwise, path, close)
                self._expressions([] if value is None else [value], path, close)
            case Loop():
                self._loop(statement, path, close)
            case Parallel(members=members):
                for member in members:
                    self.block(member, path, close)
            case Step() | Request() | CallNode():
                self._expressions(expressions_of((replace(statement, handlers=()),)), path, close)
            case _:
                self._expressions(expressions_of((statement,)), path, close)

    def _arm(self, arm: Arm, path: list[Wanted], close: _Close) -> None:
        self.block(arm.body, path, close)
        for statement in arm.body:
            path = [*path, *_conditions_to_pass(statement)]
        self._expressions([] if arm.value is None else [arm.value], path, close)

    def _loop(self, loop: Loop, path: list[Wanted], close: _Close) -> None:
        """Collect the conditions of the first round, in which the state has its first value."""
        first = [loop.over, *(each.value for each in loop.state)]
        self._expressions([each for each in first if each is not None], path, close)

        def close_round(wanted: list[Wanted]) -> list[Wanted]:
            body = _conjunction(wanted, loop.place)
            for each in reversed(loop.state):
                body = Let(each.local, each.name, each.value, body, loop.place)
            if loop.over is not None:
                body = For("exists", loop.locals, loop.names, loop.over, None, None, body, BOOLEAN, loop.place)
            return close([*path, (body, True)])

        inner: list[Wanted] = []
        for condition, goes_on in ((loop.where, True), (loop.condition, True)):
            if condition is not None:
                self._condition(condition, inner, close_round)
                inner = [*inner, (condition, goes_on)]
        self.block(loop.body, inner, close_round)
        ends = [loop.collect, *(value for _, value in loop.next)]
        self._expressions([each for each in ends if each is not None], inner, close_round)
        if loop.stop_when is not None:
            self._condition(loop.stop_when, inner, close_round)

    def _expressions(self, expressions: Iterable[Expression], path: list[Wanted], close: _Close) -> None:
        for each in expressions:
            self._inside(each, path, close)

    def _condition(self, condition: Expression, path: list[Wanted], close: _Close) -> None:
        """Collect both results of a condition, and the conditions inside it."""
        for value in (True, False):
            self.goals.setdefault((condition.index, value), close([*path, (condition, value)]))
        self._inside(condition, path, close)

    def _inside(self, expression: Expression, path: list[Wanted], close: _Close) -> None:
        if expression.index in self._indices:
            self.ways.setdefault(expression.index, close(path))
        match expression:
            case If(condition=condition, then=then, otherwise=otherwise):
                self._condition(condition, path, close)
                self._inside(then, [*path, (condition, True)], close)
                self._inside(otherwise, [*path, (condition, False)], close)
            case Logical(kind=kind, left=left, right=right):
                self._inside(left, path, close)
                self._inside(right, [*path, (left, kind == "and")], close)
            case Let(local=local, name=name, value=value, body=body, place=place):
                self._inside(value, path, close)

                def close_let(wanted: list[Wanted]) -> list[Wanted]:
                    return close([*path, (Let(local, name, value, _conjunction(wanted, place), place), True)])

                self._inside(body, [], close_let)
            case For():
                self._for(expression, path, close)
            case _:
                self._expressions(children(expression), path, close)

    def _for(self, loop: For, path: list[Wanted], close: _Close) -> None:
        self._inside(loop.over, path, close)
        if loop.kind == "fold":
            return  # the second round depends on the first

        def close_item(wanted: list[Wanted]) -> list[Wanted]:
            value = _conjunction(wanted, loop.place)
            exists = replace(loop, kind="exists", where=None, key=None, with_=None, value=value, type=BOOLEAN)
            return close([*path, (exists, True)])

        inner: list[Wanted] = []
        if loop.where is not None:
            self._condition(loop.where, inner, close_item)
            inner = [(loop.where, True)]
        self._expressions([each for each in (loop.key, loop.value) if each is not None], inner, close_item)


def _conditions_to_pass(statement: Statement) -> list[Wanted]:
    """Return the conditions under which an execution goes on after a statement."""
    match statement:
        case Require(clause):
            return [(clause.holds, True)]
        case Branch(arms=arms, otherwise=otherwise):
            left = [(arm.when, False) for arm in arms if leaves(arm.body)]
            staying = [arm for arm in arms if not leaves(arm.body)]
            if leaves(otherwise) and len(staying) == 1:
                left.append((staying[0].when, True))
            return left
        case _:
            return []


def _conjunction(wanted: list[Wanted], place: Place) -> Expression:
    if not wanted:
        return Literal(BOOLEAN, True, place)
    parts = [
        condition if value else Call("boolean.not", (), (condition,), BOOLEAN, condition.place)
        for condition, value in wanted
    ]
    joined: Expression = parts[0]
    for part in parts[1:]:
        joined = Logical("and", joined, part, part.place)
    return joined
