"""The confidence of a node over time as PNG, by matplotlib: the picture that `plot_svg` draws, for who needs pixels."""

from __future__ import annotations

from io import BytesIO

import click

from vesper.cli.migrate.plot_svg import MOST_NINES, TICKS, described, moments, nines
from vesper.migration.control.modes import LADDER, THRESHOLDS
from vesper.migration.stores.series import Series
from vesper.values.model import printable

_COLOURS = ("#e5e7eb", "#dbeafe", "#fef3c7", "#ede9fe", "#d1fae5")


def png(series: Series) -> bytes:
    try:
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch
    except ImportError:
        raise click.ClickException(
            "a PNG needs matplotlib: install `vesper[plots]`, or write a file that ends with .svg, which needs nothing"
        ) from None
    figure = Figure(figsize=(9.6, 4.4), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    for band in series.bands:
        axes.axvspan(band.start_us, max(band.end_us, band.start_us + 1), color=_COLOURS[band.mode.level], lw=0)
    for threshold in THRESHOLDS.values():
        axes.axhline(nines(float(threshold)), color="#6b7280", lw=0.8, ls="--")
    axes.plot(
        [each.at_us for each in series.points], [nines(each.lower_bound) for each in series.points], color="#0b57d0"
    )
    axes.plot([each.at_us for each in series.divergences], [0.12] * len(series.divergences), "x", color="#b3261e")
    axes.set_ylim(0, MOST_NINES)
    axes.set_xlim(series.start_us, max(series.until_us, series.start_us + 1))
    axes.set_yticks([nines(each) for each in TICKS], [f"{each:g}" for each in TICKS])
    shown = moments(series)
    axes.set_xticks([at_us for at_us, _ in shown], [text for _, text in shown])
    axes.set_title(f"Confidence of {printable(series.node)}", loc="left")
    axes.set_ylabel("lower bound of agreement")
    seen = {band.mode for band in series.bands}
    patches = [Patch(color=_COLOURS[mode.level], label=mode.value) for mode in LADDER if mode in seen]
    axes.legend(handles=patches, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=len(patches), frameon=False)
    written = BytesIO()
    figure.savefig(written, format="png", metadata={"Description": described(series), "Software": "Vesper"})
    return written.getvalue()
