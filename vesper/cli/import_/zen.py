"""`vesper import zen`."""

from __future__ import annotations

from pathlib import Path

import click

from vesper.cli.exits import WRONG_INPUT
from vesper.cli.import_.nodes_written import out_option, read_source, report, write_node_file
from vesper.importers.zen.importer import import_model
from vesper.importers.zen.model import MAX_BYTES, ModelError


@click.command("zen")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@out_option
def command(file: Path, folder: Path) -> None:
    """Write a node from a JSON decision model of zen.

    FILE is a model with its nodes and edges. Its tests become the cases of the node, and decide the types of its
    inputs. Models that it evaluates are read from the folder of FILE.
    """

    def read_key(key: str) -> str | None:
        beside = file.parent / Path(key).name
        return _text(beside) if beside.is_file() else None

    try:
        imported = import_model(_text(file), file.stem, read_key)
    except ModelError as error:
        click.echo(f"error: {file.as_posix()}: {error}", err=True)
        raise SystemExit(WRONG_INPUT) from error
    write_node_file(folder, imported.node_id, imported.text)
    notes = [str(problem) for problem in imported.problems if not problem.is_refused]
    report(notes, [str(problem) for problem in imported.problems if problem.is_refused])


def _text(file: Path) -> str:
    try:
        return read_source(file, MAX_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(f"{file.name} is not UTF-8") from error
