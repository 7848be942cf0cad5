"""Contracts over state, which is read before the flow and before each return.

The first read of `observe` is a request at the start of the body, the second one before every return. A postcondition
that mentions an observed name becomes a requirement between the second read and the return: other postconditions know
no steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from vesper.language.check.expressions.checker import ExpressionChecker
from vesper.language.check.scope import Declared, Scope, report_taken
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.values.generated.effects import EFFECTS
from vesper.values.types import BOOLEAN

Check = Callable[[ast.Step], ir.Statement | None]
"""Checks a step and returns its statement, with the name of the step."""


class Observation:
    """The observed values of one node."""

    def __init__(
        self,
        steps: Sequence[ast.Step],
        clauses: Sequence[ast.Clause],
        scope: Scope,
        expressions: ExpressionChecker,
        check: Check,
        bag: DiagnosticBag,
    ) -> None:
        self._steps = steps
        self._scope = scope
        self._expressions = expressions
        self._check = check
        self._bag = bag
        self._returns = 0
        names = "|".join(re.escape(_name(step)) for step in steps)
        self._mention = re.compile(rf"(?<![.\w])(?:{names})(?!\w)")
        self._clauses = [each for each in clauses if self.is_about(each)]
        self._first: dict[str, Declared] = {}

    def is_about(self, clause: ast.Clause) -> bool:
        """Return whether a postcondition mentions an observed name."""
        return self._mention.search(clause.text) is not None

    def before_flow(self) -> list[ir.Statement]:
        """Return the first reads. Report effects that may change state, and names that are already declared."""
        found: list[ir.Statement] = []
        for step in self._steps:
            assert step.name is not None
            word = step.name
            other = self._scope.outputs.get(word.text) or self._scope.names.get(word.text)
            if other is not None:
                report_taken("an observed value", word, other, self._bag)
            statement = self._read(step, f"{word.text}_before")
            if isinstance(statement, ir.Request) and not is_read_only(statement):
                problem = f"`observe` only reads, and this is `{statement.effect_class}`"
                help_ = "observe with an effect of the class `read`, such as a `database_query` with SELECT"
                self._bag.error(Code.EFFECT_CLASS, step.operation.span, problem=problem, help=help_)
            if statement is not None:
                self._first[word.text] = self._declare(step, statement)
                found.append(statement)
        if not self._clauses:
            for step in self._steps:
                self._bag.warning(Code.UNUSED_VALUE, step.span, what="the observed value", name=_name(step))
        return found

    def before_return(self, end: ir.Return) -> list[ir.Statement]:
        """Return the statements that replace a return.

        They store its values, repeat the reads, check the clauses and return.
        """
        if not self._clauses or len(self._first) < len(self._steps):
            return [end]
        self._returns += 1
        number = "" if self._returns == 1 else f"_{self._returns}"
        values = [ir.Step(f"_{name}_returned{number}", value, value.place) for name, value in end.values]
        outputs = {name: step for (name, _), step in zip(end.values, values, strict=True)}
        reads: list[ir.Statement] = []
        last: dict[str, Declared] = {}
        for step in self._steps:
            statement = self._read(step, f"{_name(step)}_after{number}")
            assert statement is not None, "the same read was checked before the flow"
            last[_name(step)] = self._declare(step, statement)
            reads.append(statement)
        clauses = [self._clause(each, last, outputs) for each in self._clauses]
        refs = tuple((name, _ref(step, step.value.place)) for name, step in outputs.items())
        return [*values, *reads, *(ir.Require(each) for each in clauses if each is not None), ir.Return(refs)]

    def _read(self, step: ast.Step, name: str) -> ir.Statement | None:
        assert step.name is not None
        return self._check(replace(step, name=replace(step.name, text=name)))

    def _declare(self, step: ast.Step, statement: ir.Statement) -> Declared:
        """Declare the step of a read. Return the declaration that clauses use for its value."""
        assert isinstance(statement, ir.Request)
        assert step.name is not None
        word = replace(step.name, text=statement.name)
        self._scope.declare("step", word, statement.result.type, self._bag).used = True
        return Declared("step", step.name.text, statement.result.type, step.name.span, ir_name=statement.name)

    def _clause(self, clause: ast.Clause, last: dict[str, Declared], outputs: dict[str, ir.Step]) -> ir.Clause | None:
        """Check a clause before a return. Its outputs are the returned values, and its observed names the reads."""
        scope, declared = self._scope, self._scope.outputs
        scope.in_postcondition = True
        scope.observed = {name: (first, last[name]) for name, first in self._first.items()}
        scope.outputs = {
            name: Declared("step", name, each.type, each.span, ir_name=outputs[name].name)
            for name, each in declared.items()
        }
        try:
            holds = self._expressions.check(clause.holds, BOOLEAN)
        finally:
            scope.in_postcondition, scope.observed, scope.outputs = False, {}, declared
        return None if holds is None else ir.Clause(holds, clause.text)


def is_read_only(request: ir.Request) -> bool:
    """Return whether a request only reads. A cache write does not, although its class is `read`."""
    return request.effect_class == "read" and ".write." not in EFFECTS[request.effect].capability


def _name(step: ast.Step) -> str:
    assert step.name is not None
    return step.name.text


def _ref(step: ir.Step, place: ir.Place) -> ir.Ref:
    return ir.Ref("step", step.name, step.value.type, place)
