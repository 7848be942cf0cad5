"""Coverage of a node by its executions: results of conditions, and operations.

It is derived from marks only, so it shows what the engines were really compared on. An operation counts as reached if
the step, arm or clause around it was evaluated, in the taken branch of an IF. Inside AND, OR and empty loops it may not
have been evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from vesper.compiler import Compiled
from vesper.engines.engine import Done
from vesper.engines.outcome import DeclaredError, Returned
from vesper.engines.path import guards
from vesper.language.ir.nodes import (
    Apply,
    Call,
    CallNode,
    Expression,
    If,
    Loop,
    Raise,
    Request,
    Return,
    children,
)
from vesper.language.ir.statements import all_statements, expressions_of
from vesper.verify.branches import BranchKey, BranchMap, NodeBranch, percent

Path = tuple[tuple[int, bool], ...]


@dataclass(slots=True)
class Coverage:
    guards_total: int = 0
    """Two for each condition."""
    guards: set[tuple[int, bool]] = field(default_factory=set)
    """Conditions by index, with the results that occurred."""
    paths: set[Path] = field(default_factory=set)
    """Semantic paths (docs/spec/ir.md) as sequences of conditions; unbounded with loops."""
    operations_total: int = 0
    operations: set[str] = field(default_factory=set)
    branches_total: int = 0
    uncovered: list[NodeBranch] = field(default_factory=list)
    """Branches that no execution covered, once all have ended."""

    @property
    def branches_covered(self) -> int:
        return self.branches_total - len(self.uncovered)

    @property
    def percent(self) -> float:
        return percent(self.branches_covered, self.branches_total)


@dataclass(frozen=True, slots=True)
class CoverageState:
    """Coverage of earlier executions, without their paths."""

    guards: frozenset[tuple[int, bool]] = frozenset()
    branches: frozenset[BranchKey] = frozenset()
    marked: frozenset[int] = frozenset()
    ends: frozenset[str] = frozenset()
    """Kinds of outcomes."""


class CoverageCollector:
    """Collector of coverage from the executions of one node."""

    def __init__(self, compiled: Compiled) -> None:
        self._node = node = compiled.node
        self._unreached = {each.name: each.value for each in node.functions}
        """Values of recursive functions, until a call of them was evaluated."""
        self._conditions = guards(node)
        self._map = BranchMap(compiled)
        self._covered: set[BranchKey] = set()
        self._marked: set[int] = set()
        self._ends: set[str] = set()
        self._shapes: set[frozenset[tuple[int, bool]]] = set()
        self.coverage = Coverage(2 * len(self._conditions))
        self.coverage.branches_total = len(self._map.branches)
        self.coverage.operations_total = len({each.op for each in node.expressions() if isinstance(each, Call)})

    def observe(self, done: Done) -> None:
        conditions = self._conditions
        path = tuple([(index, bool(value)) for index, value in done.marks if index in conditions])
        if path not in self.coverage.paths:
            self.coverage.paths.add(path)
            self.coverage.guards.update(path)
            self._shapes.add(frozenset(path))
        if self._map.has_more:
            self._covered |= self._map.covered_by(done)
        self._marked.update([index for index, _ in done.marks])
        self._ends.add(done.outcome.kind)

    @property
    def size(self) -> int:
        """Number of branches, expressions and combinations of conditions that occurred.

        Paths are not counted, because every round of a loop makes a new one.
        """
        return len(self.coverage.guards) + len(self._covered) + len(self._marked) + len(self._shapes)

    def begin(self, known: CoverageState | None = None) -> None:
        """Begin a new list of paths. Keep the other coverage, and add that of an earlier run."""
        before = self.coverage
        self.coverage = replace(before, guards=set(before.guards), paths=set(), operations=set(before.operations))
        if known is not None:
            self.coverage.guards |= known.guards
            self._covered |= known.branches
            self._marked |= known.marked
            self._ends |= known.ends

    def state(self) -> CoverageState:
        covered = frozenset(self._covered)
        return CoverageState(frozenset(self.coverage.guards), covered, frozenset(self._marked), frozenset(self._ends))

    def finish(self) -> None:
        """Count the operations and list uncovered branches; conditions are counted by `observe`."""
        covered = self._covered | {("condition", *each) for each in self.coverage.guards}
        self.coverage.uncovered = self._map.uncovered(covered)
        for root in self._evaluated_expressions():
            self._reach(root)

    def _evaluated_expressions(self) -> Iterator[Expression]:
        """Yield the outermost expressions that were evaluated, as far as marks show."""
        for root in self._node.roots():
            if root.index in self._marked:
                yield root
        # Returned values, request arguments and loop items have no mark; the results of their statements have.
        for statement in all_statements(self._node.body):
            roots = list(expressions_of((statement,)))
            match statement:
                case Return() | Raise():
                    is_reached = (Returned if isinstance(statement, Return) else DeclaredError).kind in self._ends
                case Request() | CallNode():
                    is_reached = statement.result.index in self._marked
                case Loop(over=over, state=state):
                    is_reached = any(root.index in self._marked for root in roots)
                    roots = [*([] if over is None else [over]), *(each.value for each in state)]
                case _:
                    is_reached = False
            yield from roots if is_reached else ()

    def _reach(self, expression: Expression) -> None:
        if isinstance(expression, Call):
            self.coverage.operations.add(expression.op)
        if isinstance(expression, Apply) and expression.function in self._unreached:
            self._reach(self._unreached.pop(expression.function))
        for part in children(expression):
            if isinstance(expression, If) and part is not expression.condition:
                taken = (expression.condition.index, part is expression.then)
                if taken not in self.coverage.guards:
                    continue
            self._reach(part)
