"""Scale, ticks and texts that the SVG and the PNG of plots share."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from vesper.journal.moments import number, time_text
from vesper.migration.control.modes import LADDER, THRESHOLDS, Mode
from vesper.migration.stores.series import Change, Point, Series
from vesper.values.model import printable

MAX_NINES = 5.0
TICKS = (0.0, 0.9, 0.95, 0.99, 0.999, 0.9999)
THRESHOLD_MODES = {float(each): mode for mode, each in THRESHOLDS.items()}
_DAY_US = 86_400 * 10**6


def nines(bound: float) -> float:
    """Return the height of a lower bound on the scale of nines: 0.9 is 1, 0.99 is 2."""
    return min(MAX_NINES, -math.log10(1 - bound)) if bound < 1 else MAX_NINES


def title_of(series: Series) -> str:
    return f"Confidence of {printable(series.node)}"


def describe(series: Series) -> str:
    """Describe the picture in text, for readers who cannot see it."""
    modes = ", then ".join(f"{each.mode.value} from {time_text(each.start_us)}" for each in series.bands[-10:])
    last = point_text(series.lines[-1][-1]) if series.lines else "none"
    return (
        f"From {time_text(series.start_us)} to {time_text(series.until_us)}. Modes: {modes}. The last lower bound is "
        f"{last}. {number(series.found, 'divergence')} found, {series.open:,} of them open."
    )


def point_text(point: Point) -> str:
    return f"{point.lower_bound:.5f} from {evidence_text(point)}"


def evidence_text(point: Point) -> str:
    diverged = f", {number(point.divergences, 'divergence')}" if point.divergences else ""
    return f"n = {point.clean:,}{diverged}"


def change_text(change: Change) -> str:
    why = f"{change.reason}, by {change.who}: {change.why}"
    return printable(f"{time_text(change.at_us)} · {change.before.value} → {change.after.value} · {why}")


def modes_in(series: Series) -> list[Mode]:
    """Return the modes of the legend, lowest first."""
    seen = {each.mode for each in series.bands}
    return [mode for mode in LADDER if mode in seen]


def time_ticks(start_us: int, until_us: int) -> list[tuple[int, str]]:
    """Return five moments with labels; the precision depends on the time span."""
    span = until_us - start_us
    form = "%Y-%m-%d" if span > 10 * _DAY_US else "%m-%d %H:%M" if span > 600 * 10**6 else "%H:%M:%S"
    form = form if span > 10 * 10**6 else "%S.%f"
    found = []
    for part in range(1, 10, 2):
        at_us = start_us + span * part // 10
        text = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)).strftime(form)
        found.append((at_us, f"{text[:-4]} s" if form.endswith("%f") else text))
    return found
