"""The worker process, which runs the direct engine: `python -m vesper.migration.workers.worker_main`.

`isolation` starts it. It holds loaded programs and one execution at a time; a message that begins another one drops the
one before.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vesper.engines.direct_engine import load_documents
from vesper.engines.engine import Blocked, Completion, Done, Limits, Request
from vesper.migration.workers.sandbox import ARGUMENT, enter_sandbox
from vesper.migration.workers.serving import end_with_parent, limit_resources, open_pipes, serve
from vesper.migration.workers.wire_values import (
    Unsendable,
    pack_marks,
    pack_outcome,
    pack_request,
    request_digest,
    unpack,
    unpack_completion,
)
from vesper.values.model import Value

MAX_PROGRAMS = 256
_HASH = 64
"""Characters of the hash of a program."""
_MEASURED = frozenset({"call", "start", "script", "advance"})


class Worker:
    """The server side of one `isolation.Workers`."""

    def __init__(self) -> None:
        self.lacks: list[str] = []
        """What the kernel lacks for the sandbox."""
        self._programs: dict[str, Any] = {}
        self._execution: Any = None
        self._has_path = False
        self._marks: list[tuple[int, Value]] = []
        self._computed = time.process_time_ns()
        """Processor time at the last reply, in nanoseconds."""

    def load(self, ir: bytes, callees: Sequence[bytes]) -> Any:
        return load_documents(ir, list(callees))

    def answer(self, question: Mapping[str, Any], send: Callable[[object], None]) -> object:
        """Return the reply with the processor time since the last one, which includes decoding and encoding."""
        found = self._guarded(question)
        before, self._computed = self._computed, time.process_time_ns()
        if question["do"] in _MEASURED:
            found["cpu"] = (self._computed - before) // 1000
        return found

    def answer_json(self, question: bytes) -> bytes:
        """Return the outcome of a call as canonical JSON. The message is the hash of a program and its JSON text."""
        program = self._programs[question[:_HASH].decode("ascii")]
        return bytes(program.run_json(question[_HASH:]))

    def _guarded(self, question: Mapping[str, Any]) -> dict[str, object]:
        try:
            return self._answer(question)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001  # any error is reported to the parent
            return {"raised": type(error).__name__, "message": str(error)[:2000]}

    def _answer(self, question: Mapping[str, Any]) -> dict[str, object]:
        match question["do"]:
            case "hello":
                return {"hello": True, "lacks": self.lacks}
            case "load":
                program = self.load(question["ir"], question["callees"])
                if len(self._programs) >= MAX_PROGRAMS:  # after loading: the parent clears its own record only then
                    self._programs.clear()
                self._programs[question["program"]] = program
                return {"points": [[each.kind, each.expression, each.outcome] for each in program.points()]}
            case "call":
                return self._call(question)
            case "start":
                return self._start(question)
            case "script":
                return self._script(question)
            case "advance":
                completions = tuple(map(unpack_completion, question["completions"]))
                return self._step(self._execution.advance(completions))
            case other:
                raise ValueError(f"unknown question {other!r}")

    def _program(self, question: Mapping[str, Any]) -> Any:
        return self._programs[question["program"]]

    def _call(self, question: Mapping[str, Any]) -> dict[str, object]:
        program, (inputs, now, limits) = self._program(question), _arguments(question)
        if question["key"] is None:
            return {"outcome": pack_outcome(program.call(inputs, now, limits))}
        outcome, path, fingerprint = program.call_pathed(inputs, question["key"], now, limits)
        return {"outcome": pack_outcome(outcome), "path": path.hex(), "fingerprint": fingerprint}

    def _start(self, question: Mapping[str, Any]) -> dict[str, object]:
        self._marks = []
        program, (inputs, now, limits) = self._program(question), _arguments(question)
        if question["key"] is None:
            is_traced = question["is_traced"]
            execution = program.start(inputs, now, limits, self._observe if is_traced else None, is_traced)
        else:
            execution = program.start_pathed(inputs, question["key"], now, limits)
        self._has_path = question["key"] is not None
        self._execution = execution
        return self._step(execution.advance(()))

    def _script(self, question: Mapping[str, Any]) -> dict[str, object]:
        """Run an execution on recorded completions, in one reply.

        From the first request that is not the recorded one it is an ordinary execution: the parent compares that
        request, and continues with `advance`.
        """
        self._marks = []
        program, (inputs, now, limits) = self._program(question), _arguments(question)
        self._has_path = True
        self._execution = program.start_pathed(inputs, question["key"], now, limits)
        step, paths = self._execution.advance(()), []
        for digest, value, failure in question["exchanges"]:
            if not isinstance(step, Blocked):
                break
            request = step.requests[0]
            if _digest(request) != digest:
                break
            paths.append(self._execution.path().hex())
            step = self._execution.advance((Completion(request.id, unpack(value), failure),))
        return {"paths": paths, **self._step(step)}

    def _observe(self, index: int, value: Value) -> None:
        self._marks.append((index, value))

    def _step(self, step: Blocked | Done) -> dict[str, object]:
        answer: dict[str, object] = {"marks": pack_marks(tuple(self._marks))}
        self._marks = []
        if self._has_path:
            answer |= {"path": self._execution.path().hex(), "fingerprint": self._execution.fingerprint()}
        if isinstance(step, Blocked):
            request = step.requests[0]
            return {**answer, "request": pack_request(request)}
        self._execution = None
        return {**answer, "outcome": pack_outcome(step.outcome)}


def _digest(request: Request) -> str | None:
    """Return the hash of a request; None where it cannot be encoded."""
    try:
        return request_digest(request)
    except Unsendable:
        return None


def _arguments(question: Mapping[str, Any]) -> tuple[Any, ...]:
    limits = question["limits"]
    return unpack(question["inputs"]), question["now"], None if limits is None else Limits(*limits)


def main(worker: Worker, arguments: Sequence[str]) -> None:
    life, memory_mib, *more = arguments
    end_with_parent(int(life))
    limit_resources(int(memory_mib))
    pipes = open_pipes()
    if ARGUMENT in more:
        worker.lacks = enter_sandbox()
    serve(pipes, worker.answer, worker.answer_json)


if __name__ == "__main__":
    main(Worker(), sys.argv[1:])
