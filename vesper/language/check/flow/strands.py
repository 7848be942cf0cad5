"""Rules of strands: members of a `parallel`, or rounds of a loop with `max_in_flight`.

The requests of all strands are performed as one wave, so a strand neither ends the node nor waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from vesper.language.check.expressions.literals import Unread, read_literal
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import Span
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements
from vesper.language.syntax import ast, budget_ast
from vesper.values.types import INTEGER

MIN_STRANDS = 2
MAX_STRANDS = 64
_REQUESTS = ast.EffectStep | ast.CallNode | ast.Transition
_WAITS = ("sleep", "wait_for", "interrupt")


class StrandChecker:
    """Checks the strands of one node."""

    def __init__(self, waits: Callable[[str], bool], bag: DiagnosticBag) -> None:
        self._waits = waits
        self._bag = bag

    def in_flight(self, action: ast.Loop) -> int | None:
        """Return the number of rounds in flight. Reports fields that the loop cannot have."""
        scalar = action.max_in_flight
        assert scalar is not None
        problem = (
            "a loop with `max_in_flight` has `over`: its rounds do not depend on each other"
            if action.binding is None or action.condition is not None
            else "a loop with `max_in_flight` has no state: its rounds do not depend on each other"
            if action.state or action.next or action.stop_when is not None
            else None
        )
        if problem is not None:
            help_ = "use `over` and `collect` alone, or remove `max_in_flight`"
            self._bag.error(Code.PARALLEL_STEP, scalar.span, problem=problem, help=help_)
            return None
        value = read_literal(INTEGER, scalar, "max_in_flight", self._bag)
        if isinstance(value, Unread):
            return None
        assert isinstance(value, int)
        if MIN_STRANDS <= value <= MAX_STRANDS:
            return value
        expected = f"a number from {MIN_STRANDS} to {MAX_STRANDS}"
        self._bag.error(Code.BAD_LITERAL, scalar.span, text=scalar.text, expected=expected)
        return None

    def check(self, action: ast.Parallel, members: Sequence[ir.Block]) -> bool:
        """Report strands that break a rule. Returns whether none does."""
        errors = self._bag.error_count
        if not MIN_STRANDS <= len(members) <= MAX_STRANDS:
            problem = f"a parallel step has {MIN_STRANDS} to {MAX_STRANDS} strands, and this has {len(members)}"
            help_ = "write the step alone" if len(members) == 1 else "split it into several parallel steps"
            self._bag.error(Code.PARALLEL_STEP, action.span, problem=problem, help=help_)
        for steps, member in zip(action.members, members, strict=True):
            self._check_strand(steps, member, steps[0].span if steps else action.span)
        return self._bag.error_count == errors

    def check_rounds(self, action: ast.Loop, body: ir.Block) -> None:
        """Report steps that the rounds of a loop with `max_in_flight` cannot have."""
        assert action.max_in_flight is not None
        self._check_strand(action.steps, body, action.max_in_flight.span)

    def _check_strand(self, steps: Sequence[ast.Step], block: ir.Block, span: Span) -> None:
        for step in nested_steps(steps):
            problem, help_ = self._find_problem(step)
            if problem is not None:
                self._bag.error(Code.PARALLEL_STEP, step.operation.span, problem=problem, help=help_)
        is_sound = any(isinstance(each, ir.Request | ir.CallNode) for each in all_statements(block))
        is_sound |= any(isinstance(each.action, _REQUESTS) for each in nested_steps(steps))
        if not is_sound and steps and not isinstance(steps[0].action, ast.Return | ast.Raise):
            problem = "a strand makes a request or calls a node, and this one does neither"
            help_ = "put it before or after the parallel step, or into the strand whose values it uses"
            self._bag.error(Code.PARALLEL_STEP, span, problem=problem, help=help_)

    def _find_problem(self, step: ast.Step) -> tuple[str | None, str | None]:
        match step.action:
            case ast.Return() | ast.Raise():
                return "a strand cannot end the node: others may wait", "end it after the parallel step"
            case ast.Validation(requirements=requirements) if any(each.error is not None for each in requirements):
                return "a strand cannot end the node: others may wait", "check it before or after the parallel step"
            case ast.EffectStep(operation=operation) if operation in _WAITS:
                return f"a strand cannot wait, and this is `{operation}`", "wait before or after the parallel step"
            case ast.CallNode(node=node) if self._waits(node.text):
                return f"a strand cannot wait, and `{node.text}` does", "call it before or after the parallel step"
            case _:
                return None, None


def declared_names(action: ast.Parallel) -> Iterator[str]:
    """Yield the names of steps that are visible after a parallel step."""
    for steps in action.members:
        for step in steps:
            if step.name is not None:
                yield step.name.text
            if isinstance(step.action, ast.Parallel):
                yield from declared_names(step.action)


def nested_steps(steps: Sequence[ast.Step]) -> Iterator[ast.Step]:
    """Yield each step and the steps in its blocks and handlers, in written order."""
    for step in steps:
        yield step
        match step.action:
            case ast.Conditional(then=then, otherwise=otherwise):
                inner = [then.steps, () if otherwise is None else otherwise.steps]
            case ast.Match(cases=cases, otherwise=otherwise):
                inner = [*(case.then.steps for case in cases), () if otherwise is None else otherwise.steps]
            case ast.Loop(steps=inside):
                inner = [inside]
            case budget_ast.BudgetBlock(block=block):
                inner = [block.steps]
            case ast.Parallel(members=members):
                inner = list(members)
            case _:
                inner = []
        for each in (*inner, *(handler.steps for handler in step.handlers)):
            yield from nested_steps(each)
