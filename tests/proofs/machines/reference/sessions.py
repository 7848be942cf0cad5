"""Sessions: the branches of a pipeline, what each does, and where routes lead them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.proofs.machines.messages import envelope_pb2, log_message, orchestration_pb2, process_pb2
from tests.proofs.machines.reference.pipelines import Pipeline

Branch = log_message("Branch")
READY, LEASED, ASKING, JOINED, FORKED = range(1, 6)
OPEN = (READY, LEASED, ASKING)
FIRST = 1
_Ending = tuple["process_pb2.TerminalReason", str]


@dataclass
class Progress:
    """What a result led to: edges taken, steps made, and why the session ends."""

    hops: int = 0
    steps: int = 0
    ending: _Ending | None = None


@dataclass
class Session:
    pid: str
    pipeline: Pipeline
    created_us: int
    last_activity_us: int
    branches: dict[int, Any] = field(default_factory=dict)
    edges: dict[str, int] = field(default_factory=dict)
    steps: int = 0
    made: int = FIRST
    """Branches ever made; each has a number of its own."""
    final: envelope_pb2.Envelope | None = None
    note_move: Callable[[int, int], None] = lambda _start, _to: None

    def start(self, envelope: envelope_pb2.Envelope) -> None:
        self.branches[FIRST] = Branch(branch=FIRST, envelope=envelope)
        self._enter(self.branches[FIRST], self.pipeline.entry, Progress())

    @property
    def envelope(self) -> envelope_pb2.Envelope:
        return self.final if self.final is not None else self.branches[FIRST].envelope

    @property
    def is_active(self) -> bool:
        """Return whether a step can run or runs."""
        return any(branch.state in (READY, LEASED) for branch in self.branches.values())

    def ordered(self) -> list[Any]:
        return [self.branches[number] for number in sorted(self.branches)]

    def stage_of(self, branch: Any) -> orchestration_pb2.AgentConfig:
        return self.pipeline.stages[branch.stage]

    def step_id(self, branch: Any) -> str:
        return f"{self.pid}/{branch.step}"

    def leased(self) -> Iterator[Any]:
        return (branch for branch in self.ordered() if branch.state == LEASED)

    def deadlines(self) -> Iterator[tuple[int, Any, bool]]:
        """Return when steps are taken away, and whether that is because their stage is out of time."""
        for branch in self.leased():
            yield branch.lease_until_us, branch, False
            stage = self.stage_of(branch)
            if stage.HasField("timeout_us"):
                yield branch.started_us + stage.timeout_us, branch, True

    def lease(self, branch: Any, worker: str, until_us: int, now_us: int) -> None:
        self._move(branch, LEASED)
        branch.worker, branch.lease_until_us = worker, until_us
        branch.started_us = branch.started_us or now_us
        self.last_activity_us = now_us

    def ask(self, branch: Any, interrupt: str, now_us: int) -> None:
        """Let a step wait for a person. The time of its stage begins anew after that."""
        self._move(branch, ASKING)
        branch.started_us, branch.interrupt_id = 0, interrupt
        self.last_activity_us = now_us

    def answer(self, interrupt: str, now_us: int) -> None:
        for branch in self.branches.values():
            if branch.state == ASKING and branch.interrupt_id == interrupt:
                self._move(branch, READY)
                self.last_activity_us = now_us

    def release(self, branches: list[Any]) -> None:
        for branch in branches:
            self._move(branch, READY)

    def close(self, branch: Any, error: str, output: str | None, now_us: int) -> None:
        """Record that a step has ended."""
        envelope = branch.envelope
        envelope.version += 1
        envelope.history.add(
            stage=branch.stage,
            step_id=self.step_id(branch),
            started_us=branch.started_us or now_us,
            ended_us=now_us,
            error=error,
        )
        if output is not None:
            envelope.outputs_json[branch.stage] = output
        branch.started_us, branch.interrupt_id = 0, ""
        self.last_activity_us = now_us

    def succeed(self, branch: Any, output: str, route: int | None, now_us: int) -> Progress:
        stage = self.stage_of(branch)
        self.close(branch, "", output, now_us)
        progress = Progress()
        rule = stage.routes[route] if route is not None else orchestration_pb2.RoutingRule()
        if len(rule.targets) > 1:
            self._fork(branch, list(rule.targets), rule.join, progress)
        elif rule.targets:
            self._take_edge(branch, rule.targets[0], progress)
        elif branch.parent:
            self._move(branch, JOINED)
        else:
            progress.ending = process_pb2.TERMINAL_REASON_COMPLETED, ""
        self._merge_all(progress)
        return progress

    def fail(self, branch: Any, error: str, now_us: int) -> Progress:
        stage = self.stage_of(branch)
        self.close(branch, error, None, now_us)
        progress = Progress()
        if not stage.on_error:
            message = f'The stage "{stage.name}" failed: {error}'
            progress.ending = process_pb2.TERMINAL_REASON_AGENT_FAILED, message
            return progress
        self._take_edge(branch, stage.on_error, progress)
        self._merge_all(progress)
        return progress

    def end(self, now_us: int) -> None:
        """End the session; the envelope of the whole stays."""
        self.final = self.envelope
        self.branches.clear()
        self.last_activity_us = now_us

    def _fork(self, parent: Any, targets: list[str], join: str, progress: Progress) -> None:
        start = parent.stage
        first, self.made = self.made + 1, self.made + len(targets)
        self._move(parent, FORKED)
        parent.stage = join
        for number, target in enumerate(targets, first):
            child = Branch(branch=number, parent=parent.branch, envelope=parent.envelope, stage=start)
            child.envelope.envelope_id = f"{self.pid}/e{number}"
            child.envelope.parent_envelope_id = parent.envelope.envelope_id
            child.envelope.version = 1
            self.branches[number] = child
            self._take_edge(child, target, progress)

    def _take_edge(self, branch: Any, target: str, progress: Progress) -> None:
        """Take an edge to a stage, or to the join where the branch ends."""
        start = branch.stage
        edge, limit = f"{start}->{target}", self.pipeline.limits.get((start, target))
        taken = self.edges.get(edge, 0)
        if limit is not None and taken >= limit:
            message = f"The edge {edge} was taken {limit} times, its limit."
            progress.ending = progress.ending or (process_pb2.TERMINAL_REASON_EDGE_LIMIT_EXCEEDED, message)
            return
        self.edges[edge] = taken + 1
        progress.hops += 1
        self._come_to(branch, target, progress)

    def _come_to(self, branch: Any, stage: str, progress: Progress) -> None:
        if branch.parent and self.branches[branch.parent].stage == stage:
            self._move(branch, JOINED)
        else:
            self._enter(branch, stage, progress)

    def _merge_all(self, progress: Progress) -> None:
        """Let every fork whose branches have all come to the join continue with it."""
        while progress.ending is None:
            forks = [each for each in self.branches.values() if each.state == FORKED]
            ready = [fork for fork in forks if all(child.state == JOINED for child in self._children(fork))]
            if not ready:
                return
            self._merge(ready[-1], progress)

    def _children(self, fork: Any) -> list[Any]:
        return [branch for branch in self.ordered() if branch.parent == fork.branch]

    def _merge(self, fork: Any, progress: Progress) -> None:
        envelope = fork.envelope
        before, entries = len(envelope.history), list(envelope.history)
        for child in self._children(fork):
            for name, text in child.envelope.outputs_json.items():
                envelope.outputs_json[name] = text
            for name, text in child.envelope.metadata.items():
                envelope.metadata[name] = text
            entries += child.envelope.history[before:]
            del self.branches[child.branch]
        entries.sort(key=lambda entry: entry.ended_us)
        merged = envelope_pb2.Envelope(history=entries)
        del envelope.history[:]
        envelope.history.extend(merged.history)
        envelope.version += 1
        self._come_to(fork, fork.stage, progress)

    def _enter(self, branch: Any, stage: str, progress: Progress) -> None:
        self.steps += 1
        progress.steps += 1
        self._move(branch, READY)
        branch.stage, branch.step = stage, self.steps
        branch.envelope.current_stage = stage

    def _move(self, branch: Any, state: int) -> None:
        """Change what a branch does; a lease ends by it."""
        self.note_move(branch.state, state)
        branch.state, branch.worker, branch.lease_until_us = state, "", 0
