"""Walk over a node's statements that collects facts and conditions with one result.

Values never change, so a fact from a condition holds to the end of its block, and after the statement where every other
branch leaves. INVARIANT: facts about the names of a loop end with the iteration; a handler starts from the facts before
the failing statement.
"""

from __future__ import annotations

from dataclasses import dataclass

from vesper.language.check.reachability.evaluate import Evaluator
from vesper.language.check.reachability.terms import Facts, either
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements, handlers_of


@dataclass(frozen=True, slots=True)
class FlowCondition:
    """A condition of the flow that has only one possible result."""

    condition: ir.Expression
    holds: bool
    kind: str
    """`arm`: one branch of several; `validation`: a requirement; `loop`: the condition of a loop's steps."""
    is_last: bool = False
    """True for an arm after which no other can be reached."""


class FlowWalk:
    """Walks the flow and collects conditions with one result in `conditions`."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self.conditions: list[FlowCondition] = []

    def body(self, block: ir.Block, facts: Facts) -> Facts | None:
        """Return the facts about outputs. None unless the node's only return is at the end."""
        is_straight = True
        for statement in block:
            if isinstance(statement, ir.Return):
                return self._learn_outputs(statement, facts) if is_straight else None
            after = self._statement(statement, facts, facts)
            if after is None:
                return None
            facts = after
            is_straight = is_straight and not any(isinstance(each, ir.Return) for each in all_statements((statement,)))
        return None

    def _block(self, block: ir.Block, facts: Facts, base: Facts) -> Facts | None:
        """Return the facts at the end of a block; None if it is unreachable. Only `base` decides comparisons."""
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
                self._evaluate(handler.value, end, base)
            if handler.value is not None:
                after = facts
        return after

    def _own(self, statement: ir.Statement, facts: Facts, base: Facts) -> Facts | None:
        terms = self._evaluator.terms
        match statement:
            case ir.Step(value=expression, handlers=()):
                number = terms.add_step(statement)
                value = self._evaluator.note_value(expression, facts, base)
                return None if value is None else terms.learn(facts, number, value) or facts
            case ir.Step(value=expression):  # the value may come from a handler
                return None if self._evaluate(expression, facts, base) is False else facts
            case ir.Require(clause):
                terms.add(clause.holds)
                holds, fails = self._evaluator.branch(clause.holds, facts)
                if (holds is None) != (fails is None):
                    self.conditions.append(FlowCondition(clause.holds, fails is None, "validation"))
                return holds
            case ir.Return(values) | ir.Raise(values):
                for _, value_ in values:
                    self._evaluate(value_, facts, base)
                return None
            case ir.Branch():
                return self._branch(statement, facts, base)
            case ir.Loop():
                self._loop(statement, facts, base)
                return facts
            case ir.Parallel(members=members):
                for member in members:  # a failure may leave it at any point, and no member knows another's facts
                    self._block(member, facts, base)
                return facts
            case ir.Request(key=key, arguments=given):
                for each in (*(() if key is None else (key,)), *(value_ for _, value_ in given)):
                    self._evaluate(each, facts, base)
                return facts
            case ir.CallNode(inputs=given):
                for _, each in given:
                    self._evaluate(each, facts, base)
                return facts

    def _evaluate(self, expression: ir.Expression, facts: Facts, base: Facts) -> bool:
        """Record constants in the expression; return False where it never has a value."""
        self._evaluator.terms.add(expression)
        return self._evaluator.note_value(expression, facts, base) is not None

    def _learn_outputs(self, statement: ir.Return, facts: Facts) -> Facts | None:
        """Return the facts with the possible values of each output. Returns None where an output never has one."""
        terms = self._evaluator.terms
        returned: Facts | None = facts
        for name, expression in statement.values:
            terms.add(expression)
            value = self._evaluator.note_value(expression, facts, facts)
            output = terms.output(name, expression.type)
            returned = None if value is None or returned is None else terms.learn(returned, output, value)
        return returned

    def _branch(self, branch: ir.Branch, facts: Facts, base: Facts) -> Facts | None:
        rest: Facts | None = facts
        after: Facts | None = None
        for number, arm in enumerate(branch.arms):
            if rest is None:
                break
            self._evaluator.terms.add(arm.when)
            holds, rest = self._evaluator.note_condition(arm.when, rest, base)
            if (holds is None) != (rest is None):
                has_below = number + 1 < len(branch.arms) or bool(branch.otherwise) or _is_written(branch)
                self.conditions.append(FlowCondition(arm.when, rest is None, "arm", is_last=not has_below))
            if holds is not None:
                after = either(after, self._arm(arm.body, arm.value, holds, base))
        if rest is not None:
            after = either(after, self._arm(branch.otherwise, branch.otherwise_value, rest, base))
        # A failure may leave the branch at any point, so its facts are dropped.
        return facts if branch.handlers and after is not None else after

    def _arm(self, body: ir.Block, value: ir.Expression | None, facts: Facts, base: Facts) -> Facts | None:
        end = self._block(body, facts, base)
        if end is not None and value is not None and not self._evaluate(value, end, base):
            return None
        return end

    def _loop(self, loop: ir.Loop, facts: Facts, base: Facts) -> None:
        """Analyse a loop with unknown state. `stop_when` is skipped, because state names have new values there."""
        for each in (*(() if loop.over is None else (loop.over,)), *(state.value for state in loop.state)):
            self._evaluate(each, facts, base)
        inner: Facts | None = facts
        for condition in (loop.where, loop.condition):
            if condition is None or inner is None:
                continue
            self._evaluator.terms.add(condition)
            inner, fails = self._evaluator.branch(condition, inner)
            if inner is None and fails is not None:
                self.conditions.append(FlowCondition(condition, False, "loop"))
        end = None if inner is None else self._block(loop.body, inner, base)
        if end is not None:
            last = (*(() if loop.collect is None else (loop.collect,)), *(value for _, value in loop.next))
            for each in last:
                self._evaluate(each, end, base)


def _is_written(branch: ir.Branch) -> bool:
    """Return whether the author wrote the `otherwise`. The generated null of a skipped step has the step's location."""
    last = branch.otherwise_value
    return last is not None and not (isinstance(last, ir.Literal) and last.value is None and last.place == branch.place)
