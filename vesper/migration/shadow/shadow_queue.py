"""Who follows off the response path: a thread of its own, with a queue that is bounded in bytes.

A request that is admitted waits here with all that following it needs. What cannot wait any more is *lost*, which is
said: it was admitted, and nothing is known of it.

The thread shares Python's lock with those that serve callers, and a lock knows no priorities: what it takes while they
want it is added to each of their answers, and at half load by more than it takes, because others wait in turn. So it
waits for a moment in which nobody is served. Where there is none for long, or much waits, it goes on all the same: a
node of which nothing is known never moves. Nor is it woken before: a thread that wakes another in the middle of serving
somebody pays for that. Who serves wakes it at the end, and it looks by itself as long as something may come.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from weakref import ref

from vesper.migration.compare.reports import Lost, Report
from vesper.migration.shadow.admission import Admission, take_worker_seconds

_log = logging.getLogger("vesper.migration")
_LULL = 0.05
"""Seconds that one waits for a moment in which nobody is served."""
_PRESSING = 32
"""Where so many wait, none waits for such a moment any more."""
_AWAKE = 1.0
"""Seconds for which it looks by itself whether something came, after the last one."""


class Serving(Protocol):
    """Who serves callers in this process: a Host."""

    def lull(self, seconds: float) -> bool:
        """Waits so long, at most, until nobody is served; whether that is so."""
        ...

    def when_quiet(self, then: Callable[[], None]) -> bool:
        """Calls it once, when nobody is served any more; False where nobody is, and then it is not called."""
        ...


@dataclass(frozen=True, slots=True)
class Following:
    """One execution to be followed."""

    follow: Callable[[], Report | None]
    """None where there is nothing to report."""
    report: Callable[[Report], None]
    size: int


class Followers:
    def __init__(self, admission: Admission) -> None:
        self.admission = admission
        self._serving: tuple[ref[Serving], ...] = ()
        """Replaced as a whole: other threads look at it."""
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.RLock()
        """Ctrl-C must not leave it held: it is entered in C, not by way of `_wanted`, and `Condition` takes an RLock
        back in C."""
        self._wanted = threading.Condition(self._lock)
        self._queue: deque[Following] = deque()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._is_busy = False
        self._is_asleep = False
        """It looks for nothing until somebody wakes it."""
        self._will_be_woken = False
        """By who serves, at the end of that."""
        self._awaited = 0
        """So many wait until nothing waits: there is no time for a lull."""

    def after_fork(self) -> None:
        self.admission.after_fork()
        self._begin()

    def heed(self, serving: Serving) -> None:
        """From now on those that it serves go first."""
        others = (each for each in self._serving if each() not in (None, serving))
        self._serving = (*others, ref(serving))

    def put(self, following: Following) -> None:
        """Takes one; where there is no room for it, it is lost."""
        if not self.admission.has_room(following.size):
            following.report(Lost("too much waits to be followed"))
            return
        lost, is_pressing, is_taken = "", False, False
        try:
            with self._lock:
                if self._is_closed:
                    lost = "the process ends"
                elif not self._has_thread():
                    lost = "no thread can be started that follows"
                else:
                    is_taken = True
                    self._queue.append(following)
                    is_pressing = self._is_asleep or len(self._queue) >= _PRESSING
                    if self._will_be_woken and not is_pressing:
                        return
                    self._will_be_woken = True
        finally:
            if not is_taken:  # also after Ctrl-C
                self.admission.followed(0.0, following.size)
        if lost:
            following.report(Lost(lost))
        elif is_pressing or not self._is_woken_at_the_end():
            self._wake()

    def _has_thread(self) -> bool:
        """Starts it, where there is none; False where the system has no more of them. The caller of the node is served
        all the same, and the next one tries again."""
        if self._thread is None:
            thread = threading.Thread(target=self._work, name="vesper-follower", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return False
            self._thread = thread  # a thread that Ctrl-C left unassigned ends by itself
        return True

    def _is_woken_at_the_end(self) -> bool:
        """By somebody who serves now; False where nobody does."""
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
                    if self._is_closed:
                        return
                    self._is_asleep = time.monotonic() - idle_since > _AWAKE
                    self._wanted.wait(None if self._is_asleep else _LULL)
                self._is_asleep = self._will_be_woken = False
            if len(self._queue) < _PRESSING and not self._awaited:
                self.lull()
            with self._lock:
                if not self._queue:  # it was closed meanwhile
                    continue
                following = self._queue.popleft()
                self._is_busy = True
            take_worker_seconds()  # those of earlier work of this thread
            begun = time.thread_time()
            report: Report | None
            try:
                report = following.follow()
            except Exception as error:  # noqa: BLE001  # whatever breaks in comparing is no agreement
                _log.exception("a comparison broke")
                report = Lost(f"the comparison broke: {type(error).__name__}")
            try:
                if report is not None:
                    following.report(report)
            except Exception:  # noqa: BLE001  # without this thread nothing would be compared any more
                _log.exception("what a comparison came to could not be reported")
            self.admission.followed(time.thread_time() - begun + take_worker_seconds(), following.size)

    def lull(self) -> None:
        """Waits for a moment in which nobody is served, but not for long."""
        until = time.monotonic() + _LULL
        for each in self._serving:
            serving = each()
            if serving is not None:
                serving.lull(max(0.0, until - time.monotonic()))

    def drain(self, timeout: float) -> bool:
        """Waits until nothing waits; False where that took too long."""
        with self._lock:
            self._awaited += 1
            try:
                self._wanted.notify_all()  # Ctrl-C may have come between `put` and its own notification
                return self._wanted.wait_for(lambda: not self._queue and not self._is_busy, timeout)
            finally:
                self._awaited -= 1

    def close(self, timeout: float = 5.0) -> None:
        """Follows what waits, as long as there is time; the rest is lost."""
        self.drain(timeout)
        with self._lock:
            self._is_closed = True
            left, self._queue = list(self._queue), deque()
            self._wanted.notify_all()
        for following in left:
            following.report(Lost("the process ended before it was followed"))
