"""A signal handler that strikes at every moment at which CPython runs one, one after the other: where a function
begins, and where one that is written in C comes back. So what a test finds does not depend on when a signal comes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

SOON = 60.0
"""Nothing here takes a second, but for what waits for ever."""


class Struck(BaseException):
    """What the handler raises."""


def strike(work: Callable[[], object], moment: int, handler: Callable[[], None]) -> bool:
    """Does the work, and calls the handler at one moment of it; whether there was such a moment."""
    left = moment

    def look(_: FrameType, event: str, __: object) -> None:
        nonlocal left
        if event in ("call", "c_return"):
            left -= 1
            if left == -1:
                handler()

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    return left < 0


def strikes(work: Callable[[], object], most: int = 2000) -> Iterator[int]:
    """Does the work again and again, and raises in it, a moment later each time, until it comes through."""
    for moment in range(most):
        try:
            if not strike(work, moment, _raises):
                assert moment > 0, "it was never struck"
                return
        except Struck:
            pass
        yield moment
    raise AssertionError(f"it has more than {most} moments")


def _raises() -> None:
    raise Struck


def within(work: Callable[[], object]) -> None:
    """Does it in another thread, and fails where that waits for ever."""
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
    """Whether a thread that has nothing to do with it can take it, soon at least."""
    got: list[bool] = []

    def take() -> None:
        got.append(lock.acquire(timeout=SOON / 6))
        if got[0]:
            lock.release()

    within(take)
    return got == [True]
