"""Interruption of a function at every moment at which CPython may raise `KeyboardInterrupt`.

These are function entries and returns from C functions. A test thus does not depend on when Ctrl-C arrives.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

SOON = 60.0
"""Seconds after which a thread counts as blocked."""


class Struck(BaseException):
    """Stand-in for `KeyboardInterrupt`."""


def strikes(work: Callable[[], object], most: int = 2000) -> Iterator[int]:
    """Repeat the work, interrupted one moment later each time, until it completes."""
    for moment in range(most):
        try:
            if not _is_struck(work, moment):
                assert moment > 0, "it was never struck"
                return
        except Struck:
            pass
        yield moment
    raise AssertionError(f"it has more than {most} moments")


def _is_struck(work: Callable[[], object], moment: int) -> bool:
    """Run the work and raise at one moment; return whether that moment was reached."""
    left = moment

    def look(_: FrameType, event: str, __: object) -> None:
        nonlocal left
        if event in ("call", "c_return"):
            left -= 1
            if left == -1:
                raise Struck

    gc.disable()  # callbacks of the collector belong to other libraries, and run at any moment
    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return left < 0


def within(work: Callable[[], object]) -> None:
    """Run the work in another thread and fail if it blocks."""
    raised: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # raised again below
            raised.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    thread.join(SOON)
    assert not thread.is_alive(), "it waits for ever"
    if raised:
        raise raised[0]


def is_free(lock: threading.Lock | threading.RLock) -> bool:
    """Return whether another thread can soon take the lock."""
    got: list[bool] = []

    def take() -> None:
        got.append(lock.acquire(timeout=SOON / 6))
        if got[0]:
            lock.release()

    within(take)
    return got == [True]
