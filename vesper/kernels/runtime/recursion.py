"""Runtime of recursive functions in generated code: depth, fuel, and room on Python's stack."""

from __future__ import annotations

import sys
import threading  # noqa: TID251  # the recursion limit belongs to the whole process
from collections.abc import Callable
from typing import Any, TypeVar

from vesper.kernels.raised import Raised
from vesper.kernels.runtime.meter import Meter
from vesper.values.generated.errors import ErrorCode

_Result = TypeVar("_Result")

_FRAMES = 20_000
"""Frames of Python that the deepest recursion of a node needs. The checker bounds its depth."""


class _Room:
    """Raises the recursion limit of the process while calls of recursive functions are active."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active = 0
        self._usual = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._active == 0:
                self._usual = sys.getrecursionlimit()
                sys.setrecursionlimit(self._usual + _FRAMES)
            self._active += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._active -= 1
            if self._active == 0:
                sys.setrecursionlimit(self._usual)


_ROOM = _Room()


def recurse(function: Callable[..., _Result], *args: object, **form: Any) -> _Result:
    """Call a recursive function from outside; a meter in `form` is charged one unit."""
    meter: Meter | None = form.get("meter")
    if meter is not None:
        meter.spend()
    with _ROOM:
        return function(*args, depth=1, **form)


def deeper(depth: int, max_depth: int, meter: Meter | None = None) -> int:
    """Return the depth of the next call, charged one unit, or raise `recursion_limit`."""
    if depth >= max_depth:
        raise Raised(ErrorCode.RECURSION_LIMIT)
    if meter is not None:
        meter.spend()
    return depth + 1
