"""A worker whose engine fails on purpose: `python -m tests.unit.migration.support.bad_worker`.

The input `word` selects the failure; any other word gets the outcome of the real engine.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import Any

from vesper.migration.workers.worker_main import Worker, main


class BadWorker(Worker):
    def load(self, ir: bytes, callees: Sequence[bytes]) -> Any:
        return _BadProgram(super().load(ir, callees))


class _BadProgram:
    def __init__(self, program: Any) -> None:
        self._program = program
        self.points = program.points

    def call(self, inputs: Any, *rest: Any) -> Any:
        _break(inputs["word"])
        return self._program.call(inputs, *rest)

    def start(self, inputs: Any, *rest: Any) -> Any:
        _break(inputs["word"])
        return self._program.start(inputs, *rest)

    def call_pathed(self, inputs: Any, *rest: Any) -> Any:
        _break(inputs["word"])
        return self._program.call_pathed(inputs, *rest)

    def start_pathed(self, inputs: Any, *rest: Any) -> Any:
        _break(inputs["word"])
        return self._program.start_pathed(inputs, *rest)


def _break(word: str) -> None:
    match word:
        case "abort":
            os.abort()
        case "segv":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "memory":
            bytearray(1 << 40)
        case "hang":
            re.match(r"(a+)+$", "a" * 60 + "b")  # for years, and with Python's lock held, as an engine would
        case "raise":
            raise RuntimeError("the engine raised")
        case "print":
            print("not an answer", flush=True)
        case "exit":
            os._exit(3)


if __name__ == "__main__":
    main(BadWorker(), sys.argv[1:])
