"""The Host of nodes that were loaded without one: one for each configuration and process."""

from __future__ import annotations

import atexit
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from vesper.effects.per_process import PerProcess

if TYPE_CHECKING:
    from vesper.host.host import Host

_hosts: dict[tuple[int, str | None], Host] = {}
_lock = PerProcess(threading.Lock)


def default_host(node_path: str) -> Host:
    """The Host of the nearest `vesper.toml`: from the working directory upwards, or else from the node's file. Where
    there is none, nothing is granted."""
    from vesper.host.config import find_config, read_config
    from vesper.host.host import Host

    found = find_config() or find_config(Path(node_path).parent)
    name = (os.getpid(), None if found is None else str(found.resolve()))
    with _lock.get():
        host = _hosts.get(name)
        if host is None or host.is_closed:
            host = _hosts[name] = Host(None if found is None else read_config(found))
        return host


@atexit.register
def close_hosts() -> None:
    """Waits for what still runs in the background; what takes longer than a lease is for recovery."""
    for (pid, _), host in list(_hosts.items()):
        if pid == os.getpid():
            host.close(timeout=host.config.journal.lease)
    _hosts.clear()
