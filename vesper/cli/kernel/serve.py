"""`vesper kernel serve`: replaces its process by the kernel's program."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import click

from vesper.cli.options import config_option
from vesper.cli.settings import printable_lines, read_settings
from vesper.config.kernel import read_host, read_store
from vesper.effects.settings import ConfigError
from vesper.kernel.errors import KernelNotStarted
from vesper.kernel.program import environment_of, find_program, make_store_folder


@click.command("serve")
@click.option("--host", metavar="ADDRESS", help="Address to bind.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65_535), help="Port to bind; 0 takes a free one.  [default: 7443]")
@click.option(
    "--store", metavar="STORE", help="`memory`, `sqlite:PATH` or `postgresql://…`.  [default: sqlite:.vesper/kernel.db]"
)
@config_option()
def serve(host: str | None, port: int | None, store: str | None, config: Path | None) -> None:
    """Serve processes, pipelines and messages over gRPC until SIGTERM or Ctrl-C.

    Prints `listening on HOST:PORT` when it accepts calls. Settings are `[kernel]` of `vesper.toml`; variables
    VESPER_KERNEL_* of the environment win. An address other than loopback needs
    tokens, keys, issuers or `client_ca`.
    """
    whole = read_settings(config)
    settings = whole.kernel
    try:
        settings = replace(
            settings,
            host=settings.host if host is None else read_host(host),
            port=settings.port if port is None else port,
            store=settings.store if store is None else read_store(store, Path.cwd()),
        )
    except ValueError as problem:
        raise click.UsageError(printable_lines(str(problem))) from None
    try:
        program = find_program()
        environment = environment_of(settings, whole.parts.secrets)
        make_store_folder(settings)
    except (KernelNotStarted, ConfigError, OSError) as problem:
        raise click.ClickException(str(problem)) from None
    options = {"LISTEN": host is not None or port is not None, "STORE": store is not None}
    given = {
        name: value
        for name, value in environment.items()
        if name not in os.environ or options.get(name.removeprefix("VESPER_KERNEL_"))
    }
    sys.stdout.flush()
    # The process becomes the kernel: signals reach it, and its end is that of the command.
    os.execve(program, [program], {**os.environ, **given})
