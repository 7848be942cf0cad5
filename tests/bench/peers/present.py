"""Whether a rival is installed here, and in which version."""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import Any


class NotHere(Exception):
    """A rival is not there; the message says why, for the table."""


def needed(module: str, distribution: str) -> Any:
    """The module. Raises `NotHere`."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise NotHere(f"{distribution} is not installed: {error}") from None


def version(distribution: str) -> str:
    return importlib.metadata.version(distribution)
