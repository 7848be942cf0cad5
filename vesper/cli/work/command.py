"""`vesper work`: the keeper, queues, schedules and topics of a process without HTTP."""

from __future__ import annotations

import logging
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vesper.cli.options import config_option
from vesper.cli.settings import read_settings
from vesper.config.code_folder import search_code_folder
from vesper.journal.moments import number
from vesper.repository.locate import FOLDER, FOLDER_VARIABLE, NodeNotFound, is_library_file, node_files
from vesper.values.model import printable
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper.api.node import Node
    from vesper.host.host import Host
    from vesper.migration.router.routes import Routes

_log = logging.getLogger("vesper.work")


@click.command("work")
@click.argument("nodes", nargs=-1, type=click.Path(), envvar=FOLDER_VARIABLE)
@click.option("--engine", type=click.Choice(("auto", "python", "direct")), default="auto", show_default=True)
@click.option("--grace", type=click.FloatRange(0.1, 3_600), default=10.0, show_default=True, help="Seconds to drain.")
@config_option()
@click.option("--log-format", type=click.Choice(("text", "json")), help="Form of log lines on standard error.")
def command(nodes: tuple[str, ...], engine: str, grace: float, config: Path | None, log_format: str | None) -> None:
    """Wake waiting runs and do queued, scheduled and event work of NODES, by default those of the folder `nodes`.

    Any number of processes may work on one journal; each run is continued by one of them, on its own definition, also
    where its file has changed. SIGTERM and Ctrl-C finish what is under way, at most --grace, and end.
    """
    from vesper.host.host import Host
    from vesper.migration.router.routes import Routes
    from vesper.observe.logs import configure
    from vesper.serve.nodes import ENGINES
    from vesper.serve.work import Work

    settings = read_settings(config)
    configure(log_format or settings.observe.logs, settings.observe.levels)
    if not settings.recovery.enabled or not settings.keeper.enabled:
        raise click.ClickException("`[recovery] enabled` and `[keeper] enabled` must be true: nothing would be woken")
    stopping = threading.Event()
    handlers = {each: signal.signal(each, lambda *_: stopping.set()) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        search_code_folder(settings)
        routes = Routes(settings) if engine == "auto" else None
        with Host(settings) as host:
            loaded = _load([Path(each) for each in nodes or (FOLDER,)], ENGINES[engine], host, routes)
            host.journal.unfinished(1)  # reports an unusable journal now
            work = Work(host, loaded)
            host.start()
            work.start()
            click.echo(f"working on {number(len(loaded), 'node')}; Ctrl-C ends", err=True)
            stopping.wait()
            is_done = work.stop(grace)
            host.close(grace)
        if not is_done:
            _log.warning("work goes on after %s s: it is left to other processes", grace)
        if routes is not None:
            routes.close()
    except VesperError as problem:
        raise click.ClickException(printable(str(problem))) from None
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)


def _load(roots: list[Path], engine: str, host: Host, routes: Routes | None) -> list[Node]:
    """Load and prepare the nodes that a Host runs, so that their runs are routed as those of a service."""
    from vesper.serve.nodes import is_hosted
    from vesper.serve.work import has_work, load_files

    try:
        files = [each for each in node_files(roots) if not is_library_file(each)]
    except NodeNotFound as problem:
        raise click.UsageError(str(problem)) from None
    loaded = load_files(files, roots, host, routes, engine)
    found = [each for each in loaded if is_hosted(each) or has_work(each)]
    for each in found:
        each._prepare(host)
    return found
