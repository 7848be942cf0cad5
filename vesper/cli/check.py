"""`vesper check`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from vesper.cli.exits import FINE, WRONG_INPUT
from vesper.cli.loading import find_nodes, nodes_option, print_diagnostics
from vesper.compiler import compile_file


@click.command("check")
@click.argument("paths", nargs=-1)
@nodes_option
@click.option("--format", "style", type=click.Choice(["full", "concise"]), default="full", show_default=True)
def command(paths: tuple[str, ...], root: Path, style: str) -> None:
    """Check nodes and say what is wrong with them.

    PATHS are files, folders or node names; without any, every node under --nodes is checked.
    """
    files = find_nodes(paths, root)
    if not files:
        raise click.UsageError("there are no .vsp files here")
    wrong = warnings = 0
    for path in files:
        compiled, bag = compile_file(path)
        print_diagnostics(bag, style)
        wrong += compiled is None
        warnings += len(bag.sorted()) - bag.error_count
    summary = f"{len(files)} node{'s' if len(files) != 1 else ''} checked, {wrong} with errors"
    click.echo(summary + (f", {warnings} warning{'s' if warnings != 1 else ''}" if warnings else ""))
    sys.exit(WRONG_INPUT if wrong else FINE)
