"""Locate the configuration of a node, a command or a process.

`VESPER_CONFIG` names the file. Without it, the nearest `vesper.toml` from the working directory upwards is used, and
without one there, the nearest from the folder of the node upwards.

`vesper.load` imports this module on every start: it imports neither `pathlib` nor the readers of the tables before a
file has to be read.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from vesper.config.settings import Config

NAME = "vesper.toml"
VARIABLE = "VESPER_CONFIG"
MAX_BYTES = 1 << 20
"""Size limit of a configuration file."""


def nearest_config(
    node_path: str | os.PathLike[str] | None = None, explicit: str | os.PathLike[str] | None = None
) -> Path | None:
    """Return the configuration file to read; None if there is none.

    `explicit` takes precedence over `VESPER_CONFIG`. Neither of them has to exist: reading reports a missing file.
    """
    found = os.fspath(explicit) if explicit is not None else _nearest_file(node_path)
    if found is None:
        return None
    from pathlib import Path

    return Path(found)


def config_for(
    node_path: str | os.PathLike[str] | None = None, explicit: str | os.PathLike[str] | None = None
) -> Config:
    """Read the nearest configuration, or return the defaults of the working directory.

    Raises `ConfigError` where the file cannot be read or is invalid.
    """
    from pathlib import Path

    from vesper.config.settings import default_config, read_config

    found = nearest_config(node_path, explicit)
    return default_config(Path.cwd()) if found is None else read_config(found)


def may_have_table(node_path: str | os.PathLike[str], table: str) -> bool:
    """Return whether the nearest configuration may contain this table.

    Searches the text for the name, because parsing takes longer than the rest of a warm start. Returns True for a
    file that cannot be read: the reader reports the reason.
    """
    found = _nearest_file(node_path)
    if found is None:
        return False
    try:
        handle = os.open(found, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        # Reading a FIFO or a device may never end: the reader refuses it.
        return not stat.S_ISREG(os.fstat(handle).st_mode) or table.encode() in os.read(handle, MAX_BYTES)
    except OSError:
        return True
    finally:
        os.close(handle)


def _nearest_file(node_path: str | os.PathLike[str] | None) -> str | None:
    named = os.environ.get(VARIABLE)
    if named:
        return named
    found = _upwards_from(os.getcwd())  # noqa: PTH109
    if found is None and node_path is not None:
        found = _upwards_from(os.path.dirname(os.path.abspath(node_path)))  # noqa: PTH100, PTH120
    return found


def _upwards_from(folder: str) -> str | None:
    """Return the nearest `vesper.toml` of this folder or of one above it."""
    folder = os.path.realpath(folder)
    while True:
        file = os.path.join(folder, NAME)  # noqa: PTH118
        if os.path.isfile(file):  # noqa: PTH113
            return file
        parent = os.path.dirname(folder)  # noqa: PTH120
        if parent == folder:
            return None
        folder = parent
