"""Programs of a routed request: recorded, compared first, or direct while trusted.

Each stands in for a program of an engine, so the Host runs it like any other:

    host.run(replace(prepared, program=PairedProgram(pair)), inputs, now)

Not with `host.prepare(compiled, PairedProgram(…), …)`: a Host keeps what it prepared, and a run that is taken over
would be counted as evidence again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from vesper.engines.engine import Blocked, Done, Execution, Limits, Observer
from vesper.engines.outcome import LimitHit, Outcome
from vesper.migration.compare.paths import ending_of, path_name
from vesper.migration.shadow.guarded_direct import NotAsked
from vesper.migration.shadow.lockstep import Lockstep, Pair
from vesper.migration.shadow.recorded_program import RecordedProgram
from vesper.migration.shadow.shadow_run import follow_transcript

__all__ = ["GuardedProgram", "NotAsked", "PairedProgram", "RecordedProgram", "follow_transcript"]

_MAX_NAMES = 4096


class PairedProgram:
    """Both engines from the start, compared before the outcome is returned. Python's outcome wins."""

    _trusts = False

    def __init__(self, pair: Pair) -> None:
        self._pair = pair

    @property
    def semantic_hash(self) -> str:
        return self._pair.python.semantic_hash

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        return self._run_to_end(self._lockstep(inputs, now, limits))

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> Execution:
        """Start an execution. A traced one runs on Python alone, and nothing is compared."""
        if is_traced:
            return self._pair.python.start(inputs, now, limits, observe)
        return self._lockstep(inputs, now, limits)

    def _lockstep(self, inputs: Mapping[str, object], now: datetime | None, limits: Limits | None) -> Lockstep:
        side = self._pair.side(inputs, now, limits)
        return Lockstep(self._pair, inputs, now, limits, side, trusts=self._trusts)

    @staticmethod
    def _run_to_end(execution: Lockstep) -> Outcome:
        step = execution.advance(())
        if isinstance(step, Blocked):
            raise ValueError(f"the program asks for {step.requests[0].effect}: start it, and complete what it asks for")
        return step.outcome


class GuardedProgram(PairedProgram):
    """The direct engine alone where the watch trusts it, and a `PairedProgram` otherwise."""

    _trusts = True

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        if not self._pair.python.is_plain:
            return super().call(inputs, now, limits)
        side = self._pair.side(inputs, now, limits)
        step = side.call()
        if isinstance(step, Done) and not isinstance(step.outcome, LimitHit):
            names, place = self._pair.facts.names, (side.points, ending_of(step.outcome))
            name = names.get(place)
            if name is None:
                name = path_name(side.points, (), step.outcome)
                if len(names) < _MAX_NAMES:
                    names[place] = name
            if self._pair.is_trusted(name):
                return step.outcome
        return self._run_to_end(Lockstep(self._pair, inputs, now, limits, side, trusts=False))
