"""What a kept node depends on besides the node: Vesper's own sources, its parser and its writer, and Python.

By name, size and time of change of the files, not by their bytes: reading them takes longer than a warm start may.
"""

from __future__ import annotations

import os
import sys
from _frozen_importlib_external import PathFinder  # that of `importlib`, which loads `warnings`
from functools import lru_cache

from vesper.cache.entries import digest

_PARTS = (
    "api", "cache", "check", "codegen", "compiler", "diagnostics", "engines", "ir", "kernels", "repository", "spec",
    "syntax",
)  # fmt: skip
_OTHERS = ("yaml", "libcst")


def fingerprint() -> bytes:
    """Changes with every change of the compiler, of its libraries, and of Python."""
    return fingerprint_of(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), tuple(sys.path), sys.version)


@lru_cache(maxsize=4)
def fingerprint_of(package: str, path: tuple[str, ...], version: str) -> bytes:
    """That of the package in this folder, with the modules of this path, on this Python."""
    seen: list[object] = [version, sys.implementation.cache_tag, sys.flags.optimize, package]
    _see(package, seen)
    for part in _PARTS:
        _see(f"{package}/{part}", seen)
    for name in _OTHERS:
        found = PathFinder.find_spec(name, list(path))
        if found is not None and found.origin is not None:
            _see(os.path.dirname(found.origin), seen)
    return digest(repr(seen).encode())


@lru_cache(maxsize=1)
def source_hash() -> bytes:
    """The same by the bytes of Vesper's sources and its engine, so that machines agree on it. Takes as long as reading
    them does."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parts = [repr((sys.implementation.name, sys.version_info[:3])).encode()]
    for folder in (package, *(f"{package}/{part}" for part in _PARTS)):
        for name in sorted(os.listdir(folder)):
            if name.endswith((".py", ".so")):
                with open(f"{folder}/{name}", "rb") as file:
                    parts += [name.encode(), file.read()]
    return digest(*parts)


def _see(folder: str, seen: list[object]) -> None:
    with os.scandir(folder) as listed:
        for each in sorted(listed, key=lambda found: found.name):
            if each.name.endswith((".py", ".so")):
                status = each.stat()
                seen.append((folder, each.name, status.st_size, status.st_mtime_ns))
