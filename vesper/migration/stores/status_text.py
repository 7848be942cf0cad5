"""The state of a node as texts, for `vesper status` and the dashboard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from vesper.journal.moments import number, time_text, took_text
from vesper.migration.control.modes import LADDER, Engine, Mode
from vesper.migration.control.state import Latch, NodeState, Pin
from vesper.migration.stores.history_text import records
from vesper.migration.stores.overview import (
    DAY_HOURS,
    NodeOverview,
    PathOverview,
    Statistics,
    bound_text,
    confidence_text,
    missing_texts,
    running_mode,
    statistics,
)
from vesper.migration.stores.rollback import rollback_of, rollback_text
from vesper.migration.stores.store import Line
from vesper.values.model import printable


def needed_text(state: NodeState, highest: Mode | None) -> str:
    """Describe what the next mode still needs."""
    if missing := missing_texts(state, highest):
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
    """Describe the missing evidence of a path, such as `194 more on path B`."""
    if each.is_proven:
        return "enough evidence"
    lacks = [f"{each.lacks:,} more on path {each.letter}"] if each.lacks else []
    if each.seen.open:
        lacks.append(f"{number(each.seen.open, 'open divergence')} to close")
    return "; ".join(lacks) or "an open divergence of the node to close"


def path_name(path: str) -> str:
    """Return a text that names a path without a description. An abandoned run has no path."""
    return f"path {printable(path)}" if path else "runs that were abandoned because the engines made different requests"


def ago_text(at_us: int, now_us: int) -> str:
    if at_us > now_us:
        return f"{time_text(at_us)}, in the future: the clocks differ"
    seconds = (now_us - at_us) // 10**6
    if seconds < 60:
        return f"{seconds} s ago" if seconds else "just now"
    return f"{took_text(seconds * 10**6)} ago"


def shares_text(requests: Counter[Mode], engines: Counter[Engine]) -> str:
    total = requests.total()
    if not total:
        return "no requests"
    listed = [f"{100 * requests[mode] / total:.1f} % in {mode.value}" for mode in LADDER if requests[mode]]
    direct = 100 * engines[Engine.DIRECT] / total
    return f"{number(total, 'request')}, {', '.join(listed)}; the direct engine answered {direct:.1f} %"


# -- one node -------------------------------------------------------------------------------------


def facts_of(
    node: NodeOverview, state: NodeState, highest: Mode | None, history: Sequence[Line], now_us: int
) -> list[tuple[str, str]]:
    """Return all facts about a node, each with its name."""
    since = next((record["at_us"] for record in reversed(records(history)) if record["kind"] == "changed"), None)
    rows = [("mode", state.mode.value + ("" if since is None else f", since {time_text(since)}"))]
    running = running_mode(state, highest)
    if running is not state.mode:
        allowed = f"its evidence allows {state.mode.value}"
        rows = [("mode", f"{running.value}, limited by `max_mode` of the configuration; {allowed}")]
    rows.append(("confidence", f"{confidence_text(state)}, the lower bound of the share of runs that agree"))
    if state.is_complete:
        rows[-1] = ("confidence", "complete: every possible input was run, and all runs agreed")
    agree = f"{number(state.clean, 'distinct run')} that agree{'s' if state.clean == 1 else ''}"
    compared = f"{number(state.compared, 'comparison')}, besides {state.unknown:,} without a result"
    diverged = number(state.divergences, "divergence")
    rows.append(("evidence", f"{agree}, {diverged}, of {compared}; attempt {state.attempt}"))
    found = statistics(state)
    if found is not None:
        rows += _statistics(found)
    rows.append(("needed", needed_text(state, highest)))
    if state.pin is not None:
        rows.append(("pin", pin_text(state.pin, now_us)))
    rows += [("latch", latch_text(each)) for each in state.latches]
    rows += [
        ("noise", f"{printable(name)}: an engine differs from itself at {printable(where)}")
        for name, where in state.noise.items()
    ]
    if state.lost:
        rows.append(("lost", f"{number(len(state.lost), 'run')} began under the direct engine and never ended"))
    day = node.traffic.since(now_us, DAY_HOURS)
    requests: Counter[Mode] = Counter()
    engines: Counter[Engine] = Counter()
    for name, count in day.items():
        mode, _, engine = name.partition("/")
        requests[Mode(mode)] += count
        engines[Engine(engine)] += count
    rows.append((f"last {DAY_HOURS} hours", shares_text(requests, engines)))
    back = rollback_of(state, node.traffic, now_us, DAY_HOURS)
    if back is not None:
        rows.append(("rollback", rollback_text(back)))
    written = node.traffic.written_us
    rows.append(("written", "never" if written is None else f"{time_text(written)}, {ago_text(written, now_us)}"))
    return rows


def _statistics(found: Statistics) -> list[tuple[str, str]]:
    wilson = f"{bound_text(found.lower_bound)} of {found.threshold}"
    process = f"e^{found.log_e:.2f} of e^{found.log_needed:.2f}"
    return [
        (f"for {found.mode.value}", f"{number(found.clean_needed, 'distinct run')} that agree, by both of these:"),
        ("  Wilson", wilson + (", enough" if found.is_wilson_enough else "")),
        ("  e-process", process + (", enough" if found.is_e_enough else "")),
    ]
