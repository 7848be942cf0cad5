"""The keeper: wakes waiting runs when their time is over, and resumes woken and started runs.

One thread of a Host polls the journal. It sleeps until the next due time, at most `_POLL_SECONDS`, so that it also
finds runs that another process woke. The clock of the journal's store decides what is due: a keeper is never early,
and a clock that jumps delays or hastens a wake but neither loses nor repeats it. Each resumed run has a thread, up to
`[keeper] threads`; runs beyond that stay in the journal, for this keeper or another.
"""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from vesper.host.background_work import WorkState
from vesper.journal.journal import JournalError

if TYPE_CHECKING:
    from vesper.host.host import Host
    from vesper.host.prepared import Recovered

_log = logging.getLogger("vesper.host")
KINDS = ("sleep", "signal", "interrupt")
"""The waits that a keeper ends."""
STARTED = ""
"""The queue of runs that `node.start_run` began; keepers serve it."""
_POLL_SECONDS = 0.2
_LEAST_PAUSE_SECONDS = 0.01
_LOST_PAUSE_SECONDS = 0.05
"""Pause where another process woke what was due."""
_RETRY_SECONDS = 1.0
"""Pause after a failure of the journal."""
_SERVER_SECONDS = 0.5
"""Interval at which a server is asked whatever the clock of this process says: its own decides."""
_WAKE_BATCH = 200
"""Runs that one transaction wakes."""


class Keeper:
    """The keeper of one Host; it implements `vesper.host.background_work`."""

    def __init__(self, host: Host, threads: int) -> None:
        self._host = host
        self._threads = threads
        self._lock = threading.Lock()
        self._under_way: dict[str, threading.Thread] = {}
        self._noticed = threading.Event()
        self._is_stopping = False
        self._thread: threading.Thread | None = None
        self._problem: str | None = None
        self._woken = self._resumed = 0
        self._has_server = not host.config.journal.dsn.startswith("sqlite:")
        self._asked_at = 0.0

    @property
    def is_running(self) -> bool:
        return self._thread is not None and not self._is_stopping

    def start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._repeat, name="vesper-keeper", daemon=True)
                self._thread.start()

    def stop(self, timeout: float | None = None) -> bool:
        """Wake and resume no more runs, and wait for resumed ones. False if some continue after `timeout` seconds."""
        self._is_stopping = True
        self._noticed.set()
        until = None if timeout is None else monotonic() + timeout
        with self._lock:
            threads = [*([] if self._thread is None else [self._thread]), *self._under_way.values()]
        for each in threads:
            if each is not threading.current_thread():
                each.join(None if until is None else max(0.0, until - monotonic()))
        return not any(each.is_alive() for each in threads)

    def state(self) -> WorkState:
        facts = {"woken": self._woken, "resumed": self._resumed, "under_way": len(self._under_way)}
        return WorkState("keeper", self.is_running, self._problem, facts)

    def notice(self) -> None:
        """Poll at once: a run of this process began to wait, was woken or was started."""
        self._noticed.set()

    def keep(self) -> list[Recovered]:
        """Wake all due waits and resume their runs, in this thread."""
        self._wake()
        found = [self._resume(*each) for each in self._ready(_WAKE_BATCH)]
        return [each for each in found if each is not None]

    # -- the thread -------------------------------------------------------------------------------

    def _repeat(self) -> None:
        while not self._is_stopping:
            self._noticed.clear()  # before the poll: what is noticed during it is polled again
            try:
                pause = self._poll()
                self._problem = None
            except Exception as error:  # noqa: BLE001  # logged, and tried again: this thread must not end
                pause = _RETRY_SECONDS
                if self._problem is None:
                    _log.warning("waiting runs are not woken: %s", error, exc_info=not isinstance(error, JournalError))
                self._problem = str(error)
            self._noticed.wait(pause)

    def _poll(self) -> float:
        """Wake and resume; return the seconds until the next poll."""
        due_us, is_lost = self._wake()
        room = self._threads - len(self._under_way)
        if room > 0:
            for execution, node_id in self._ready(room):
                self._begin(execution, node_id)
        if due_us is None:
            return _POLL_SECONDS
        least = _LOST_PAUSE_SECONDS if is_lost else _LEAST_PAUSE_SECONDS
        return min(_POLL_SECONDS, max(least, (due_us - self._host.now_us()) / 1_000_000))

    def _wake(self) -> tuple[int | None, bool]:
        """Wake due waits. Returns the next due time, and whether another process woke those that were due."""
        journal = self._host.journal
        due_us = journal.next_due(list(KINDS))
        is_due = due_us is not None and due_us <= self._host.now_us()
        is_asked = due_us is not None and self._has_server and monotonic() >= self._asked_at + _SERVER_SECONDS
        if not is_due and not is_asked:
            return due_us, False
        self._asked_at, woken = monotonic(), 0
        while found := len(journal.wake_due(_WAKE_BATCH)):
            woken += found
            if found < _WAKE_BATCH:
                break
        self._woken += woken
        return journal.next_due(list(KINDS)), is_due and not woken

    def _ready(self, room: int) -> list[tuple[str, str]]:
        """Return up to `room` woken and started runs, each with its node.

        The order differs between processes: all keepers see these runs, and few should try one of them first.
        """
        journal, deferred = self._host.journal, self._host._resuming.deferred
        most = 4 * room + len(deferred)
        found = [(each.execution, each.node_id) for each in journal.unfinished(most, is_released=True)]
        started = journal.due("queued", queue=STARTED, limit=most)
        now_us = journal.now_us() if started else 0
        for row in started:
            if row.execution is not None and row.due_us is not None and row.due_us <= now_us:
                found.append((row.execution, row.node_id or ""))
        found = [each for each in found if each[0] not in self._under_way and deferred.is_due(each[0])]
        found.sort(key=lambda each: hash((os.getpid(), each[0])))
        return found[:room]

    def _begin(self, execution: str, node_id: str) -> None:
        def work() -> None:
            try:
                if self._resume(execution, node_id) is not None:
                    self._resumed += 1
            finally:
                with self._lock:
                    self._under_way.pop(execution, None)
                self._noticed.set()

        thread = threading.Thread(target=work, name="vesper-resumed", daemon=True)
        with self._lock:
            if not self._is_stopping:
                thread.start()  # before it is noted: a start that fails leaves nothing; the thread waits for the lock
                self._under_way[execution] = thread

    def _resume(self, execution: str, node_id: str) -> Recovered | None:
        """Take a run over and drive it. None where another process was faster, or the Host is closed."""
        from vesper.host.host import HostClosed

        with suppress(HostClosed):
            return self._host._resuming.attempt(execution, node_id, self._host.config.recovery.engine, is_left=False)
        return None
