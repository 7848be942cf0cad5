"""Functions shared by the imports of decision tables from CSV and XLSX files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

from vesper.cli.exits import WRONG_INPUT
from vesper.cli.import_.nodes_written import write_node_file
from vesper.importers.sheets.layout import Line, table_of_lines
from vesper.importers.sheets.model import SheetFormatError
from vesper.importers.sheets.to_node import NodeOfSheet, node_of_table
from vesper.storage.write_file import create_text

outputs_option = click.option(
    "--outputs",
    default="",
    help="Columns of results, separated by commas; by default the sheet marks them, or its last column is the result.",
)
types_option = click.option(
    "--type",
    "types",
    multiple=True,
    metavar="COLUMN=TYPE",
    help="Type of a column; by default the sheet states it, or it is guessed.",
)
name_option = click.option("--name", default="", help="Name of the node without its version; by default that of FILE.")


def import_table(
    file: Path, folder: Path, lines: Sequence[Line], name: str, outputs: str, types: tuple[str, ...]
) -> None:
    """Write the node of a table, and the file of its rows where there are many."""
    stated = dict(_parse_type_option(each) for each in types)
    try:
        table = table_of_lines(name or file.stem, lines, [each.strip() for each in outputs.split(",") if each.strip()])
        node = node_of_table(table, stated)
    except SheetFormatError as error:
        fail(file, error.line, str(error))
    if node.rows_file is not None:
        rows = folder / node.rows_file[0]
        try:
            create_text(rows, node.rows_file[1])
        except FileExistsError as error:
            raise click.UsageError(f"{rows.as_posix()} already exists; move it, or choose another --out") from error
        click.echo(f"wrote {rows.as_posix()}")
    write_node_file(folder, node.node_id, node.text)
    _show_types(node)
    for headline in node.errors:
        click.echo(f"error in the node: {headline}", err=True)
    if node.errors:
        raise SystemExit(WRONG_INPUT)


def fail(file: Path, line: int, text: str) -> NoReturn:
    """End the command with an error in a file."""
    place = f"{file.as_posix()}:{line}" if line else file.as_posix()
    click.echo(f"error: {place}: {text}", err=True)
    raise SystemExit(WRONG_INPUT)


def _parse_type_option(text: str) -> tuple[str, str]:
    column, sign, type_ = text.partition("=")
    if not sign or not type_.strip():
        raise click.UsageError(f"--type {text}: write COLUMN=TYPE")
    return column.strip(), type_.strip()


def _show_types(node: NodeOfSheet) -> None:
    width = max(map(len, node.types))
    for column, type_ in node.types.items():
        click.echo(f"  {column:{width}}  {type_}")
