"""Sampled traces of calls of pure nodes, made in a background thread.

A pure node gives the same outcome again. A sampled call therefore stores only its inputs; a thread runs it again,
traced, and stores the trace, so that the caller waits only for a copy of its inputs. A trace costs as much as hundreds
of calls, so their number per second is bounded and calls beyond it are not sampled.
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
from vesper.journal.journal import KeyRing
from vesper.storage.after_fork import Order, register
from vesper.trace.difference import parted
from vesper.trace.model import Trace, TraceError
from vesper.trace.programs import program_of
from vesper.trace.recorder import record_trace
from vesper.trace.snapshot import is_fixed
from vesper.trace.store import TraceStore

_log = logging.getLogger("vesper.traces")
_MAX_WAITING = 1000
_BATCH_SIZE = 64
"""Traces written per transaction."""
_POLL_SECONDS = 0.05
_RETRY_SECONDS = 60
_EXIT_TIMEOUT_SECONDS = 5.0
"""Seconds that a process waits at exit for pending traces."""


@dataclass(eq=False, slots=True)
class Sampled:
    """A node whose calls are sampled."""

    compiled: Compiled
    engines: tuple[str, ...]
    """Engines that repeat its calls: the one it is loaded on, or both."""
    limits: Limits | None
    off_until: float = 0.0
    """Time, by `time.monotonic`, before which no trace is tried again after storing failed."""


Given: TypeAlias = Mapping[str, Any] | Callable[[], Mapping[str, Any]]
"""Inputs of a call, or a function that reads them later from immutable text."""
Call: TypeAlias = tuple[Sampled, Given, datetime | None, int, int, bool]
"""One ended call: node, inputs, start, begin and end in nanoseconds, whether it is to be stored.

A call that is not to be stored is only shown to `Look`. A tuple, because building it is on the caller's path.
"""
Look = Callable[[Trace], bool]
"""Checks every trace; returns true if it must be stored in any case."""


@dataclass(slots=True)
class Counts:
    kept: int = 0
    passed: int = 0
    """Calls beyond the sampling rate."""
    lost: int = 0
    """Calls whose trace could not be made; the log has the reasons."""


class Sampler:
    """Sampled calls of one configuration and process. Thread-safe."""

    def __init__(self, settings: TraceSettings, keys: Callable[[], KeyRing], look: Look | None = None) -> None:
        self.settings = settings
        self._keys = keys
        self._store: TraceStore | None = None
        self._look = look
        self._most = min(settings.per_second, _MAX_WAITING)
        self.left = self._most
        """Remaining samples of this second, bounded by the queue.

        Read without a lock, so that callers without a sample continue immediately.
        """
        self.counts = Counts()
        self.waiting: deque[Call] = deque()
        self._lock = threading.Lock()
        self.worker: threading.Thread | None = None
        self._refilled = 0.0
        _samplers.add(self)

    def add(self, call: Call) -> None:
        """Queue a call for tracing or for checking. Never raises or blocks.

        Callers take no lock here, so concurrent threads may slightly exceed the rate.
        """
        waiting = self.waiting
        if len(waiting) >= _MAX_WAITING:
            self.counts.passed += 1
            return
        if call[-1]:
            self.left -= 1
        waiting.append(call)
        if self.worker is None:
            self.begin()

    def begin(self) -> None:
        """Start the worker thread if none is running."""
        with self._lock:
            if self.worker is None:
                self._refilled = time.monotonic()
                self.worker = threading.Thread(target=self._work, name="vesper-traces", daemon=True)
                self.worker.start()

    def room(self) -> int:
        """Return how many more calls the queue can take."""
        return max(0, _MAX_WAITING - len(self.waiting))

    def reset_after_fork(self) -> None:
        """Reset the sampler in a forked child process."""
        self.waiting.clear()
        self._lock = threading.Lock()
        self.worker, self._store, self._is_storing = None, None, False

    def wait(self, seconds: float = _EXIT_TIMEOUT_SECONDS) -> bool:
        """Wait until all queued calls are stored; return false after `seconds`."""
        until = time.monotonic() + seconds
        while self._is_busy():
            if self.worker is None:
                self.begin()
            if time.monotonic() >= until:
                return False
            time.sleep(0.005)
        return True

    def _is_busy(self) -> bool:
        with self._lock:
            return bool(self.waiting) or self._is_storing

    _is_storing = False

    # -- worker thread ------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._lock:
                batch = [self.waiting.popleft() for _ in range(min(_BATCH_SIZE, len(self.waiting)))]
                self._is_storing = bool(batch)
                self._refill()
                if not batch and self.left >= self._most:
                    self.worker = None  # the next call starts another worker
                    if not self.waiting:
                        return
                    self.worker = threading.current_thread()  # a call was queued while this worker was still visible
            if batch:
                try:
                    self._keep(batch)
                except Exception:  # noqa: BLE001  # no error may reach a caller; the log has the reason
                    self.counts.lost += len(batch)
                    _log.exception("%d sampled calls have no trace", len(batch))
            with self._lock:
                self._is_storing = False
            if not self.waiting:
                time.sleep(_POLL_SECONDS)

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
            except (TraceError, JournalError) as problem:  # no key for sensitive inputs, no space, no folder
                self.counts.lost += len(calls)
                node.off_until = time.monotonic() + _RETRY_SECONDS
                told = "calls of %s have no traces for the next %d seconds: %s"
                _log.warning(told, node.compiled.node.node_id, _RETRY_SECONDS, problem)

    def _keep_calls(self, calls: list[Call]) -> None:
        kept: list[Trace] = []
        for call in calls:
            inputs = call[1]() if callable(call[1]) else call[1]
            if not is_fixed(inputs):
                self.counts.lost += 1  # an object of the caller that may have changed since
                continue
            trace = trace_of_call(call, inputs)
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


def trace_of_call(call: Call, inputs: Mapping[str, Any]) -> Trace:
    """Run a call of a pure node again on these inputs and return the trace."""
    node, _, now, began_ns, ended_ns, _ = call
    name, compiled = trace_id(began_ns), node.compiled
    traces = [
        record_trace(compiled, program_of(compiled, engine), engine, name, inputs, now, limits=node.limits)
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


def _reset_after_fork() -> None:
    """Reset samplers after a fork: the thread is gone, and the parent stores the queued calls."""
    _storing.release()
    for each in list(_samplers):
        each.reset_after_fork()


_samplers: weakref.WeakSet[Sampler] = weakref.WeakSet()
_storing = threading.Lock()
"""Held while something is written: SQLite takes a file that is open at a fork for locked, in the child for ever."""
register(order=Order.TRACE, before=_storing.acquire, after_in_parent=_storing.release, after_in_child=_reset_after_fork)
