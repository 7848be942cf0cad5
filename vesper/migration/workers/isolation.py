"""Worker processes: they isolate the direct engine, so that it cannot end a caller's process.

    workers = Workers(size=2, deadline=5.0, memory_mib=512)
    program = IsolatedProgram(compiled, workers)

`IsolatedProgram` replaces a `DirectProgram`. An abort, an exhausted memory limit or a hang becomes an `EngineFault`,
which the router handles as any other. Each worker runs one execution at a time, and keeps it while it waits for an
effect. Without an idle worker the caller gets `Busy` at once, and Python leads: no request waits for a worker.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, TypeVar
from weakref import WeakSet

from vesper.compiler import Compiled
from vesper.engines.direct_engine import all_callees
from vesper.engines.engine import Limits, Observer
from vesper.engines.outcome import Outcome
from vesper.engines.path import Pathed, Point
from vesper.migration.compare.transcript import Exchange
from vesper.migration.workers import sandbox
from vesper.migration.workers import wire_values as packed
from vesper.migration.workers.asking import Busy, Misuse, Unavailable, decode_outcome, encode_run
from vesper.migration.workers.child import JSON_CALL, Child, ChildDied, Restarts
from vesper.migration.workers.execution import IsolatedExecution
from vesper.migration.workers.worker_lease import LoadError, Worker, WorkerLease
from vesper.migration.workers.worker_main import MAX_PROGRAMS
from vesper.storage.after_fork import Order, register

_log = logging.getLogger("vesper.migration")
_HELLO_SECONDS = 20.0
_MAX_DEATHS = 10
_DEADLINE_FACTOR = 1.5
"""Factor on the deadline before a worker is killed. An engine that checks its time limit ends earlier by itself."""
_WAIT_SECONDS = 0.05
_ALL: WeakSet[Workers] = WeakSet()
T = TypeVar("T")


class Workers:
    """A pool of workers that all isolated programs of this process share.

    Threads may share it; a forked process starts its own workers.
    """

    def __init__(
        self,
        size: int = 2,
        deadline: float = 5.0,
        memory_mib: int = 512,
        max_deaths: int = _MAX_DEATHS,
        module: str = "vesper.migration.workers.worker_main",
        is_owned: bool = False,
        is_sandboxed: bool = False,
    ) -> None:
        """`is_owned` leaves closing at exit to the owner, after its own pending work.

        `is_sandboxed` confines each worker before it reads a node (docs/spec/sandbox.md).
        """
        if size < 1 or deadline <= 0 or memory_mib < 16:
            raise ValueError("workers are at least one, with a deadline and with 16 MiB of memory or more")
        self.size = size
        self.patience = deadline * _DEADLINE_FACTOR
        self._memory_mib = memory_mib
        self._max_deaths = max_deaths
        self._module = module
        self._is_owned = is_owned
        self.is_sandboxed = is_sandboxed
        self.lacks: tuple[str, ...] = ()
        """What the kernel lacks for the sandbox, once a worker is up."""
        self.problem = ""
        """Why the last worker did not come up."""
        self.is_closed = False
        self._begin_afresh()
        _ALL.add(self)

    def _begin_afresh(self) -> None:
        self._lock = threading.Lock()
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        self._all: set[Worker] = set()
        self._starting = 0
        self._restarts = Restarts(self._max_deaths)
        self._is_up = threading.Event()

    def start(self) -> None:
        """Start all workers in the background."""
        for _ in range(self.size):
            self._start_another()

    def wait_until_up(self, seconds: float) -> bool:
        """Wait for the first worker; return False after `seconds`."""
        return self._is_up.wait(seconds)

    def is_ready(self) -> bool:
        """Return True where a worker is up; otherwise start one.

        A request that finds none is not followed. Otherwise it would count as a comparison without a verdict, and a
        burst after each start would block the node's promotion.
        """
        if self._all:
            return True
        self._start_another()
        return False

    def at_exit(self) -> None:
        if not self._is_owned:
            self.close()

    def pids(self) -> list[int]:
        with self._lock:
            return [each.child.pid for each in self._all]

    def take(self, into: list[Worker]) -> None:
        """Move an idle worker into the caller's list, without waiting. Raises `Busy`.

        INVARIANT: the move happens in C, so that Ctrl-C cannot leave the worker without an owner.
        """
        while True:
            try:
                into.extend(islice(iter(self._idle.get_nowait, None), 1))
            except Empty:
                break
            if into[-1].child.is_alive:
                return
            self._drop(into[-1], "it ended while it had nothing to do")
            into.clear()
        raise Busy(self._start_another())

    def take_waiting(self, into: list[Worker], seconds: float) -> None:
        """Move an idle worker into the caller's list, and wait for one. Raises `Busy` after `seconds`."""
        end = time.monotonic() + seconds
        while True:
            try:
                return self.take(into)
            except Busy:
                left = end - time.monotonic()
                if left <= 0:
                    raise
            with suppress(Empty):
                # Short waits: a worker that died is started again by `take`.
                self._idle.put(self._idle.get(timeout=min(left, _WAIT_SECONDS)))

    def give_back(self, taken: list[Worker]) -> None:
        """Move the worker back, also in C. Takes no lock, so that a finaliser may call it."""
        with suppress(IndexError):  # another thread returned one meanwhile
            deque(map(self._idle.put, islice(iter(taken.pop, None), len(taken))), maxlen=0)
        if self.is_closed:  # `close` may have emptied the queue before
            self._close_idle()

    def abandon(self, worker: Worker) -> None:
        """End a worker whose reply is no longer awaited.

        That is no engine fault, but counts as a death: repeated interrupts must not start processes without end.
        """
        self._drop(worker, "its answer was not awaited")

    def discard_dead(self, worker: Worker, why: str) -> None:
        self._drop(worker, why)
        self._start_another()

    def close(self) -> None:
        """End all workers and wait for their end. Threads that wait for one get an error."""
        with self._lock:
            self.is_closed = True
            workers, self._all = self._all, set()
        for each in workers:
            each.child.kill()
        self._close_idle()

    def _close_idle(self) -> None:
        while True:
            try:
                worker = self._idle.get_nowait()
            except Empty:
                return
            worker.child.close()

    def forked(self) -> None:
        """Discard the workers after a fork: they belong to the parent."""
        self._begin_afresh()

    def _drop(self, worker: Worker, why: str) -> None:
        with self._lock:
            was_known = worker in self._all
            self._all.discard(worker)
            if was_known:
                self._restarts.count_death()
            is_given_up = self._restarts.is_given_up
        worker.child.close()
        if was_known:
            _log.error("a process of the direct engine is gone: %s", why)
            if is_given_up:
                _log.error(
                    "%d processes of the direct engine died within ten minutes: no more are started, and Python runs "
                    "alone until this process starts anew",
                    self._max_deaths + 1,
                )

    def _start_another(self) -> str:
        """Start a worker if one may be started; return why none is idle."""
        with self._lock:
            if self.is_closed:
                return "the workers were closed"
            wait = self._restarts.delay()
            if wait is None:
                return "too many processes of the direct engine died: no more are started"
            if len(self._all) + self._starting >= self.size:
                return f"all {self.size} processes of the direct engine are taken"
            if wait > 0:
                return f"a process of the direct engine died: the next one is started in {wait:.1f} s"
            try:
                # In a thread: starting a process takes longer than a caller should wait.
                threading.Thread(target=self._bring_up, name="vesper-worker-start", daemon=True).start()
            except RuntimeError as error:
                return f"no process of the direct engine can be started: {error}"
            self._starting += 1
        return "a process of the direct engine is being started"

    def _start_child(self) -> Child:
        if not self.is_sandboxed:
            return Child(self._module, str(self._memory_mib))
        return Child(self._module, str(self._memory_mib), sandbox.ARGUMENT, environment=sandbox.environment())

    def _bring_up(self) -> None:
        child = worker = None
        try:
            child = self._start_child()
            answer = child.ask(packed.message({"do": "hello"}), _HELLO_SECONDS)
            if not isinstance(answer, dict) or answer.get("hello") is not True:
                raise ChildDied("it does not say what it should")
            self.lacks = tuple(map(str, answer.get("lacks", ())))
            worker = Worker(child)
        except Exception as error:  # noqa: BLE001  # whatever the error, another worker may start
            self.problem = str(error)
            _log.error("a process of the direct engine does not come up: %s", error)
            if child is not None:
                child.close()
        with self._lock:
            self._starting -= 1
            if worker is None:
                self._restarts.count_death()
                return
            if not self.is_closed:
                self._all.add(worker)
                self._idle.put(worker)
                self._is_up.set()
                return
        worker.child.close()


def _after_fork() -> None:
    for each in list(_ALL):
        each.forked()


def _at_exit() -> None:
    for each in list(_ALL):
        each.at_exit()


register(order=Order.WORKERS, after_in_child=_after_fork)
atexit.register(_at_exit)


def _decode_pathed(answer: Mapping[str, Any]) -> Pathed:
    return Pathed(decode_outcome(answer), bytes.fromhex(answer.get("path", "")), answer.get("fingerprint", 0))


class IsolatedProgram:
    """A node on the direct engine in a worker."""

    def __init__(self, compiled: Compiled, workers: Workers, wait_seconds: float = 0.0) -> None:
        """`wait_seconds` is the time that an execution waits for an idle worker."""
        self.semantic_hash = compiled.semantic_hash
        self._workers = workers
        self._wait_seconds = wait_seconds
        self._points: tuple[Point, ...] | None = None
        self._json_call = JSON_CALL + self.semantic_hash.encode("ascii")
        self._load = packed.message(
            {
                "do": "load",
                "program": self.semantic_hash,
                "ir": compiled.ir,
                "callees": [each.ir for each in all_callees(compiled)],
            }
        )

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        return self._ask(encode_run("call", self.semantic_hash, inputs, now, limits), decode_outcome)

    def call_pathed(
        self, inputs: Mapping[str, object], key: bytes, now: datetime | None = None, limits: Limits | None = None
    ) -> Pathed:
        """Run an execution as `DirectProgram.call_pathed` does; a fault has no path."""
        return self._ask(encode_run("call", self.semantic_hash, inputs, now, limits, key), _decode_pathed)

    def call_json(self, text: bytes) -> bytes:
        """Return the outcome for JSON text as canonical JSON, at the default limits. Raises `WorkerFault`."""
        held = self._lease()
        try:
            return held.ask_json(self._json_call + text, self)
        finally:
            held.release()

    def points(self) -> tuple[Point, ...]:
        """Return the points of the node, loading it in a worker if needed. Raises `Busy`."""
        if self._points is None:
            self._ask(None, lambda _: None)
        if self._points is None:
            raise Unavailable("the direct engine does not load the node")
        return self._points

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> IsolatedExecution:
        start = encode_run("start", self.semantic_hash, inputs, now, limits, is_traced=is_traced)
        return IsolatedExecution(self._lease(), start, self, observe)

    def start_pathed(
        self, inputs: Mapping[str, object], key: bytes, now: datetime | None = None, limits: Limits | None = None
    ) -> IsolatedExecution:
        start = encode_run("start", self.semantic_hash, inputs, now, limits, key)
        return IsolatedExecution(self._lease(), start, self, None)

    def start_scripted(
        self,
        inputs: Mapping[str, object],
        key: bytes,
        now: datetime | None,
        limits: Limits | None,
        exchanges: Sequence[Exchange],
    ) -> IsolatedExecution:
        """Start an execution with the given completions in one message.

        Each round trip to a worker costs as much as a step.
        """
        try:
            recorded = list(map(packed.pack_recorded, exchanges))
        except packed.Unsendable as error:
            raise Unavailable(str(error)) from None
        start = encode_run("script", self.semantic_hash, inputs, now, limits, key, exchanges=recorded)
        return IsolatedExecution(self._lease(), start, self, None, [each.request for each in exchanges])

    def _ask(self, question: bytes | None, decode: Callable[[Mapping[str, Any]], T]) -> T:
        held = self._lease()
        try:
            return held.ask(question, self, decode)
        except Misuse as misuse:
            raise misuse.error from None
        finally:
            held.release()

    def _lease(self) -> WorkerLease:
        return WorkerLease(self._workers, self._wait_seconds)

    def load_on(self, worker: Worker, seconds: float) -> None:
        """Load the node in a worker that lacks it. Raises `LoadError`."""
        if self.semantic_hash not in worker.loaded:
            answer = worker.child.ask(self._load, seconds)
            if "raised" in answer:
                raise LoadError(answer)
            points = tuple(Point(*each) for each in answer["points"])
            if len(worker.loaded) >= MAX_PROGRAMS:
                worker.loaded.clear()
            worker.loaded[self.semantic_hash] = points
        self._points = worker.loaded[self.semantic_hash]
