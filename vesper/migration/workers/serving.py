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
from vesper.migration.workers.child import HEADER, MAX_REPLY_BYTES, OUT_OF_MEMORY

_MIB = 1 << 20
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


def serve(answer: Callable[[Any, Callable[[object], None]], object]) -> None:
    """Reply to messages until the pipe closes.

    `answer` gets the message and a function that sends a notice before the reply.
    """
    questions, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)

    number = 0

    def send(value: object) -> None:
        text = _encode_reply(value)
        _write(answers, HEADER.pack(len(text), number) + text)

    try:
        while (header := _read(questions, HEADER.size)) is not None:
            length, number = HEADER.unpack(header)
            question = _read(questions, length)
            if question is None:
                return
            send(answer(decode(question), send))
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except BrokenPipeError:
        return  # the parent has ended


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


def _read(file: int, count: int) -> bytes | None:
    """Read exactly `count` bytes; None where the other side has closed."""
    found = bytearray()
    while len(found) < count:
        part = os.read(file, min(1 << 20, count - len(found)))
        if not part:
            return None
        found += part
    return bytes(found)


def _write(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
