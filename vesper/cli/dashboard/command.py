"""`vesper dashboard`: pages over the stores of a project."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import click

from vesper.cli.options import config_option
from vesper.cli.settings import printable_lines, read_settings

_LIBRARIES = ("jinja2", "starlette", "uvicorn")


@click.command("dashboard")
@click.option("--host", metavar="ADDRESS", help="Address to bind; by default that of the settings, or 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65_535), help="Port to bind; 0 chooses a free one.  [default: 8001]")
@config_option()
@click.option("--allow-changes", is_flag=True, help="Without authentication: let the current user change things.")
@click.option("--log-format", type=click.Choice(("text", "json")), help="Form of log lines on standard error.")
@click.option("--end-with-input", is_flag=True, hidden=True)
def command(
    host: str | None,
    port: int | None,
    config: Path | None,
    allow_changes: bool,
    log_format: str | None,
    end_with_input: bool,
) -> None:
    """Show nodes, divergences and runs in a browser.

    Reads the stores of the settings; the pages refresh themselves. Callers log in with the keys and tokens of `vesper
    serve`. Without authentication the dashboard is read-only and for this machine. See
    docs/how-to/use-the-dashboard.md.
    """
    require_libraries()
    from vesper.dashboard.process import serve_dashboard
    from vesper.observe.logs import configure
    from vesper.values.vesper_error import VesperError

    settings = read_settings(config)
    configure(log_format or settings.observe.logs, settings.observe.levels)

    def report(text: str) -> None:
        click.echo(f"{text}; Ctrl-C or SIGTERM ends it", err=True)

    try:
        serve_dashboard(settings, host, port, allow_changes, report, end_with_input)
    except VesperError as problem:
        raise click.ClickException(printable_lines(str(problem))) from None


def require_libraries() -> None:
    """End the command where the extra is not installed."""
    for library in _LIBRARIES:
        if importlib.util.find_spec(library) is None:
            raise click.ClickException(f"the dashboard needs {library}: run `pip install 'vesper[dashboard]'`")
