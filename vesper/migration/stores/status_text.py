"""The state of a node as texts, for `vesper status` and the dashboard."""

from __future__ import annotations

from vesper.journal.moments import number, time_text, took_text
from vesper.migration.control.modes import LADDER, Mode
from vesper.migration.control.state import Latch, NodeState, Pin
from vesper.migration.stores.overview import PathOverview, lacking, running_mode
from vesper.values.model import printable


def needed_text(state: NodeState, highest: Mode | None) -> str:
    """Describe what the next mode still needs."""
    if missing := lacking(state, highest):
        return "; ".join(missing)
    return "nothing: highest mode" if state.mode is LADDER[-1] else "nothing: promoted with the next request"


def held_text(state: NodeState, highest: Mode | None, now_us: int) -> str:
    """Summarise latches, the pin and `max_mode`."""
    found = [f"latched: {each.reason.value}" for each in state.latches]
    if running_mode(state, highest) is not state.mode:
        found.append("max_mode")
    if state.pin is not None:
        left = state.pin.until_us - now_us
        found.append(f"pinned for {took_text(left)}" if left > 0 else "pin expired")
    return ", ".join(found)


def pin_text(pin: Pin, now_us: int) -> str:
    until = f"until {time_text(pin.until_us)}"
    if now_us >= pin.until_us:
        until = f"expired at {time_text(pin.until_us)}, removed with the next request"
    return f"{pin.mode.value}, {until}, by {printable(pin.who)}: {printable(pin.why)}"


def latch_text(latch: Latch) -> str:
    return f"{latch.reason.value}, {time_text(latch.at_us)}, by {printable(latch.who)}: {printable(latch.why)}"


def path_need(each: PathOverview) -> str:
    """`194 more on path B`."""
    if each.is_proven:
        return "enough evidence"
    lacks = [f"{each.lacks:,} more on path {each.letter}"] if each.lacks else []
    if each.seen.open:
        lacks.append(f"{number(each.seen.open, 'open divergence')} to close")
    return "; ".join(lacks) or "an open divergence of the node to close"


def path_name(path: str) -> str:
    """Name a path without a description; a run that was abandoned on its way has no path."""
    return f"path {printable(path)}" if path else "runs that were abandoned because the engines made different requests"


def ago_text(at_us: int, now_us: int) -> str:
    if at_us > now_us:
        return f"{time_text(at_us)}, in the future: the clocks differ"
    seconds = (now_us - at_us) // 10**6
    if seconds < 60:
        return f"{seconds} s ago" if seconds else "just now"
    return f"{took_text(seconds * 10**6)} ago"
