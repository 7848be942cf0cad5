"""The token of a client, from the environment."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from vesper.storage.file_access import read_regular

TOKEN_VARIABLE = "VESPER_KERNEL_TOKEN"
TOKEN_FILE_VARIABLE = "VESPER_KERNEL_TOKEN_FILE"
_MAX_BYTES = 1 << 16

Token = str | Callable[[], str]
"""A token, or a function that returns the one of now."""


def read_token() -> Token | None:
    """Return the token of the environment; one in a file is read anew for each call, since it may expire."""
    path = os.environ.get(TOKEN_FILE_VARIABLE)
    return os.environ.get(TOKEN_VARIABLE) if path is None else lambda: _read_file(Path(path))


def _read_file(path: Path) -> str:
    return read_regular(path, _MAX_BYTES).decode("ascii").strip()
