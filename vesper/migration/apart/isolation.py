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
import os
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from queue import Empty, SimpleQueue
from typing import Any
from weakref import WeakSet

from vesper.compiler import Compiled
from vesper.engines.direct_engine import all_callees
from vesper.engines.engine import Blocked, Completion, Done, Limits, Observer, Request
from vesper.engines.outcome import EngineFault, Outcome
from vesper.engines.path import Pathed, Point
from vesper.migration.apart import packed
from vesper.migration.apart.child import MAX_MESSAGE, Child, ChildDied
from vesper.migration.apart.isolated import MOST_PROGRAMS
from vesper.migration.apart.restarts import Restarts
from vesper.migration.compare.transcript import Exchange
from vesper.migration.follow.direct_side import NotAsked

_log = logging.getLogger("vesper.migration")
_HELLO_SECONDS = 20.0
_MOST_DEATHS = 10
_WORD = 8
"""Points are told in whole words of so many bytes."""
_PATIENCE = 1.5
"""An engine that heeds its limit on time ends by itself; one that does not is killed after half as long again."""
_ALL: WeakSet[Workers] = WeakSet()


class Unavailable(NotAsked):
    """The direct engine was not asked; Python leads. It says nothing about the engine."""


class Busy(Unavailable):
    """Every worker has an execution, or none is up yet."""


class _Worker:
    """A child, with what is known of it."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self.loaded: dict[str, tuple[Point, ...]] = {}
        """The programs that it has, and the points of each."""


class Workers:
    """A few processes that all isolated programs of this one share. Any thread may use it; after a fork it has none,
    and starts its own."""

    def __init__(
        self,
        size: int = 2,
        deadline: float = 5.0,
        memory_mib: int = 512,
        most_deaths: int = _MOST_DEATHS,
        module: str = "vesper.migration.apart.isolated",
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
        self._lock = threading.Lock()
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        self._all: set[_Worker] = set()
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

    def take(self) -> _Worker:
        """A worker that nobody else has, at once. Raises `Busy`."""
        while True:
            try:
                worker = self._idle.get_nowait()
            except Empty:
                break
            if worker.child.is_alive:
                return worker
            self._drop(worker, "it ended while it had nothing to do")
        raise Busy(self._start_another())

    def give_back(self, worker: _Worker) -> None:
        """May be called from a finaliser: takes no lock."""
        if self.is_closed:
            worker.child.close()
        else:
            self._idle.put(worker)

    def abandon(self, worker: _Worker) -> None:
        """Ends one that somebody asked and did not listen to; no fault of the engine."""
        with self._lock:
            self._all.discard(worker)
        worker.child.close()

    def died(self, worker: _Worker, why: str) -> None:
        self._drop(worker, why)
        self._start_another()

    def close(self) -> None:
        """Ends all of them; comes back when they are gone. Whoever waits for one finds that it is."""
        with self._lock:
            self.is_closed = True
            workers, self._all = self._all, set()
        for each in workers:
            each.child.kill()
        while not self._idle.empty():
            self._idle.get_nowait().child.close()

    def forked(self) -> None:
        """The processes are those of the one that we were forked from."""
        self._begin_afresh()

    def _drop(self, worker: _Worker, why: str) -> None:
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
            worker = _Worker(child)
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


os.register_at_fork(after_in_child=_after_fork)
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
        return _outcome(self._asked(_question("call", self.semantic_hash, inputs, now, limits)))

    def call_pathed(
        self, inputs: Mapping[str, object], key: bytes, now: datetime | None = None, limits: Limits | None = None
    ) -> Pathed:
        """As `DirectProgram.call_pathed`; of a fault there is no path."""
        answer = self._asked(_question("call", self.semantic_hash, inputs, now, limits, key))
        return Pathed(_outcome(answer), self.way(answer.get("path", "")), _fingerprint(answer, 0))

    def points(self) -> tuple[Point, ...]:
        """Known from the first execution on; before it a worker is asked, which may be `Busy`."""
        if self._points is None:
            held = _Held(self._workers)
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
        question = _question("start", self.semantic_hash, inputs, now, limits, is_traced=is_traced)
        return IsolatedExecution(_Held(self._workers), question, self, observe)

    def start_pathed(
        self, inputs: Mapping[str, object], key: bytes, now: datetime | None = None, limits: Limits | None = None
    ) -> IsolatedExecution:
        question = _question("start", self.semantic_hash, inputs, now, limits, key)
        return IsolatedExecution(_Held(self._workers), question, self, None)

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
        question = _question("script", self.semantic_hash, inputs, now, limits, key, exchanges=told)
        script = [(each.request, letters) for each, letters in zip(exchanges, asked, strict=True)]
        return IsolatedExecution(_Held(self._workers), question, self, None, script)

    def way(self, told: str) -> bytes:
        """The points that were passed. Raises for what says no such thing."""
        path = bytes.fromhex(told)
        if self._points is not None and len(path) > _WORD * -(-len(self._points) // (8 * _WORD)):
            raise ValueError("a path of more points than the node has")
        return path

    def _asked(self, question: bytes) -> Mapping[str, Any]:
        held = _Held(self._workers)
        try:
            return held.ask(question, self)
        finally:
            held.release()

    def load_on(self, worker: _Worker, seconds: float) -> None:
        """Gives the node to a worker that does not have it."""
        if self.semantic_hash not in worker.loaded:
            answer = worker.child.ask(self._load, seconds)
            if "raised" in answer:
                raise _Raised(answer)
            points = tuple(map(_point, answer["points"]))
            if len(worker.loaded) >= MOST_PROGRAMS:
                worker.loaded.clear()
            worker.loaded[self.semantic_hash] = points
        self._points = worker.loaded[self.semantic_hash]


class _Raised(Exception):
    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__(f"{answer['raised']}: {answer['message']}")
        self.answer = answer


class _Held:
    """A worker while an execution has it."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._pid = os.getpid()
        self._worker: _Worker | None = workers.take()

    def ask(self, question: bytes, program: IsolatedProgram) -> Mapping[str, Any]:
        """The answer; where the worker died or did not come back, one that says so as a fault of the engine."""
        return self._asked(question, program)

    def load(self, program: IsolatedProgram) -> None:
        """Only gives the node to the worker."""
        self._asked(None, program)

    def _asked(self, question: bytes | None, program: IsolatedProgram) -> Mapping[str, Any]:
        worker = self._worker
        if worker is None or self._pid != os.getpid():
            raise Unavailable("the execution has no process: it has ended, or this process was forked meanwhile")
        try:
            program.load_on(worker, self._workers.patience)
            if question is None:
                return {}
            answer: Mapping[str, Any] = worker.child.ask(question, self._workers.patience)
        except ChildDied as error:
            self._worker = None
            self._workers.died(worker, error.how)
            if self._workers.is_closed:  # by us, and no fault of the engine
                raise Unavailable("the processes of the direct engine were closed") from None
            return {"fault": f"the process of the direct engine is gone: {error}"}
        except _Raised as error:
            return {"fault": f"the direct engine does not load the node: {error}"}
        except BaseException:
            # Whoever has the worker next would be given the answer to this question.
            self._worker = None
            self._workers.abandon(worker)
            raise
        if "raised" in answer and answer["raised"] not in _MISUSE:
            return {"fault": f"{answer['raised']}: {answer['message']}"}
        return answer

    def release(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None and self._pid == os.getpid():
            self._workers.give_back(worker)


class IsolatedExecution:
    """One run in another process, which is given back when it ends, or when nobody has this object any more."""

    def __init__(
        self,
        held: _Held,
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

    def __del__(self) -> None:
        self._held.release()

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
            answer = self._held.ask(_completing(completions), self._program)
        if "raised" in answer:
            raise _Misuse(answer)
        if "path" in answer:
            self._path = self._program.way(answer["path"])
        self._fingerprint = _fingerprint(answer, self._fingerprint)
        marks = packed.unpack_marks(answer.get("marks", ()))
        step = packed.unpack_request(answer["request"]) if "request" in answer else _outcome(answer)
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
        self.as_raised = _MISUSE[answer["raised"]](answer["message"])


_MISUSE: dict[str, type[Exception]] = {
    "ValueError": ValueError,
    "TypeError": TypeError,
    "NowMissing": ValueError,
    "NotInputs": TypeError,
}
"""What a program raises to who calls it wrongly: no fault of the engine."""


def _completing(completions: Sequence[Completion]) -> bytes:
    try:
        told = [packed.pack_completion(each) for each in completions]
    except packed.Unsendable as error:
        raise Unavailable(str(error)) from None
    return _sent({"do": "advance", "completions": told})


def _outcome(answer: Mapping[str, Any]) -> Outcome:
    if "fault" in answer:
        return EngineFault(answer["fault"])
    if "raised" in answer:
        raise _MISUSE[answer["raised"]](answer["message"])
    return packed.unpack_outcome(answer["outcome"])


def _point(told: Any) -> Point:
    kind, expression, outcome = told
    if kind not in ("condition", "loop", "handler") or type(expression) is not int or not isinstance(outcome, str):
        raise ValueError("no point")
    return Point(kind, expression, outcome)


def _fingerprint(answer: Mapping[str, Any], otherwise: int) -> int:
    found = answer.get("fingerprint", otherwise)
    if type(found) is not int or not 0 <= found < 1 << 64:
        raise ValueError("no fingerprint")
    return found


def _question(
    do: str,
    program: str,
    inputs: object,
    now: datetime | None,
    limits: Limits | None,
    key: bytes | None = None,
    **more: object,
) -> bytes:
    try:
        given = packed.pack(packed.as_inputs(inputs))
    except packed.Unsendable as error:
        raise Unavailable(str(error)) from None
    fuel, seconds = (None, None) if limits is None else (limits.fuel, limits.seconds)
    return _sent(
        {
            "do": do,
            "program": program,
            "inputs": given,
            "now": now,
            "fuel": fuel,
            "seconds": seconds,
            "key": key,
            **more,
        }
    )


def _sent(question: Mapping[str, object]) -> bytes:
    try:
        message = packed.message(question)
    except packed.Unsendable as error:
        raise Unavailable(f"the direct engine's process cannot be given this: {error}") from None
    if len(message) > MAX_MESSAGE:
        raise Unavailable(f"the direct engine's process is given at most {MAX_MESSAGE:,} bytes, not {len(message):,}")
    return message
