"""`vesper kernel worker`: runs steps of pipelines."""

from __future__ import annotations

import signal
from pathlib import Path

import click

from vesper.cli.kernel.connection import Connection, connect, connection_options
from vesper.cli.settings import read_settings
from vesper.journal.moments import number
from vesper.repository.locate import FOLDER, FOLDER_VARIABLE, NodeNotFound, is_library_file, node_files


@click.command("worker")
@click.argument("nodes", nargs=-1, type=click.Path(), envvar=FOLDER_VARIABLE)
@click.option("--service", required=True, metavar="NAME", help="The service of these nodes, registered where needed.")
@click.option("--threads", type=click.IntRange(1, 1_024), default=16, show_default=True, help="Steps at a time.")
@click.option("--engine", type=click.Choice(("auto", "python", "direct")), default="auto", show_default=True)
@click.option("--grace", type=click.FloatRange(0.1, 3_600), default=10.0, show_default=True, help="Seconds to drain.")
@connection_options
@click.option("--log-format", type=click.Choice(("text", "json")), help="Form of log lines on standard error.")
def worker(
    nodes: tuple[str, ...],
    service: str,
    threads: int,
    engine: str,
    grace: float,
    connection: Connection,
    log_format: str | None,
) -> None:
    """Run steps with NODES, files and folders, by default the folder `nodes`.

    Each step runs with its id as idempotency key in the journal: its effects are performed once, however often the
    kernel gives it out. SIGTERM and Ctrl-C finish what is under way, at most --grace, and end.
    """
    settings = read_settings(connection.config)
    with connect(connection) as client:
        from vesper.config.code_folder import search_code_folder
        from vesper.host.host import Host
        from vesper.kernel.nodes import load_nodes
        from vesper.kernel.worker import Worker
        from vesper.migration.router.routes import Routes
        from vesper.observe.logs import configure

        configure(log_format or settings.observe.logs, settings.observe.levels)
        search_code_folder(settings)
        routes = Routes(settings) if engine == "auto" else None
        try:
            files = [
                each for each in node_files([Path(each) for each in nodes or (FOLDER,)]) if not is_library_file(each)
            ]
        except NodeNotFound as problem:
            raise click.UsageError(str(problem)) from None
        with Host(settings) as host:
            loaded = load_nodes(files, engine, host, routes)
            own = Worker(client, host, loaded, service, threads)
            handlers = {each: signal.signal(each, lambda *_: own.stop()) for each in (signal.SIGTERM, signal.SIGINT)}
            try:
                click.echo(f"working on {number(len(loaded), 'node')} as {own.name}; Ctrl-C ends", err=True)
                own.run(grace)
            finally:
                for each, handler in handlers.items():
                    signal.signal(each, handler)
                host.close(grace)
        if routes is not None:
            routes.close()
