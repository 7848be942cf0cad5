"""The helper process: what must not slow callers is done in one child at the lowest priority.

    helper = Helper()
    waiting = helper.rerun(compiled, transcript, key)      # None: not admitted
    report = waiting.result()

It takes executions that were written down and runs them again on both engines, traced (`rerun`), and parts of an
enumeration. What waits is bounded by number and by bytes; who asks for more is refused at once, and a comparison that
was refused is no comparison. A task that takes too long, or on which the child dies, is `Lost`, or a `Fault` where the
direct engine was running. Any thread may use it; a forked process has one of its own.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from weakref import WeakSet

from vesper.compiler import Compiled
from vesper.config.migration import Tolerance
from vesper.host.host import definition_of
from vesper.migration.compare.reports import Fault, Lost, Report
from vesper.migration.compare.transcript import Transcript
from vesper.migration.workers import wire_values as packed
from vesper.migration.workers.child import MAX_MESSAGE, Child, ChildDied, ChildLate, Restarts
from vesper.migration.workers.wire_values import MAX_PROGRAMS
from vesper.storage.after_fork import Order, register

_log = logging.getLogger("vesper.migration")
_MOST_DEATHS = 10
_LOAD_SECONDS = 60.0
_ALL: WeakSet[Helper] = WeakSet()

Answer: TypeAlias = Future[Report | None]
"""None where the records say nothing (`rerun.rerun`). It is never agreement; that of a part of an enumeration is
`PartAgreed`."""


@dataclass(frozen=True, slots=True)
class Known:
    """A node as the helper knows it: its definition is sent once to each child."""

    name: str
    load: bytes = field(repr=False)

    @staticmethod
    def of(compiled: Compiled, tolerances: Sequence[Tolerance] = ()) -> Known:
        allowed = [
            [each.field, each.absolute, each.relative, each.version, each.until, each.why] for each in tolerances
        ]
        judged_by = hashlib.sha256(repr(allowed).encode()).hexdigest()[:16]
        name = f"{compiled.semantic_hash}:{judged_by}"
        definition = packed.pack_definition(definition_of(compiled))
        message = {"do": "load", "pair": name, "definition": definition, "tolerances": allowed}
        return Known(name, packed.message(message))


@dataclass(frozen=True, slots=True)
class _Task:
    known: Known
    question: bytes = field(repr=False)
    answer: Answer
    transcript: Transcript | None = None


class _CouldNot(Exception):
    pass


class Helper:
    def __init__(
        self,
        *,
        most_tasks: int = 1000,
        most_bytes: int = 32 << 20,
        seconds: float = 30.0,
        memory_mib: int = 1024,
        most_deaths: int = _MOST_DEATHS,
        module: str = "vesper.migration.workers.helper_main",
    ) -> None:
        """`seconds` is how long one task may compute."""
        self._most_tasks = most_tasks
        self._most_bytes = most_bytes
        self._seconds = seconds
        self._memory_mib = memory_mib
        self._most_deaths = most_deaths
        self._module = module
        self._is_closed = False
        self._begin_afresh()
        _ALL.add(self)

    def _begin_afresh(self) -> None:
        self._lock = threading.RLock()
        """Ctrl-C must not leave it held: it is entered in C, not by way of `_changed`, and `Condition` takes an RLock
        back in C."""
        self._changed = threading.Condition(self._lock)
        self._tasks: deque[_Task] = deque()
        self._bytes = 0
        self._thread: threading.Thread | None = None
        self._child: Child | None = None
        self._loaded: set[str] = set()
        self._is_on_direct = False
        """The child said that it asks the direct engine now."""
        self._restarts = Restarts(self._most_deaths)

    @property
    def waiting(self) -> int:
        """How many tasks wait."""
        return len(self._tasks)

    @property
    def pid(self) -> int | None:
        child = self._child
        return None if child is None else child.pid

    def rerun(
        self,
        known: Known,
        transcript: Transcript,
        key: bytes,
        *,
        is_recorded: bool = True,
        then: Callable[[Answer], None] | None = None,
    ) -> Answer | None:
        """An execution once more on both engines (`rerun.rerun`); None where it is not admitted. `then` is told of the
        answer: who adds that himself shares a lock with the thread here, and may be interrupted while he has it."""
        if self._is_closed or self.is_given_up:
            return None
        try:
            records = packed.pack_transcript(transcript)
            question = packed.message(
                {"do": "rerun", "pair": known.name, "transcript": records, "key": key, "is_recorded": is_recorded}
            )
        except packed.Unsendable:
            return None
        answer: Answer = Future()
        if then is not None:
            answer.add_done_callback(then)
        return self._admitted(_Task(known, question, answer, transcript))

    def enumerate_part(self, known: Known, start: int, count: int, key: bytes) -> Answer | None:
        """Inputs of the domain of a node, by their numbers (`enumeration.run_part`)."""
        question = {"do": "enumerate", "pair": known.name, "start": start, "count": count, "key": key}
        return self._admitted(_Task(known, packed.message(question), Future()))

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def is_given_up(self) -> bool:
        """The child died too often: nothing is done any more in this process, and nobody need ask again."""
        return self._restarts.is_given_up

    def close(self) -> None:
        """What waits is lost; comes back when the child is gone."""
        with self._lock:
            self._is_closed = True
            child, thread = self._child, self._thread
            self._changed.notify_all()
        if child is not None:
            child.kill()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def forked(self) -> None:
        """What waits is the business of the process that we were forked from."""
        self._begin_afresh()

    def reopen(self) -> None:
        """In a process that was forked while its parent closed it, which is the parent's end alone."""
        self._is_closed = False

    def _admitted(self, task: _Task) -> Answer | None:
        size = len(task.question)
        with self._lock:
            is_full = len(self._tasks) >= self._most_tasks or self._bytes + size > min(self._most_bytes, MAX_MESSAGE)
            if is_full or self._is_closed or self.is_given_up:
                return None
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="vesper-helper", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the system has no more of them; the next task tries again
                    return None
                self._thread = thread  # a thread that Ctrl-C left unassigned ends by itself
            self._tasks.append(task)
            self._bytes += size
            self._changed.notify_all()
        return task.answer

    # -- in the thread ----------------------------------------------------------------------------

    def _work(self) -> None:
        with self._lock:
            if self._thread is not threading.current_thread():
                return
        while (task := self._next()) is not None:
            if task.answer.set_running_or_notify_cancel():
                task.answer.set_result(self._done(task))
        self._end()

    def _next(self) -> _Task | None:
        """The next task, when there is a child for it; None where there is no more to do."""
        with self._lock:
            while not self._is_closed:
                wait = self._restarts.delay() if self._child is None else 0.0
                if wait is None:
                    return None
                if self._tasks and wait == 0:
                    task = self._tasks.popleft()
                    self._bytes -= len(task.question)
                    return task
                self._changed.wait(wait or None)
        return None

    def _done(self, task: _Task) -> Report | None:
        self._is_on_direct = False
        try:
            child = self._started()
            if task.known.name not in self._loaded:
                if len(self._loaded) >= MAX_PROGRAMS:
                    self._loaded.clear()
                self._ask(child, task.known.load, _LOAD_SECONDS)
                self._loaded.add(task.known.name)
            return packed.unpack_report(self._ask(child, task.question, self._seconds)["report"])
        except _CouldNot as error:
            return Lost(f"the helper process could not do it: {error}")
        except ChildDied as error:
            return self._died(error, task)
        except Exception as error:  # noqa: BLE001  # a malformed answer; the future must be resolved all the same
            self._drop()
            return Lost(f"the helper process sent a malformed answer: {type(error).__name__}")

    def _ask(self, child: Child, question: bytes, seconds: float) -> Mapping[str, Any]:
        self._is_on_direct = False
        child.send(question)
        answer: Mapping[str, Any] = child.receive(seconds)
        if answer == {"on": "direct"}:
            self._is_on_direct = True
            answer = child.receive(seconds)
        if "raised" in answer or "unfit" in answer:
            raise _CouldNot(answer["raised"] if "raised" in answer else answer["unfit"])
        return answer

    def _started(self) -> Child:
        if self._child is None:
            child = Child(self._module, str(self._memory_mib))
            with self._lock:
                self._child, self._loaded = child, set()
                if self._is_closed:
                    child.kill()
        return self._child

    def _died(self, error: ChildDied, task: _Task) -> Report:
        self._drop()
        if self._is_closed:
            return Lost("the helper process was closed")
        _log.error("the helper process is gone: %s", error.how)
        if self._is_on_direct and not isinstance(error, ChildLate):
            return Fault(f"a process died while the direct engine ran in it: {error}"[:500], task.transcript)
        return Lost(f"the helper process is gone: {error}")

    def _drop(self) -> None:
        with self._lock:
            child, self._child = self._child, None
            self._restarts.count_death()
        if child is not None:
            child.close()

    def _end(self) -> None:
        with self._lock:
            child, self._child = self._child, None
            tasks, self._tasks, self._bytes = list(self._tasks), deque(), 0
        if child is not None:
            child.close()
        if self.is_given_up:
            _log.error("the helper process died too often: no more is started until this process starts anew")
        for task in tasks:
            if task.answer.set_running_or_notify_cancel():
                task.answer.set_result(Lost("the helper process was closed, or died too often"))


def _after_fork() -> None:
    for each in list(_ALL):
        each.forked()


def _at_exit() -> None:
    for each in list(_ALL):
        each.close()


register(order=Order.WORKERS, after_in_child=_after_fork)
atexit.register(_at_exit)
