"""A process of our own that answers one question at a time over pipes, and never outlives the one that started it.

Both sides write typed JSON with its length in front, never a pickle: decoding executes nothing. A frame that is too
long, cannot be decoded or has another number than its question ends the child.
The child has a *life pipe* as well, on which nothing is ever written: the kernel ends the child when the other end
closes, however its starter died and whatever the child was doing (`live_as_long_as`).
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
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from weakref import WeakSet

import vesper
from vesper.journal.errors import JournalError
from vesper.journal.typed_json import decode
from vesper.storage.after_fork import Order, register

OUT_OF_MEMORY = 86
"""The status of a child that met its limit on memory in Python; in Rust it aborts."""
MAX_MESSAGE = 128 << 20
"""Bytes of a question."""
MAX_ANSWER = 64 << 20
"""Bytes of an answer. The longest text of the language has fewer, however it is escaped."""
HEADER = struct.Struct(">IQ")
"""The length of a message, and the number of the question."""
_PART = 1 << 20
_READ = 1 << 16
"""As much as a pipe holds."""
_LOOK = 1000.0
"""Milliseconds between two looks at whether a child still runs, while nothing comes from it."""
_TOLD = 2000
_SAID = "; it said: "
_PATIENCE = 8
"""A child that neither answers nor computes is waited for so many times as long as one that computes: a machine may be
busy with others, or stopped."""
_FIRST_DELAY_SECONDS = 0.1
_MAX_DELAY_SECONDS = 30.0
_DEATHS_WINDOW_SECONDS = 600.0
_CHILDREN: WeakSet[Child] = WeakSet()


class ChildDied(Exception):
    """The child is gone; the message says how it went, and what it said at last."""

    @property
    def how(self) -> str:
        """For logs: without what it said, which may hold values of inputs."""
        return str(self).partition(_SAID)[0]


class ChildLate(ChildDied):
    """It did not answer in time, and was killed."""


class Child:
    """One process. One thread at a time may ask it."""

    def __init__(self, module: str, *arguments: str) -> None:
        with ExitStack() as unless_it_runs, ExitStack() as of_the_child:
            try:
                self._errors = unless_it_runs.enter_context(tempfile.TemporaryFile())
                life, self._life = os.pipe()
                of_the_child.callback(os.close, life)
                unless_it_runs.callback(os.close, self._life)
                # No pipe: one that the child closes kills a process that has SIGPIPE as the system has it.
                self._to, questions = socket.socketpair()
                unless_it_runs.enter_context(self._to)
                of_the_child.enter_context(questions)
                self._process: subprocess.Popen[bytes] = subprocess.Popen(
                    [_interpreter(), "-P", "-m", module, str(life), *arguments],
                    stdin=questions.fileno(),
                    stdout=subprocess.PIPE,
                    stderr=self._errors,
                    pass_fds=(life,),
                    # What is typed at a terminal is not meant for it; and what it starts is ended with it.
                    start_new_session=True,
                    bufsize=0,
                    env=_environment(),
                )
            except OSError as error:
                raise ChildDied(f"no process could be started: {error}") from None
            unless_it_runs.pop_all()
        assert self._process.stdout is not None
        self._from = self._process.stdout.fileno()
        self._to.setblocking(False)
        os.set_blocking(self._from, False)
        self._ending = threading.RLock()
        """A finaliser may end a child while the same thread does."""
        self._read_so_far = bytearray()
        """What came and was not asked for yet. To read the length of an answer and then the answer would let go of
        Python's lock twice, and each time whoever waits for it goes first."""
        self._number = 0
        """Of the last question."""
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
        """The answer. Raises `ChildDied`, and `ChildLate` after so many seconds of computing."""
        self.send(question)
        return self.receive(seconds)

    def send(self, question: bytes) -> None:
        if not self._is_ours:
            raise ChildDied("this process did not start it: it was forked from the one that did")
        if len(question) > MAX_MESSAGE:
            raise ValueError(f"a message has at most {MAX_MESSAGE:,} bytes, not {len(question):,}")
        self._number += 1
        rest = memoryview(HEADER.pack(len(question), self._number) + question)
        clock: _Clock | None = None
        while rest:
            try:
                rest = rest[self._to.send(rest[:_PART], socket.MSG_NOSIGNAL) :]
            except BlockingIOError:
                clock = clock or _Clock(self.pid, 5.0)
                self._wait(self._to.fileno(), select.POLLOUT, clock)
            except OSError:
                raise self._gone() from None

    def receive(self, seconds: float) -> Any:
        clock = _Clock(self.pid, seconds)
        self._read(HEADER.size, clock)
        length, number = HEADER.unpack_from(self._read_so_far)
        if length > MAX_ANSWER:
            raise self._malformed(f"it has {length:,} bytes, more than {MAX_ANSWER:,}")
        if number != self._number:
            raise self._malformed("it belongs to another question")
        end = HEADER.size + length
        self._read(end, clock)
        text = bytes(self._read_so_far[HEADER.size : end])
        del self._read_so_far[:end]
        try:
            return decode(text)
        except JournalError as error:
            raise self._malformed(str(error)) from None

    def _malformed(self, why: str) -> ChildDied:
        self.close()
        return ChildDied(f"its answer was malformed, and it was killed: {why}")

    def kill(self) -> None:
        """Ends the child, from any thread, and comes back when it is gone. Whoever waits for its answer finds out, and
        closes it: the pipes are that one's."""
        if self._is_ours:
            self._end()

    def close(self) -> None:
        """Ends the child; comes back when it is gone."""
        if not self._is_ours:
            return
        self._is_closed = True
        self._end()
        self._close_files()

    def forget(self) -> None:
        """In a process that was forked: the child is the other one's, and must see that one's end when it comes."""
        self._is_closed = True
        self._process.returncode = 0  # it is nobody's business here
        self._close_files()

    def _has_ended(self) -> bool:
        """Without waiting for it: until somebody has, its number is that of no other process, and of no other group."""
        if self._process.returncode is not None:
            return True
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def _end(self) -> None:
        """With all that it started: whatever is left would run on, and keep its pipes open."""
        with self._ending:
            if self._process.returncode is not None:
                return
            try:  # where the system, or somebody else, has waited for it already, its number may be another's by now
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                self._process.returncode = 0
                return
            for kill in (os.killpg, os.kill):  # it may have left its group
                with suppress(ProcessLookupError):
                    kill(self.pid, signal.SIGKILL)
            try:
                _, status = os.waitpid(self.pid, 0)
            except ChildProcessError:  # in a process that lets the system wait for its children
                status = 0
            self._process.returncode = os.waitstatus_to_exitcode(status)

    def _close_files(self) -> None:
        os.close(self._life)
        for each in (self._to, self._process.stdout, self._errors):
            assert each is not None
            each.close()

    def _read(self, count: int, clock: _Clock) -> None:
        """Reads until so many bytes are there, and what else has come by then."""
        while len(self._read_so_far) < count:
            self._wait(self._from, select.POLLIN, clock)
            try:
                part = os.read(self._from, _READ)
            except BlockingIOError:
                continue
            if not part:
                raise self._gone()
            self._read_so_far += part

    def _wait(self, file: int, event: int, clock: _Clock) -> None:
        poll = select.poll()
        poll.register(file, event)
        while True:
            # Also where something comes all the time: an answer may come byte by byte, for weeks.
            if clock.is_over():
                self.close()
                raise ChildLate(f"it did not answer within {clock.seconds:g} s of computing, and was killed")
            if poll.poll(min(max(1.0, clock.left() * 1000), _LOOK)):
                return
            if self._has_ended() and not poll.poll(0):  # what it started may have its pipe
                raise self._gone()

    def _gone(self) -> ChildDied:
        """It closed its end: it is dead, or about to be."""
        end = time.monotonic() + 5
        while not self._has_ended():
            if time.monotonic() > end:
                self.close()
                return ChildDied("it closed its pipe and did not end")
            time.sleep(0.002)
        self._end()
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - _TOLD))
        said = self._errors.read().decode(errors="replace").strip()
        self.close()
        return ChildDied(_how(self._process.returncode) + (f"{_SAID}{said}" if said else ""))


class _Clock:
    """How long a child may still take. What counts is the time that it computes: a machine that is busy with others
    does not make an engine hang. A child that waits for ever is not waited for."""

    def __init__(self, pid: int, seconds: float) -> None:
        self.seconds = seconds
        self._pid = pid
        self._computed = _computed(pid)
        self._began = time.monotonic()

    def left(self) -> float:
        # Nobody has to look before this: a thread computes no faster than time goes by.
        return self.seconds - max(_computed(self._pid) - self._computed, 0.0)

    def is_over(self) -> bool:
        waited = time.monotonic() - self._began
        return waited >= self.seconds * _PATIENCE or (waited >= self.seconds and self.left() <= 0)


class Restarts:
    """When a child that died is started again: after twice the delay each time, and after too many deaths never."""

    def __init__(self, max_deaths: int) -> None:
        self._max_deaths = max_deaths
        self._deaths: deque[float] = deque()
        self._next = 0.0
        self.is_given_up = False

    def count_death(self) -> None:
        now = time.monotonic()
        self._deaths.append(now)
        while self._deaths[0] < now - _DEATHS_WINDOW_SECONDS:
            self._deaths.popleft()
        self._next = now + min(_MAX_DELAY_SECONDS, _FIRST_DELAY_SECONDS * 2 ** (len(self._deaths) - 1))
        self.is_given_up = self.is_given_up or len(self._deaths) > self._max_deaths

    def delay(self) -> float | None:
        """Seconds until a child may be started; None where none may."""
        return None if self.is_given_up else max(0.0, self._next - time.monotonic())


def _computed(pid: int) -> float:
    """The processor time of a process; that it is gone is found elsewhere."""
    try:
        return time.clock_gettime(~pid << 3 | 2)  # clock_getcpuclockid(3)
    except OSError:
        return 0.0


def _how(status: int) -> str:
    if status == OUT_OF_MEMORY:
        return "it ran out of the memory that it may use"
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        hint = " (somebody killed it; where nobody did, the system was out of memory)" if name == "SIGKILL" else ""
        return f"it was ended by {name}{hint}"
    return f"it ended with status {status}"


def _interpreter() -> str:
    """Where Python is embedded in another program, `sys.executable` may be that one."""
    if sys.executable and "py" in Path(sys.executable).name:
        return sys.executable
    return str(Path(sys.exec_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}")


def _environment() -> dict[str, str]:
    """The child imports the Vesper that its starter runs, from wherever that has it."""
    root = str(Path(vesper.__file__).parents[1])
    found = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": root + (os.pathsep + found if found else "")}


def forget_children() -> None:
    for child in list(_CHILDREN):
        child.forget()
    _CHILDREN.clear()


register(order=Order.WORKERS, after_in_child=forget_children)
