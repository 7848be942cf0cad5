"""Orders of tasks: one task for each node, or rounds while time is left."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from vesper.verify.rounds import NodeTurns, Rounds, Unit, restored_turns
from vesper.verify.workers.process import WorkerLimits
from vesper.verify.workers.results import NodeProgress, ProgramsProgress
from vesper.verify.workers.state import RunState
from vesper.verify.workers.tasks import NodeTask, ProgramsTask, Task

_PROGRAMS_PER_TASK = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is verified, and by how many workers."""

    max_inputs: int
    max_programs: int = 0
    seconds: float | None = None
    """Time limit of the whole run."""
    workers: int = 1
    limits: WorkerLimits = field(default_factory=WorkerLimits)


class Order(Protocol):
    """The order of tasks."""

    def next_task(self, worker: int) -> Task | None:
        """Return the next task of a worker; None if there is none."""

    def record(self, node: int, has_grown: bool) -> None:
        """Record that the present task of a node has ended."""

    def is_last(self, node: int) -> bool:
        """Return whether the present task of a node is its last one."""


class PlainOrder:
    """One task for each node, then the kept programs, then the random ones."""

    def __init__(self, plan: Plan, nodes: Sequence[NodeProgress], kept: int, programs: ProgramsProgress) -> None:
        self._tasks = self._plain_tasks(plan, len(nodes), kept, programs)

    @staticmethod
    def _plain_tasks(plan: Plan, nodes: int, kept: int, programs: ProgramsProgress) -> Iterator[Task]:
        for node in range(nodes):
            yield NodeTask(node, range(1, plan.max_inputs + 1))
        for numbers in _chunks(kept):
            yield ProgramsTask(numbers, is_kept=True)
        for numbers in _chunks(plan.max_programs):
            if programs.is_over:
                return
            yield ProgramsTask(numbers)

    def next_task(self, worker: int) -> Task | None:
        del worker  # any worker takes the next one
        return next(self._tasks, None)

    def record(self, node: int, has_grown: bool) -> None:
        """Ignore growth: there is one task."""

    def is_last(self, node: int) -> bool:
        del node
        return True


class RoundsOrder:
    """Order of tasks in rounds until the time is over. Kept programs follow the first round of the nodes."""

    def __init__(
        self,
        plan: Plan,
        nodes: Sequence[NodeProgress],
        kept: int,
        programs: ProgramsProgress,
        state: RunState | None,
    ) -> None:
        self._end = None if plan.seconds is None else time.monotonic() + plan.seconds
        self._nodes = nodes
        self._programs = programs
        self._kept = _chunks(kept)
        self._rounds = [_rounds_of(worker, plan, nodes, state) for worker in range(plan.workers)]
        self._delayed: dict[int, Unit | None] = {}
        """Units of workers that do kept programs first."""
        self._present: dict[int, Unit] = {}
        """The last unit of each node."""

    def next_task(self, worker: int) -> Task | None:
        rounds = self._rounds[worker]
        unit = self._delayed.pop(worker) if worker in self._delayed else rounds.next()
        left = None if self._end is None else max(0.0, self._end - time.monotonic())
        is_first = unit is not None and unit.node is not None and not self._nodes[unit.node].is_begun
        # Every node is verified on one input at least, however little time there is.
        if left == 0.0 and not is_first:
            return None
        kept = None if is_first else next(self._kept, None)
        if kept is not None:
            self._delayed[worker] = unit
            return ProgramsTask(kept, left, is_kept=True)
        if unit is None:
            return None
        if unit.node is None:
            if self._programs.is_over:
                rounds.max_programs = 0
                return self.next_task(worker)
            return ProgramsTask(tuple(unit.numbers), left)
        self._present[unit.node] = unit
        node = self._nodes[unit.node]
        numbers = range(unit.numbers[0], unit.numbers[-1] + 1)
        limit = node.missing_differences
        return NodeTask(
            unit.node, numbers, left, node.skipped, node.left_out, node.coverage, limit, True, node.is_hanging
        )

    def record(self, node: int, has_grown: bool) -> None:
        rounds = self._rounds[node % len(self._rounds)]
        if self._nodes[node].is_done:
            rounds.drop(node)
        else:
            rounds.record(self._present[node], has_grown)

    def is_last(self, node: int) -> bool:
        rounds = self._rounds[node % len(self._rounds)]
        return rounds.turns[node].inputs >= rounds.max_inputs

    def interval(self, node: int) -> int:
        """Return the number of rounds from one task of a node to the next."""
        turns = self._rounds[node % len(self._rounds)].turns.get(node)
        return 1 if turns is None else turns.interval


def _rounds_of(worker: int, plan: Plan, nodes: Sequence[NodeProgress], state: RunState | None) -> Rounds:
    turns: dict[int, NodeTurns] = {}
    done: frozenset[int] = frozenset()
    if state is not None:
        done = frozenset(state.programs)
        own = range(worker, len(nodes), plan.workers)
        known = {number: state.nodes[nodes[number].compiled.semantic_hash] for number in own}
        turns = restored_turns({number: (each.inputs, each.interval) for number, each in known.items()})
    return Rounds(len(nodes), plan.max_inputs, plan.max_programs, worker, plan.workers, done, turns)


def _chunks(count: int) -> Iterator[tuple[int, ...]]:
    for first in range(0, count, _PROGRAMS_PER_TASK):
        yield tuple(range(first, min(first + _PROGRAMS_PER_TASK, count)))
