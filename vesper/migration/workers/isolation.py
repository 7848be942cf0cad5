"""Worker-process mode: the direct engine in processes of its own, so that nothing it does can end a caller's.

    workers = Workers(size=2, deadline=5.0, memory_mib=512)
    program = IsolatedProgram(compiled, workers)

`IsolatedProgram` stands where a `DirectProgram` stood. An engine that aborts, eats the memory or never comes back is an
`EngineFault` here, which the router takes as it takes every other. Each process runs one execution at a time; one that
waits for an effect keeps its process. Where all are taken, the caller is told so at once (`Busy`): nobody waits for the
direct engine, Python leads.
"""

from __future__ import annotations

import atexit
import logging
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any
from weakref import WeakSet

from vesper.compiler import Compiled
from vesper.engines.direct_engine import all_callees
from vesper.engines.engine import Limits, Observer
from vesper.engines.outcome import Outcome
from vesper.engines.path import Pathed, Point
from vesper.migration.compare.transcript import Exchange
from vesper.migration.workers import wire_values as packed
from vesper.migration.workers.asking import Busy, Unavailable, fingerprint_of, outcome_of, point_of, question
from vesper.migration.workers.child import Child, ChildDied
from vesper.migration.workers.execution import IsolatedExecution
from vesper.migration.workers.restarts import Restarts
from vesper.migration.workers.worker_lease import Held, Raised, Worker
from vesper.migration.workers.worker_main import MOST_PROGRAMS
from vesper.storage.after_fork import Order, register

_log = logging.getLogger("vesper.migration")
_HELLO_SECONDS = 20.0
_MOST_DEATHS = 10
_WORD = 8
"""Points are told in whole words of so many bytes."""
_PATIENCE = 1.5
"""An engine that heeds its limit on time ends by itself; one that does not is killed after half as long again."""
_ALL: WeakSet[Workers] = WeakSet()


class Workers:
    """A few processes that all isolated programs of this one share. Any thread may use it; after a fork it has none,
    and starts its own."""

    def __init__(
        self,
        size: int = 2,
        deadline: float = 5.0,
        memory_mib: int = 512,
        most_deaths: int = _MOST_DEATHS,
        module: str = "vesper.migration.workers.worker_main",
        is_owned: bool = False,
    ) -> None:
        """`is_owned`: whoever made them closes them when the process ends, after what still waits for them."""
        if size < 1 or deadline <= 0 or memory_mib < 16:
            raise ValueError("workers are at least one, with a deadline and with 16 MiB of memory or more")
        self.size = size
        self.patience = deadline * _PATIENCE
        self._memory_mib = memory_mib
        self._most_deaths = most_deaths
        self._module = module
        self._is_owned = is_owned
        self.is_closed = False
        self._begin_afresh()
        _ALL.add(self)

    def _begin_afresh(self) -> None:
        self._lock = threading.RLock()  # a signal handler that calls a node comes here while its thread has it
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        self._all: set[Worker] = set()
        self._starting = 0
        self._restarts = Restarts(self._most_deaths)
        self._is_up = threading.Event()

    def start(self) -> None:
        """Starts all of them, in the background."""
        for _ in range(self.size):
            self._start_another()

    def wait_until_up(self, seconds: float) -> bool:
        """Whether one of them has come up."""
        return self._is_up.wait(seconds)

    def is_ready(self) -> bool:
        """Whether one of them is up; where none is, one is begun to be started. A request that finds none is not
        followed at all: one that were would be counted as a comparison that came to nothing, and a burst after each
        start would keep its node from rising."""
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
        """Puts a worker that nobody else has into a list of the caller's, at once. Raises `Busy`.

        All of it happens in C, where no signal handler runs: one that raised before the caller has the worker would
        leave it to nobody."""
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

    def give_back(self, taken: list[Worker]) -> None:
        """Empties the list, in C as well. May be called from a finaliser: takes no lock."""
        with suppress(IndexError):  # a signal handler, or another thread, has given it back in this moment
            deque(map(self._idle.put, islice(iter(taken.pop, None), len(taken))), maxlen=0)
        if self.is_closed:  # whoever closed them may have looked before
            self._close_idle()

    def abandon(self, worker: Worker) -> None:
        """Ends one that somebody asked and did not listen to. No fault of the engine, and a death all the same: who
        does so for ever would have processes started for ever."""
        self._drop(worker, "nobody waited for its answer")

    def died(self, worker: Worker, why: str) -> None:
        self._drop(worker, why)
        self._start_another()

    def close(self) -> None:
        """Ends all of them; comes back when they are gone. Whoever waits for one finds that it is."""
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
        """The processes are those of the one that we were forked from."""
        self._begin_afresh()

    def _drop(self, worker: Worker, why: str) -> None:
        with self._lock:
            was_known = worker in self._all
            self._all.discard(worker)
            if was_known:
                self._restarts.died()
            is_given_up = self._restarts.is_given_up
        worker.child.close()
        if was_known:
            _log.error("a process of the direct engine is gone: %s", why)
            if is_given_up:
                _log.error(
                    "%d processes of the direct engine died within ten minutes: no more are started, and Python runs "
                    "alone until this process starts anew",
                    self._most_deaths + 1,
                )

    def _start_another(self) -> str:
        """Begins to start one, where one may be; why nobody has one now."""
        with self._lock:
            if self.is_closed:
                return "the workers were closed"
            wait = self._restarts.wait()
            if wait is None:
                return "too many processes of the direct engine died: no more are started"
            if len(self._all) + self._starting >= self.size:
                return f"all {self.size} processes of the direct engine are taken"
            if wait > 0:
                return f"a process of the direct engine died: the next one is started in {wait:.1f} s"
            try:
                # In a thread: to start a process takes longer than a caller should wait.
                threading.Thread(target=self._bring_up, name="vesper-worker-start", daemon=True).start()
            except RuntimeError as error:
                return f"no process of the direct engine can be started: {error}"
            self._starting += 1
        return "a process of the direct engine is being started"

    def _bring_up(self) -> None:
        child = worker = None
        try:
            child = Child(self._module, str(self._memory_mib))
            if child.ask(packed.message({"do": "hello"}), _HELLO_SECONDS) != {"hello": True}:
                raise ChildDied("it does not say what it should")
            worker = Worker(child)
        except Exception as error:  # noqa: BLE001  # whatever it is, another one may come up
            _log.error("a process of the direct engine does not come up: %s", error)
            if child is not None:
                child.close()
        with self._lock:
            self._starting -= 1
            if worker is None:
                self._restarts.died()
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


class IsolatedProgram:
    """A node on the direct engine in another process."""

    def __init__(self, compiled: Compiled, workers: Workers) -> None:
        self.semantic_hash = compiled.semantic_hash
        self._workers = workers
        self._points: tuple[Point, ...] | None = None
        self._load = packed.message(
            {
                "do": "load",
                "program": self.semantic_hash,
                "ir": compiled.ir,
                "callees": [each.ir for each in all_callees(compiled)],
            }
        )

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        return outcome_of(self._asked(question("call", self.semantic_hash, inputs, now, limits)))

    def call_pathed(
        self, inputs: Mapping[str, object], key: bytes, now: datetime | None = None, limits: Limits | None = None
    ) -> Pathed:
        """As `DirectProgram.call_pathed`; of a fault there is no path."""
        answer = self._asked(question("call", self.semantic_hash, inputs, now, limits, key))
        return Pathed(outcome_of(answer), self.way(answer.get("path", "")), fingerprint_of(answer, 0))

    def points(self) -> tuple[Point, ...]:
        """Known from the first execution on; before it a worker is asked, which may be `Busy`."""
        if self._points is None:
            held = Held(self._workers)
            try:
                held.load(self)
            finally:
                held.release()
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
        to_do = question("start", self.semantic_hash, inputs, now, limits, is_traced=is_traced)
        return IsolatedExecution(Held(self._workers), to_do, self, observe)

    def start_pathed(
        self, inputs: Mapping[str, object], key: bytes, now: datetime | None = None, limits: Limits | None = None
    ) -> IsolatedExecution:
        to_do = question("start", self.semantic_hash, inputs, now, limits, key)
        return IsolatedExecution(Held(self._workers), to_do, self, None)

    def start_scripted(
        self,
        inputs: Mapping[str, object],
        key: bytes,
        now: datetime | None,
        limits: Limits | None,
        exchanges: Sequence[Exchange],
    ) -> IsolatedExecution:
        """An execution that will be advanced with these answers. One message holds them all: each that goes to another
        process and back costs as much as a step."""
        try:
            asked = [packed.asked_for(each.request) for each in exchanges]
            told = [packed.pack_answered(each, letters) for each, letters in zip(exchanges, asked, strict=True)]
        except packed.Unsendable as error:
            raise Unavailable(str(error)) from None
        to_do = question("script", self.semantic_hash, inputs, now, limits, key, exchanges=told)
        script = [(each.request, letters) for each, letters in zip(exchanges, asked, strict=True)]
        return IsolatedExecution(Held(self._workers), to_do, self, None, script)

    def way(self, told: str) -> bytes:
        """The points that were passed. Raises for what says no such thing."""
        path = bytes.fromhex(told)
        if self._points is not None and len(path) > _WORD * -(-len(self._points) // (8 * _WORD)):
            raise ValueError("a path of more points than the node has")
        return path

    def _asked(self, to_do: bytes) -> Mapping[str, Any]:
        held = Held(self._workers)
        try:
            return held.ask(to_do, self)
        finally:
            held.release()

    def load_on(self, worker: Worker, seconds: float) -> None:
        """Gives the node to a worker that does not have it."""
        if self.semantic_hash not in worker.loaded:
            answer = worker.child.ask(self._load, seconds)
            if "raised" in answer:
                raise Raised(answer)
            points = tuple(map(point_of, answer["points"]))
            if len(worker.loaded) >= MOST_PROGRAMS:
                worker.loaded.clear()
            worker.loaded[self.semantic_hash] = points
        self._points = worker.loaded[self.semantic_hash]
