"""`vesper mcp`: nodes, or the tools of an author, for clients of the Model Context Protocol."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vesper.cli.exits import FINE, WRONG_INPUT
from vesper.cli.options import NODE, config_option, nodes_option
from vesper.cli.settings import printable_lines, read_settings
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper.config.settings import Config

_MISSING = "it needs the package `mcp`: run `pip install 'vesper[mcp]'`"


@click.command("mcp")
@click.argument("nodes", nargs=-1, type=NODE)
@nodes_option
@click.option("--engine", type=click.Choice(("auto", "python", "direct")), default="python", show_default=True)
@click.option("--http", "address", metavar="[HOST:]PORT", help="Serve streamable HTTP at /mcp; by default stdio.")
@click.option("--insecure", is_flag=True, help="Allow a public address without API keys.")
@click.option("--author", is_flag=True, help="Offer tools that write, check, test and run nodes instead.")
@click.option("--grants", "has_grants", is_flag=True, help="With --author: runs may do what the settings grant.")
@click.option("--pins", is_flag=True, help="Print the tools of the servers of [mcp.NAME], and the pins to configure.")
@config_option("with the grants")
def command(
    nodes: tuple[str, ...],
    root: Path,
    engine: str,
    address: str | None,
    insecure: bool,
    author: bool,
    has_grants: bool,
    pins: bool,
    config: Path | None,
) -> None:
    """Serve nodes as tools of the Model Context Protocol.

    NODES are ids, patterns, files or folders, by default every node under --nodes. Inputs and outputs have JSON
    Schemas, an outcome without outputs is an error of the tool, and effects need the grants of the settings. What a
    tool rule asks, the client asks its person.

    With --author the tools read and write .vsp files under --nodes, and check, fix, test, run and compare them; no
    effect is performed without --grants. See docs/how-to/write-nodes-with-a-model.md.
    """
    if importlib.util.find_spec("mcp") is None:
        raise click.ClickException(_MISSING)
    if has_grants and not author:
        raise click.UsageError("--grants belongs to --author: nodes that are tools always have their grants")
    if author and nodes:
        raise click.UsageError("--author works on all nodes under --nodes: omit NODES")
    if pins and (author or nodes or address):
        raise click.UsageError("--pins prints and serves nothing: use it alone")
    try:
        if pins:
            sys.exit(_print_pins(read_settings(config)))
        if author:
            _serve_author(root, config, has_grants, address, insecure)
        else:
            _serve_nodes(nodes, root, config, engine, address, insecure)
    except VesperError as problem:
        raise click.ClickException(printable_lines(str(problem))) from None


def _serve_nodes(
    names: tuple[str, ...], root: Path, config: Path | None, engine: str, address: str | None, insecure: bool
) -> None:
    from vesper.host.host import Host
    from vesper.mcp.node_server import load_tools, node_server
    from vesper.mcp.transports import run_server

    settings = read_settings(config)
    routes = None
    if engine == "auto":
        from vesper.migration.router.routes import Routes

        routes = Routes(settings)
    try:
        with Host(settings) as host:
            tools = load_tools(names, root, host, routes, engine)
            server, calls = node_server(tools, host)
            run_server(server, settings, address, insecure, _report(f"{len(tools)} nodes"), calls.close)
    finally:
        if routes is not None:
            routes.close()


def _serve_author(root: Path, config: Path | None, has_grants: bool, address: str | None, insecure: bool) -> None:
    from vesper.mcp.author.project import Project
    from vesper.mcp.author.server import author_server
    from vesper.mcp.transports import run_server

    settings = read_settings(config)
    with Project(root, settings.path, has_grants) as project:
        run_server(author_server(project), settings, address, insecure, _report(f"the author of {root}"))


def _report(subject: str) -> Callable[[str], None]:
    def report(where: str) -> None:
        click.echo(f"serving {subject} at {where}; Ctrl-C ends it", err=True)

    return report


def _print_pins(settings: Config) -> int:
    from vesper.mcp.pins import pin_lines, read_pins

    if not settings.parts.mcp:
        raise click.ClickException("no server is configured: add [mcp.NAME] with `command` or `url` to vesper.toml")
    code = FINE
    for found in read_pins(settings):
        click.echo("\n".join(pin_lines(found)))
        code = WRONG_INPUT if found.problem is not None else code
    return code
