"""`vesper openapi`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vesper.cli.load_node import compile_or_exit, find_nodes
from vesper.cli.options import NODE, config_option, nodes_option
from vesper.cli.settings import read_settings
from vesper.config.grants import matches_node
from vesper.storage.write_file import write_bytes
from vesper.values.model import printable

if TYPE_CHECKING:
    from vesper.compiler import Compiled


@click.command("openapi")
@click.argument("paths", type=NODE, nargs=-1)
@nodes_option
@click.option("--expose", multiple=True, metavar="PATTERN", help="Functions that are served at POST /nodes/ID.")
@click.option("--title", default="Nodes", show_default=True, help="Title of the document.")
@click.option(
    "-o", "--out", "target", type=click.Path(path_type=Path, dir_okay=False), help="By default standard output."
)
@config_option("with [serve]: decimals, authentication, exposed functions")
def command(
    paths: tuple[str, ...], root: Path, expose: tuple[str, ...], title: str, target: Path | None, config: Path | None
) -> None:
    """Write the OpenAPI 3.1 document of a service.

    PATHS are files, folders or node names; by default every node under --nodes. The document has the nodes with `http`
    and the functions that --expose or the configuration names. `vesper serve` answers with the same document at
    /openapi.json.
    """
    from vesper.serve.openapi.document import openapi_json

    settings = read_settings(config).serve
    patterns = (*settings.expose, *expose)
    found: dict[str, Compiled] = {}
    for path in find_nodes(paths, root):
        compiled = compile_or_exit(path, is_run=False)
        node_id = compiled.node.node_id
        if compiled.http is None and not matches_node(patterns, node_id):
            continue
        route = f"POST /nodes/{node_id}" if compiled.http is None else compiled.http.route
        other = found.setdefault(route, compiled)
        if other is not compiled:
            if _name(other.node.node_id) != _name(node_id):
                problem = f"`{route}` is the route of {other.path} and of {compiled.path}"
                raise click.ClickException(printable(problem))
            found[route] = max(other, compiled, key=lambda each: _version(each.node.node_id))
    if not found:
        raise click.UsageError("no node has `http`: add it to a handler, or name functions by --expose")
    has_runs = settings.has_runs and not all(each.node.is_pure() for each in found.values())
    text = openapi_json(found.values(), settings, title, has_runs) + b"\n"
    if target is None:
        click.echo(text.decode(), nl=False)
        return
    try:
        write_bytes(target, text)
    except OSError as error:
        raise click.ClickException(f"cannot write {target}: {error.strerror or type(error).__name__}") from None


def _name(node_id: str) -> str:
    return node_id.rpartition("_v")[0]


def _version(node_id: str) -> int:
    return int(node_id.rpartition("_v")[2])
