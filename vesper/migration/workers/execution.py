"""An execution of the direct engine in another process, a step at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vesper.engines.engine import Blocked, Completion, Done, Observer, Request
from vesper.migration.workers import wire_values as packed
from vesper.migration.workers.asking import MISUSE, completing, fingerprint_of, outcome_of
from vesper.migration.workers.worker_lease import Held

if TYPE_CHECKING:
    from vesper.migration.workers.isolation import IsolatedProgram


class IsolatedExecution:
    """One run in another process, which is given back when it ends, or when nobody has this object any more."""

    def __init__(
        self,
        held: Held,
        start: bytes,
        program: IsolatedProgram,
        observe: Observer | None,
        script: Sequence[tuple[Request, str]] = (),
    ) -> None:
        """`script`: the requests that it will be given the answers to, each with what it asks for."""
        self._held = held
        self._script = script
        self._ready: deque[tuple[Request, bytes]] = deque()
        """Requests of the script that the other process has asked for, to the letter, and was answered already."""
        self._last: Mapping[str, Any] | None = None
        """What it came to after those."""
        self._start: bytes | None = start
        self._program = program
        self._observe = observe
        self._marks: list[tuple[int, Any]] = []
        self._path, self._fingerprint = b"", 0

    def advance(self, completions: Sequence[Completion]) -> Blocked | Done:
        if len(completions) > 1 or (completions and self._start is not None):
            raise ValueError("an execution is advanced with the completion of the one request that it waits for")
        try:
            return self._advanced(completions)
        except _Misuse as error:
            raise error.as_raised from None  # it is as it was
        except BaseException:
            # Not only when nobody has this object any more: who catches what is raised has it with that.
            self._held.release()
            raise

    def _advanced(self, completions: Sequence[Completion]) -> Blocked | Done:
        if self._start is not None:
            question, self._start = self._start, None
            self._last = self._held.ask(question, self._program)
            self._ready.extend(self._scripted(self._last.get("paths", ())))
        if self._ready:
            request, self._path = self._ready.popleft()
            return Blocked((request,))
        answer, self._last = self._last, None
        if answer is None:
            answer = self._held.ask(completing(completions), self._program)
        if "raised" in answer:
            raise _Misuse(answer)
        if "path" in answer:
            self._path = self._program.way(answer["path"])
        self._fingerprint = fingerprint_of(answer, self._fingerprint)
        marks = packed.unpack_marks(answer.get("marks", ()))
        step = packed.unpack_request(answer["request"]) if "request" in answer else outcome_of(answer)
        for index, value in marks:
            self._marks.append((index, value))
            if self._observe is not None:
                self._observe(index, value)
        if isinstance(step, Request):
            return Blocked((step,))
        self._held.release()
        return Done(step, tuple(self._marks))

    def _scripted(self, paths: Sequence[Any]) -> Iterator[tuple[Request, bytes]]:
        """The requests that it says it has asked for. It was not told what they ask for: who has not asked for it
        cannot say it."""
        for (request, letters), (asked, path) in zip(self._script, paths, strict=False):
            if asked != letters:
                raise ValueError("it says that it asked for what it did not ask for")
            yield request, self._program.way(path)

    def path(self) -> bytes:
        """The points that were passed so far, as far as the other process said."""
        return self._path

    def fingerprint(self) -> int:
        return self._fingerprint

    def close(self) -> None:
        """It goes on no more."""
        self._held.release()


class _Misuse(Exception):
    """The program was called wrongly."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__()
        self.as_raised = MISUSE[answer["raised"]](answer["message"])
