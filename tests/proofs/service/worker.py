"""A worker with planted faults (`planted`): `python -m tests.proofs.service.worker`.

The faults are active while the file that VESPER_PLANTED names exists. Every fault is written to `<VESPER_PLANTED>.log`
before it happens, so that the proof can require that each is found.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.proofs.service.planted import fault_of, lied, lied_about
from vesper.engines.engine import Blocked
from vesper.migration.workers.worker_main import Worker, main

_PLANTED = Path(os.environ["VESPER_PLANTED"])


def note(kind: str, order: str) -> None:
    with Path(f"{_PLANTED}.log").open("a") as file:
        file.write(f"{kind} {order}\n")


class PlantedWorker(Worker):
    def load(self, ir: bytes, callees: Sequence[bytes]) -> Any:
        return _Program(super().load(ir, callees))


class _Program:
    def __init__(self, program: Any) -> None:
        self._program = program
        self.points = program.points

    def start_pathed(self, inputs: Any, *rest: Any) -> Any:
        fault = fault_of(inputs["amount"]) if _PLANTED.exists() else None
        return _Execution(self._program.start_pathed(inputs, *rest), fault, inputs)


class _Execution:
    def __init__(self, execution: Any, fault: str | None, inputs: Any) -> None:
        self._execution = execution
        self._fault = fault
        self._inputs = inputs
        self.path = execution.path
        self.fingerprint = execution.fingerprint

    def advance(self, completions: Any) -> Any:
        step = self._execution.advance(completions)
        if self._fault is None:
            return step
        order = self._inputs["order_id"]
        if not isinstance(step, Blocked):
            told = lied(self._inputs, step)
            if told is not step:
                note("lie", order)
            return told
        (request,) = step.requests
        if self._fault == "lie_request":
            changed = lied_about(request)
            if changed is not request:
                note("lie_request", order)
            return replace(step, requests=(changed,))
        if self._fault in ("abort", "hang") and request.path == "record":
            note(self._fault, order)
            if self._fault == "abort":
                os.abort()
            time.sleep(3600)
        return step


if __name__ == "__main__":
    main(PlantedWorker(), sys.argv[1:])
