"""Untrusted nodes: every execution runs in a confined worker, and the caller's process performs the effects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any

from vesper.compiler import Compiled
from vesper.engines.engine import EngineUnavailable, FastEntry, Limits, Observer, Program, Raises, Unwrap
from vesper.engines.outcome import Outcome
from vesper.migration.workers.execution import IsolatedExecution
from vesper.migration.workers.isolation import IsolatedProgram, Workers
from vesper.migration.workers.worker_lease import WorkerFault

SECONDS = 10.0
"""Computing time of an execution without a limit of its own."""
_LIMITS = Limits(seconds=SECONDS)
_START_SECONDS = 20.0
_RETURNED = b'{"kind":"returned"'


@cache
def sandbox_workers() -> Workers:
    """Return the confined workers of this process, started at the first use."""
    workers = Workers(size=2, deadline=SECONDS, is_sandboxed=True)
    workers.start()
    return workers


class SandboxEngine:
    """The direct engine's interpreter in confined workers."""

    name = "interp"

    def __init__(self, workers: Workers | None = None) -> None:
        self._workers = workers or sandbox_workers()

    @property
    def lacks(self) -> tuple[str, ...]:
        """The missing features of the kernel for the sandbox."""
        return self._workers.lacks

    def load(self, compiled: Compiled) -> Program:
        """Load the node. Raises `EngineUnavailable` where no worker can be confined."""
        if not self._workers.wait_until_up(_START_SECONDS):
            raise EngineUnavailable(f"no sandbox can be started: {self._workers.problem or 'it takes too long'}")
        return SandboxedProgram(compiled, self._workers)


class SandboxedProgram(FastEntry):
    """A node whose executions run in confined workers. A call waits for a worker; threads may share it."""

    def __init__(self, compiled: Compiled, workers: Workers) -> None:
        self.semantic_hash = compiled.semantic_hash
        self._program = IsolatedProgram(compiled, workers, _START_SECONDS)
        self._is_pure = compiled.node.is_pure() and compiled.node.type == "function"

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        return self._program.call(inputs, now, limits or _LIMITS)

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> IsolatedExecution:
        return self._program.start(inputs, now, limits or _LIMITS, observe, is_traced)

    def fast_entry(
        self, unwrap: Unwrap, takes_now: bool, raises: Raises | None = None
    ) -> Callable[..., dict[str, Any]] | None:
        return None

    def json_entry(self, explain: Callable[[bytes, bytes], bytes] | None = None) -> Callable[..., bytes] | None:
        if not self._is_pure:
            return None
        if explain is None:
            return self._call_json

        def call_json(text: bytes, /) -> bytes:
            outcome = self._call_json(text)
            return outcome if outcome.startswith(_RETURNED) else explain(outcome, text)

        return call_json

    def _call_json(self, text: bytes, /, now: datetime | None = None) -> bytes:
        if not isinstance(text, bytes):
            raise TypeError(f"run_json takes JSON text as bytes, not {type(text).__name__}")
        try:
            return self._program.call_json(text)
        except WorkerFault as fault:
            return _fault_json(fault)


def _fault_json(fault: WorkerFault) -> bytes:
    from vesper.values.json_value import json_string

    if fault.is_late:
        return b'{"kind":"limit_hit","limit":"time"}'
    return f'{{"kind":"engine_fault","message":{json_string(str(fault))}}}'.encode()
