"""The progress of long work, on one line of a terminal; nothing elsewhere."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Self, TypeVar

from vesper.cli.output.terminal import LIVE_LINE, shows_progress
from vesper.storage import after_fork

_FIRST_SECONDS, _REFRESH_SECONDS = 0.5, 0.25
_BAR_COLUMNS = 20
_MIN_COLUMNS_WITH_BAR = 60

Item = TypeVar("Item")

after_fork.register(order=after_fork.Order.OUTPUT, after_in_child=LIVE_LINE.reset_after_fork)


class Progress:
    """A line with the share done, the elapsed time and the time left.

    A thread redraws it four times a second, so it moves during a step of any length. Work that takes less than half a
    second draws nothing. `total` is a number of steps; a float is no count and is not shown; None is for work of
    unknown length.
    """

    def __init__(self, label: str, total: int | float | None) -> None:  # noqa: PYI041  # an int is shown
        self._label = label
        self._total = total
        self._done: float = 0
        self._note = ""
        self._start = self._changed = time.monotonic()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._draw_repeatedly, daemon=True) if shows_progress() else None

    def __enter__(self) -> Self:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._is_over.set()
            self._thread.join()
            LIVE_LINE.erase()

    def advance(self, steps: int = 1) -> None:
        self.reach(self._done + steps)

    def reach(self, done: float, note: str | None = None) -> None:
        """Set the work done so far, and the text after it."""
        self._note = self._note if note is None else note
        if done != self._done:
            self._done, self._changed = done, time.monotonic()

    def over(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items, one step each; the text after the count is the item in work."""
        for item in items:
            self._note = str(item)
            yield item
            self.advance()

    def _draw_repeatedly(self) -> None:
        seconds = _FIRST_SECONDS
        while not self._is_over.wait(seconds):
            # A longer line would wrap, and the next one would not replace all of it.
            LIVE_LINE.draw(self.text(time.monotonic(), shutil.get_terminal_size().columns - 1))
            seconds = _REFRESH_SECONDS

    def text(self, now: float, width: int) -> str:
        """Return the line at a moment, cut to a width."""
        parts = [self._label]
        share = min(1.0, self._done / self._total) if self._total else 0.0
        if self._total and width >= _MIN_COLUMNS_WITH_BAR:
            filled = int(share * _BAR_COLUMNS)
            parts.append(f"[{'#' * filled}{'.' * (_BAR_COLUMNS - filled)}]")
        if self._total:
            parts.append(f"{share:4.0%}")
        if isinstance(self._total, int):
            parts.append(f"{self._done:,.0f}/{self._total:,}")
        parts.append(_clock(now - self._start) + self._left(now, share))
        return " ".join([*parts, self._note])[:width].rstrip()

    def _left(self, now: float, share: float) -> str:
        """Return the estimated time left; it counts down from the estimate at the last change."""
        if not 0 < share < 1:
            return ""
        left = (self._changed - self._start) * (1 - share) / share - (now - self._changed)
        return f", {_clock(max(0.0, left))} left"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
