"""Traces of calls of nodes without effects: of a share of them, made beside the callers.

A node without effects gives the same once more. So a call that is sampled keeps what it was given, and a thread runs it
again, traced, and stores the trace: the caller waits for a copy of its inputs and nothing else. A trace takes as long
as hundreds of calls; so there are so many a second at most, and a call above that is not sampled.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeAlias

from vesper.compiler import Compiled
from vesper.config.traces import TraceSettings
from vesper.engines.engine import Limits
from vesper.journal.errors import JournalError
from vesper.journal.execution_id import trace_id
from vesper.journal.sealing import KeyRing
from vesper.storage.after_fork import Order, register
from vesper.trace.difference import parted
from vesper.trace.model import Trace, TraceError
from vesper.trace.programs import program_of
from vesper.trace.recorder import traced_run
from vesper.trace.snapshot import is_fixed
from vesper.trace.store import TraceStore

_log = logging.getLogger("vesper.traces")
_MOST_WAITING = 1000
_BATCH = 64
"""Traces that are written at once."""
_PAUSE = 0.05
_OFF_SECONDS = 60
_LONGEST_WAIT = 5.0
"""Seconds that a process waits at its end for what is still to be stored."""


@dataclass(eq=False, slots=True)
class Sampled:
    """A node whose calls are sampled."""

    compiled: Compiled
    engines: tuple[str, ...]
    """Where its calls are run once more: the engine that it is loaded on, or both."""
    limits: Limits | None
    off_until: float = 0.0
    """Its traces could not be kept: somebody was told, and nobody tries again before then, by `time.monotonic`."""


Given: TypeAlias = Mapping[str, Any] | Callable[[], Mapping[str, Any]]
"""The inputs of a call, or what they are read from when the trace is made: a text cannot change meanwhile."""
Call: TypeAlias = tuple[Sampled, Given, datetime | None, int, int, bool]
"""One call that has ended: its inputs, its start, when it began and when it ended, in nanoseconds; false where it is
only looked at. A tuple, because callers wait until it is made."""
Look = Callable[[Trace], bool]
"""Somebody who looks at every trace that is made; true where it is to be kept in any case."""


@dataclass(slots=True)
class Counts:
    kept: int = 0
    passed: int = 0
    """Calls that would have been sampled, and were too many."""
    lost: int = 0
    """Calls that no trace could be made of; the log says why."""


class Sampler:
    """The calls of one configuration and process. Any number of threads may add to it."""

    def __init__(self, settings: TraceSettings, keys: Callable[[], KeyRing], look: Look | None = None) -> None:
        self.settings = settings
        self._keys = keys
        self._store: TraceStore | None = None
        self._look = look
        self._most = min(settings.per_second, _MOST_WAITING)
        self.left = self._most
        """How many may still be sampled in this second, and have room to wait. Read without a lock: who finds none left
        goes on at once."""
        self.counts = Counts()
        self.waiting: deque[Call] = deque()
        self._lock = threading.Lock()
        self.worker: threading.Thread | None = None
        self._refilled = 0.0
        _samplers.add(self)

    def add(self, call: Call) -> None:
        """Told of each call that is to have a trace, or to be looked at. Raises nothing, and waits for nobody: callers
        take no lock here, so that of many threads one or the other may be above what a second has."""
        waiting = self.waiting
        if len(waiting) >= _MOST_WAITING:
            self.counts.passed += 1
            return
        if call[-1]:
            self.left -= 1
        waiting.append(call)
        if self.worker is None:
            self.begin()

    def begin(self) -> None:
        """Lets somebody make the traces of what waits, where nobody does."""
        with self._lock:
            if self.worker is None:
                self._refilled = time.monotonic()
                self.worker = threading.Thread(target=self._work, name="vesper-traces", daemon=True)
                self.worker.start()

    def room(self) -> int:
        """How many calls may still wait."""
        return max(0, _MOST_WAITING - len(self.waiting))

    def begin_anew(self) -> None:
        """In a process that was forked from the one that this was made in."""
        self.waiting.clear()
        self._lock = threading.Lock()
        self.worker, self._store, self._is_storing = None, None, False

    def wait(self, seconds: float = _LONGEST_WAIT) -> bool:
        """Until everything that was added is stored; false where that takes longer."""
        until = time.monotonic() + seconds
        while self._busy():
            if self.worker is None:
                self.begin()
            if time.monotonic() >= until:
                return False
            time.sleep(0.005)
        return True

    def _busy(self) -> bool:
        with self._lock:
            return bool(self.waiting) or self._is_storing

    _is_storing = False

    # -- beside the callers -----------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._lock:
                batch = [self.waiting.popleft() for _ in range(min(_BATCH, len(self.waiting)))]
                self._is_storing = bool(batch)
                self._refill()
                if not batch and self.left >= self._most:
                    self.worker = None  # whoever comes next begins another
                    if not self.waiting:
                        return
                    self.worker = threading.current_thread()  # somebody came who still saw this one
            if batch:
                try:
                    self._keep(batch)
                except Exception:  # noqa: BLE001  # nothing here may reach a caller; the log has the reason
                    self.counts.lost += len(batch)
                    _log.exception("%d sampled calls have no trace", len(batch))
            with self._lock:
                self._is_storing = False
            if not self.waiting:
                time.sleep(_PAUSE)

    def _refill(self) -> None:
        now = time.monotonic()
        more = int((now - self._refilled) * self.settings.per_second)
        if more:
            self._refilled = now
            self.left = min(self._most, self.left + more, self.room())

    def _keep(self, batch: list[Call]) -> None:
        by_node: dict[Sampled, list[Call]] = {}
        for call in batch:
            by_node.setdefault(call[0], []).append(call)
        for node, calls in by_node.items():
            if time.monotonic() < node.off_until:
                self.counts.lost += len(calls)
                continue
            try:
                self._keep_calls(calls)
            except (TraceError, JournalError) as problem:  # no key for what is sensitive, no room, no folder
                self.counts.lost += len(calls)
                node.off_until = time.monotonic() + _OFF_SECONDS
                told = "calls of %s have no traces for the next %d seconds: %s"
                _log.warning(told, node.compiled.node.node_id, _OFF_SECONDS, problem)

    def _keep_calls(self, calls: list[Call]) -> None:
        kept: list[Trace] = []
        for call in calls:
            inputs = call[1]() if callable(call[1]) else call[1]
            if not is_fixed(inputs):
                self.counts.lost += 1  # an object of the caller's own: nobody knows whether it is as it was
                continue
            trace = made(call, inputs)
            is_met = self._look is not None and self._look(trace)
            if call[-1] or is_met:
                kept.append(trace)
        if not kept:
            return
        if self._store is None:
            self._store = TraceStore(self.settings, self._keys())
        with _storing:
            self._store.add_all(kept)
        self.counts.kept += len(kept)


def made(call: Call, inputs: Mapping[str, Any]) -> Trace:
    """The trace of a call on these inputs, run once more. Nothing is performed: the node has no effects."""
    node, _, now, began_ns, ended_ns, _ = call
    name, compiled = trace_id(began_ns), node.compiled
    traces = [
        traced_run(compiled, program_of(compiled, engine), engine, name, inputs, now, limits=node.limits)
        for engine in node.engines
    ]
    where = next((told for each in traces[1:] if (told := parted(traces[0], each))), None)
    return replace(
        traces[0],
        engines=node.engines,
        started_us=began_ns // 1000,
        duration_us=(ended_ns - began_ns) // 1000,
        divergence=where,
    )


def _forked() -> None:
    """A fork leaves the thread behind, and what waited is stored by the process that it was forked from."""
    _storing.release()
    for each in list(_samplers):
        each.begin_anew()


_samplers: weakref.WeakSet[Sampler] = weakref.WeakSet()
_storing = threading.Lock()
"""Held while something is written: SQLite takes a file that is open at a fork for locked, in the child for ever."""
register(order=Order.TRACE, before=_storing.acquire, after_in_parent=_storing.release, after_in_child=_forked)
