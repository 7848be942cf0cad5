"""One forked worker: its limits, its link, and the checks of its parent.

An engine that hangs in native code holds the GIL, so only another process can notice and end it.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

from vesper.verify.workers.crashes import Crash, Ending, crash_of, ending_of_status, hang_ending, memory_ending
from vesper.verify.workers.watch import Watch

_MIB = 1 << 20
_IDLE_FACTOR = 2.5
"""Factor on the time limit of a worker that does not compute: the machine may be busy."""
_COMPUTED_SHARE = 0.9
_MAX_ERROR_BYTES = 20_000
_TRACEBACK_SECONDS = 0.1
"""Time in which a hanging worker writes where it is."""
_PR_SET_PDEATHSIG = 1
_ALLOCATIONS = 50_000
"""Allocations between two collections: generating Python makes many objects and few cycles."""


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Limits of one execution in a worker."""

    seconds: float = 10.0
    mebibytes: int = 2_048


class WorkerProcess:
    """A worker, from the side of its parent."""

    def __init__(
        self, serve: Callable[[Connection, Watch], None], limits: WorkerLimits, others: Iterable[Connection]
    ) -> None:
        """Fork a worker that runs `serve`. `others` are links of this process that the worker must not hold open."""
        self._limits = limits
        self._watch = Watch()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # `_close` closes it
        self.link, theirs = Pipe()
        self._position = (-1, 0.0, 0.0)
        self._first_bytes = _resident_bytes(os.getpid())
        """Resident size of this process, whose pages the worker inherits."""
        with warnings.catch_warnings():
            # Threads of the parent hold no lock that a worker needs.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        if self._pid == 0:
            self._run(serve, theirs, [*others, self.link])
        theirs.close()

    def _run(self, serve: Callable[[Connection, Watch], None], link: Connection, others: list[Connection]) -> None:
        status = 1
        try:
            for each in others:
                each.close()
            _set_up(self._errors.fileno(), self._limits)
            serve(link, self._watch)
            status = 0
        except BaseException:  # noqa: BLE001  # a forked copy must never continue the code of its parent
            os.write(2, traceback.format_exc().encode(errors="backslashreplace"))
        finally:
            os._exit(status)

    def overrun(self) -> Ending | None:
        """Return the limit that the worker exceeds now."""
        beats, seconds = self._watch.position()
        seconds = seconds or self._limits.seconds  # it has not begun its first task
        now, computed = time.monotonic(), _processor_seconds(self._pid)
        if beats != self._position[0]:
            self._position = (beats, now, computed)
            return memory_ending(self._limits.mebibytes) if self._is_too_large() else None
        _, since, before = self._position
        has_computed = computed - before >= _COMPUTED_SHARE * seconds
        if now - since >= seconds * (1.0 if has_computed else _IDLE_FACTOR):
            return hang_ending(seconds)
        return memory_ending(self._limits.mebibytes) if self._is_too_large() else None

    def is_grown(self) -> bool:
        """Return whether the process holds so much memory that a later task might hit its limit."""
        return self._added_bytes() > self._limits.mebibytes * _MIB // 2

    def crash(self, ending: Ending | None = None, errors: str = "") -> Crash:
        """End the worker and return its crash. Without an ending, the exit status determines one."""
        if ending is not None and ending.kind == "hang":
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGUSR1)
            time.sleep(_TRACEBACK_SECONDS)
        status = self.end(is_killed=ending is not None)
        self._errors.seek(0)
        written = self._errors.read()[-_MAX_ERROR_BYTES:].decode(errors="replace")
        ending = ending or ending_of_status(status, written, self._limits.mebibytes)
        crash = crash_of(ending, self._watch.activity(), errors or written)
        self._close()
        return crash

    def end(self, is_killed: bool = True) -> int:
        """Wait until the worker has ended, which is killed first if `is_killed`, and return its exit status."""
        if is_killed:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        _, status = os.waitpid(self._pid, 0)
        return os.waitstatus_to_exitcode(status)

    def stop(self) -> None:
        """End the worker and free its resources."""
        self.end()
        self._close()

    def _close(self) -> None:
        self.link.close()
        self._errors.close()
        self._watch.close()

    def _is_too_large(self) -> bool:
        # The limit of the process itself is hit first, but for memory that it does not count.
        return self._added_bytes() > 3 * self._limits.mebibytes * _MIB // 2

    def _added_bytes(self) -> int:
        return _resident_bytes(self._pid) - self._first_bytes


def _set_up(errors: int, limits: WorkerLimits) -> None:
    """Prepare the forked process: signals, standard streams, limits."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    nothing = os.open(os.devnull, os.O_RDONLY)
    for given, standard in ((nothing, 0), (errors, 1), (errors, 2)):
        os.dup2(given, standard)
    sys.stdout = sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    faulthandler.enable(2)
    faulthandler.register(signal.SIGUSR1, 2, all_threads=False)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit_memory(limits.mebibytes)
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS)


def clear_errors() -> None:
    """Clear the recorded standard error of this worker, so that a crash shows the output of its own task."""
    os.ftruncate(2, 0)
    os.lseek(2, 0, os.SEEK_SET)


def end_with_parent() -> None:
    """Request that Linux kills this process when its parent ends, even while an engine blocks.

    Does nothing on other systems.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _limit_memory(mebibytes: int) -> None:
    """Limit the private memory that this process may use in addition to its present memory."""
    with suppress(OSError, ValueError):  # where it cannot be limited, the parent watches its size
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
        most = pages * resource.getpagesize() + mebibytes * _MIB
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if hard in (resource.RLIM_INFINITY, -1) or most < hard:
            resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _processor_seconds(pid: int) -> float:
    """Return the processor time of a process; without `/proc`, the time of the monotonic clock."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0
