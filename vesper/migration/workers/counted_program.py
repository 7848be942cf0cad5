"""The direct engine in the caller's process, with its running executions counted (`inflight_counters`).

Only computing counts: an execution that waits for an effect is suspended, and a process that dies then was not ended by
the engine.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from vesper.engines.engine import Blocked, Completion, Done, Limits
from vesper.engines.path import Point
from vesper.migration.compare.transcript import Exchange
from vesper.migration.control.state import Event
from vesper.migration.shadow.guarded_direct import PathedAnswer, PathedExecution, PathedProgram, is_scripted
from vesper.migration.stores.store import NodeKey, StoreError
from vesper.migration.workers.inflight_counters import Flights, LostFlights, Slot, claim_lost

_log = logging.getLogger("vesper.migration")
_SCAN_INTERVAL_SECONDS = 5.0
"""Seconds between two scans for the counters of dead processes."""


class ExecutionCounters:
    """The counters of all routed nodes of a process."""

    def __init__(self, folder: Path, tell: Callable[[NodeKey, Event], None]) -> None:
        """`tell` receives an event of a node, also of one that this process does not route.

        It may raise `StoreError`.
        """
        self._folder = folder
        self._tell_of = tell
        self._flights: Flights | None = None
        self._looked = float("-inf")

    def program(self, key: NodeKey, direct: PathedProgram) -> PathedProgram:
        """Return the program with its executions counted.

        Without a counter file, the failure is logged and nothing is counted.
        """
        if self._flights is None:
            try:
                self._flights = Flights.open(self._folder)
            except OSError as error:
                _log.error("executions of the direct engine under way are not counted: %s", error)
                return direct
        return CountedProgram(direct, self._flights.slot(key))

    def look(self) -> None:
        """Report executions that were running when a process died, at most once per interval.

        If the store is away, they are found again in the next scan.
        """
        if time.monotonic() - self._looked < _SCAN_INTERVAL_SECONDS:
            return
        self._looked = time.monotonic()
        try:
            claim_lost(self._folder, self._report_lost)
        except (StoreError, OSError) as error:
            _log.warning("what dead processes had under way cannot be told yet: %s", error)

    def _report_lost(self, found: LostFlights) -> None:
        for event in found.events():
            self._tell_of(found.key, event)

    def close(self) -> None:
        if self._flights is not None:
            self._flights.close()


class CountedProgram:
    """A `DirectProgram` with its executions counted."""

    def __init__(self, program: PathedProgram, slot: Slot) -> None:
        self.program = program
        self.slot = slot
        self._enter, self._leave = slot.enter, slot.leave

    def points(self) -> tuple[Point, ...]:
        return self.program.points()

    def call_pathed(
        self, inputs: Mapping[str, object], key: bytes, now: datetime | None = None, limits: Limits | None = None
    ) -> PathedAnswer:
        self._enter()
        try:
            return self.program.call_pathed(inputs, key, now, limits)
        finally:
            self._leave()

    def start_pathed(
        self, inputs: Mapping[str, object], key: bytes, now: datetime | None = None, limits: Limits | None = None
    ) -> PathedExecution:
        self._enter()
        try:
            return _CountedExecution(self.program.start_pathed(inputs, key, now, limits), self)
        finally:
            self._leave()

    def start_scripted(
        self,
        inputs: Mapping[str, object],
        key: bytes,
        now: datetime | None,
        limits: Limits | None,
        exchanges: Sequence[Exchange],
    ) -> PathedExecution:
        if not is_scripted(self.program):
            return self.start_pathed(inputs, key, now, limits)
        self._enter()
        try:
            return _CountedExecution(self.program.start_scripted(inputs, key, now, limits, exchanges), self)
        finally:
            self._leave()

    def advance(self, execution: PathedExecution, completions: Sequence[Completion]) -> Blocked | Done:
        self._enter()
        try:
            return execution.advance(completions)
        finally:
            self._leave()


class _CountedExecution:
    def __init__(self, execution: PathedExecution, program: CountedProgram) -> None:
        self._execution = execution
        self._program = program
        self.path, self.fingerprint = execution.path, execution.fingerprint

    def advance(self, completions: Sequence[Completion]) -> Blocked | Done:
        return self._program.advance(self._execution, completions)
