"""What the SVG and the PNG of the confidence plot share: scale, ticks, colours, labels and the description."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from vesper.journal.moments import number, time_text
from vesper.migration.control.modes import LADDER, THRESHOLDS, Mode
from vesper.migration.stores.series import Series
from vesper.values.model import printable

MAX_NINES = 5.0
TICKS = (0.0, 0.9, 0.95, 0.99, 0.999, 0.9999)
THRESHOLD_TICKS = frozenset(float(each) for each in THRESHOLDS.values())
MODE_COLOURS = ("#e5e7eb", "#dbeafe", "#fef3c7", "#ede9fe", "#d1fae5")
"""Colours of the bands on a light background, by level of the mode."""
SOFT, LINE, MARK = "#6b7280", "#0b57d0", "#b3261e"


def nines(bound: float) -> float:
    """Return the height of a lower bound on the scale of nines: 0.9 is 1, 0.99 is 2."""
    return min(MAX_NINES, -math.log10(1 - bound)) if bound < 1 else MAX_NINES


def title_of(series: Series) -> str:
    return f"Confidence of {printable(series.node)}"


def describe(series: Series) -> str:
    """Describe the picture in text, for readers who cannot see it."""
    modes = ", then ".join(f"{each.mode.value} from {time_text(each.start_us)}" for each in series.bands[-10:])
    last = f"{series.points[-1].lower_bound:.5f}" if series.points else "none"
    return (
        f"From {time_text(series.start_us)} to {time_text(series.until_us)}. Modes: {modes}. The last lower bound is "
        f"{last}. {number(len(series.kept), 'divergence')} found, {len(series.open):,} of them open."
    )


def modes_in(series: Series) -> list[Mode]:
    """Return the modes of the legend, lowest first."""
    seen = {each.mode for each in series.bands}
    return [mode for mode in LADDER if mode in seen]


def time_ticks(series: Series) -> list[tuple[int, str]]:
    """Return five moments with labels; the precision depends on the time span."""
    span = series.until_us - series.start_us
    form = "%Y-%m-%d" if span > 10 * 86_400 * 10**6 else "%m-%d %H:%M" if span > 600 * 10**6 else "%H:%M:%S"
    found = []
    for part in range(1, 10, 2):
        at_us = series.start_us + span * part // 10
        found.append((at_us, (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)).strftime(form)))
    return found
