"""A worker while somebody has it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vesper.engines.path import Point
from vesper.migration.shadow import elsewhere
from vesper.migration.workers.asking import MISUSE, Unavailable, computed
from vesper.migration.workers.child import Child, ChildDied

if TYPE_CHECKING:
    from vesper.migration.workers.isolation import IsolatedProgram, Workers


class Worker:
    """A child, with what is known of it."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self.loaded: dict[str, tuple[Point, ...]] = {}
        """The programs that it has, and the points of each."""


class Raised(Exception):
    """A worker does not take a node."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__(f"{answer['raised']}: {answer['message']}")
        self.answer = answer


class Held:
    """A worker while an execution has it. It is given back when nobody has this object any more, at the latest."""

    def __init__(self, workers: Workers) -> None:
        self._taken: list[Worker] = []
        """At most one. In a list, because it can get there and away without a moment in which nobody has it."""
        self._workers = workers
        self._pid = os.getpid()
        workers.take(self._taken)

    def __del__(self) -> None:
        if hasattr(self, "_pid"):  # else it was struck before it took anything
            self.release()

    def ask(self, question: bytes, program: IsolatedProgram) -> Mapping[str, Any]:
        """The answer; where the worker died or did not come back, one that says so as a fault of the engine."""
        return self._asked(question, program)

    def load(self, program: IsolatedProgram) -> None:
        """Only gives the node to the worker."""
        self._asked(None, program)

    def _asked(self, question: bytes | None, program: IsolatedProgram) -> Mapping[str, Any]:
        if not self._taken or self._pid != os.getpid():
            raise Unavailable("the execution has no process: it has ended, or this process was forked meanwhile")
        (worker,) = self._taken
        try:
            program.load_on(worker, self._workers.patience)
            if question is None:
                return {}
            began = time.monotonic()
            answer: Mapping[str, Any] = worker.child.ask(question, self._workers.patience)
        except ChildDied as error:
            self._workers.died(worker, error.how)
            self._taken.clear()
            if self._workers.is_closed:  # by us, and no fault of the engine
                raise Unavailable("the processes of the direct engine were closed") from None
            return {"fault": f"the process of the direct engine is gone: {error}"}
        except Raised as error:
            return {"fault": f"the direct engine does not load the node: {error}"}
        except BaseException:
            # Whoever has the worker next would be given the answer to this question.
            self._taken.clear()
            self._workers.abandon(worker)
            raise
        if "unfit" in answer:
            elsewhere.spend(time.monotonic() - began)  # it does not say of how much
            raise Unavailable(f"what the direct engine came to cannot be sent: {answer['unfit']}")
        elsewhere.spend(computed(answer, time.monotonic() - began))
        if "raised" in answer and answer["raised"] not in MISUSE:
            return {"fault": f"{answer['raised']}: {answer['message']}"}
        return answer

    def release(self) -> None:
        if self._pid == os.getpid():
            self._workers.give_back(self._taken)
