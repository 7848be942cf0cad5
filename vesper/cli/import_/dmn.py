"""`vesper import dmn`."""

from __future__ import annotations

from pathlib import Path

import click

from vesper.cli.exits import WRONG_INPUT
from vesper.cli.import_.nodes_written import out_option, write_node_file
from vesper.cli.options import ReadPath
from vesper.importers.dmn.importing import Imported, import_file
from vesper.importers.dmn.nodes import Untranslated
from vesper.importers.dmn.xml_reader import XmlProblem


@click.command("dmn")
@click.argument("file", type=ReadPath())
@out_option
@click.option(
    "--decision",
    "names",
    multiple=True,
    help="Name of a decision or a decision service; by default all that no other decision requires.",
)
@click.option(
    "--tests",
    type=ReadPath(),
    multiple=True,
    help="File of test cases in the format of the DMN TCK; by default those beside FILE that name it.",
)
@click.option("--null-inputs", is_flag=True, help="Accept null for every input, as DMN does.")
def command(file: Path, folder: Path, names: tuple[str, ...], tests: tuple[Path, ...], null_inputs: bool) -> None:
    """Write nodes from a DMN model: one for each decision or decision service that a caller asks for.

    Required decisions become steps, business knowledge models functions, and test cases cases of the node.
    """
    try:
        imported = import_file(file, list(names), list(tests) or None, null_inputs)
    except XmlProblem as problem:
        raise click.UsageError(str(problem)) from None
    except KeyError as error:
        raise click.UsageError(f"{file.as_posix()} has no decision or decision service named {error}") from None
    for node in imported.nodes:
        write_node_file(folder, node.node_id, node.text)
    _report(file, imported)


def _report(file: Path, imported: Imported) -> None:
    """Print the nodes and all parts that are not translated.

    Exit with 1 if there are such parts, or no nodes.
    """
    rows = []
    problems: list[Untranslated] = list(imported.problems)
    for node in imported.nodes:
        state = "translated" if not node.problems else f"{len(node.problems)} parts not translated"
        rows.append((node.node_id, f"{node.kind} {node.source}", f"{len(node.cases)} cases", state))
        problems += node.problems
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(4)]
    for row in rows:
        click.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    seen = set()
    for each in problems:
        key = (each.element, each.line, each.reason)
        if key not in seen:
            seen.add(key)
            text = f": {each.text}" if each.text else ""
            click.echo(f"{file.name}:{each.line}: {each.element}: {each.category}: {each.reason}{text}", err=True)
    if problems or not rows:
        raise SystemExit(WRONG_INPUT)
