"""A worker that tries to leave its sandbox: each attempt returns what it got, or raises."""

from __future__ import annotations

import ctypes
import mmap
import os
import socket
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vesper.migration.workers.worker_main import Worker, main


def _thread() -> str:
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    return "started"


def _executable() -> str:
    with mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC):
        return "mapped"


def _signal_parent() -> str:
    os.kill(os.getppid(), 0)
    return "signalled"


def _trace() -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, os.getppid(), 0, 0) == -1:
        raise OSError(ctypes.get_errno(), "ptrace")
    return "attached"


def _library() -> str:
    return Path(os.__file__).read_text(encoding="utf-8")[:3]


ATTEMPTS = {
    "read /etc/passwd": lambda: Path("/etc/passwd").read_text(encoding="utf-8")[:4],
    "read its environment": lambda: len(Path("/proc/self/environ").read_bytes()),
    "list the root": lambda: str(next(Path("/").iterdir())),
    "write a file": lambda: Path("/tmp/vesper-escaped").write_text("x", encoding="utf-8"),
    "write beside the library": lambda: Path(os.__file__ + ".x").write_text("x", encoding="utf-8"),
    "make a folder": Path("/tmp/vesper-escaped.d").mkdir,
    "remove a file": Path("/tmp/vesper-canary").unlink,
    "link a file": lambda: os.link(os.__file__, "/tmp/vesper-escaped.l"),
    "make a socket": lambda: str(socket.socket()),
    "make a local socket": lambda: str(socket.socket(socket.AF_UNIX)),
    "make a pair of sockets": lambda: len(socket.socketpair()),
    "fork": os.fork,
    "execute a program": lambda: os.execv("/bin/true", ["true"]),
    "start a thread": _thread,
    "signal the parent": _signal_parent,
    "trace the parent": _trace,
    "map executable memory": _executable,
    "change its user": lambda: os.setuid(65534),
    "raise a limit": lambda: os.setpriority(os.PRIO_PROCESS, 0, -1),
    "change the root": lambda: os.chroot("/"),
    "duplicate a descriptor": lambda: os.dup(0),
}
ALLOWED = {
    "read the library": _library,
    "variables": lambda: sorted(os.environ),
    # The life pipe keeps the number that it had in the parent, which may hold many files.
    "descriptors": lambda: [each for each in range(1 << 16) if _is_open(each)],
}


def _is_open(file: int) -> bool:
    try:
        os.fstat(file)
    except OSError:
        return False
    return True


class EscapingWorker(Worker):
    def _answer(self, question: Mapping[str, Any]) -> dict[str, object]:
        if question["do"] == "try":
            return {"got": (ATTEMPTS | ALLOWED)[question["what"]]()}
        return super()._answer(question)


if __name__ == "__main__":
    main(EscapingWorker(), sys.argv[1:])
