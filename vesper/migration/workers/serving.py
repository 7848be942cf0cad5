"""The server side of `child`: the setup of the process, and its message loop.

Standard output is redirected to standard error, so that no print reaches the pipe.
"""

from __future__ import annotations

import fcntl
import os
import resource
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from vesper.journal.errors import TooLarge
from vesper.journal.typed_json import decode, encode_text
from vesper.migration.workers.child import HEADER, JSON_CALL, JSON_FAULT, MAX_REPLY_BYTES, OUT_OF_MEMORY

_MIB = 1 << 20
_READ_BYTES = 1 << 16
_MAX_FILE_BYTES = _MIB
"""Maximum bytes of any file that a child writes, such as its standard error."""


def end_with_parent(life: int) -> None:
    """Let the kernel end this process when the other end of the pipe closes.

    A waiting thread could not run while an engine holds the GIL. `PR_SET_PDEATHSIG` watches the thread that started the
    process, which may end earlier.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)  # the default action ends the process
    is_leader = os.getpgrp() == os.getpid()
    fcntl.fcntl(life, fcntl.F_SETOWN, -os.getpid() if is_leader else os.getpid())  # the whole process group
    fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
    poll = select.poll()
    poll.register(life, select.POLLIN)
    if poll.poll(0):  # it closed before the signal was set up
        os._exit(0)


def limit_resources(memory_mib: int | None) -> None:
    """Limit the process: no core files, which would contain inputs, small files, and `memory_mib` more memory."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _lower(resource.RLIMIT_FSIZE, _MAX_FILE_BYTES)
    if memory_mib is not None:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        _lower(resource.RLIMIT_AS, pages * resource.getpagesize() + memory_mib * _MIB)
    with suppress(OSError):  # forbidden in some containers; the limits above hold nevertheless
        # Under memory pressure the kernel ends this process rather than the one that serves callers.
        Path("/proc/self/oom_score_adj").write_text("800", encoding="ascii")


def _lower(limit: int, value: int) -> None:
    _, most = resource.getrlimit(limit)
    if most not in (resource.RLIM_INFINITY, -1) and most < value:
        value = most
    resource.setrlimit(limit, (value, value))


def open_pipes() -> tuple[int, int]:
    """Return the descriptors of messages and of replies, and keep prints away from both."""
    questions, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return questions, answers


def serve(
    pipes: tuple[int, int],
    answer: Callable[[Any, Callable[[object], None]], object],
    answer_json: Callable[[bytes], bytes] | None = None,
) -> None:
    """Reply to messages until the pipe closes.

    `answer` gets the message and a function that sends a notice before the reply. `answer_json` gets the messages that
    begin with `JSON_CALL`, and returns the reply as it is sent.
    """
    questions, answers = _Reader(pipes[0]), pipes[1]
    number = 0

    def send(value: object) -> None:
        text = _encode_reply(value)
        _write(answers, HEADER.pack(len(text), number) + text)

    try:
        while (header := questions.read(HEADER.size)) is not None:
            length, number = HEADER.unpack(header)
            question = questions.read(length)
            if question is None:
                return
            if answer_json is not None and question.startswith(JSON_CALL):
                text = _guarded_json(answer_json, question[len(JSON_CALL) :])
                _write(answers, HEADER.pack(len(text), number) + text)
            else:
                send(answer(decode(question), send))
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except BrokenPipeError:
        return  # the parent has ended


def _guarded_json(answer_json: Callable[[bytes], bytes], question: bytes) -> bytes:
    try:
        text = answer_json(question)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # any error is reported to the parent
        return JSON_FAULT + f"{type(error).__name__}: {error}"[:2000].encode(errors="replace")
    return text if len(text) <= MAX_REPLY_BYTES else JSON_FAULT + b"the outcome is too large to send"


def _encode_reply(value: object) -> bytes:
    """Encode a reply. One over the limit is replaced by a notice: its size is no engine fault."""
    try:
        text = encode_text(value).encode()
        if len(text) <= MAX_REPLY_BYTES:
            return text
        unfit = f"it has {len(text):,} bytes, more than {MAX_REPLY_BYTES:,}"
    except TooLarge as error:
        unfit = str(error)
    return encode_text({"unfit": unfit}).encode()


class _Reader:
    """Reads messages, which mostly arrive whole: one system call for the header and the text."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._ready = b""

    def read(self, count: int) -> bytes | None:
        """Read exactly `count` bytes; None where the other side has closed."""
        if len(self._ready) < count:
            found = bytearray(self._ready)
            while len(found) < count:
                part = os.read(self._file, max(_READ_BYTES, min(1 << 20, count - len(found))))
                if not part:
                    return None
                found += part
            self._ready = bytes(found)
        ready = self._ready
        self._ready = ready[count:]
        return ready[:count]


def _write(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
