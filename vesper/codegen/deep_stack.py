"""Run code on a stack that is deep enough for the deepest node.

libcst walks its trees by recursion, several frames a level, so an expression within the language's limits can need
more than Python's usual thousand frames, and a caller may have used most of those already. Deep nodes are therefore
written on a thread of their own.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")

_FRAMES = 50_000
_STACK_BYTES = 256 * 1024 * 1024  # of address space; unused pages cost nothing
_only_one = threading.Lock()


def run_on_deep_stack(work: Callable[[], _Result]) -> _Result:
    """Return or raise the outcome of `work`, run with a stack of about fifty thousand frames."""
    results: list[_Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001  # handed to the caller below, whatever it is
            errors.append(error)

    # Both settings belong to the whole process, so one such thread at a time.
    with _only_one:
        frames, stack = sys.getrecursionlimit(), threading.stack_size(_STACK_BYTES)
        try:
            sys.setrecursionlimit(max(frames, _FRAMES))
            thread = threading.Thread(target=run, name="vesper-codegen")
            thread.start()
            thread.join()
        finally:
            threading.stack_size(stack)
            sys.setrecursionlimit(frames)
    if errors:
        raise errors[0]
    return results[0]
