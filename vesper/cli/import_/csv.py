"""`vesper import csv`."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import click

from vesper.cli.import_.nodes_written import out_option, read_source
from vesper.cli.import_.tables import fail, import_table, name_option, outputs_option, types_option
from vesper.importers.sheets.layout import Line
from vesper.language.tables.files import delimiter_of

MAX_BYTES = 64 * 2**20


@click.command("csv")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@out_option
@name_option
@outputs_option
@types_option
def command(file: Path, folder: Path, name: str, outputs: str, types: tuple[str, ...]) -> None:
    """Write a node from a decision table in a CSV file.

    The first line has the names of the columns, and in its first cell optionally the hit policy. An optional second
    line says what each column is: `in` or `out` with a type, `when`, `annotation`, `reason`.
    """
    import_table(file, folder, _lines(file), name, outputs, types)


def _lines(file: Path) -> list[Line]:
    try:
        text = read_source(file, MAX_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        fail(file, 0, "it is not UTF-8")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(text), strict=True)
    lines: list[Line] = []
    try:
        lines.extend((reader.line_num, cells) for cells in reader if any(cells))
    except csv.Error as error:
        fail(file, reader.line_num, f"the line is no CSV: {error}")
    return lines
