"""A run that a coroutine awaits. Workers of the Host drive it, and the event loop receives its result."""

from __future__ import annotations

from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from typing import TYPE_CHECKING

from vesper.engines.engine import Execution
from vesper.engines.outcome import Outcome
from vesper.host.driving import Steps, deliver, send
from vesper.host.prepared import Ran

if TYPE_CHECKING:
    from vesper._direct import Running


class CoroutineRun:
    """One run. `begin` and `finish` are called by a worker, each once."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        on_end: Callable[[], None],
        on_begun: Callable[[Running], None] | None = None,
    ) -> None:
        self._loop = loop
        self._on_end = on_end
        self._on_begun = on_begun
        self.answer: Future[Ran] = loop.create_future()
        self._begun: list[Running] = []
        self._ended: list[Ran] = []

    def note_begun(self, running: Running) -> None:
        self._begun.append(running)
        if self._on_begun is not None:
            self._on_begun(running)

    def begin(self, steps: Steps[Ran]) -> tuple[Running, Execution, int] | None:
        """Return the running execution to drive; None if the run ends before that."""
        if self.answer.cancelled():  # before a worker took it up: nothing of it is done
            steps.close()
            return None
        try:
            found = next(steps)
        except StopIteration as end:
            self._ended.append(end.value)
            return None
        if self.answer.cancelled():
            found[0].cancel()
        return found

    def finish(self, steps: Steps[Ran], outcome: Outcome | None, error: BaseException | None) -> None:
        """Complete the future of the coroutine with the result of the run."""
        try:
            if self._begun and not self._ended:
                send(steps, outcome, error)
            elif error is not None:
                raise error
            found: Ran | BaseException | None = self._ended[0] if self._ended else None
        except StopIteration as end:
            found = end.value
        except BaseException as raised:  # noqa: BLE001  # the caller gets it
            found = raised
        self._on_end()
        deliver(self._loop, self.answer, found)

    def cancel(self) -> None:
        """End the run unless it has changed something: a request that only reads is dropped."""
        for running in self._begun:
            running.cancel()
