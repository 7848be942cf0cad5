"""The program of a lead that records drawn runs for its candidate.

It wraps the program of any engine, also a routed one: its modes, evidence and counts are those of the lead alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from vesper.engines.engine import (
    DIRECT,
    Execution,
    FastEntry,
    Limits,
    ModalProgram,
    Observer,
    Program,
    Raises,
    Repeatable,
    Unwrap,
)
from vesper.engines.outcome import Outcome
from vesper.host.host import Host
from vesper.host.prepared import Prepared
from vesper.host.routed import HostedProgram
from vesper.migration.candidates.live_candidate import LiveCandidate
from vesper.migration.shadow.recorded_program import RecordedProgram


class LedProgram(FastEntry, HostedProgram, Repeatable):
    """The lead of a name on its engine."""

    def __init__(self, lead: Program, candidate: LiveCandidate, on_host: Callable[[Host], None]) -> None:
        """`on_host` receives each Host that performs effects of the lead."""
        self._lead = lead
        self._candidate = candidate
        self._on_host = on_host
        self._recorded = RecordedProgram(lead, candidate.put)
        self.execution_path = lead.execution_path if isinstance(lead, FastEntry) else DIRECT  # type: ignore[misc]  # as that of the lead

    @property
    def semantic_hash(self) -> str:
        return self._lead.semantic_hash

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> Execution:
        """Start an execution whose caller completes the requests: it is not followed."""
        return self._lead.start(inputs, now, limits, observe, is_traced)

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        program = self._recorded if self._candidate.admits() else self._lead
        return program.call(inputs, now, limits)

    def rerun(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        if isinstance(self._lead, Repeatable):
            return self._lead.rerun(inputs, now, limits)
        return self._lead.call(inputs, now, limits)

    def fast_entry(
        self, unwrap: Unwrap, takes_now: bool, raises: Raises | None = None
    ) -> Callable[..., dict[str, Any]] | None:
        """Return the lead's entry behind a draw. A drawn call is recorded, and its outcome is unwrapped."""
        entry = self._lead.fast_entry(unwrap, takes_now, raises) if isinstance(self._lead, FastEntry) else None
        if entry is None:
            return None
        run, candidate, recorded = entry, self._candidate, self._recorded

        def call(inputs: dict[str, Any]) -> dict[str, Any]:
            if candidate.is_following and candidate.admits():
                return unwrap(recorded.call(inputs), inputs)
            return run(inputs)

        def call_at(inputs: dict[str, Any], *, now: datetime) -> dict[str, Any]:
            if candidate.is_following and candidate.admits():
                return unwrap(recorded.call(inputs, now), inputs)
            return run(inputs, now=now)

        return call_at if takes_now else call

    # -- in a Host --------------------------------------------------------------------------------

    @property
    def served_name(self) -> str:
        return self._candidate.name

    def attach_host(self, host: Host) -> None:
        if isinstance(self._lead, HostedProgram):
            self._lead.attach_host(host)
        self._candidate.followers.yield_to(host)
        self._on_host(host)

    def route(self, prepared: Prepared, inputs: Mapping[str, object], execution: str) -> Prepared:
        """Return the lead as its mode routes it; a drawn run is recorded."""
        found = replace(prepared, program=self._lead)
        if isinstance(self._lead, HostedProgram):
            found = self._lead.route(found, inputs, execution)
        if not self._candidate.admits():
            return found
        recorded = (
            self._recorded if found.program is self._lead else RecordedProgram(found.program, self._candidate.put)
        )
        return replace(found, program=recorded)


class LedModalProgram(LedProgram, ModalProgram):
    """The lead of a name on the engine that its mode selects."""

    @property
    def mode(self) -> str:
        assert isinstance(self._lead, ModalProgram)
        return self._lead.mode


def led_program(lead: Program, candidate: LiveCandidate, on_host: Callable[[Host], None]) -> LedProgram:
    """Return the program of a lead with its candidate."""
    kind = LedModalProgram if isinstance(lead, ModalProgram) else LedProgram
    return kind(lead, candidate, on_host)
