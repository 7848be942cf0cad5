"""The confidence of a node over time as PNG, drawn by matplotlib."""

from __future__ import annotations

from io import BytesIO

import click

from vesper.cli.migrate.drawing.layout import (
    LINE,
    MARK,
    MAX_NINES,
    MODE_COLOURS,
    SOFT,
    THRESHOLD_TICKS,
    TICKS,
    describe,
    modes_in,
    nines,
    time_ticks,
    title_of,
)
from vesper.migration.stores.series import Series


def draw_png(series: Series) -> bytes:
    try:
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch
    except ImportError:
        raise click.ClickException(
            "a PNG needs matplotlib: install `vesper[plots]`, or write a file that ends with .svg"
        ) from None
    figure = Figure(figsize=(9.6, 4.4), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    for band in series.bands:
        axes.axvspan(band.start_us, max(band.end_us, band.start_us + 1), color=MODE_COLOURS[band.mode.level], lw=0)
    for threshold in THRESHOLD_TICKS:
        axes.axhline(nines(threshold), color=SOFT, lw=0.8, ls="--")
    axes.plot([each.at_us for each in series.points], [nines(each.lower_bound) for each in series.points], color=LINE)
    axes.plot([each.at_us for each in series.divergences], [0.12] * len(series.divergences), "x", color=MARK)
    axes.set_ylim(0, MAX_NINES)
    axes.set_xlim(series.start_us, max(series.until_us, series.start_us + 1))
    axes.set_yticks([nines(each) for each in TICKS], [f"{each:g}" for each in TICKS])
    ticks = time_ticks(series)
    axes.set_xticks([at_us for at_us, _ in ticks], [text for _, text in ticks])
    axes.set_title(title_of(series), loc="left")
    axes.set_ylabel("lower bound of agreement")
    patches = [Patch(color=MODE_COLOURS[mode.level], label=mode.value) for mode in modes_in(series)]
    axes.legend(handles=patches, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=len(patches), frameon=False)
    file = BytesIO()
    figure.savefig(file, format="png", metadata={"Description": describe(series), "Software": "Vesper"})
    return file.getvalue()
