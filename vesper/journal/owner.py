"""Who owns a run: a name that lets another process of the same machine tell whether the owner still lives.

`host:pid:start:place`. `start` is when the process started, in ticks since the machine did: a pid is used again, the
pair is not. `place` stands for this start of the machine and this namespace of process ids: only where it is the same
can the pid be looked up. Where it differs (another machine, another container) only the lease says that an owner is
gone.
"""

from __future__ import annotations

import os
import socket
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

_PROC = Path("/proc")
_GONE = -1


def this_owner() -> str:
    """The name of this process; another one after a fork."""
    return _owner_of(os.getpid())


@lru_cache(maxsize=1)
def _owner_of(pid: int) -> str:
    host = socket.gethostname().replace(":", "-") or "unknown"
    return f"{host}:{pid}:{_started(pid) or 0}:{_place()}"


def is_dead(owner: str) -> bool:
    """True where the owner is known to be gone; False where it lives or nobody can say."""
    parts = owner.rsplit(":", 3)
    if len(parts) != 4 or parts[3] != _place() or not (parts[1].isdecimal() and parts[2].isdecimal()):
        return False
    pid, start = int(parts[1]), int(parts[2])
    if not 0 < pid <= 1 << 22 or start == 0:
        return False
    try:
        os.kill(pid, 0)  # the signal 0 only asks
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # it is there, and another user's
    started = _started(pid)
    return started == _GONE or (started is not None and started != start)


def _started(pid: int) -> int | None:
    """Field 22 of /proc/PID/stat; the name of the program in front may hold anything, brackets and spaces too. None
    where it cannot be read. A zombie is gone: it will never write again."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat[stat.rindex(")") + 2 :].split()
    return _GONE if fields[0] in "ZX" else int(fields[19])


@lru_cache(maxsize=1)
def _place() -> str:
    try:
        start = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        namespace = (_PROC / "self/ns/pid").readlink()
    except OSError:
        # No such /proc: a place that nobody else is in, so that nobody is taken for dead.
        return sha256(os.urandom(16)).hexdigest()[:12]
    return sha256(f"{start}\n{namespace}".encode()).hexdigest()[:12]
