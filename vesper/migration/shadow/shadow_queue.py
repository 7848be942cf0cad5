"""The shadow queue: one thread that follows executions off the response path, bounded in bytes.

An admitted execution waits here with everything that its shadow run needs. One without room is reported as *lost*:
admitted, without a verdict.

The thread shares the GIL with the threads that serve callers, and the GIL has no priorities: each of its slices delays
their responses, at half load by more than its own length, because others queue up. So it waits for a moment without
callers. If there is none for long, or the queue grows, it runs nevertheless, because a node without evidence never
rises. A serving thread does not wake it in the middle of a request, which would cost that request time; it wakes it at
the end, and the thread polls while more may come.

The direct engine runs without the GIL, so that a kernel that hangs delays no other thread. Another thread supervises
this one (`check`): a run that does not return in time is abandoned with its thread, and a new thread continues.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar
from weakref import ref

from vesper.migration.compare.reports import Lost
from vesper.migration.shadow.admission import Admission, take_worker_seconds

_log = logging.getLogger("vesper.migration")
_LULL_SECONDS = 0.05
"""Seconds to wait for a moment without callers; also the poll interval."""
_PRESSING_LENGTH = 32
"""Queue length from which the thread does not wait for such a moment."""
_POLL_DURATION_SECONDS = 1.0
"""Seconds for which the idle thread polls before it sleeps."""
HANG_FACTOR = 3
"""Deadlines after which a run is abandoned. An execution runs at most twice; half as much again is for the machine."""
_MAX_CHECK_SECONDS = 1.0
"""Maximum time that counts between two checks: the process may have been stopped meanwhile."""
MAX_ABANDONED = 4
"""Number of abandoned threads at which the process stops following. Each keeps its stack and its execution."""


class Serving(Protocol):
    """The component that serves callers in this process: a Host."""

    def lull(self, seconds: float) -> bool:
        """Wait at most `seconds` until no caller is served; return True where none is."""
        ...

    def when_quiet(self, then: Callable[[], None]) -> bool:
        """Call `then` once no caller is served. Returns False, without a call, where none is served now."""
        ...


_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Following(Generic[_Result]):
    """A queued execution to be followed."""

    follow: Callable[[], _Result | Lost | None]
    """Function that returns the report; None where there is nothing to report."""
    report: Callable[[_Result | Lost], None]
    size: int
    limit: float | None = None
    """Seconds after which it is abandoned; None where another component supervises the run."""
    hung: Callable[[str], _Result | Lost] = Lost
    """Returns the report of an abandoned run."""


class Followers:
    def __init__(self, admission: Admission) -> None:
        self.admission = admission
        self._serving: tuple[ref[Serving], ...] = ()
        """Hosts of this process. Replaced, never mutated: other threads read it."""
        self.on_exhausted: Callable[[int], None] = _ignore
        """Called once with the number of abandoned threads, when the process has to stop following."""
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.RLock()
        """INVARIANT: Ctrl-C does not leave it held. It is entered in C, not through `_wanted`, and `Condition`
        reacquires an RLock in C."""
        self._wanted = threading.Condition(self._lock)
        self._queue: deque[Following[Any]] = deque()
        self._thread: threading.Thread | None = None
        self.is_closed = False
        self._is_busy = False
        self._current: Following[Any] | None = None
        """The run of the thread, while the direct engine may be in it."""
        self._watched: Following[Any] | None = None
        """The run at the last check, and for how many seconds it has been the same."""
        self._waited = 0.0
        self._checked = time.monotonic()
        self._abandoned = 0
        self._is_asleep = False
        """True while the thread does not poll and must be woken."""
        self._will_be_woken = False
        """True where a serving thread will wake it at its end."""
        self._awaited = 0
        """Number of threads that wait for an empty queue; while there are any, the thread does not wait for a lull."""

    def after_fork(self) -> None:
        self.admission.after_fork()
        self._begin()

    def yield_to(self, serving: Serving) -> None:
        """Delay shadow runs while this Host serves callers, from now on."""
        others = (each for each in self._serving if each() not in (None, serving))
        self._serving = (*others, ref(serving))

    def put(self, following: Following[Any]) -> None:
        """Queue an execution; report it as lost where there is no room."""
        if not self.admission.has_room(following.size):
            following.report(Lost("too much waits to be followed"))
            return
        lost, is_pressing, is_taken = "", False, False
        try:
            with self._lock:
                if self.is_closed:
                    lost = "the process ends"
                elif not self._ensure_thread():
                    lost = "no thread can be started that follows"
                else:
                    is_taken = True
                    self._queue.append(following)
                    is_pressing = self._is_asleep or len(self._queue) >= _PRESSING_LENGTH
                    if self._will_be_woken and not is_pressing:
                        return
                    self._will_be_woken = True
        finally:
            if not is_taken:  # including Ctrl-C
                self.admission.add_run(0.0, following.size)
        if lost:
            following.report(Lost(lost))
        elif is_pressing or not self._request_wake():
            self._wake()

    def _ensure_thread(self) -> bool:
        """Start the thread if there is none. Returns False where the system has no more threads.

        The caller is served nevertheless, and the next execution tries again.
        """
        if self._thread is None:
            thread = threading.Thread(target=self._work, name="vesper-follower", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return False
            self._thread = thread  # a thread that Ctrl-C left unassigned ends by itself
        return True

    def _request_wake(self) -> bool:
        """Let a Host wake the thread once it is idle; False where no Host serves a caller."""
        serving = (each() for each in self._serving)
        return any(each.when_quiet(self._wake) for each in serving if each is not None)

    def _wake(self) -> None:
        with self._lock:
            self._will_be_woken = False
            self._wanted.notify_all()

    def _work(self) -> None:
        while True:
            with self._lock:
                if self._thread is not threading.current_thread():
                    return
                idle_since = time.monotonic()
                while not self._queue:
                    self._is_busy = False
                    self._wanted.notify_all()
                    if self.is_closed:
                        return
                    self._is_asleep = time.monotonic() - idle_since > _POLL_DURATION_SECONDS
                    self._wanted.wait(None if self._is_asleep else _LULL_SECONDS)
                self._is_asleep = self._will_be_woken = False
            if len(self._queue) < _PRESSING_LENGTH and not self._awaited:
                self.lull()
            with self._lock:
                if not self._queue:  # closed meanwhile
                    continue
                following = self._current = self._queue.popleft()
                self._is_busy = True
            take_worker_seconds()  # discards those of earlier work
            begun, started = time.thread_time(), time.perf_counter()
            report: Any
            try:
                report = following.follow()
            except Exception as error:  # noqa: BLE001  # a failed comparison is no agreement
                _log.exception("a comparison broke")
                report = Lost(f"the comparison broke: {type(error).__name__}")
            elapsed = time.perf_counter() - started
            with self._lock:
                if self._thread is not threading.current_thread():
                    return  # abandoned: the run is reported already
                self._current = None
            try:
                if report is not None:
                    following.report(report)
            except Exception:  # noqa: BLE001  # this thread must survive, or nothing is compared any more
                _log.exception("what a comparison came to could not be reported")
            spent = time.thread_time() - begun + take_worker_seconds()
            self.admission.add_run(spent, following.size, elapsed)

    def check(self) -> None:
        """Abandon the thread where its run hangs in native code, and continue with another. Called periodically."""
        with self._lock:
            now = time.monotonic()
            passed, self._checked = min(now - self._checked, _MAX_CHECK_SECONDS), now
            hung = self._current
            if hung is None or hung is not self._watched:
                self._watched, self._waited = hung, 0.0
                return
            self._waited += passed
            if hung.limit is None or self._waited < hung.limit:
                return
            self._thread = self._current = self._watched = None
            self._is_busy = False
        hung.report(hung.hung(f"it did not return within {hung.limit:g} s"))
        self.admission.add_run(0.0, hung.size)
        self.note_abandoned(1)
        with self._lock:
            self._wanted.notify_all()
            if self._queue:
                self._ensure_thread()

    def note_abandoned(self, count: int) -> None:
        """Count abandoned threads, also those of the extension."""
        before, self._abandoned = self._abandoned, self._abandoned + count
        if before < MAX_ABANDONED <= self._abandoned:
            self.on_exhausted(self._abandoned)

    def lull(self) -> None:
        """Wait briefly for a moment without callers."""
        until = time.monotonic() + _LULL_SECONDS
        for each in self._serving:
            serving = each()
            if serving is not None:
                serving.lull(max(0.0, until - time.monotonic()))

    def drain(self, timeout: float) -> bool:
        """Wait for an empty queue; return False after `timeout` seconds."""
        with self._lock:
            self._awaited += 1
            try:
                self._wanted.notify_all()  # Ctrl-C may have interrupted `put` before its notification
                return self._wanted.wait_for(lambda: not self._queue and not self._is_busy, timeout)
            finally:
                self._awaited -= 1

    def close(self, timeout: float = 5.0) -> None:
        """Follow queued executions for at most `timeout` seconds; the rest is reported as lost."""
        self.drain(timeout)
        with self._lock:
            self.is_closed = True
            left, self._queue = list(self._queue), deque()
            self._wanted.notify_all()
        for following in left:
            following.report(Lost("the process ended before it was followed"))


def _ignore(_: int) -> None: ...
