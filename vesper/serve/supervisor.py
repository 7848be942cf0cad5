"""The supervisor of a server: binds the socket, starts workers, replaces dead ones, reloads and drains.

SIGTERM and SIGINT drain, a second one ends at once; SIGHUP reloads. The supervisor answers no request itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import vesper
from vesper.observe.metrics import count, use_directory
from vesper.serve.control import Channel, Options
from vesper.values.generated.metrics import WORKERS_DEATHS
from vesper.values.vesper_error import VesperError

_log = logging.getLogger("vesper.serve")
FIRST_DELAY_SECONDS = 0.1
MAX_DELAY_SECONDS = 30.0
_MIN_UPTIME_SECONDS = 1.0
_START_SECONDS = 120.0
_BEYOND_GRACE_SECONDS = 10.0
"""Time of workers to write journal and evidence after their grace."""
_COMPANION_SECONDS = 2.0
"""Time of a companion to end."""
_POLL_SECONDS = 1.0
_BACKLOG = 4_096
_WORKER = ("-P", "-m", "vesper.serve.worker")
_SO_ATTACH_FILTER = 26
VARIABLE = "VESPER_METRICS_DIR"
"""Environment variable with the folder of counters."""


class NotServed(VesperError):
    """The server cannot start."""


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises `NotServed`."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
    except (OSError, UnicodeError) as error:
        reason = "this is no name of a host" if isinstance(error, UnicodeError) else error.strerror
        raise NotServed(f"{host} port {port} cannot be used: {reason}") from None
    return listener


class Companion:
    """A process beside the workers: started with them and replaced when it dies. Workers never wait for it."""

    def __init__(self, name: str, command: Sequence[str], watched: Callable[[], object] | None = None) -> None:
        """The process must end when its standard input closes. A change of `watched` restarts it."""
        self._name = name
        self._command = command
        self._watched = watched
        self._seen = None if watched is None else watched()
        self._process: subprocess.Popen[bytes] | None = None
        self._delay = FIRST_DELAY_SECONDS / 2
        self._started = self._due = 0.0
        self._kill_at: float | None = None
        """End of the time of a process that restarts."""

    def check(self) -> None:
        """Start the process if it is due, and record its end. Kill it if it does not end in time."""
        now = time.monotonic()
        if self._watched is not None and (found := self._watched()) != self._seen:
            self._seen = found
            self.restart()
        if self._process is not None and (code := self._process.poll()) is not None:
            is_asked = self._kill_at is not None
            self._forget()
            if not is_asked:
                self._retry(now, f"ended with code {code}")
        elif self._process is not None and self._kill_at is not None and now >= self._kill_at:
            self._process.kill()
        if self._process is None and now >= self._due:
            self._start(now)

    def restart(self) -> None:
        """End the process without waiting for that; the next one starts after it."""
        if self._process is not None and self._kill_at is None:
            self._process.terminate()
            self._kill_at = time.monotonic() + _COMPANION_SECONDS

    def _start(self, now: float) -> None:
        self._started = now
        try:
            with _block_signals():
                self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, env=_environment())
        except OSError as error:  # such as too many processes
            self._retry(now, f"cannot start: {error}")

    def _retry(self, now: float, why: str) -> None:
        is_healthy = now - self._started >= max(_MIN_UPTIME_SECONDS, 2 * self._delay)
        self._delay = FIRST_DELAY_SECONDS if is_healthy else min(MAX_DELAY_SECONDS, 2 * self._delay)
        self._due = now + self._delay
        _log.error("the %s %s; the next one starts in %g s", self._name, why, self._delay)

    def end(self) -> None:
        """End the process, and kill it if it does not end in time."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_COMPANION_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._forget()

    def _forget(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._process = self._kill_at = None


class Slot:
    """The place of one worker: its process, or the time of its next start."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.process: subprocess.Popen[bytes] | None = None
        self.channel: Channel | None = None
        self.is_ready = False
        self.due = 0.0
        """Time of the next start, where there is no process."""
        self._delay = FIRST_DELAY_SECONDS / 2
        self._since = 0.0
        """When the process was started, and later when it became ready."""

    def start(self, command: Sequence[str], listener: socket.socket, options: Options) -> None:
        ours, theirs = socket.socketpair()
        with theirs, _block_signals():
            self.process = subprocess.Popen(
                [*command, str(listener.fileno()), str(theirs.fileno()), options.to_json()],
                pass_fds=(listener.fileno(), theirs.fileno()),
                stdin=subprocess.DEVNULL,
                env=_environment(),
            )
        self.channel = Channel(ours)
        self.is_ready = False
        self._since = time.monotonic()

    def ready(self) -> None:
        self.is_ready = True
        self._since = time.monotonic()

    @property
    def is_stuck(self) -> bool:
        """Return whether the worker has not become ready in time."""
        return self.process is not None and not self.is_ready and time.monotonic() - self._since > _START_SECONDS

    def send(self, kind: str) -> bool:
        """Send a message; return False if the worker is gone."""
        try:
            if self.channel is not None:
                self.channel.send(kind=kind)
        except OSError:
            return False
        return self.channel is not None

    def ended(self) -> float:
        """Remove the ended process; return the delay of the next start.

        The delay doubles if the worker was up for less than twice the last delay, and is reset otherwise.
        """
        up = time.monotonic() - self._since if self.is_ready else 0.0
        is_healthy = up >= max(_MIN_UPTIME_SECONDS, 2 * self._delay)
        self._delay = FIRST_DELAY_SECONDS if is_healthy else min(MAX_DELAY_SECONDS, 2 * self._delay)
        self.due = time.monotonic() + self._delay
        self.forget()
        return self._delay

    def forget(self) -> None:
        if self.channel is not None:
            self.channel.close()
        self.process = self.channel = None
        self.is_ready = False


class Supervisor:
    def __init__(
        self,
        listener: socket.socket,
        options: Options,
        workers: int,
        on_ready: Callable[[int], None],
        watched: Callable[[], object] | None = None,
        command: Sequence[str] = (sys.executable, *_WORKER),
        companion: Companion | None = None,
    ) -> None:
        """`on_ready` gets the number of nodes once all workers are up. A change of `watched` reloads."""
        self._listener = listener
        self._options = options
        self._slots = [Slot(n) for n in range(workers)]
        self._on_ready: Callable[[int], None] | None = on_ready
        self._watched = watched
        self._seen = None if watched is None else watched()
        self._command = command
        self._companion = companion
        self._signals: list[int] = []
        self._first_reloaded: Slot | None = None
        """The worker whose answer decides whether the others reload, too."""
        self._has_begun = False
        """True once a worker was ready: from then on, dead workers are replaced."""

    def run(self) -> int:
        """Serve until a signal ends it; return the exit code. Raises `NotServed` if the first worker cannot serve."""
        with self._collect_signals() as wakes:
            try:
                # The first one alone: it fills the caches of compiled nodes, and finds every mistake once.
                self._slots[0].start(self._command, self._listener, self._options)
                while signal.SIGTERM not in self._signals:
                    self._handle_events(wakes)
            finally:
                code = self._end(wakes)
        return code

    @contextlib.contextmanager
    def _collect_signals(self) -> Iterator[socket.socket]:
        """Collect signals, each of which wakes the socket."""
        wakes, waking = socket.socketpair()
        waking.setblocking(False)
        handlers: dict[int, Any] = {}
        before = signal.set_wakeup_fd(waking.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            handlers[number] = signal.signal(number, self._catch)
        try:
            yield wakes
        finally:
            signal.set_wakeup_fd(before)
            for caught, handler in handlers.items():
                signal.signal(caught, handler)
            wakes.close()
            waking.close()

    def _catch(self, number: int, _: object) -> None:
        self._signals.append(signal.SIGTERM if number == signal.SIGINT else number)

    def _handle_events(self, wakes: socket.socket) -> None:
        """Wait for the next events and handle them."""
        self._wait(wakes)
        for slot in self._slots:
            if slot.process is not None and slot.process.poll() is not None:
                self._replace(slot, slot.process.returncode)
            elif slot.is_stuck and slot.process is not None:
                _log.error("worker %s is not ready after %g s: it is killed", slot.process.pid, _START_SECONDS)
                slot.process.kill()
        if self._is_reload_due():
            self._reload()
        if self._has_begun:
            for slot in self._slots:
                if slot.process is None and time.monotonic() >= slot.due:
                    slot.start(self._command, self._listener, self._options)
            if self._companion is not None:
                self._companion.check()

    def _wait(self, wakes: socket.socket) -> None:
        channels = {slot.channel: slot for slot in self._slots if slot.channel is not None}
        due = [slot.due - time.monotonic() for slot in self._slots if slot.process is None and self._has_begun]
        seconds = max(0.0, min([*due, _POLL_SECONDS]))
        awaited: list[socket.socket | Channel] = [wakes, *channels]
        ready, _, _ = select.select(awaited, [], [], seconds)
        if wakes in ready:
            wakes.recv(4096)
        for channel, slot in channels.items():
            if channel in ready:
                for message in channel.receive() or ():
                    self._handle(slot, message)

    def _handle(self, slot: Slot, message: dict[str, Any]) -> None:
        assert slot.process is not None
        match message["kind"]:
            case "ready":
                slot.ready()
                self._has_begun = True
                if self._on_ready is not None and all(each.is_ready for each in self._slots):
                    self._on_ready(message["nodes"])
                    self._on_ready = None
            case "failed" if not self._has_begun:
                raise NotServed(message["why"])
            case "failed":
                _log.error("worker %s cannot serve: %s", slot.process.pid, message["why"])
            case "loaded":
                _log.info("worker %s serves %s nodes in a new epoch", slot.process.pid, message["nodes"])
                if slot is self._first_reloaded:
                    self._first_reloaded = None
                    for each in self._slots:
                        if each is not slot:
                            each.send("reload")
            case "kept":
                _log.error("the reload failed, and the old epoch stays: %s", message["why"])
                if slot is self._first_reloaded:
                    self._first_reloaded = None

    def _replace(self, slot: Slot, code: int) -> None:
        assert slot.process is not None
        pid = slot.process.pid
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        if slot.channel is not None:  # its last words, which may say why
            for message in slot.channel.receive() or ():
                self._handle(slot, message)
        if not self._has_begun:
            raise NotServed(f"a worker ended with {how} before it was ready; the lines above may say why")
        delay = slot.ended()
        _log.error("worker %s ended with %s; the next one starts in %g s", pid, how, delay)
        count(WORKERS_DEATHS, ("serve",))
        if slot is self._first_reloaded:
            self._first_reloaded = None
            self._reload()

    # -- reload -----------------------------------------------------------------------------------

    def _is_reload_due(self) -> bool:
        """Return whether workers must reload. SIGHUP also restarts the companion; a change of nodes does not."""
        is_asked = signal.SIGHUP in self._signals
        for number in (signal.SIGHUP, signal.SIGCHLD):
            while number in self._signals:
                self._signals.remove(number)  # in place: a handler may add to the list at any time
        if is_asked and self._companion is not None:
            self._companion.restart()
        if self._watched is not None and (found := self._watched()) != self._seen:
            self._seen = found
            return True
        return is_asked

    def _reload(self) -> None:
        """Let one worker load the files; if it can, the others follow. A starting worker reloads once it is ready."""
        slots = sorted(self._slots, key=lambda each: not each.is_ready)
        self._first_reloaded = next((each for each in slots if each.send("reload")), None)

    # -- the end ----------------------------------------------------------------------------------

    def _end(self, wakes: socket.socket) -> int:
        """Drain all workers; return 1 if one of them had to be killed."""
        self._signals.clear()
        _log.info("the server ends: workers answer the requests that they have, within %g s", self._options.grace)
        refuse_new_connections(self._listener)
        self._listener.close()
        processes = [each.process for each in self._slots if each.process is not None]
        for process in processes:
            process.terminate()
        if self._companion is not None:
            self._companion.end()
        until = time.monotonic() + self._options.grace + _BEYOND_GRACE_SECONDS
        while any(each.poll() is None for each in processes):
            left = until - time.monotonic()
            if signal.SIGTERM in self._signals or left <= 0:
                break
            if select.select([wakes], [], [], min(left, _POLL_SECONDS))[0]:
                wakes.recv(4096)
        killed = [each for each in processes if each.poll() is None]
        for process in killed:
            _log.warning("worker %s has not ended: it is killed, and recovery finishes its runs", process.pid)
            process.kill()
            process.wait()
        for slot in self._slots:
            slot.forget()
        return 1 if killed else 0


def _environment() -> dict[str, str]:
    """Return the environment in which a child process imports this installation of Vesper."""
    root = str(Path(vesper.__file__).parents[1])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}


@contextlib.contextmanager
def _block_signals() -> Iterator[None]:
    """Block terminal signals in started processes, which a terminal sends to all processes of a command."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGHUP))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def shared_metrics(directory: Path | None) -> Iterator[None]:
    """Let this process and its workers count in one folder: the configured one, or a temporary one."""
    with contextlib.ExitStack() as stack:
        if directory is None and VARIABLE not in os.environ:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vesper-metrics-")))
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            os.environ[VARIABLE] = str(directory)
            use_directory(directory)
        yield


def refuse_new_connections(listener: socket.socket) -> None:
    """Drop packets that open a connection, so that workers can accept all connections that the kernel has completed.

    Closing a socket resets connections in its backlog. If the kernel has no socket filters, nothing changes.
    """
    # Load byte 13 of the TCP header; of SYN and ACK keep the bits; SYN alone is dropped.
    code = [(0x30, 0, 0, 13), (0x54, 0, 0, 0x12), (0x15, 0, 1, 0x02), (0x06, 0, 0, 0), (0x06, 0, 0, 0xFFFFFFFF)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in code))
    with contextlib.suppress(OSError):
        listener.setsockopt(
            socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HxxxxxxP", len(code), ctypes.addressof(program))
        )
