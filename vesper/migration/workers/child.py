"""A child process that replies to one message at a time and never outlives its parent.

Both sides write length-prefixed typed JSON, never a pickle: decoding executes nothing. A frame that is too long, cannot
be decoded or has the wrong number ends the child. The child also has a *life pipe*, to which nothing is ever written:
the kernel ends the child when the parent's end closes, however the parent died and whatever the child was doing
(`end_with_parent`).
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from weakref import WeakSet

import vesper
from vesper.journal.errors import JournalError
from vesper.journal.typed_json import decode
from vesper.observe.metrics import count
from vesper.storage.after_fork import Order, register
from vesper.values.generated.metrics import WORKERS_DEATHS

OUT_OF_MEMORY = 86
"""Exit status of a child that hit its memory limit in Python; in Rust it aborts."""
MAX_MESSAGE_BYTES = 128 << 20
"""Maximum bytes of a message to the child."""
MAX_REPLY_BYTES = 64 << 20
"""Maximum bytes of a reply. The longest text of the language is shorter, however it is escaped."""
HEADER = struct.Struct(">IQ")
"""Length of a message, and its number."""
JSON_CALL = b"\0json "
"""Begin of a message with the hash of a program and JSON text. No typed JSON begins so; the reply is JSON text."""
JSON_FAULT = b"\0fault "
"""Begin of a reply to such a message that is an engine fault."""
_SEND_BYTES = 1 << 20
_READ_BYTES = 1 << 16
"""Bytes per read: the capacity of a pipe."""
_SHORT_WAIT_MS = 5
_SHORT_TRIES = 60
_POLL_MS = 1000.0
"""Milliseconds between two checks that a silent child still runs."""
_MAX_STDERR_BYTES = 2000
_STDERR_MARK = "; it said: "
_IDLE_FACTOR = 8
"""Factor on the deadline for a child that neither replies nor computes: the machine may be busy or suspended."""
_FIRST_DELAY_SECONDS = 0.1
_MAX_DELAY_SECONDS = 30.0
_DEATHS_WINDOW_SECONDS = 600.0
_CHILDREN: WeakSet[Child] = WeakSet()


class ChildDied(Exception):
    """The child has ended. The message contains its exit status and the end of its standard error."""

    @property
    def how(self) -> str:
        """The cause without the standard error, which may contain inputs. For logs."""
        return str(self).partition(_STDERR_MARK)[0]


class ChildLate(ChildDied):
    """The child missed its deadline and was killed."""


class Child:
    """One child process. Only one thread at a time may call `ask`."""

    def __init__(self, module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        """`environment` replaces the variables of this process."""
        with ExitStack() as unless_it_runs, ExitStack() as of_the_child:
            try:
                self._errors = unless_it_runs.enter_context(tempfile.TemporaryFile())
                life, self._life = os.pipe()
                of_the_child.callback(os.close, life)
                unless_it_runs.callback(os.close, self._life)
                # A socket, not a pipe: writing to a pipe that the child closed raises SIGPIPE, which may end the
                # process.
                self._to, questions = socket.socketpair()
                unless_it_runs.enter_context(self._to)
                of_the_child.enter_context(questions)
                self._process: subprocess.Popen[bytes] = subprocess.Popen(
                    [_interpreter(), "-P", "-m", module, str(life), *arguments],
                    stdin=questions.fileno(),
                    stdout=subprocess.PIPE,
                    stderr=self._errors,
                    pass_fds=(life,),
                    # Keeps terminal signals away from the child, and makes its group killable.
                    start_new_session=True,
                    bufsize=0,
                    env=_environment() if environment is None else environment,
                )
            except OSError as error:
                raise ChildDied(f"no process could be started: {error}") from None
            unless_it_runs.pop_all()
        assert self._process.stdout is not None
        self._from = self._process.stdout.fileno()
        self._to.setblocking(False)
        os.set_blocking(self._from, False)
        self._arrivals = select.poll()
        self._arrivals.register(self._from, select.POLLIN)
        self._ending = threading.RLock()
        """Reentrant: a finaliser may end a child while the same thread does."""
        self._read_so_far = bytearray()
        """Bytes that arrived and are not consumed. Reading the length and then the reply would release the GIL twice,
        and each time another thread would run first."""
        self._number = 0
        """Number of the last message."""
        self._owner = os.getpid()
        self._is_closed = False
        _CHILDREN.add(self)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._is_ours and not self._has_ended()

    @property
    def _is_ours(self) -> bool:
        return not self._is_closed and self._owner == os.getpid()

    def ask(self, question: bytes, seconds: float) -> Any:
        """Send a message and return the reply.

        Raises `ChildDied`, and `ChildLate` after `seconds` of processor time.
        """
        self.send(question)
        return self.receive(seconds)

    def send(self, question: bytes) -> None:
        if not self._is_ours:
            raise ChildDied("this process did not start it: it was forked from the one that did")
        if len(question) > MAX_MESSAGE_BYTES:
            raise ValueError(f"a message has at most {MAX_MESSAGE_BYTES:,} bytes, not {len(question):,}")
        self._number += 1
        rest = memoryview(HEADER.pack(len(question), self._number) + question)
        clock: _Clock | None = None
        while rest:
            try:
                rest = rest[self._to.send(rest[:_SEND_BYTES], socket.MSG_NOSIGNAL) :]
            except BlockingIOError:
                clock = clock or _Clock(self.pid, 5.0)
                self._wait(self._to.fileno(), select.POLLOUT, clock)
            except OSError:
                raise self._death() from None

    def receive(self, seconds: float) -> Any:
        text = self._receive_text(seconds)
        try:
            return decode(text)
        except JournalError as error:
            raise self._reject_reply(str(error)) from None

    def ask_json(self, question: bytes, seconds: float) -> bytes:
        """Send a message that begins with `JSON_CALL` and return the reply as it is. Raises like `ask`."""
        self.send(question)
        return self._receive_text(seconds)

    def _receive_text(self, seconds: float) -> bytes:
        # A short call needs no clock, and asks a few times before it sleeps: to be woken takes as long as such a call.
        if not self._read_so_far:
            arrived = self._arrivals.poll
            if any(arrived(0) for _ in range(_SHORT_TRIES)) or arrived(_SHORT_WAIT_MS):
                with suppress(BlockingIOError):
                    self._read_so_far += os.read(self._from, _READ_BYTES)
        clock = _Clock(self.pid, seconds) if len(self._read_so_far) < HEADER.size else None
        if clock is not None:
            self._read(HEADER.size, clock)
        length, number = HEADER.unpack_from(self._read_so_far)
        if length > MAX_REPLY_BYTES:
            raise self._reject_reply(f"it has {length:,} bytes, more than {MAX_REPLY_BYTES:,}")
        if number != self._number:
            raise self._reject_reply("it belongs to another question")
        end = HEADER.size + length
        if len(self._read_so_far) < end:
            self._read(end, clock or _Clock(self.pid, seconds))
        text = bytes(self._read_so_far[HEADER.size : end])
        del self._read_so_far[:end]
        return text

    def _reject_reply(self, why: str) -> ChildDied:
        self.close()
        return ChildDied(f"its answer was malformed, and it was killed: {why}")

    def kill(self) -> None:
        """End the child from any thread, and wait for its end.

        The thread that waits for a reply gets `ChildDied` and closes the pipes.
        """
        if self._is_ours:
            self._end()

    def close(self) -> None:
        """End the child, wait for its end and close the pipes."""
        if not self._is_ours:
            return
        self._is_closed = True
        self._end()
        self._close_files()

    def forget(self) -> None:
        """Detach from the child after a fork. The child belongs to the parent, and must notice the parent's end."""
        self._is_closed = True
        self._process.returncode = 0  # the parent reaps it
        self._close_files()

    def _has_ended(self) -> bool:
        """Return True where the child has ended, without reaping it.

        INVARIANT: until it is reaped, no other process or group can have its id.
        """
        if self._process.returncode is not None:
            return True
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def _end(self) -> None:
        """Kill the child with its process group. The group would otherwise run on and keep its pipes open."""
        with self._ending:
            if self._process.returncode is not None:
                return
            try:  # the id may be reused where the child was reaped elsewhere
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                self._process.returncode = 0
                return
            for kill in (os.killpg, os.kill):  # the child may have left its group
                with suppress(ProcessLookupError):
                    kill(self.pid, signal.SIGKILL)
            try:
                _, status = os.waitpid(self.pid, 0)
            except ChildProcessError:  # SIGCHLD is ignored, and the kernel reaps children
                status = 0
            self._process.returncode = os.waitstatus_to_exitcode(status)

    def _close_files(self) -> None:
        os.close(self._life)
        for each in (self._to, self._process.stdout, self._errors):
            assert each is not None
            each.close()

    def _read(self, count: int, clock: _Clock) -> None:
        """Read until `count` bytes are buffered; more may be."""
        while len(self._read_so_far) < count:
            self._wait(self._from, select.POLLIN, clock)
            try:
                part = os.read(self._from, _READ_BYTES)
            except BlockingIOError:
                continue
            if not part:
                raise self._death()
            self._read_so_far += part

    def _wait(self, file: int, event: int, clock: _Clock) -> None:
        poll = select.poll()
        poll.register(file, event)
        while True:
            # Checked even while data arrives: a reply may arrive byte by byte.
            if clock.is_over():
                self.close()
                raise ChildLate(f"it did not answer within {clock.seconds:g} s of computing, and was killed")
            if poll.poll(min(max(1.0, clock.left() * 1000), _POLL_MS)):
                return
            if self._has_ended() and not poll.poll(0):  # a grandchild may hold the pipe
                raise self._death()

    def _death(self) -> ChildDied:
        """Return the cause of death of a child that closed its end of the pipe."""
        end = time.monotonic() + 5
        while not self._has_ended():
            if time.monotonic() > end:
                self.close()
                return ChildDied("it closed its pipe and did not end")
            time.sleep(0.002)
        self._end()
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - _MAX_STDERR_BYTES))
        said = self._errors.read().decode(errors="replace").strip()
        self.close()
        return ChildDied(_describe_status(self._process.returncode) + (f"{_STDERR_MARK}{said}" if said else ""))


class _Clock:
    """The remaining time of a child. Processor time counts, because a busy machine does not mean a hanging engine.

    A child that neither computes nor replies is given up as well.
    """

    def __init__(self, pid: int, seconds: float) -> None:
        self.seconds = seconds
        self._pid = pid
        self._processor_seconds = _processor_seconds(pid)
        self._began = time.monotonic()

    def left(self) -> float:
        # A thread uses at most as much processor time as real time, so that no earlier check is needed.
        return self.seconds - max(_processor_seconds(self._pid) - self._processor_seconds, 0.0)

    def is_over(self) -> bool:
        waited = time.monotonic() - self._began
        return waited >= self.seconds * _IDLE_FACTOR or (waited >= self.seconds and self.left() <= 0)


class Restarts:
    """The delays before a dead child is started again.

    Each is twice the last; after too many deaths no child is started.
    """

    def __init__(self, max_deaths: int) -> None:
        self._max_deaths = max_deaths
        self._deaths: deque[float] = deque()
        self._next = 0.0
        self.is_given_up = False

    def count_death(self) -> None:
        count(WORKERS_DEATHS, ("direct",))
        now = time.monotonic()
        self._deaths.append(now)
        while self._deaths[0] < now - _DEATHS_WINDOW_SECONDS:
            self._deaths.popleft()
        self._next = now + min(_MAX_DELAY_SECONDS, _FIRST_DELAY_SECONDS * 2 ** (len(self._deaths) - 1))
        self.is_given_up = self.is_given_up or len(self._deaths) > self._max_deaths

    def delay(self) -> float | None:
        """Return the seconds until a child may be started; None where none may."""
        return None if self.is_given_up else max(0.0, self._next - time.monotonic())


def _processor_seconds(pid: int) -> float:
    """Return the processor time of a process in seconds; 0 where it has ended."""
    try:
        return time.clock_gettime(~pid << 3 | 2)  # clock_getcpuclockid(3)
    except OSError:
        return 0.0


def _describe_status(status: int) -> str:
    if status == OUT_OF_MEMORY:
        return "it ran out of the memory that it may use"
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        hint = " (sent from outside, or the system was out of memory)" if name == "SIGKILL" else ""
        return f"it was ended by {name}{hint}"
    return f"it ended with status {status}"


def _interpreter() -> str:
    """Return the Python to start: where Python is embedded, `sys.executable` may be another program."""
    if sys.executable and "py" in Path(sys.executable).name:
        return sys.executable
    return str(Path(sys.exec_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}")


def _environment() -> dict[str, str]:
    """Return the environment with which the child imports the same Vesper."""
    root = str(Path(vesper.__file__).parents[1])
    found = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": root + (os.pathsep + found if found else "")}


def forget_children() -> None:
    for child in list(_CHILDREN):
        child.forget()
    _CHILDREN.clear()


register(order=Order.WORKERS, after_in_child=forget_children)
