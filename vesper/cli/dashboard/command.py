"""`vesper dashboard`: pages over the stores of a project."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import click

from vesper.cli.options import config_option
from vesper.cli.settings import read_settings


@click.command("dashboard")
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Address to bind.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65_535), default=8001, help="Port to bind; 0 chooses a free one.")
@config_option()
@click.option("--allow-changes", is_flag=True, help="Without authentication: let the current user change things.")
def command(host: str, port: int, config: Path | None, allow_changes: bool) -> None:
    """Show nodes, divergences, runs and their history in a browser.

    Reads the stores of the settings. See docs/how-to/use-the-dashboard.md.
    """
    for library in ("jinja2", "starlette", "uvicorn"):
        if importlib.util.find_spec(library) is None:
            raise click.ClickException(f"the dashboard needs {library}: run `pip install 'vesper[dashboard]'`")
    from vesper.dashboard.process import serve_dashboard

    settings = read_settings(config)
    serve_dashboard(settings, host, port, allow_changes, lambda text: click.echo(text, err=True))
