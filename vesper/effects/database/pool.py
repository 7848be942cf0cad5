"""Connections that wait to be used again, at most so many at once.

A connection is opened by whoever needs one, in its own thread: what the database says when it refuses is what the
caller hears, at once. Nothing runs in the background, so that a process that is forked leaves nothing behind; the child
begins with an empty pool, and never touches, nor closes, what belongs to its parent.

SQLite needs more. It keeps in memory which locks the process has, and a child inherits that, but not the locks: one
that opens a file which its parent had open can lose what it writes. So these connections are closed before a fork.
Where one is in use just then, and does not come back soon, the child is not let at the file.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

from vesper.effects.performer import EffectFailed
from vesper.storage.after_fork import Order, register

_Connection = TypeVar("_Connection")
_SECONDS_BEFORE_FORK = 2.0
"""So long a fork waits for connections that are in use."""
_pools: weakref.WeakSet[Pool[object]] = weakref.WeakSet()
_of_the_parent: list[object] = []
"""Connections that a forked child found: kept for ever, because collecting one would close it for the parent too."""


class Deadline:
    """The moment by which an attempt must have ended."""

    __slots__ = ("_at", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._at = time.monotonic() + seconds

    def left(self) -> float:
        return self._at - time.monotonic()

    def has_passed(self) -> bool:
        return self.left() <= 0

    def failure(self, doing: str, may_have_happened: bool = False) -> EffectFailed:
        text = f"{doing} took longer than {self.seconds:g} s"
        return EffectFailed("timeout", text, may_have_happened=may_have_happened)


class Pool(Generic[_Connection]):
    """INVARIANT: `_taken` counts the connections that somebody has; with the idle ones they are at most `size`."""

    def __init__(
        self,
        called: str,
        size: int,
        open_one: Callable[[Deadline], _Connection],
        close_one: Callable[[_Connection], None],
        closes_before_fork: bool = False,
    ) -> None:
        self._called = called
        self._size = size
        self._open = open_one
        self._close = close_one
        self._closes_before_fork = closes_before_fork
        self._is_refused = False
        """True in a child that must not open the file."""
        self._reset()
        _pools.add(self)  # type: ignore[arg-type]  # a pool of anything is looked at as one of objects

    def _reset(self) -> None:
        self._lock = threading.RLock()
        """Ctrl-C must not leave it held: it is entered in C, not by way of `_changed`, and `Condition` takes an RLock
        back in C."""
        self._changed = threading.Condition(self._lock)
        self._idle: list[_Connection] = []
        self._taken = 0
        self._generation = 0
        self._forking: set[int] = set()
        """The threads that fork now: of two at a time, the first to be done must not let others at the file."""

    def before_fork(self) -> None:
        if not self._closes_before_fork:
            return
        with self._lock:
            self._forking.add(threading.get_ident())
            self._changed.wait_for(lambda: self._taken == 0, _SECONDS_BEFORE_FORK)
            idle, self._idle = self._idle, []
        for each in idle:
            self._close(each)

    def after_fork_in_parent(self) -> None:
        with self._lock:
            self._forking.discard(threading.get_ident())
            self._changed.notify_all()

    def after_fork_in_child(self) -> None:
        self._is_refused = self._is_refused or (self._closes_before_fork and self._taken > 0)
        _of_the_parent.extend(self._idle)
        self._reset()

    def take(self, deadline: Deadline) -> tuple[_Connection, bool]:
        """A connection for the caller alone, and whether somebody has used it before. Give it back with `give_back` or
        `drop`."""
        if self._is_refused:
            text = f"this process was forked while {self._called} was in use, which SQLite does not survive"
            raise EffectFailed("unavailable", f"{text}; fork before it is used, or start processes with `spawn`")
        connection: _Connection | None = None
        is_counted = False
        try:
            with self._lock:
                if not self._changed.wait_for(self._has_room, max(deadline.left(), 0)):
                    text = f"all {self._size} connections of {self._called} were in use for {deadline.seconds:g} s"
                    raise EffectFailed("unavailable", f"{text}; raise `pool_size`, or do less at once")
                self._taken += 1
                is_counted = True
                if self._idle:  # in steps between which Ctrl-C cannot come
                    connection = self._idle[-1]
                    del self._idle[-1]
            return (self._open(deadline), False) if connection is None else (connection, True)
        except BaseException:
            if connection is not None:
                self.drop(connection)
            elif is_counted:
                self._one_less()
            raise

    def _has_room(self) -> bool:
        return not self._forking and (bool(self._idle) or self._taken < self._size)

    def another(self, deadline: Deadline, instead_of: _Connection) -> _Connection:
        """A new connection for one that turned out to be dead; those that wait with it are no better. Where it cannot
        be opened, the caller still has the dead one to `drop`."""
        with self._lock:
            dead, self._idle = [*self._idle, instead_of], []
        for each in dead:
            self._close(each)
        return self._open(deadline)

    def give_back(self, connection: _Connection, generation: int) -> None:
        with self._lock:
            is_current = generation == self._generation
            if is_current:
                self._taken -= 1
                self._idle.append(connection)
                self._changed.notify_all()
        if not is_current:
            self.drop(connection)

    def drop(self, connection: _Connection) -> None:
        try:
            self._close(connection)
        finally:
            self._one_less()

    def _one_less(self) -> None:
        with self._lock:
            self._taken -= 1
            self._changed.notify_all()

    @property
    def generation(self) -> int:
        """Which `close` a connection was taken after; one that was taken before the last is not used again."""
        return self._generation

    def close(self) -> None:
        """Closes what waits; what is in use is closed when it comes back."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._generation += 1
        for each in idle:
            self._close(each)


def _for_all(act: Callable[[Pool[object]], None]) -> Callable[[], None]:
    def run() -> None:
        for pool in list(_pools):
            act(pool)

    return run


register(
    order=Order.EFFECTS,
    before=_for_all(Pool.before_fork),
    after_in_parent=_for_all(Pool.after_fork_in_parent),
    after_in_child=_for_all(Pool.after_fork_in_child),
)
