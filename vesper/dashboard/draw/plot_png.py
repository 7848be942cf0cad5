"""The confidence of a node over time as PNG, drawn by matplotlib."""

from __future__ import annotations

from io import BytesIO

from vesper.dashboard.draw.plot_layout import (
    MAX_NINES,
    THRESHOLD_MODES,
    TICKS,
    describe,
    modes_in,
    nines,
    time_ticks,
    title_of,
)
from vesper.migration.stores.series import Series
from vesper.values.vesper_error import VesperError

_MODE_COLOURS = ("#e5e7eb", "#fdf6ef", "#f7e3cf", "#eecba8", "#e2ad78")
_SOFT, _LINE, _MARK = "#5a6472", "#1f55c4", "#b0231b"


class PlotUnavailable(VesperError):
    """A package that draws is missing."""


def draw_png(series: Series) -> bytes:
    """Return the plot as PNG. Raises `PlotUnavailable`."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch
    except ImportError:
        raise PlotUnavailable(
            "a PNG needs matplotlib: install `vesper[plots]`, or write a file that ends with .svg"
        ) from None
    figure = Figure(figsize=(9.6, 4.4), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    for band in series.bands:
        axes.axvspan(band.start_us, max(band.end_us, band.start_us + 1), color=_MODE_COLOURS[band.mode.level], lw=0)
    for threshold in THRESHOLD_MODES:
        axes.axhline(nines(threshold), color=_SOFT, lw=0.8, ls="--")
    for line in series.lines:
        times, heights = [each.at_us for each in line], [nines(each.lower_bound) for each in line]
        axes.plot(times, heights, color=_LINE, marker="" if len(line) > 1 else "o")
    for at, each in enumerate(series.changes, start=1):
        axes.annotate(str(at), (each.at_us, MAX_NINES), ha="center", va="bottom", fontsize=8)
    axes.plot([each.at_us for each in series.divergences], [0.12] * len(series.divergences), "x", color=_MARK)
    axes.set_ylim(0, MAX_NINES)
    axes.set_xlim(series.start_us, max(series.until_us, series.start_us + 1))
    axes.set_yticks([nines(each) for each in TICKS], [f"{each:g}" for each in TICKS])
    ticks = time_ticks(series.start_us, series.until_us)
    axes.set_xticks([at_us for at_us, _ in ticks], [text for _, text in ticks])
    axes.set_title(title_of(series), loc="left", pad=14)
    axes.set_ylabel("lower bound of agreement")
    patches = [Patch(color=_MODE_COLOURS[mode.level], label=mode.value) for mode in modes_in(series)]
    axes.legend(handles=patches, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=len(patches), frameon=False)
    file = BytesIO()
    figure.savefig(file, format="png", metadata={"Description": describe(series), "Software": "Vesper"})
    return file.getvalue()
