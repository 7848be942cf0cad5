"""From NODE on a command line to a compiled node, with diagnostics on standard error."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from vesper.cli.exits import WRONG_INPUT
from vesper.compiler import Compiled, compile_file
from vesper.diagnostics.diagnostic import DiagnosticBag, Severity
from vesper.diagnostics.render_concise import render_concise
from vesper.diagnostics.render_full import render_full
from vesper.repository.locate import NodeNotFound, locate, node_files

nodes_option = click.option(
    "--nodes",
    "root",
    type=click.Path(path_type=Path),
    default=Path("nodes"),
    show_default=True,
    envvar="VESPER_NODES",
    show_envvar=True,
    help="The folder in which NODE is looked for.",
)


def find_node(wanted: str, root: Path) -> Path:
    try:
        return locate(wanted, root)
    except NodeNotFound as problem:
        raise click.UsageError(str(problem)) from None


def find_nodes(paths: tuple[str, ...], root: Path) -> list[Path]:
    """Files and folders as they are, names through the repository; without any, every node under the root."""
    try:
        if not paths:
            return node_files([root])
        found = []
        for path in paths:
            found += node_files([Path(path)]) if Path(path).exists() else [locate(path, root)]
    except NodeNotFound as problem:
        raise click.UsageError(str(problem)) from None
    return list(dict.fromkeys(found))


def compile_or_exit(path: Path) -> Compiled:
    compiled, bag = compile_file(path)
    print_diagnostics(bag, "full")
    if compiled is None:
        sys.exit(WRONG_INPUT)
    return compiled


def print_diagnostics(bag: DiagnosticBag, style: str) -> None:
    for diagnostic in bag.sorted():
        if style == "concise":
            click.echo(render_concise(bag.source, diagnostic), err=True)
            continue
        text = render_full(bag.source, diagnostic)
        headline, _, rest = text.partition("\n")
        colour = "red" if diagnostic.severity is Severity.ERROR else "yellow"
        click.echo(click.style(headline, fg=colour, bold=True) + "\n" + rest + "\n", err=True)
