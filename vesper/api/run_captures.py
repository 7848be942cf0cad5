"""Capture runs of services that meet a breakpoint, without importing the debugger before there is one.

A run pays for one read of a clock, and once a second for the time of a file (`vesper/trace/armed_breakpoints.py`).
While there are breakpoints, each run that has ended is evaluated from its journal in a thread. Runs that exceed the
queue are counted and dropped.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from vesper.host.host import Host
from vesper.trace.armed_breakpoints import ArmedWatch

if TYPE_CHECKING:
    from vesper.debug.captures import BreakpointEvaluator
    from vesper.host.prepared import Prepared
    from vesper.trace.model import Trace

_log = logging.getLogger("vesper.debug")
_MAX_WAITING = 200
_CLOSE_SECONDS = 5.0
"""Time that closing a Host waits for the runs that are still being evaluated."""


def catcher(watch: ArmedWatch) -> Callable[[Trace], bool]:
    """Return a function that notes a trace where it meets a breakpoint, and returns whether it does."""
    evaluator: BreakpointEvaluator | None = None

    def catch(trace: Trace) -> bool:
        nonlocal evaluator
        if not watch.texts:
            return False
        if evaluator is None:
            from vesper.debug.captures import BreakpointEvaluator

            evaluator = BreakpointEvaluator(watch)
        return evaluator.capture(trace)

    return catch


class RunCaptures:
    """The evaluation of breakpoints on the ended runs of one Host, in a thread of its own."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.watch = ArmedWatch(host.config.folder)
        self._catch = catcher(self.watch)
        self._waiting: deque[str] = deque()
        self._lock = threading.Lock()
        self._worker: tuple[int, threading.Thread] | None = None
        self.dropped = 0
        """Count of runs that did not fit into the queue."""

    def after_run(self, _: Prepared, execution: str) -> None:
        """Queue the run where there are breakpoints. Raises nothing."""
        if self.watch.is_armed():
            self._put(execution)

    def before_close(self) -> None:
        """Wait for the runs that are still being evaluated."""
        self.wait(_CLOSE_SECONDS)

    def _put(self, execution: str) -> None:
        """Queue a run that has ended, and start the thread where there is none."""
        with self._lock:
            if len(self._waiting) >= _MAX_WAITING:
                self.dropped += 1
                if self.dropped == 1:
                    _log.warning("too many runs wait for the breakpoints of running services: some are dropped")
                return
            self._waiting.append(execution)
            # A fork copies no thread: each process starts its own.
            if self._worker is None or self._worker[0] != os.getpid() or not self._worker[1].is_alive():
                thread = threading.Thread(target=self._work, name="vesper-captures", daemon=True)
                self._worker = os.getpid(), thread
                thread.start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._worker = None
                    return
                execution = self._waiting.popleft()
            try:
                self._examine(execution)
            except Exception:  # noqa: BLE001  # a debugger takes no service down; the log has the reason
                _log.exception("%s: the breakpoints of running services could not be evaluated", execution)

    def wait(self, seconds: float = 10.0) -> None:
        """Join the worker, at most `seconds`."""
        worker = self._worker
        if worker is not None and worker[0] == os.getpid():
            worker[1].join(seconds)

    def _examine(self, execution: str) -> None:
        """Debug the run again from the journal, which performs nothing."""
        from vesper.trace.journalled import trace_of_execution
        from vesper.trace.store import TraceStore

        if not self._host.knows(execution):
            return  # its inputs were refused: the journal has no entry
        trace = trace_of_execution(self._host.journal, execution)
        if self._catch(trace):
            store = TraceStore(self._host.config.trace_settings(), self._host.key_ring())
            if trace.trace_id not in store.ids(trace.trace_id):  # a run that was recovered has ended twice
                store.add(trace)


def attach_captures(host: Host) -> None:
    """Attach captures to a Host without a hook. Test doubles of a Host get none."""
    if type(host) is Host and host.after_run is None:
        captures = RunCaptures(host)
        host.after_run = captures.after_run
        host.before_close = captures.before_close
