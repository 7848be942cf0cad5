"""`vesper serve`: serve nodes over HTTP."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vesper.cli.dashboard.command import require_libraries
from vesper.cli.exits import WRONG_INPUT
from vesper.cli.options import config_option
from vesper.cli.settings import printable_lines
from vesper.repository.locate import FOLDER, FOLDER_VARIABLE

if TYPE_CHECKING:
    from vesper.config.settings import Config


@click.command("serve")
@click.argument("nodes", nargs=-1, type=click.Path(), envvar=FOLDER_VARIABLE)
@click.option("--host", metavar="ADDRESS", help="Address to bind; by default that of the settings, or 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65_535), help="Port to bind; 0 chooses a free one.  [default: 8000]")
@click.option("--workers", type=click.IntRange(1, 1_024), help="Processes that answer requests.  [default: 1]")
@click.option("--threads", type=click.IntRange(1, 1_024), help="Threads of a worker that run nodes.  [default: 16]")
@click.option("--expose", multiple=True, metavar="PATTERN", help="Serve these nodes at POST /nodes/ID; repeatable.")
@click.option("--engine", type=click.Choice(("auto", "python", "direct")), default="auto", show_default=True)
@click.option("--reload", "is_watching", is_flag=True, help="Reload when a node or the settings change.")
@click.option("--grace", type=click.FloatRange(0.1, 3_600), metavar="SECONDS", help="Time to drain.  [default: 10]")
@config_option()
@click.option("--insecure", is_flag=True, help="Allow a public address without authentication.")
@click.option("--dashboard", type=click.IntRange(0, 65_535), metavar="PORT", help="Start `vesper dashboard` beside it.")
@click.option("--log-format", type=click.Choice(("text", "json")), help="Form of log lines on standard error.")
def command(
    nodes: tuple[str, ...],
    host: str | None,
    port: int | None,
    workers: int | None,
    threads: int | None,
    expose: tuple[str, ...],
    engine: str,
    is_watching: bool,
    grace: float | None,
    config: Path | None,
    insecure: bool,
    dashboard: int | None,
    log_format: str | None,
) -> None:
    """Serve NODES over HTTP: files and folders, by default the folder `nodes`.

    Handlers with `http:` are served at their path, other nodes at POST /nodes/ID where --expose or the settings name
    them. SIGHUP reloads nodes, settings and secrets; SIGTERM finishes all requests and ends. See
    docs/how-to/serve-nodes.md.
    """
    from vesper.observe.logs import configure
    from vesper.serve.control import Options, is_public
    from vesper.serve.supervisor import Companion, Supervisor, bind, shared_metrics
    from vesper.serve.watch import watched_files
    from vesper.values.vesper_error import VesperError

    if dashboard is not None:
        require_libraries()
    path = None if config is None else str(config.resolve())
    options = Options(nodes, path, expose, engine, threads, log_format=log_format)
    try:
        settings = options.read_config()
        serve = settings.serve
        configure(log_format or settings.observe.logs, settings.observe.levels)
        listener = bind(serve.host if host is None else host, serve.port if port is None else port)
        with listener, shared_metrics(settings.observe.directory):
            address, bound = listener.getsockname()[:2]
            options = replace(
                options,
                grace=serve.grace if grace is None else grace,
                needs_auth=is_public(address) and not insecure,
                had_auth=serve.has_auth,
            )
            options.read_config()
            count = serve.workers if workers is None else workers
            scheme = "http" if serve.tls is None else "https"
            shown = f"[{address}]" if ":" in address else address

            def report(number: int) -> None:
                what = "1 node" if number == 1 else f"{number} nodes"
                of = "worker" if count == 1 else "workers"
                where = f"{scheme}://{shown}:{bound}"
                click.echo(f"serving {what} at {where} with {count} {of}; Ctrl-C or SIGTERM ends it", err=True)

            watched = watched_files(nodes or (FOLDER,), settings.path) if is_watching else None
            companion = None
            if dashboard is not None:
                own = watched_files((), settings.path) if is_watching else None
                companion = Companion("dashboard", _dashboard(dashboard, settings, log_format), own)
            code = Supervisor(listener, options, count, report, watched, companion=companion).run()
    except VesperError as problem:
        message = printable_lines(str(problem))
        click.echo(message if message.startswith("error") else f"Error: {message}", err=True)
        code = WRONG_INPUT
    if code:
        raise SystemExit(code)


def _dashboard(port: int, settings: Config, log_format: str | None) -> list[str]:
    """Return the command of a dashboard that ends with this process."""
    found = [sys.executable, "-P", "-m", "vesper", "dashboard", "--end-with-input", "--port", str(port)]
    found += [] if settings.path is None else ["--config", str(settings.path.resolve())]
    return found if log_format is None else [*found, "--log-format", log_format]
