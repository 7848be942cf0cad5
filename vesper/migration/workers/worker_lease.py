"""The lease of one execution on a worker."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from vesper.engines.path import Point
from vesper.migration.shadow.admission import add_worker_seconds
from vesper.migration.workers.asking import MISUSE, Misuse, Unavailable
from vesper.migration.workers.child import JSON_FAULT, Child, ChildDied, ChildLate
from vesper.values.model import printable

if TYPE_CHECKING:
    from vesper.migration.workers.isolation import IsolatedProgram, Workers

T = TypeVar("T")


class Worker:
    """A child process and the programs that it has loaded."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self.loaded: dict[str, tuple[Point, ...]] = {}
        """Points of each loaded program, by its hash."""


class LoadError(Exception):
    """The direct engine refuses to load a node."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__(f"{answer['raised']}: {answer['message']}")


class WorkerFault(Exception):
    """An engine fault in a worker, or the death of the worker."""

    def __init__(self, message: str, is_late: bool = False) -> None:
        super().__init__(message)
        self.is_late = is_late
        """True where the worker missed its deadline."""


class WorkerLease:
    """A lease on a worker. It ends with `release`, or when this object is collected."""

    def __init__(self, workers: Workers, wait_seconds: float = 0.0) -> None:
        self._taken: list[Worker] = []
        """At most one worker. A list moves it between owners in one step, which Ctrl-C cannot split."""
        self._workers = workers
        self._pid = os.getpid()
        if wait_seconds:
            workers.take_waiting(self._taken, wait_seconds)
        else:
            workers.take(self._taken)

    def __del__(self) -> None:
        if hasattr(self, "_pid"):  # otherwise Ctrl-C came before the lease began
            self.release()

    def ask(self, question: bytes | None, program: IsolatedProgram, decode: Callable[[Mapping[str, Any]], T]) -> T:
        """Send a message and return the decoded reply. A worker that dies or is late yields an engine fault.

        Without a message the node is loaded, and `decode` gets an empty reply. A worker with a malformed reply is
        killed, and the decoding error is raised. Raises `Misuse` and `Unavailable`.
        """
        worker = self._worker()
        try:
            program.load_on(worker, self._workers.patience)
            if question is None:
                return decode({})
            began = time.monotonic()
            answer: Mapping[str, Any] = worker.child.ask(question, self._workers.patience)
            if "unfit" in answer:
                add_worker_seconds(time.monotonic() - began)  # the reply with its own measurement was too large
                raise Unavailable(f"the answer of the direct engine cannot be sent: {answer['unfit']}")
            add_worker_seconds(answer["cpu"] / 1_000_000)
            if "raised" not in answer:
                return decode(answer)
            if answer["raised"] in MISUSE:
                raise Misuse(answer)
            return decode({"fault": f"{answer['raised']}: {answer['message']}"})
        except (Unavailable, Misuse):
            raise
        except ChildDied as error:
            self._discard(worker, error.how)
            if self._workers.is_closed:  # closed by this process: no engine fault
                raise Unavailable("the processes of the direct engine were closed") from None
            return decode({"fault": f"the process of the direct engine is gone: {error}"})
        except LoadError as error:
            return decode({"fault": f"the direct engine does not load the node: {error}"})
        except Exception as error:
            self._discard(worker, f"its answer was malformed: {type(error).__name__}")
            raise
        except BaseException:
            # The next lease would receive the reply to this message.
            self._taken.clear()
            self._workers.abandon(worker)
            raise

    def ask_json(self, question: bytes, program: IsolatedProgram) -> bytes:
        """Send JSON text to a program and return the outcome as JSON text. Raises `WorkerFault`."""
        worker = self._worker()
        try:
            program.load_on(worker, self._workers.patience)
            answer = worker.child.ask_json(question, self._workers.patience)
        except ChildDied as error:
            self._discard(worker, error.how)
            if self._workers.is_closed:
                raise Unavailable("the processes of the direct engine were closed") from None
            is_late = isinstance(error, ChildLate)
            raise WorkerFault(f"the process of the direct engine is gone: {error}", is_late) from None
        except LoadError as error:
            raise WorkerFault(f"the direct engine does not load the node: {error}") from None
        except BaseException:
            self._taken.clear()
            self._workers.abandon(worker)
            raise
        if answer.startswith(JSON_FAULT):
            raise WorkerFault(printable(answer[len(JSON_FAULT) :].decode(errors="replace")))
        return answer

    def _worker(self) -> Worker:
        if not self._taken or self._pid != os.getpid():
            raise Unavailable("the execution has no process: it has ended, or this process was forked meanwhile")
        return self._taken[0]

    def _discard(self, worker: Worker, why: str) -> None:
        self._workers.discard_dead(worker, why)
        self._taken.clear()

    def release(self) -> None:
        if self._pid == os.getpid():
            self._workers.give_back(self._taken)
