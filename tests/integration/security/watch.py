"""Detection of escaped code: files, processes, imports, compilation, modules, environment.

An audit hook cannot be removed, so the process has one, which is active only inside `watched`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CANARY_VARIABLE = "VESPER_CANARY"
CANARY_MODULE = "this"
"""An unused module of the standard library that payloads import."""

_WATCHED = ("open", "exec", "compile", "import", "os.", "subprocess.", "socket.", "ctypes.", "pickle.", "shutil.",
            "code.__new__", "marshal.", "cpython.run_", "builtins.input", "tempfile.", "sqlite3.")  # fmt: skip
_heard: list[str] = []
_listeners: list[None] = []
"""Not empty while a watch is active."""


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if _listeners and event.startswith(_WATCHED):
        _heard.append(f"{event} {str(arguments)[:200]}")


sys.addaudithook(_hook)


class Escaped(AssertionError):
    """Something in a node or its inputs ran as code."""


@contextmanager
def watched(canary: Path) -> Iterator[None]:
    """Fail if the block opens, compiles, imports or starts anything, or touches the canaries."""
    modules, environment = set(sys.modules), dict(os.environ)
    _heard.clear()
    _listeners.append(None)
    try:
        yield
    finally:
        _listeners.pop()
    if _heard:
        raise Escaped(f"during the call: {_heard[:5]}")
    if set(sys.modules) != modules:
        raise Escaped(f"new modules: {sorted(set(sys.modules) - modules)}")
    if dict(os.environ) != environment:
        raise Escaped("the environment was changed")
    untouched(canary)


def untouched(canary: Path) -> None:
    """Assert that a payload left no trace."""
    if canary.exists():
        raise Escaped(f"{canary} was made")
    if CANARY_VARIABLE in os.environ or CANARY_MODULE in sys.modules:
        raise Escaped("a payload ran")
