"""The dependencies of a cached node besides its text: Vesper's sources, its parser and generator, and Python.

Compared by name, size and time of change of the files: reading them takes longer than a warm start may.
"""

from __future__ import annotations

import os
import sys
from _frozen_importlib_external import PathFinder  # that of `importlib`, which imports `warnings`
from functools import lru_cache

from vesper.cache.entries import digest

_PARTS = ("api", "cache", "codegen", "compiler", "engines", "kernels", "language", "repository", "values")
_OTHERS = ("libcst",)


def compiler_digest() -> bytes:
    """Return a digest of the compiler, its libraries and Python.

    Files are compared by name, size and time of change.
    """
    return package_digest(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), tuple(sys.path), sys.version)


@lru_cache(maxsize=4)
def package_digest(package: str, path: tuple[str, ...], version: str) -> bytes:
    """Return the digest of a package folder, its libraries on `path`, and a Python version."""
    seen: list[object] = [version, sys.implementation.cache_tag, sys.flags.optimize, package, *_stamps(package, ())]
    for part in _PARTS:
        seen += stamps(f"{package}/{part}")
    for name in _OTHERS:
        found = PathFinder.find_spec(name, list(path))
        if found is not None and found.origin is not None:
            seen += _stamps(os.path.dirname(found.origin), ())
    return digest(repr(seen).encode())


@lru_cache(maxsize=1)
def source_hash() -> bytes:
    """Return a digest of the sources of the compiler and engines. It is the same on every machine."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parts = [repr((sys.implementation.name, sys.version_info[:3])).encode()]
    stamped = [*_stamps(package, ()), *(each for part in _PARTS for each in stamps(f"{package}/{part}"))]
    for folder, name, *_ in stamped:
        with open(f"{folder}/{name}", "rb") as file:
            parts += [name.encode(), file.read()]
    return digest(*parts)


def stamps(folder: str) -> list[tuple[str, str, int, int]]:
    """Return folder, name, size and time of change of the source files in a tree."""
    below: list[str] = []
    found = _stamps(folder, below)
    for each in below:
        found += stamps(each)
    return found


def _stamps(folder: str, below: list[str] | tuple[()]) -> list[tuple[str, str, int, int]]:
    """Return the stamps of one folder; a list as `below` receives its subfolders."""
    found: list[tuple[str, str, int, int]] = []
    with os.scandir(folder) as entries:
        for each in sorted(entries, key=lambda entry: entry.name):
            if each.name.endswith((".py", ".so")):
                status = each.stat()
                found.append((folder, each.name, status.st_size, status.st_mtime_ns))
            elif isinstance(below, list) and each.name != "__pycache__" and each.is_dir():
                below.append(f"{folder}/{each.name}")
    return found
