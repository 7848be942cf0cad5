"""Rounds of a run with a time limit: which inputs and random programs come next.

In a round every due node gets a few more inputs, then some new random programs are drawn. A node whose coverage did not
grow is skipped for ever more rounds, so that other nodes and programs get the time. The order depends on the recorded
growth alone, never on the clock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

INPUTS_PER_ROUND = 20
PROGRAMS_PER_ROUND = 20
"""Programs of one round, shared by the workers."""
MAX_INTERVAL = 64
"""Rounds between two turns of a node that stopped growing."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Inputs of one node, or some random programs."""

    node: int | None
    """Index of the node; None for random programs."""
    round: int
    numbers: range | tuple[int, ...]
    """Numbers of the inputs, which count from 1, or of the programs, which count from 0."""


@dataclass(slots=True)
class NodeTurns:
    """Position of one node in the rounds."""

    inputs: int = 0
    """Inputs that earlier units took."""
    interval: int = 1
    """Rounds from one turn to the next."""
    due: int = 0
    """Round of the next turn."""


@dataclass(slots=True)
class Rounds:
    """Units of one worker. Its nodes and programs are those whose index modulo `workers` is `worker`."""

    nodes: int
    max_inputs: int
    max_programs: int = 0
    worker: int = 0
    workers: int = 1
    done_programs: Collection[int] = ()
    """Programs of an earlier run, which are not drawn again."""
    turns: dict[int, NodeTurns] = field(default_factory=dict)
    _round: int = 0
    _waiting: list[Unit] = field(default_factory=list)

    def __post_init__(self) -> None:
        for node in range(self.worker, self.nodes, self.workers):
            self.turns.setdefault(node, NodeTurns())

    def next(self) -> Unit | None:
        """Return the next unit; None if every node and program has had its maximum."""
        while not self._waiting:
            if not self._has_more():
                return None
            self._waiting = self._units(self._round)
            self._round += 1
        return self._waiting.pop(0)

    def record(self, unit: Unit, has_grown: bool) -> None:
        """Record whether a unit of a node covered something new, which decides in which round its next unit comes."""
        if unit.node is None:
            return
        turns = self.turns[unit.node]
        turns.interval = 1 if has_grown else min(2 * turns.interval, MAX_INTERVAL)
        turns.due = unit.round + turns.interval

    def drop(self, node: int) -> None:
        """Take a node out of the rounds."""
        self.turns.pop(node, None)
        self._waiting = [each for each in self._waiting if each.node != node]

    def _has_more(self) -> bool:
        has_inputs = any(each.inputs < self.max_inputs for each in self.turns.values())
        return has_inputs or self._round * PROGRAMS_PER_ROUND < self.max_programs

    def _units(self, number: int) -> list[Unit]:
        units = []
        for node, turns in sorted(self.turns.items()):
            first, last = turns.inputs + 1, min(turns.inputs + INPUTS_PER_ROUND, self.max_inputs)
            if turns.due <= number and first <= last:
                turns.inputs = last
                turns.due = number + 1
                units.append(Unit(node, number, range(first, last + 1)))
        drawn = range(number * PROGRAMS_PER_ROUND, min((number + 1) * PROGRAMS_PER_ROUND, self.max_programs))
        own = tuple(each for each in drawn if each % self.workers == self.worker and each not in self.done_programs)
        return [*units, *([Unit(None, number, own)] if own else [])]


def restored_turns(known: Mapping[int, tuple[int, int]]) -> dict[int, NodeTurns]:
    """Return the turns of nodes by their inputs and interval in an earlier run."""
    return {node: NodeTurns(inputs, interval, interval - 1) for node, (inputs, interval) in known.items()}
