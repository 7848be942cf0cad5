"""The sandbox of a worker process: it confines itself before it reads the first node (docs/spec/sandbox.md)."""

from __future__ import annotations

import os
import resource
import sys
import sysconfig
from pathlib import Path

import vesper

ARGUMENT = "sandbox"
"""Argument with which a worker confines itself."""
_MAX_FILES = 64


def enter_sandbox() -> list[str]:
    """Confine this process and return the missing features of the kernel.

    Raises `OSError` where there is no seccomp.
    """
    from vesper.engines.direct_engine import confine

    _import_what_calls_need()
    resource.setrlimit(resource.RLIMIT_NOFILE, (_MAX_FILES, _MAX_FILES))
    return confine(sorted(_library_folders()))


def environment() -> dict[str, str]:
    """Return the environment of a confined process. It has no variable of the caller, which may hold a secret."""
    return {"PYTHONPATH": str(Path(vesper.__file__).parents[1]), "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"}


def _import_what_calls_need() -> None:
    """Import modules that executions would import later.

    With a kernel without Landlock, a confined process can open no file.
    """
    import traceback  # noqa: F401

    import vesper.host.outcomes
    import vesper.language.ir.nodes  # noqa: F401


def _library_folders() -> set[str]:
    """Return the folders of Python, of its packages and of Vesper, which stay readable."""
    paths = sysconfig.get_paths()
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    found = {paths[each] for each in names} | {sys.prefix + "/lib", str(Path(vesper.__file__).parent)}
    return {each for each in found if os.path.isdir(each)}  # noqa: PTH112
