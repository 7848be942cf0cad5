"""`vesper play`: the editor in a browser."""

from __future__ import annotations

import importlib.util
import webbrowser
from pathlib import Path

import click

from vesper.cli.load_node import find_node
from vesper.cli.options import NODE, config_option, nodes_option
from vesper.cli.settings import printable_lines, read_settings

_LIBRARIES = ("jinja2", "pygls", "starlette", "uvicorn", "websockets")


@click.command("play")
@click.argument("node", type=NODE, metavar="[NODE]", required=False)
@nodes_option
@config_option()
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="Port to bind; 0 chooses a free one.")
@click.option("--browser/--no-browser", "opens_browser", default=True, help="Open the page in the browser.")
def command(node: str | None, root: Path, config: Path | None, port: int, opens_browser: bool) -> None:
    """Edit, run and save nodes in a browser, on this machine.

    The node is shown as text, as decision tables and as a flow; a run compares both engines and performs no effect.
    Files are written only on save, after a look at the difference. See docs/how-to/play.md.
    """
    for library in _LIBRARIES:
        if importlib.util.find_spec(library) is None:
            raise click.ClickException(f"the playground needs {library}: run `pip install 'vesper[dashboard]'`")
    from vesper.dashboard.process import serve_play
    from vesper.repository.locate import id_of
    from vesper.values.vesper_error import VesperError

    node_id = None
    if node is not None:
        path = find_node(node, root)
        if not path.resolve().is_relative_to(root.resolve()):
            raise click.UsageError(f"{path} is outside the folder `{root}`: name its folder with --nodes")
        node_id = id_of(path)

    def report(address: str) -> None:
        click.echo(f"playground at {address}  (Ctrl-C ends it)")
        if opens_browser and not webbrowser.open(address):
            click.echo("no browser was found: open the address yourself", err=True)

    try:
        serve_play(read_settings(config), root, node_id, port, report)
    except VesperError as problem:
        raise click.ClickException(printable_lines(str(problem))) from None
