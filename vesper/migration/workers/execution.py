"""An execution of the direct engine in a worker, one step at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from vesper.engines.engine import Blocked, Completion, Done, Marks, Observer, Request
from vesper.engines.outcome import Outcome
from vesper.migration.workers import wire_values as packed
from vesper.migration.workers.asking import Misuse, decode_outcome, encode_advance
from vesper.migration.workers.worker_lease import WorkerLease

if TYPE_CHECKING:
    from vesper.migration.workers.isolation import IsolatedProgram


class _Answer(NamedTuple):
    """A decoded reply of a worker."""

    step: Request | Outcome
    marks: Marks
    path: bytes | None
    fingerprint: int | None
    recorded_paths: tuple[bytes, ...]
    """Path at each request that the worker completed from the script."""

    @staticmethod
    def decode(answer: Mapping[str, Any]) -> _Answer:
        return _Answer(
            packed.unpack_request(answer["request"]) if "request" in answer else decode_outcome(answer),
            packed.unpack_marks(answer.get("marks", ())),
            bytes.fromhex(answer["path"]) if "path" in answer else None,
            answer.get("fingerprint"),
            tuple(map(bytes.fromhex, answer.get("paths", ()))),
        )


class IsolatedExecution:
    """One execution in a worker. The worker is released when the execution ends or when this object is collected."""

    def __init__(
        self,
        held: WorkerLease,
        start: bytes,
        program: IsolatedProgram,
        observe: Observer | None,
        script: Sequence[Request] = (),
    ) -> None:
        """`script` holds the recorded requests whose completions the worker already has."""
        self._held = held
        self._script = script
        self._ready: deque[tuple[Request, bytes]] = deque()
        """Requests of the script that the worker made and completed itself, each with the path at it."""
        self._last: _Answer | None = None
        """Step after those."""
        self._start: bytes | None = start
        self._program = program
        self._observe = observe
        self._marks: list[tuple[int, Any]] = []
        self._path, self._fingerprint = b"", 0

    def advance(self, completions: Sequence[Completion]) -> Blocked | Done:
        if len(completions) > 1 or (completions and self._start is not None):
            raise ValueError("an execution is advanced with the completion of the one request that it waits for")
        try:
            return self._advance(completions)
        except Misuse as misuse:
            raise misuse.error from None  # the execution is unchanged
        except BaseException:
            # The traceback of the exception would keep this object and its worker alive.
            self._held.release()
            raise

    def _advance(self, completions: Sequence[Completion]) -> Blocked | Done:
        if self._start is not None:
            start, self._start = self._start, None
            self._last = self._held.ask(start, self._program, _Answer.decode)
            self._ready.extend(zip(self._script, self._last.recorded_paths, strict=False))
        if self._ready:
            request, self._path = self._ready.popleft()
            return Blocked((request,))
        answer, self._last = self._last, None
        if answer is None:
            answer = self._held.ask(encode_advance(completions), self._program, _Answer.decode)
        self._path = self._path if answer.path is None else answer.path
        self._fingerprint = self._fingerprint if answer.fingerprint is None else answer.fingerprint
        for index, value in answer.marks:
            self._marks.append((index, value))
            if self._observe is not None:
                self._observe(index, value)
        if isinstance(answer.step, Request):
            return Blocked((answer.step,))
        self._held.release()
        return Done(answer.step, tuple(self._marks))

    def path(self) -> bytes:
        """Return the points passed up to the last reply."""
        return self._path

    def fingerprint(self) -> int:
        return self._fingerprint

    def close(self) -> None:
        """Release the worker without ending the execution."""
        self._held.release()
