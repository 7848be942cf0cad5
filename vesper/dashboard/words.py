"""Numbers, times and durations as pages write them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

ABSENT: Final = "–"
_MAILBOX: Final = "agent:"
_MINUTE_SECONDS: Final = 60
_SPANS: Final = ((60, 1, "s"), (3_600, 60, "min"), (86_400, 3_600, "h"), (31 * 86_400, 86_400, "d"))
_SIZES: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def queue_place(queue: str) -> str:
    """Return a queue as a part of a path.

    In the address of an agent `:` replaces `/`, which proxies would split.
    """
    return _MAILBOX + queue.removeprefix(_MAILBOX).replace("/", ":") if queue.startswith(_MAILBOX) else queue


def queue_at(place: str) -> str:
    """Return the queue that a part of a path names."""
    return _MAILBOX + place.removeprefix(_MAILBOX).replace(":", "/") if place.startswith(_MAILBOX) else place


def number_text(number: float | None, unit: str = "") -> str:
    """Return a number with groups of digits and its unit."""
    if number is None:
        return ABSENT
    shown = f"{number:,}" if isinstance(number, int) else f"{number:,.3g}" if abs(number) < 1_000 else f"{number:,.0f}"
    return f"{shown} {unit}".strip()


def share_text(share: float | None, places: int = 1) -> str:
    """Return a share of one as a percentage; only exact 0 and 1 are shown as such."""
    if share is None:
        return ABSENT
    shown = round(share * 100, places)
    step = 10.0**-places
    if (shown >= 100) != (share >= 1) or (shown <= 0) != (share <= 0):
        shown = 100 - step if share > 0.5 else step
    return f"{shown:.{0 if shown in (0, 100) else places}f} %"


def utc_text(at_us: int | None) -> str:
    """Return a moment as RFC 3339 in UTC, to the second."""
    if at_us is None:
        return ABSENT
    return datetime.fromtimestamp(at_us / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def when_text(at_us: int | None, now_us: int) -> str:
    """Return the distance of a moment from now; far ones as a date."""
    if at_us is None:
        return ABSENT
    seconds = (now_us - at_us) / 1e6
    for limit, size, unit in _SPANS:
        if abs(seconds) < limit:
            count = f"{int(abs(seconds) // size)} {unit}"
            return "just now" if abs(seconds) < 1 else f"{count} ago" if seconds > 0 else f"in {count}"
    return utc_text(at_us)[:10]


def duration_text(microseconds: float | None) -> str:
    """Return a duration in the unit that needs at most four digits."""
    if microseconds is None:
        return ABSENT
    for limit, size, unit in ((1e3, 1, "µs"), (1e6, 1e3, "ms"), (_MINUTE_SECONDS * 1e6, 1e6, "s")):
        if microseconds < limit:
            return f"{microseconds / size:.3g} {unit}"
    minutes, seconds = divmod(int(microseconds / 1e6), _MINUTE_SECONDS)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def size_text(count: int | None) -> str:
    """Return a number of bytes in the largest unit of at least one."""
    if count is None:
        return ABSENT
    size, step = float(count), 0
    while size >= 1_024 and step < len(_SIZES) - 1:
        size, step = size / 1_024, step + 1
    return f"{count} B" if step == 0 else f"{size:.1f} {_SIZES[step]}"
