"""The helper process: background work in one child at the lowest priority.

    helper = Helper()
    waiting = helper.rerun(compiled, transcript, key)      # None: not admitted
    report = waiting.result()

It repeats recorded executions on both engines with marks (`rerun`), and runs parts of an enumeration. Its queue is
bounded in number and bytes; a task beyond is refused at once, and counts as no comparison. A task that takes too long,
or on which the child dies, is `Lost`, or a `Fault` where the direct engine was running. Threads may share it; a forked
process gets its own.
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
from vesper.host.prepared import definition_of
from vesper.migration.compare.reports import Fault, Lost, Report
from vesper.migration.compare.transcript import Transcript
from vesper.migration.workers import wire_values as packed
from vesper.migration.workers.child import MAX_MESSAGE_BYTES, Child, ChildDied, ChildLate, Restarts
from vesper.migration.workers.wire_values import MAX_PROGRAMS
from vesper.storage.after_fork import Order, register

_log = logging.getLogger("vesper.migration")
_MAX_DEATHS = 10
_LOAD_SECONDS = 60.0
_ALL: WeakSet[Helper] = WeakSet()

Answer: TypeAlias = Future[Report | None]
"""Report of a task; None where the records decide nothing (`rerun.rerun`), which is never agreement. A part of an
enumeration yields `PartAgreed`."""


@dataclass(frozen=True, slots=True)
class Known:
    """A node in the form for the helper, sent once to each child."""

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


class _TaskError(Exception):
    pass


class Helper:
    def __init__(
        self,
        *,
        max_tasks: int = 1000,
        max_bytes: int = 32 << 20,
        seconds: float = 30.0,
        memory_mib: int = 1024,
        max_deaths: int = _MAX_DEATHS,
        module: str = "vesper.migration.workers.helper_main",
    ) -> None:
        """`seconds` is the processor time of one task."""
        self._max_tasks = max_tasks
        self._max_bytes = max_bytes
        self._seconds = seconds
        self._memory_mib = memory_mib
        self._max_deaths = max_deaths
        self._module = module
        self._is_closed = False
        self._begin_afresh()
        _ALL.add(self)

    def _begin_afresh(self) -> None:
        self._lock = threading.RLock()
        """INVARIANT: Ctrl-C does not leave it held. It is entered in C, not through `_changed`, and `Condition`
        reacquires an RLock in C."""
        self._changed = threading.Condition(self._lock)
        self._tasks: deque[_Task] = deque()
        self._bytes = 0
        self._thread: threading.Thread | None = None
        self._child: Child | None = None
        self._loaded: set[str] = set()
        self._is_on_direct = False
        """True while the child runs the direct engine, by its own notice."""
        self._restarts = Restarts(self._max_deaths)

    @property
    def waiting(self) -> int:
        """The number of queued tasks."""
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
        """Repeat an execution on both engines (`rerun.rerun`); None where it is not admitted.

        `then` is called with the future. A callback added by the caller would share a lock with the thread here, and
        Ctrl-C could leave that lock held.
        """
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
        return self._admit(_Task(known, question, answer, transcript))

    def enumerate_part(self, known: Known, start: int, count: int, key: bytes) -> Answer | None:
        """Run inputs of a node's domain by their numbers (`enumeration.run_part`)."""
        question = {"do": "enumerate", "pair": known.name, "start": start, "count": count, "key": key}
        return self._admit(_Task(known, packed.message(question), Future()))

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def is_given_up(self) -> bool:
        """True where the child died too often. No further task is admitted in this process."""
        return self._restarts.is_given_up

    def close(self) -> None:
        """End the child and wait for its end. Queued tasks are lost."""
        with self._lock:
            self._is_closed = True
            child, thread = self._child, self._thread
            self._changed.notify_all()
        if child is not None:
            child.kill()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def forked(self) -> None:
        """Discard the queue after a fork: it belongs to the parent."""
        self._begin_afresh()

    def reopen(self) -> None:
        """Reopen the helper in a process that was forked while the parent closed its own."""
        self._is_closed = False

    def _admit(self, task: _Task) -> Answer | None:
        size = len(task.question)
        with self._lock:
            is_full = len(self._tasks) >= self._max_tasks or self._bytes + size > min(
                self._max_bytes, MAX_MESSAGE_BYTES
            )
            if is_full or self._is_closed or self.is_given_up:
                return None
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="vesper-helper", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # no more threads; the next task tries again
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
                task.answer.set_result(self._run_task(task))
        self._end()

    def _next(self) -> _Task | None:
        """Wait for a task and a usable child; return None where nothing more will be done."""
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

    def _run_task(self, task: _Task) -> Report | None:
        self._is_on_direct = False
        try:
            child = self._start_child()
            if task.known.name not in self._loaded:
                if len(self._loaded) >= MAX_PROGRAMS:
                    self._loaded.clear()
                self._ask(child, task.known.load, _LOAD_SECONDS)
                self._loaded.add(task.known.name)
            return packed.unpack_report(self._ask(child, task.question, self._seconds)["report"])
        except _TaskError as error:
            return Lost(f"the helper process could not do it: {error}")
        except ChildDied as error:
            return self._report_death(error, task)
        except Exception as error:  # noqa: BLE001  # a malformed reply; the future must be resolved nevertheless
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
            raise _TaskError(answer["raised"] if "raised" in answer else answer["unfit"])
        return answer

    def _start_child(self) -> Child:
        if self._child is None:
            child = Child(self._module, str(self._memory_mib))
            with self._lock:
                self._child, self._loaded = child, set()
                if self._is_closed:
                    child.kill()
        return self._child

    def _report_death(self, error: ChildDied, task: _Task) -> Report:
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
