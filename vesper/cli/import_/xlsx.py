"""`vesper import xlsx`."""

from __future__ import annotations

from pathlib import Path

import click

from vesper.cli.import_.nodes_written import out_option, read_source
from vesper.cli.import_.tables import fail, import_table, name_option, outputs_option, types_option
from vesper.storage.sheets.model import SheetProblem
from vesper.storage.sheets.xlsx_reader import read_sheet

MAX_BYTES = 64 * 2**20


@click.command("xlsx")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--sheet", help="Name of the sheet; by default the first.")
@out_option
@name_option
@outputs_option
@types_option
def command(file: Path, sheet: str | None, folder: Path, name: str, outputs: str, types: tuple[str, ...]) -> None:
    """Write a node from a decision table in a sheet of an XLSX workbook.

    The layout is that of `vesper import csv`, and of `vesper export xlsx`. Numbers are read from the text in the
    workbook, with at most 15 significant digits, as spreadsheet programs show them.
    """
    try:
        found = read_sheet(read_source(file, MAX_BYTES), sheet)
    except SheetProblem as error:
        fail(file, error.line, str(error))
    import_table(file, folder, found.lines, name or (found.name if sheet else ""), outputs, types)
