"""One run of the verifier in workers: the results of its tasks, and the tasks after a crash.

Without a time limit a node is one task, with the same inputs as without workers. With one, or with a state, tasks are
units of `Rounds`.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from dataclasses import replace
from typing import Protocol

from vesper.verify.workers.crashes import Crash
from vesper.verify.workers.merging import add_report
from vesper.verify.workers.orders import Order, PlainOrder, Plan, RoundsOrder
from vesper.verify.workers.pool import Pool
from vesper.verify.workers.results import MAX_CRASHES, NodeProgress, ProgramsProgress, first_progress
from vesper.verify.workers.state import RunState
from vesper.verify.workers.tasks import (
    Message,
    NodeResult,
    NodeTask,
    ProgramResult,
    ProgramsTask,
    Reduced,
    ReductionTask,
    Task,
    Unusable,
    Workload,
)

_SAVE_SECONDS = 5.0


class UnusableFunction(Exception):
    """The user's function returned something that is no outcome of the node."""


class Events(Protocol):
    """Receiver of the events of a run."""

    def crashed(self, node: NodeProgress, crash: Crash) -> None: ...

    def verified(self, node: NodeProgress) -> None:
        """Take a node of which nothing more will be run."""

    def advanced(self, executions: int) -> None:
        """Take the number of inputs compared so far."""


class GuardedRun:
    """The schedule of one run, and its results."""

    def __init__(self, work: Workload, plan: Plan, events: Events, state: RunState | None = None) -> None:
        self._work = work
        self._plan = plan
        self._events = events
        self._state = state
        self._saved_at = time.monotonic()
        has_rounds = plan.seconds is not None or state is not None
        self.nodes = first_progress(work, state)
        self.programs = ProgramsProgress(work, is_ordered=not has_rounds)
        self._order: Order = (
            RoundsOrder(plan, self.nodes, len(work.kept), self.programs, state)
            if has_rounds
            else PlainOrder(plan, self.nodes, len(work.kept), self.programs)
        )
        self._repeated: defaultdict[int, deque[Task]] = defaultdict(deque)
        """Tasks that follow a crash, by worker."""
        self._reduced: dict[int, Reduced] = {}
        """Smallest form of the crash that a worker reduces."""
        self._received: defaultdict[int, set[int]] = defaultdict(set)
        """Programs of a worker's present task that are done."""

    def execute(self) -> None:
        """Run everything; after an interruption the results so far remain."""
        try:
            Pool(self, self._work, self._plan.workers, self._plan.limits).run()
        finally:
            for node in self.nodes:
                node.keep_partial()
            if self._state is not None:
                self._state.save()

    # -- called by the pool ---------------------------------------------------------------------------

    def next_task(self, worker: int) -> Task | None:
        repeated = self._repeated[worker]
        task = repeated.popleft() if repeated else self._order.next_task(worker)
        self._received[worker].clear()
        if isinstance(task, NodeTask):
            self.nodes[task.node].is_begun = True
        return task

    def receive(self, worker: int, task: Task, message: Message) -> None:
        match message, task:
            case NodeResult(), NodeTask():
                self._take_node(task, message)
            case ProgramResult(), ProgramsTask():
                self._received[worker].add(message.number)
                self.programs.take(message, task.is_kept)
                if self._state is not None and not task.is_kept and not message.report.failures:
                    self._state.programs.add(message.number)
            case Reduced(), ReductionTask():
                self._reduced[worker] = message
            case Unusable(problem), _:
                raise UnusableFunction(problem)
        executions = sum((each.partial or each.report).executions for each in self.nodes)
        self._events.advanced(executions + self.programs.report.executions)

    def finish(self, worker: int, task: Task) -> None:
        if isinstance(task, ReductionTask):
            self._record_crash(worker, task, self._reduced.pop(worker, None))
        if self._state is not None and time.monotonic() - self._saved_at >= _SAVE_SECONDS:
            self._state.save()
            self._saved_at = time.monotonic()

    def fail(self, worker: int, task: Task, crash: Crash) -> None:
        match task:
            case ReductionTask():
                # The reduction itself died: the crash is reported as far as it was reduced.
                self._record_crash(worker, task, self._reduced.pop(worker, None))
            case NodeTask():
                self._fail_node(worker, task, crash)
            case ProgramsTask():
                self._fail_program(worker, task, crash)

    # -- nodes ----------------------------------------------------------------------------------------

    def _take_node(self, task: NodeTask, result: NodeResult) -> None:
        node = self.nodes[task.node]
        if result.is_partial:
            node.take_partial(result.report)
            return
        node.partial, node.coverage = None, result.state
        has_failed = bool(result.report.differences or result.report.case_failures or result.report.broken)
        add_report(node.report, result.report)
        node.is_done = node.missing_differences <= 0 or self._order.is_last(task.node)
        self._order.record(task.node, result.has_grown)
        if self._state is not None and isinstance(self._order, RoundsOrder) and not has_failed:
            kept = self._state.nodes[node.compiled.semantic_hash]
            kept.interval = self._order.interval(task.node)
            if task.numbers[0] == kept.inputs + 1 and not node.crashes:
                kept.inputs = task.numbers[-1]
            if result.state is not None:
                kept.coverage = result.state
        if node.is_done:
            self._events.verified(node)

    def _fail_node(self, worker: int, task: NodeTask, crash: Crash) -> None:
        node = self.nodes[task.node]
        # Only an input, a case or a way can be left out.
        goes_on = crash.stage in ("run", "case", "way") and len(node.crashes) + 1 < MAX_CRASHES
        is_new = all((each.engine, each.ending.kind) != (crash.engine, crash.ending.kind) for each in node.crashes)
        if goes_on and is_new and crash.stage == "run" and crash.inputs is not None:
            self._repeated[worker].append(ReductionTask(crash, task.node))
        else:
            self._add_crash(node, crash)
        if goes_on:
            node.leave_out(crash)
            is_hanging = node.is_hanging or crash.ending.kind == "hang"
            self._repeated[worker].append(
                replace(task, skipped=node.skipped, left_out=node.left_out, is_hanging=is_hanging)
            )
            return
        node.is_given_up = node.is_done = True
        node.keep_partial()
        self._order.record(task.node, has_grown=False)
        self._events.verified(node)

    def _add_crash(self, node: NodeProgress, crash: Crash) -> None:
        node.crashes.append(crash)
        self._events.crashed(node, crash)

    def _record_crash(self, worker: int, task: ReductionTask, reduced: Reduced | None) -> None:
        crash = task.crash
        if task.node is not None:
            if reduced is not None:
                crash = replace(crash, inputs=reduced.inputs, is_reduced=True)
            self._add_crash(self.nodes[task.node], crash)
        elif task.program is not None:
            self.programs.take_crash(task.program, False, crash, reduced)

    # -- programs -------------------------------------------------------------------------------------

    def _fail_program(self, worker: int, task: ProgramsTask, crash: Crash) -> None:
        missing = [number for number in task.numbers if number not in self._received[worker]]
        number, rest = (missing or task.numbers)[0], tuple(missing[1:])
        if task.is_kept or crash.stage == "draw" or self._work.is_variant(number):
            self.programs.take_crash(number, task.is_kept, crash, None)
        else:
            self._repeated[worker].append(ReductionTask(crash, program=number))
        if rest:
            self._repeated[worker].append(replace(task, numbers=rest))
