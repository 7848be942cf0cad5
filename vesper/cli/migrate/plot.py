"""`vesper migrate plot`: the confidence of a node over time, as a picture."""

from __future__ import annotations

from pathlib import Path

import click

from vesper.cli.journal.text import document
from vesper.cli.migrate.open_store import find_key, now_us, open_configured_store
from vesper.cli.options import NODE, epoch_option, store_options, style_option
from vesper.dashboard.draw.plot import draw_file
from vesper.dashboard.draw.plot_png import PlotUnavailable, draw_png
from vesper.journal.moments import number
from vesper.migration.stores.codec import BadState
from vesper.migration.stores.series import read_series
from vesper.storage.write_file import write_bytes
from vesper.values.model import printable


@click.command("plot")
@click.argument("node", type=NODE)
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    metavar="FILE",
    help="Output file: FILE.svg, or FILE.png with matplotlib installed.",
)
@store_options
@epoch_option
@style_option
def plot_command(node: str, path: Path, config: Path | None, dsn: str | None, epoch: str | None, style: str) -> None:
    """Draw the confidence of NODE over time.

    Modes are bands, changes are numbered with their reason, divergences are marks.
    """
    if path.suffix not in (".svg", ".png"):
        raise click.UsageError(f"-o {printable(path.name)}: the file name must end with .svg or .png")
    with open_configured_store(config, dsn) as opened:
        key = find_key(opened, node, epoch)
        try:
            series = read_series(opened.store, key, now_us())
        except BadState:
            raise  # reported with its own message
        except (ValueError, KeyError, TypeError):
            raise click.ClickException(
                f"the history of {printable(key.node)} has a record that this Vesper does not know: "
                "`vesper migrate history` shows it"
            ) from None
    if series is None:
        raise click.ClickException(f"{printable(key.node)} has no history yet: nothing to draw")
    try:
        picture = draw_png(series) if path.suffix == ".png" else draw_file(series).encode()
        write_bytes(path, picture)
    except PlotUnavailable as problem:
        raise click.ClickException(str(problem)) from None
    except OSError as problem:
        raise click.ClickException(f"{printable(str(path))} cannot be written: {problem.strerror}") from None
    points, divergences, times = len(series.points), series.open, series.open_times
    if style == "json":
        found = {"node": key.node, "epoch": key.epoch, "picture": str(path)}
        click.echo(document({**found, "points": points, "divergences": divergences, "times": times}))
        return
    seen = "" if not divergences else ", seen once" if times == 1 else f", seen {times:,} times"
    click.echo(f"{printable(str(path))}: {number(points, 'point')}, {number(divergences, 'open divergence')}{seen}")
