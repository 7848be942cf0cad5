"""The statements of a node, walked for `reachable`: what is known where each stands, and which ways are never taken.

Values never change, so what a condition says holds as far as its block reaches, and after the statement where every
other way leaves. INVARIANT: what an iteration of a loop says of its names ends with it; a handler starts from what was
known before the statement that fails.
"""

from __future__ import annotations

from dataclasses import dataclass

from vesper.language.check.reachability.evaluate import Judge
from vesper.language.check.reachability.terms import Facts, either
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements, handlers_of


@dataclass(frozen=True, slots=True)
class Way:
    """A condition of the flow that can only come out in one way."""

    condition: ir.Expression
    holds: bool
    kind: str
    """`arm`: one way of several; `validation`: what must hold; `loop`: where its steps run."""
    is_last: bool = False
    """True for an arm below which there is nothing that could be reached."""


class FlowWalk:
    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.ways: list[Way] = []

    def body(self, block: ir.Block, facts: Facts) -> Facts | None:
        """What is known of the outputs where the node returns at the end of its steps, and nowhere else."""
        is_straight = True
        for statement in block:
            if isinstance(statement, ir.Return):
                return self._returned(statement, facts) if is_straight else None
            after = self._statement(statement, facts, facts)
            if after is None:
                return None
            facts = after
            is_straight = is_straight and not any(isinstance(each, ir.Return) for each in all_statements((statement,)))
        return None

    def _block(self, block: ir.Block, facts: Facts, base: Facts) -> Facts | None:
        """What is known at the end; None where that is never reached. `base` is what decides a comparison alone."""
        for statement in block:
            after = self._statement(statement, facts, base)
            if after is None:
                return None
            facts = after
        return facts

    def _statement(self, statement: ir.Statement, facts: Facts, base: Facts) -> Facts | None:
        after = self._own(statement, facts, base)
        for handler in handlers_of(statement):
            end = self._block(handler.body, facts, base)
            if handler.value is not None and end is not None:
                self._aloud(handler.value, end, base)
            if handler.value is not None:
                after = facts
        return after

    def _own(self, statement: ir.Statement, facts: Facts, base: Facts) -> Facts | None:
        terms = self._judge.terms
        match statement:
            case ir.Step(value=expression, handlers=()):
                number = terms.add_step(statement)
                value = self._judge.value_aloud(expression, facts, base)
                return None if value is None else terms.learn(facts, number, value) or facts
            case ir.Step(value=expression):  # its value may be that of a handler
                return None if self._aloud(expression, facts, base) is False else facts
            case ir.Require(clause):
                terms.add(clause.holds)
                holds, fails = self._judge.branch(clause.holds, facts)
                if (holds is None) != (fails is None):
                    self.ways.append(Way(clause.holds, fails is None, "validation"))
                return holds
            case ir.Return(values) | ir.Raise(values):
                for _, value_ in values:
                    self._aloud(value_, facts, base)
                return None
            case ir.Branch():
                return self._branch(statement, facts, base)
            case ir.Loop():
                self._loop(statement, facts, base)
                return facts
            case ir.Request(key=key, arguments=given):
                for each in (*(() if key is None else (key,)), *(value_ for _, value_ in given)):
                    self._aloud(each, facts, base)
                return facts
            case ir.CallNode(inputs=given):
                for _, each in given:
                    self._aloud(each, facts, base)
                return facts

    def _aloud(self, expression: ir.Expression, facts: Facts, base: Facts) -> bool:
        """False where the expression never has a value."""
        self._judge.terms.add(expression)
        return self._judge.value_aloud(expression, facts, base) is not None

    def _returned(self, statement: ir.Return, facts: Facts) -> Facts | None:
        """The facts and what each output can be."""
        terms = self._judge.terms
        returned: Facts | None = facts
        for name, expression in statement.values:
            terms.add(expression)
            value = self._judge.value_aloud(expression, facts, facts)
            output = terms.output(name, expression.type)
            returned = None if value is None or returned is None else terms.learn(returned, output, value)
        return returned

    def _branch(self, branch: ir.Branch, facts: Facts, base: Facts) -> Facts | None:
        rest: Facts | None = facts
        after: Facts | None = None
        for number, arm in enumerate(branch.arms):
            if rest is None:
                break
            self._judge.terms.add(arm.when)
            holds, rest = self._judge.condition_aloud(arm.when, rest, base)
            if (holds is None) != (rest is None):
                has_below = number + 1 < len(branch.arms) or bool(branch.otherwise) or _is_written(branch)
                self.ways.append(Way(arm.when, rest is None, "arm", is_last=not has_below))
            if holds is not None:
                after = either(after, self._way(arm.body, arm.value, holds, base))
        if rest is not None:
            after = either(after, self._way(branch.otherwise, branch.otherwise_value, rest, base))
        # A failure inside may end anywhere in it.
        return facts if branch.handlers and after is not None else after

    def _way(self, body: ir.Block, value: ir.Expression | None, facts: Facts, base: Facts) -> Facts | None:
        end = self._block(body, facts, base)
        if end is not None and value is not None and not self._aloud(value, end, base):
            return None
        return end

    def _loop(self, loop: ir.Loop, facts: Facts, base: Facts) -> None:
        """State is unknown in each iteration. `stop_when` is not judged: there the names of state are other values."""
        for each in (*(() if loop.over is None else (loop.over,)), *(state.value for state in loop.state)):
            self._aloud(each, facts, base)
        inner: Facts | None = facts
        for condition in (loop.where, loop.condition):
            if condition is None or inner is None:
                continue
            self._judge.terms.add(condition)
            inner, fails = self._judge.branch(condition, inner)
            if inner is None and fails is not None:
                self.ways.append(Way(condition, False, "loop"))
        end = None if inner is None else self._block(loop.body, inner, base)
        if end is not None:
            last = (*(() if loop.collect is None else (loop.collect,)), *(value for _, value in loop.next))
            for each in last:
                self._aloud(each, end, base)


def _is_written(branch: ir.Branch) -> bool:
    """True for an otherwise that the author wrote; the null of a step that is skipped stands where the step stands."""
    last = branch.otherwise_value
    return last is not None and not (isinstance(last, ir.Literal) and last.value is None and last.place == branch.place)
